"""Objects of the RBAC API: roles and their bindings, of a namespace or of the whole cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slipway.api.machinery.objects import Manifest

GROUP = "rbac.authorization.k8s.io"


def role(name: str, rules: Iterable[Manifest], *, namespace: str = "", labels: Mapping[str, str] | None = None) -> Manifest:
    """A Role, or without a namespace a ClusterRole."""
    kind = "Role" if namespace else "ClusterRole"
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": _metadata(name, namespace, labels), "rules": list(rules)}


def binding(
    name: str, role: str, subjects: Iterable[Manifest], *, namespace: str = "", labels: Mapping[str, str] | None = None
) -> Manifest:
    """Gives a role to subjects: a Role of the namespace, or without one a ClusterRole."""
    kind = "Role" if namespace else "ClusterRole"
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": f"{kind}Binding",
        "metadata": _metadata(name, namespace, labels),
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
        "subjects": list(subjects),
    }


def service_account(name: str, namespace: str) -> Manifest:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def _metadata(name: str, namespace: str, labels: Mapping[str, str] | None) -> Manifest:
    return {"name": name, **({"namespace": namespace} if namespace else {}), **({"labels": dict(labels)} if labels else {})}
