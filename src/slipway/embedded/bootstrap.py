"""What a new cluster has before anybody writes to it: namespaces and the roles that everybody needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.embedded.access.authorization import DISCOVERY_PATHS, PUBLIC_PATHS
from slipway.embedded.registry.metadata import initialise

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.storage.store import Store


NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_RBAC = "rbac.authorization.k8s.io"
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_UPDATED = {f"{_RBAC}/autoupdate": "true"}

_ROLES: dict[str, list[Manifest]] = {
    "cluster-admin": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "system:basic-user": [
        {
            "verbs": ["create"],
            "apiGroups": ["authorization.k8s.io"],
            "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        },
        {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]},
    ],
    "system:discovery": [{"verbs": ["get"], "nonResourceURLs": sorted(DISCOVERY_PATHS)}],
    "system:public-info-viewer": [{"verbs": ["get"], "nonResourceURLs": sorted(PUBLIC_PATHS)}],
}
_BINDINGS = {
    "cluster-admin": ("system:masters",),
    "system:basic-user": ("system:authenticated",),
    "system:discovery": ("system:authenticated",),
    "system:public-info-viewer": ("system:authenticated", "system:unauthenticated"),
}


def populate(store: Store, clock: Callable[[], datetime]) -> None:
    """Create what is missing."""
    for bucket, manifest in _objects():
        metadata = manifest["metadata"]
        if store.get(bucket, metadata.get("namespace", ""), metadata["name"]) is None:
            initialise(metadata, clock())
            store.put(bucket, manifest, 0)


def _objects() -> list[tuple[str, Manifest]]:
    found: list[tuple[str, Manifest]] = []
    for name in NAMESPACES:
        metadata = {"name": name, "labels": {"kubernetes.io/metadata.name": name}}
        spec, status = {"finalizers": ["kubernetes"]}, {"phase": "Active"}
        found.append(("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "spec": spec, "status": status}))
    for name, rules in _ROLES.items():
        metadata = {"name": name, "labels": dict(_LABELS), "annotations": dict(_UPDATED)}
        found.append((f"clusterroles.{_RBAC}", {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}))
    for name, groups in _BINDINGS.items():
        metadata = {"name": name, "labels": dict(_LABELS), "annotations": dict(_UPDATED)}
        subjects = [{"kind": "Group", "apiGroup": _RBAC, "name": group} for group in groups]
        role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name}
        manifest = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": metadata, "subjects": subjects, "roleRef": role}
        found.append((f"clusterrolebindings.{_RBAC}", manifest))
    return found
