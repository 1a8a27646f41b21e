"""The Pod around a component of the control plane: what the API server, its two companions and etcd have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.kubeadm.internal import EnvVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def proxies(environment: Mapping[str, str]) -> list[EnvVar]:
    """The variables of the environment that name a proxy, in either case."""
    return [EnvVar(name=name, value=value) for name, value in environment.items() if name.lower().endswith("_proxy") and value]


def env(*groups: Sequence[EnvVar]) -> dict[str, Any]:
    """The ``env`` of a container, sorted by name; a later group wins, and where there is no variable there is no ``env``."""
    merged = {variable.name: variable for group in groups for variable in group}
    return {"env": [_variable(merged[name]) for name in sorted(merged)]} if merged else {}


def _variable(variable: EnvVar) -> dict[str, Any]:
    made: dict[str, Any] = {"name": variable.name}
    if variable.value:
        made["value"] = variable.value
    if variable.value_from is not None:
        made["valueFrom"] = variable.value_from
    return made
