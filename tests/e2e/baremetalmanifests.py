"""A bare-metal cluster as its users write it: Cluster API's v1beta1 forms, one namespace, pools, and an image catalog."""

from __future__ import annotations

from typing import Any

from e2e.capiclusters import IGNORED, KUBE_PROXY, KUBELET_PATCH

Manifest = dict[str, Any]
NAMESPACE = "cpaas-system"
CLUSTER_API = "cluster.x-k8s.io"
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io/v1beta1"
ELEMENTAL = "elemental.cattle.io/v1beta1"
DEVICE = "host0"
REPOSITORY = "tkestack/baremetal-base-image"
# What the API server and the kubelets of these releases go with, by kubeadm's own tables.
TAGS = {"v1.34.10": ("v1.12.1", "3.6.5-0"), "v1.35.4": ("v1.13.1", "3.6.6-0"), "v1.36.3": ("v1.14.2", "3.6.8-0")}


def tag(version: str) -> str:
    """The tag of a version's OS image."""
    return f"v0.0.0-dev.0-{version.removeprefix('v')}"


def catalog(registry: str, *versions: str) -> Manifest:
    data = {version: f"{registry}/{REPOSITORY}:{tag(version)}" for version in versions}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named("elemental-image-catalog"), "data": data}


def registration(name: str) -> Manifest:
    spec = {
        "machineName": "m-${System Information/UUID}",
        "machineInventoryLabels": {"serial": "${System Information/Serial Number}", "host": "${System Data/Runtime/Hostname}"},
        "machineInventoryAnnotations": {"example.test/chassis": "${Chassis Information/Asset Tag}"},
        "config": {"elemental": {"registration": {"auth": "tpm", "emulate-tpm": True, "emulated-tpm-seed": -1}}},
    }
    return {"apiVersion": ELEMENTAL, "kind": "MachineRegistration", "metadata": named(name), "spec": spec}


def pool(cluster: str, name: str, members: dict[str, str]) -> Manifest:
    """``members`` are hostnames by the name of their inventory."""
    listed = [{"name": inventory, "hostname": hostname} for inventory, hostname in members.items()]
    spec = {"clusterName": cluster, "machineInventories": listed}
    return {"apiVersion": INFRASTRUCTURE, "kind": "MachineInventoryPool", "metadata": named(name), "spec": spec}


def cluster(name: str, vip: str, pods: str, registry: str, vrid: int) -> list[Manifest]:
    metadata = {**named(name), "annotations": {"cpaas.io/registry-address": registry}}
    spec = {
        "clusterNetwork": {"pods": {"cidrBlocks": [pods]}, "services": {"cidrBlocks": ["10.96.0.0/12"]}, "serviceDomain": "cluster.local"},
        "controlPlaneRef": reference("controlplane.cluster.x-k8s.io/v1beta1", "KubeadmControlPlane", f"{name}-control-plane"),
        "infrastructureRef": reference(INFRASTRUCTURE, "BaremetalCluster", name),
    }
    balancer = {"host": vip, "port": 6443, "type": "Internal", "vrid": vrid}
    return [
        {"apiVersion": f"{CLUSTER_API}/v1beta1", "kind": "Cluster", "metadata": metadata, "spec": spec},
        {
            "apiVersion": INFRASTRUCTURE,
            "kind": "BaremetalCluster",
            "metadata": named(name),
            "spec": {"controlPlaneLoadBalancer": balancer, "networkDevice": DEVICE},
        },
    ]


def template(name: str, pool_name: str) -> Manifest:
    spec = {"template": {"spec": {"machineInventoryPoolRef": {"name": pool_name}, "allocationPolicy": "Ordered"}}}
    return {"apiVersion": INFRASTRUCTURE, "kind": "BaremetalMachineTemplate", "metadata": named(name), "spec": spec}


def control_plane(name: str, version: str, replicas: int) -> list[Manifest]:
    dns, etcd = TAGS[version]
    registration = node_registration("control-plane")
    patches = {"directory": "/etc/kubernetes/patches"}
    kubeadm = {
        "clusterConfiguration": {
            "imageRepository": "registry.k8s.io",
            "dns": {"imageTag": dns},
            "etcd": {"local": {"imageTag": etcd}},
        },
        "initConfiguration": {"nodeRegistration": registration, "patches": patches},
        "joinConfiguration": {"nodeRegistration": registration, "patches": patches},
        "files": files(),
        # Cluster API has no field for the configuration of kube-proxy.
        "preKubeadmCommands": ["[ ! -e /run/kubeadm/kubeadm.yaml ] || cat /etc/kube-proxy.yaml >> /run/kubeadm/kubeadm.yaml"],
    }
    spec = {
        "replicas": replicas,
        "version": version,
        "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0 if replicas > 1 else 1}},
        "machineTemplate": {"infrastructureRef": reference(INFRASTRUCTURE, "BaremetalMachineTemplate", f"{name}-control-plane")},
        "kubeadmConfigSpec": kubeadm,
    }
    made = {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1",
        "kind": "KubeadmControlPlane",
        "metadata": named(f"{name}-control-plane"),
        "spec": spec,
    }
    return [template(f"{name}-control-plane", f"{name}-control-plane-pool"), made]


def workers(name: str, version: str, replicas: int) -> list[Manifest]:
    labels = {f"{CLUSTER_API}/cluster-name": name, f"{CLUSTER_API}/deployment-name": f"{name}-workers"}
    machine = {
        "clusterName": name,
        "version": version,
        "bootstrap": {"configRef": reference("bootstrap.cluster.x-k8s.io/v1beta1", "KubeadmConfigTemplate", f"{name}-workers")},
        "infrastructureRef": reference(INFRASTRUCTURE, "BaremetalMachineTemplate", f"{name}-workers"),
    }
    spec = {
        "clusterName": name,
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "template": {"metadata": {"labels": labels}, "spec": machine},
    }
    return [
        template(f"{name}-workers", f"{name}-worker-pool"),
        bootstrap_template(f"{name}-workers"),
        {"apiVersion": f"{CLUSTER_API}/v1beta1", "kind": "MachineDeployment", "metadata": named(f"{name}-workers"), "spec": spec},
    ]


def bootstrap_template(name: str, labels: str = "") -> Manifest:
    """``labels`` are further ones of the Nodes: ``example.test/rack=8``."""
    config = {
        "joinConfiguration": {
            "nodeRegistration": node_registration("worker", labels),
            "patches": {"directory": "/etc/kubernetes/patches"},
        },
        "files": files(),
    }
    return {
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
        "kind": "KubeadmConfigTemplate",
        "metadata": named(name),
        "spec": {"template": {"spec": config}},
    }


def node_registration(role: str, labels: str = "") -> Manifest:
    return {
        "ignorePreflightErrors": IGNORED,
        "kubeletExtraArgs": {"node-labels": ",".join(filter(None, (f"example.test/role={role}", labels)))},
        # A lab has no registry for container images, and until a rollout has ended kubeadm's configuration names the old CoreDNS.
        "imagePullPolicy": "Never",
    }


def files() -> list[Manifest]:
    return [
        {"path": "/etc/kubernetes/patches/kubeletconfiguration+merge.yaml", "content": KUBELET_PATCH},
        {"path": "/etc/kube-proxy.yaml", "content": KUBE_PROXY},
    ]


def named(name: str) -> Manifest:
    return {"name": name, "namespace": NAMESPACE}


def reference(api_version: str, kind: str, name: str) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "name": name}
