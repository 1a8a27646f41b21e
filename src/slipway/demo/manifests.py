"""The objects of the demonstration, as an operator would write them; the names are those of the upgrade guide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.cluster.infrastructure.names import CATALOG_NAME, REGISTRY_ADDRESS_ANNOTATION
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE_TEMPLATE,
    CLUSTER,
    CONFIG_MAP,
    KUBEADM_CONFIG_TEMPLATE,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY_POOL,
    MACHINE_REGISTRATION,
)
from slipway.api.cluster.names import CLUSTER_NAME_LABEL
from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.demo.options import CLUSTER as NAME
from slipway.demo.options import NAMESPACE, PLANE, PLANE_POOL, WORKERS, WORKERS_POOL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.demo.options import Options

REGISTRY = "registry.demo:5000"
REPOSITORY = "tkestack/baremetal-base-image"
REGISTRATION = "demo-hosts"
_LABELS = {CLUSTER_NAME_LABEL: NAME}
_JOINING = {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": [{"name": "node-labels", "value": "pool=workers"}]}}}


def tag(version: str) -> str:
    """The tag of the OS image of a version, as the guide's examples have it."""
    return f"v0.0.0-{version.removeprefix('v')}"


def image(version: str) -> str:
    return f"{REGISTRY}/{REPOSITORY}:{tag(version)}"


def component_tags(version: str) -> Manifest:
    """The pinned tags of a version's components: ``clusterConfiguration.dns`` and ``.etcd``, which are edited with the version."""
    release = release_for(Version.parse(version))
    return {
        "dns": {"imageTag": release.coredns_version},
        "etcd": {"local": {"imageTag": release.etcd_versions[release.version.minor]}},
    }


def registration() -> Manifest:
    """Every host may register, by its TPM, and is named as it calls itself."""
    told = {"registration": {"auth": "tpm", "emulate-tpm": True}}
    return _named(REGISTRATION, {"machineName": "${Runtime/Hostname}", "config": {"elemental": told}}, labels={})


def catalog(versions: Iterable[str]) -> Manifest:
    return {"metadata": {"name": CATALOG_NAME, "namespace": NAMESPACE}, "data": {version: image(version) for version in versions}}


def pool(hosts: Sequence[str]) -> Manifest:
    return {"clusterName": NAME, "machineInventories": [{"name": host} for host in hosts]}


def cluster(options: Options, hosts: Sequence[str], vip: str, port: int) -> list[tuple[Kind, Manifest]]:
    """All of a cluster; the first hosts are the control plane's, those that follow are the workers'."""
    planes = options.control_planes + options.surge
    made: list[tuple[Kind, str, Manifest]] = [
        (MACHINE_INVENTORY_POOL, PLANE_POOL, pool(hosts[:planes])),
        (MACHINE_INVENTORY_POOL, WORKERS_POOL, pool(hosts[planes : planes + options.workers])),
        (BAREMETAL_MACHINE_TEMPLATE, PLANE, _template(PLANE_POOL)),
        (BAREMETAL_MACHINE_TEMPLATE, WORKERS, _template(WORKERS_POOL)),
        (KUBEADM_CONFIG_TEMPLATE, WORKERS, {"template": {"spec": _JOINING}}),
        (BAREMETAL_CLUSTER, NAME, {"controlPlaneLoadBalancer": {"host": vip, "port": port, "type": "Internal", "vrid": 51}}),
        (KUBEADM_CONTROL_PLANE, PLANE, _control_plane(options)),
        (MACHINE_DEPLOYMENT, WORKERS, _deployment(options)),
        (CLUSTER, NAME, _cluster()),
    ]
    if not options.workers:
        made = [each for each in made if each[1] not in (WORKERS, WORKERS_POOL)]
    found = [(kind, _named(name, spec)) for kind, name, spec in made]
    found[-1][1]["metadata"]["annotations"] = {REGISTRY_ADDRESS_ANNOTATION: REGISTRY}
    return found


def _control_plane(options: Options) -> Manifest:
    return {
        "replicas": options.control_planes,
        "version": options.start,
        "rollout": _rolling(maxSurge=options.surge),
        "machineTemplate": {"spec": {"infrastructureRef": _ref(BAREMETAL_MACHINE_TEMPLATE, PLANE)}},
        "kubeadmConfigSpec": {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256", **component_tags(options.start)}},
    }


def _deployment(options: Options) -> Manifest:
    selector = {**_LABELS, "cluster.x-k8s.io/deployment-name": WORKERS}
    machine = {
        "clusterName": NAME,
        "version": options.start,
        "bootstrap": {"configRef": _ref(KUBEADM_CONFIG_TEMPLATE, WORKERS)},
        "infrastructureRef": _ref(BAREMETAL_MACHINE_TEMPLATE, WORKERS),
    }
    return {
        "clusterName": NAME,
        "replicas": options.workers,
        "selector": {"matchLabels": selector},
        "rollout": _rolling(maxSurge=0, maxUnavailable=1),
        "template": {"metadata": {"labels": selector}, "spec": machine},
    }


def _cluster() -> Manifest:
    return {
        "clusterNetwork": {"pods": {"cidrBlocks": ["10.244.0.0/16"]}, "serviceDomain": "cluster.local"},
        "infrastructureRef": _ref(BAREMETAL_CLUSTER, NAME),
        "controlPlaneRef": _ref(KUBEADM_CONTROL_PLANE, PLANE),
    }


def _template(pool_name: str) -> Manifest:
    return {"template": {"spec": {"machineInventoryPoolRef": {"name": pool_name}, "allocationPolicy": "Ordered"}}}


def _rolling(**budget: Any) -> Manifest:
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": budget}}


def _ref(kind: Kind, name: str) -> Manifest:
    return {"apiGroup": kind.group, "kind": kind.kind, "name": name}


def _named(name: str, spec: Manifest, labels: Manifest = _LABELS) -> Manifest:
    return {"metadata": {"name": name, "namespace": NAMESPACE, **({"labels": dict(labels)} if labels else {})}, "spec": spec}


def control_plane_edit(version: str) -> Manifest:
    """The guide's one edit of the control plane: the version, and the tags that are pinned."""
    return {"spec": {"version": version, "kubeadmConfigSpec": {"clusterConfiguration": component_tags(version)}}}


def workers_patch(version: str) -> Manifest:
    """The guide's patch of the workers, word for word."""
    return {"spec": {"template": {"spec": {"version": version}}}}


def catalog_patch(version: str) -> list[Manifest]:
    """The guide's option B: one more version, word for word."""
    return [{"op": "add", "path": f"/data/{version}", "value": image(version)}]


__all__ = [
    "CONFIG_MAP",
    "MACHINE_REGISTRATION",
    "catalog",
    "catalog_patch",
    "cluster",
    "control_plane_edit",
    "image",
    "pool",
    "registration",
    "workers_patch",
]
