"""A ClusterClass and a Cluster of it as users of Cluster API write them, for lab hosts: v1beta2, the OS image follows the version.

The bootstrap template of the workers has a file that fetches the kubeadm of the control plane, whichever version their own image has.
"""

from __future__ import annotations

from typing import Any

from e2e import capiclusters
from e2e.upstream import INFRASTRUCTURE

Manifest = dict[str, Any]
CORE = "cluster.x-k8s.io"
BOOTSTRAP = "bootstrap.cluster.x-k8s.io"
CONTROL_PLANE = "controlplane.cluster.x-k8s.io"
WORKER = "default-worker"
DEPLOYMENT = "md-0"
DEFER_UPGRADE = "topology.cluster.x-k8s.io/defer-upgrade"
SKIP_PREFLIGHT = "machineset.cluster.x-k8s.io/skip-preflight-checks"
FETCH = "/usr/local/bin/fetch-kubeadm"


def cluster_class(name: str, worker_config: Manifest) -> list[Manifest]:
    """The class, and the templates that it is made of."""
    spec = {
        "infrastructure": {"templateRef": _template(INFRASTRUCTURE, "LabClusterTemplate", name)},
        "controlPlane": {
            "templateRef": _template(CONTROL_PLANE, "KubeadmControlPlaneTemplate", name),
            "machineInfrastructure": {"templateRef": _template(INFRASTRUCTURE, "LabMachineTemplate", f"{name}-cp")},
        },
        "workers": {
            "machineDeployments": [
                {
                    "class": WORKER,
                    "bootstrap": {"templateRef": _template(BOOTSTRAP, "KubeadmConfigTemplate", name)},
                    "infrastructure": {"templateRef": _template(INFRASTRUCTURE, "LabMachineTemplate", f"{name}-worker")},
                }
            ]
        },
        "patches": [
            _image("control-plane", "{{ .builtin.controlPlane.version }}", {"controlPlane": True}),
            _image("worker", "{{ .builtin.machineDeployment.version }}-kubeadm", {"machineDeploymentClass": {"names": [WORKER]}}),
        ],
    }
    plane = {"template": {"spec": {"kubeadmConfigSpec": capiclusters.control_plane_config()}}}
    return [
        capiclusters.manifest(INFRASTRUCTURE, "LabClusterTemplate", name, {"template": {"spec": {}}}),
        capiclusters.machine_template(f"{name}-cp", "follows-the-version"),
        capiclusters.machine_template(f"{name}-worker", "follows-the-version"),
        capiclusters.manifest(CONTROL_PLANE, "KubeadmControlPlaneTemplate", name, plane),
        capiclusters.manifest(BOOTSTRAP, "KubeadmConfigTemplate", name, {"template": {"spec": worker_config}}),
        capiclusters.manifest(CORE, "ClusterClass", name, spec),
    ]


def cluster(name: str, class_name: str, version: str, pods: str, workers: int) -> Manifest:
    """A Cluster whose workers stay behind when its version is raised, and are still made."""
    deployment = {
        "class": WORKER,
        "name": DEPLOYMENT,
        "replicas": workers,
        "metadata": {
            # In a topology, core also holds Machines back that are not of the version of the control plane.
            "annotations": {DEFER_UPGRADE: "", SKIP_PREFLIGHT: "KubeadmVersionSkew,ControlPlaneVersionSkew"}
        },
    }
    spec = {
        "clusterNetwork": capiclusters.network(pods),
        "topology": {
            "classRef": {"name": class_name},
            "version": version,
            "controlPlane": {"replicas": 1},
            "workers": {"machineDeployments": [deployment]},
        },
    }
    return capiclusters.manifest(CORE, "Cluster", name, spec)


def _template(group: str, kind: str, name: str) -> Manifest:
    return {"apiVersion": f"{group}/v1beta2", "kind": kind, "name": name}


def _image(name: str, value: str, resources: Manifest) -> Manifest:
    """A patch that names the image of the version that the machines are made for."""
    selector = {"apiVersion": f"{INFRASTRUCTURE}/v1beta2", "kind": "LabMachineTemplate", "matchResources": resources}
    patches = [{"op": "replace", "path": "/spec/template/spec/image", "valueFrom": {"template": value}}]
    return {"name": f"image-{name}", "definitions": [{"selector": selector, "jsonPatches": patches}]}
