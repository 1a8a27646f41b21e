"""The Pod around a component of the control plane: what the API server, its two companions and etcd have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.workload import environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.api.kubeadm.internal import EnvVar
    from slipway.api.machinery.objects import Manifest
    from slipway.api.releases import Release
    from slipway.node.staticpods.volumes import Mount

_SYSTEM_NODE_CRITICAL = 2000001000


def manifest(container: Mapping[str, Any], mounts: Sequence[Mount], annotations: Mapping[str, str], release: Release) -> Manifest:
    """A static Pod of one container; its volumes are sorted by name."""
    name = container["name"]
    metadata: dict[str, Any] = {"name": name, "namespace": "kube-system", "labels": {"component": name, "tier": "control-plane"}}
    if annotations:
        metadata["annotations"] = dict(annotations)
    if release.null_creation_timestamp:
        metadata["creationTimestamp"] = None
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "containers": [{**container, "imagePullPolicy": "IfNotPresent"}],
            "hostNetwork": True,
            "priority": _SYSTEM_NODE_CRITICAL,
            "priorityClassName": "system-node-critical",
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [mount.volume() for mount in sorted(mounts)],
        },
        "status": {},
    }


def env(*groups: Sequence[EnvVar]) -> dict[str, Any]:
    """The field ``env`` of a container; where there is no variable there is none."""
    made = environment.manifests(*groups)
    return {"env": made} if made else {}
