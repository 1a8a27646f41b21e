"""The objects of a cluster that is soaked, as an operator would write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.infrastructure.names import CATALOG_NAME, REGISTRY_ADDRESS_ANNOTATION
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE_TEMPLATE,
    CLUSTER,
    KUBEADM_CONFIG_TEMPLATE,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY_POOL,
)
from slipway.api.cluster.names import CLUSTER_NAME_LABEL, DEPLOYMENT_NAME_LABEL
from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.simulation.soak.options import NAMESPACE, PLANES, WORKERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest

REGISTRY, REPOSITORY = "registry.soak:5000", "os"
REGISTRATION = "soak-hosts"
PORT = 6443


class Names(NamedTuple):
    """Of the objects of one cluster."""

    cluster: str

    @property
    def plane(self) -> str:
        return f"{self.cluster}-control-plane"

    @property
    def workers(self) -> str:
        return f"{self.cluster}-workers"

    @property
    def plane_pool(self) -> str:
        return f"{self.cluster}-control-plane-pool"

    @property
    def worker_pool(self) -> str:
        return f"{self.cluster}-workers-pool"

    def template(self, generation: int) -> str:
        """Of the workers, and of their KubeadmConfigs: another one for each rollout of templates."""
        return f"{self.workers}-{generation}"


class Place(NamedTuple):
    """Where a cluster is to be."""

    vip: str
    router: int
    planes: Sequence[str]
    """The hosts of the pool of its control planes."""
    workers: Sequence[str]


def registration() -> Manifest:
    told = {"registration": {"auth": "tpm", "emulate-tpm": True}}
    return _named(REGISTRATION, {"machineName": "${Runtime/Hostname}", "config": {"elemental": told}}, {})


def catalog(versions: Iterable[str]) -> Manifest:
    return {"metadata": {"name": CATALOG_NAME, "namespace": NAMESPACE}, "data": {version: image(version) for version in versions}}


def image(version: str) -> str:
    return f"{REGISTRY}/{REPOSITORY}:{version}"


def members(hosts: Iterable[str]) -> list[Manifest]:
    return [{"name": host} for host in hosts]


def cluster(names: Names, place: Place, version: str) -> list[tuple[Kind, Manifest]]:
    """All of a cluster; the pools first, the Cluster last."""
    labels = {CLUSTER_NAME_LABEL: names.cluster}
    selector = {**labels, DEPLOYMENT_NAME_LABEL: names.workers}
    balancer = {"host": place.vip, "port": PORT, "type": "Internal", "vrid": place.router}
    machine = {"clusterName": names.cluster, "version": version, **template_references(names, 0)}
    made: list[tuple[Kind, str, Manifest]] = [
        (MACHINE_INVENTORY_POOL, names.plane_pool, {"clusterName": names.cluster, "machineInventories": members(place.planes)}),
        (MACHINE_INVENTORY_POOL, names.worker_pool, {"clusterName": names.cluster, "machineInventories": members(place.workers)}),
        (BAREMETAL_MACHINE_TEMPLATE, names.plane, _machine_template(names.plane_pool)),
        (BAREMETAL_CLUSTER, names.cluster, {"controlPlaneLoadBalancer": balancer}),
        (
            KUBEADM_CONTROL_PLANE,
            names.plane,
            {
                "replicas": PLANES,
                "version": version,
                "rollout": _rolling(maxSurge=0),
                "machineTemplate": {"spec": {"infrastructureRef": _ref(BAREMETAL_MACHINE_TEMPLATE, names.plane)}},
                "kubeadmConfigSpec": {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256", **_tags(version)}},
            },
        ),
        (
            MACHINE_DEPLOYMENT,
            names.workers,
            {
                "clusterName": names.cluster,
                "replicas": WORKERS,
                "selector": {"matchLabels": selector},
                "rollout": _rolling(maxSurge=0, maxUnavailable=1),
                "template": {"metadata": {"labels": selector}, "spec": machine},
            },
        ),
        (
            CLUSTER,
            names.cluster,
            {
                "clusterNetwork": {"pods": {"cidrBlocks": ["10.244.0.0/16"]}, "serviceDomain": "cluster.local"},
                "infrastructureRef": _ref(BAREMETAL_CLUSTER, names.cluster),
                "controlPlaneRef": _ref(KUBEADM_CONTROL_PLANE, names.plane),
            },
        ),
    ]
    found = [*templates(names, 0), *((kind, _named(name, spec, labels)) for kind, name, spec in made)]
    found[-1][1]["metadata"]["annotations"] = {REGISTRY_ADDRESS_ANNOTATION: REGISTRY}
    return found


def templates(names: Names, generation: int) -> list[tuple[Kind, Manifest]]:
    """What workers are made of."""
    labels = {CLUSTER_NAME_LABEL: names.cluster}
    label = [{"name": "node-labels", "value": f"generation={generation}"}]
    joining = {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": label}}}
    name = names.template(generation)
    return [
        (BAREMETAL_MACHINE_TEMPLATE, _named(name, _machine_template(names.worker_pool), labels)),
        (KUBEADM_CONFIG_TEMPLATE, _named(name, {"template": {"spec": joining}}, labels)),
    ]


def template_references(names: Names, generation: int) -> Manifest:
    name = names.template(generation)
    return {
        "bootstrap": {"configRef": _ref(KUBEADM_CONFIG_TEMPLATE, name)},
        "infrastructureRef": _ref(BAREMETAL_MACHINE_TEMPLATE, name),
    }


def control_plane_edit(version: str) -> Manifest:
    """The version, and the tags that are pinned, in one edit."""
    return {"spec": {"version": version, "kubeadmConfigSpec": {"clusterConfiguration": _tags(version)}}}


def _tags(version: str) -> Manifest:
    release = release_for(Version.parse(version))
    return {
        "dns": {"imageTag": release.coredns_version},
        "etcd": {"local": {"imageTag": release.etcd_versions[release.version.minor]}},
    }


def _machine_template(pool: str) -> Manifest:
    return {"template": {"spec": {"machineInventoryPoolRef": {"name": pool}, "allocationPolicy": "Ordered"}}}


def _rolling(**budget: int) -> Manifest:
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": budget}}


def _ref(kind: Kind, name: str) -> Manifest:
    return {"apiGroup": kind.group, "kind": kind.kind, "name": name}


def _named(name: str, spec: Manifest, labels: dict[str, str]) -> Manifest:
    return {"metadata": {"name": name, "namespace": NAMESPACE, **({"labels": labels} if labels else {})}, "spec": spec}
