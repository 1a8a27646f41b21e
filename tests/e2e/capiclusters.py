"""The objects of a cluster as users of Cluster API write them, for lab hosts: v1beta2, one control plane and some workers."""

from __future__ import annotations

from typing import Any

from e2e.upstream import INFRASTRUCTURE

Manifest = dict[str, Any]

# A lab host is a container on a machine whose disk is well used, often with cgroup v1: see e2e.nodes.CONFIG.
KUBELET_PATCH = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
failCgroupV1: false
evictionHard: {imagefs.available: 1%, nodefs.available: 1%}
imageGCHighThresholdPercent: 100
"""
KUBE_PROXY = """---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
conntrack: {maxPerCore: 0, min: 0}
"""
IGNORED = ["SystemVerification", "NumCPU", "Mem"]


def node_registration() -> Manifest:
    return {
        "name": "{{ ds.meta_data.local_hostname }}",
        "ignorePreflightErrors": IGNORED,
        "kubeletExtraArgs": [{"name": "provider-id", "value": "lab:///{{ ds.meta_data.local_hostname }}"}],
    }


def files() -> list[Manifest]:
    return [
        {"path": "/etc/kubernetes/patches/kubeletconfiguration+merge.yaml", "content": KUBELET_PATCH},
        {"path": "/etc/kube-proxy.yaml", "content": KUBE_PROXY},
    ]


def worker_config(extra_files: list[Manifest] = [], commands: list[str] = []) -> Manifest:  # noqa: B006 - never changed
    return {
        "files": [*files(), *extra_files],
        "joinConfiguration": {"nodeRegistration": node_registration(), "patches": {"directory": "/etc/kubernetes/patches"}},
        **({"preKubeadmCommands": commands} if commands else {}),
    }


def control_plane_config() -> Manifest:
    return {
        "initConfiguration": {"nodeRegistration": node_registration(), "patches": {"directory": "/etc/kubernetes/patches"}},
        "joinConfiguration": {"nodeRegistration": node_registration(), "patches": {"directory": "/etc/kubernetes/patches"}},
        "files": files(),
        # Cluster API has no field for the configuration of kube-proxy.
        "preKubeadmCommands": ["[ ! -e /run/kubeadm/kubeadm.yaml ] || cat /etc/kube-proxy.yaml >> /run/kubeadm/kubeadm.yaml"],
    }


def reference(kind: str, name: str, group: str = INFRASTRUCTURE) -> Manifest:
    return {"apiGroup": group, "kind": kind, "name": name}


def network(pods: str) -> Manifest:
    return {"pods": {"cidrBlocks": [pods]}, "services": {"cidrBlocks": ["10.96.0.0/12"]}, "serviceDomain": "cluster.local"}


def cluster(name: str, endpoint: str, pods: str, *, control_plane: bool = True) -> list[Manifest]:
    """The Cluster and its infrastructure."""
    spec: Manifest = {
        "clusterNetwork": network(pods),
        "infrastructureRef": reference("LabCluster", name),
        "controlPlaneEndpoint": {"host": endpoint, "port": 6443},
    }
    if control_plane:
        spec["controlPlaneRef"] = reference("KubeadmControlPlane", f"{name}-cp", "controlplane.cluster.x-k8s.io")
    return [
        manifest("cluster.x-k8s.io", "Cluster", name, spec),
        manifest(INFRASTRUCTURE, "LabCluster", name, {"controlPlaneEndpoint": {"host": endpoint, "port": 6443}}),
    ]


def control_plane(name: str, version: str, replicas: int = 1) -> list[Manifest]:
    spec = {
        "replicas": replicas,
        "version": version,
        "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
        "machineTemplate": {"spec": {"infrastructureRef": reference("LabMachineTemplate", f"{name}-cp")}},
        "kubeadmConfigSpec": control_plane_config(),
    }
    return [
        machine_template(f"{name}-cp", version),
        manifest("controlplane.cluster.x-k8s.io", "KubeadmControlPlane", f"{name}-cp", spec, cluster_name=name),
    ]


def workers(name: str, version: str, config: Manifest, replicas: int = 1, deployment: str = "md") -> list[Manifest]:
    labels = {"cluster.x-k8s.io/cluster-name": name, "cluster.x-k8s.io/deployment-name": f"{name}-{deployment}"}
    template = {
        "clusterName": name,
        "version": version,
        "bootstrap": {"configRef": reference("KubeadmConfigTemplate", f"{name}-{deployment}", "bootstrap.cluster.x-k8s.io")},
        "infrastructureRef": reference("LabMachineTemplate", f"{name}-{deployment}"),
    }
    spec = {
        "clusterName": name,
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}},
        "template": {"metadata": {"labels": labels}, "spec": template},
    }
    return [
        machine_template(f"{name}-{deployment}", version),
        manifest("bootstrap.cluster.x-k8s.io", "KubeadmConfigTemplate", f"{name}-{deployment}", {"template": {"spec": config}}),
        manifest("cluster.x-k8s.io", "MachineDeployment", f"{name}-{deployment}", spec, cluster_name=name),
    ]


def machine_template(name: str, image: str) -> Manifest:
    return manifest(INFRASTRUCTURE, "LabMachineTemplate", name, {"template": {"spec": {"image": image}}})


def manifest(group: str, kind: str, name: str, spec: Manifest, *, cluster_name: str = "") -> Manifest:
    labels = {"labels": {"cluster.x-k8s.io/cluster-name": cluster_name}} if cluster_name else {}
    return {
        "apiVersion": f"{group}/v1beta2",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", **labels},
        "spec": spec,
    }
