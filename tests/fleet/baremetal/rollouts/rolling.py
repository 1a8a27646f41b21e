"""Control planes and MachineDeployments whose machines are ours, as they are in either version."""

from __future__ import annotations

from typing import Any

IMAGE = "registry.example.com/tkestack/baremetal-base-image:v0.0.0-1"
TEMPLATE = {"kind": "BaremetalMachineTemplate", "name": "t"}


def plane(version: str = "v1.34.5", surge: object = 0, replicas: int = 3, api: str = "v1beta2", **metadata: Any) -> dict[str, Any]:
    strategy = {"rollingUpdate": {"maxSurge": surge}} if surge is not None else {}
    spec: dict[str, Any] = {"version": version, "replicas": replicas}
    if api == "v1beta1":
        spec |= {"machineTemplate": {"infrastructureRef": TEMPLATE}, "rolloutStrategy": strategy}
    else:
        spec |= {"machineTemplate": {"spec": {"infrastructureRef": TEMPLATE}}, "rollout": {"strategy": strategy}}
    return {
        "apiVersion": f"controlplane.cluster.x-k8s.io/{api}",
        "kind": "KubeadmControlPlane",
        "metadata": {"name": "cp", "namespace": "n", "labels": {"cluster.x-k8s.io/cluster-name": "c"}, **metadata},
        "spec": spec,
    }


def workers(
    version: str = "v1.34.5",
    surge: object = 0,
    replicas: int = 2,
    api: str = "v1beta2",
    template: str = "w",
    kind: str = "",
    **metadata: Any,
) -> dict[str, Any]:
    strategy: dict[str, Any] = {"type": "RollingUpdate"} | ({"rollingUpdate": {"maxSurge": surge}} if surge is not None else {})
    reference = {**TEMPLATE, "name": template} | ({"kind": kind} if kind else {})
    return {
        "apiVersion": f"cluster.x-k8s.io/{api}",
        "kind": "MachineDeployment",
        "metadata": {"name": "md", "namespace": "n", **metadata},
        "spec": {
            "clusterName": "c",
            "replicas": replicas,
            "template": {"spec": {"version": version, "infrastructureRef": reference}},
            **({"strategy": strategy} if api == "v1beta1" else {"rollout": {"strategy": strategy}}),
        },
    }
