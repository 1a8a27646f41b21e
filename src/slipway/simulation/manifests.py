"""A bare-metal cluster as an operator writes it, for all who make one of simulated hosts; the names are those of the upgrade guide."""

from __future__ import annotations

from types import MappingProxyType
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

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest


class Names(NamedTuple):
    """Of the objects of one cluster."""

    cluster: str
    namespace: str

    @property
    def plane(self) -> str:
        return f"{self.cluster}-control-plane"

    @property
    def workers(self) -> str:
        return f"{self.cluster}-workers"

    @property
    def plane_pool(self) -> str:
        return f"{self.plane}-pool"

    @property
    def worker_pool(self) -> str:
        return f"{self.workers}-pool"

    @property
    def labels(self) -> dict[str, str]:
        return {CLUSTER_NAME_LABEL: self.cluster}


class Layout(NamedTuple):
    """What a cluster is to be, and where."""

    names: Names
    version: str
    registry: str
    vip: str
    port: int
    router: int
    """The virtual router ID of its address."""
    control_planes: int
    workers: int
    plane_hosts: Sequence[str]
    worker_hosts: Sequence[str]
    surge: int = 0
    """Of the control plane."""
    template: str = ""
    """What the templates of the workers are called, where that is not as the workers."""
    node_labels: str = ""
    """Of workers."""

    @property
    def workers_template(self) -> str:
        return self.template or self.names.workers


def registration(name: str, namespace: str) -> Manifest:
    """Every host may register, by its TPM, and is named as it calls itself."""
    told = {"registration": {"auth": "tpm", "emulate-tpm": True}}
    return named(namespace, name, {"machineName": "${Runtime/Hostname}", "config": {"elemental": told}})


def catalog(namespace: str, images: Mapping[str, str]) -> Manifest:
    return {"metadata": {"name": CATALOG_NAME, "namespace": namespace}, "data": dict(images)}


def members(hosts: Iterable[str]) -> list[Manifest]:
    return [{"name": host} for host in hosts]


def cluster(layout: Layout) -> list[tuple[Kind, Manifest]]:
    """All of a cluster: the pools first, the Cluster last; nothing of workers where there is to be none."""
    names = layout.names
    balancer = {"host": layout.vip, "port": layout.port, "type": "Internal", "vrid": layout.router}
    made: list[tuple[Kind, str, Manifest]] = [
        (MACHINE_INVENTORY_POOL, names.plane_pool, _pool(names, layout.plane_hosts)),
        (BAREMETAL_MACHINE_TEMPLATE, names.plane, _machine_template(names.plane_pool)),
        (BAREMETAL_CLUSTER, names.cluster, {"controlPlaneLoadBalancer": balancer}),
        (KUBEADM_CONTROL_PLANE, names.plane, _control_plane(layout)),
    ]
    if layout.workers:
        made.append((MACHINE_INVENTORY_POOL, names.worker_pool, _pool(names, layout.worker_hosts)))
        made.append((MACHINE_DEPLOYMENT, names.workers, _deployment(layout)))
    network = {
        "clusterNetwork": {"pods": {"cidrBlocks": ["10.244.0.0/16"]}, "serviceDomain": "cluster.local"},
        "infrastructureRef": _ref(BAREMETAL_CLUSTER, names.cluster),
        "controlPlaneRef": _ref(KUBEADM_CONTROL_PLANE, names.plane),
    }
    whole = named(names.namespace, names.cluster, network, names.labels)
    whole["metadata"]["annotations"] = {REGISTRY_ADDRESS_ANNOTATION: layout.registry}
    templates = worker_templates(names, layout.workers_template, layout.node_labels) if layout.workers else []
    return [*templates, *((kind, named(names.namespace, name, spec, names.labels)) for kind, name, spec in made), (CLUSTER, whole)]


def worker_templates(names: Names, template: str, node_labels: str) -> list[tuple[Kind, Manifest]]:
    """What workers are made of."""
    told = [{"name": "node-labels", "value": node_labels}] if node_labels else []
    joining = {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": told}}}
    return [
        (BAREMETAL_MACHINE_TEMPLATE, named(names.namespace, template, _machine_template(names.worker_pool), names.labels)),
        (KUBEADM_CONFIG_TEMPLATE, named(names.namespace, template, {"template": {"spec": joining}}, names.labels)),
    ]


def template_references(template: str) -> Manifest:
    """Of the Machines of workers."""
    return {
        "bootstrap": {"configRef": _ref(KUBEADM_CONFIG_TEMPLATE, template)},
        "infrastructureRef": _ref(BAREMETAL_MACHINE_TEMPLATE, template),
    }


def component_tags(version: str) -> Manifest:
    """The pinned tags of a version's components: ``clusterConfiguration.dns`` and ``.etcd``, which are edited with the version."""
    release = release_for(Version.parse(version))
    return {
        "dns": {"imageTag": release.coredns_version},
        "etcd": {"local": {"imageTag": release.etcd_versions[release.version.minor]}},
    }


def control_plane_edit(version: str) -> Manifest:
    """The guide's one edit of the control plane: the version, and the tags that are pinned."""
    return {"spec": {"version": version, "kubeadmConfigSpec": {"clusterConfiguration": component_tags(version)}}}


def workers_patch(version: str) -> Manifest:
    """The guide's patch of the workers, word for word."""
    return {"spec": {"template": {"spec": {"version": version}}}}


def named(namespace: str, name: str, spec: Manifest, labels: Mapping[str, str] = MappingProxyType({})) -> Manifest:
    return {"metadata": {"name": name, "namespace": namespace, **({"labels": dict(labels)} if labels else {})}, "spec": spec}


def _control_plane(layout: Layout) -> Manifest:
    return {
        "replicas": layout.control_planes,
        "version": layout.version,
        "rollout": _rolling(maxSurge=layout.surge),
        "machineTemplate": {"spec": {"infrastructureRef": _ref(BAREMETAL_MACHINE_TEMPLATE, layout.names.plane)}},
        "kubeadmConfigSpec": {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256", **component_tags(layout.version)}},
    }


def _deployment(layout: Layout) -> Manifest:
    names = layout.names
    selector = {**names.labels, DEPLOYMENT_NAME_LABEL: names.workers}
    machine = {"clusterName": names.cluster, "version": layout.version, **template_references(layout.workers_template)}
    return {
        "clusterName": names.cluster,
        "replicas": layout.workers,
        "selector": {"matchLabels": selector},
        "rollout": _rolling(maxSurge=0, maxUnavailable=1),
        "template": {"metadata": {"labels": selector}, "spec": machine},
    }


def _pool(names: Names, hosts: Iterable[str]) -> Manifest:
    return {"clusterName": names.cluster, "machineInventories": members(hosts)}


def _machine_template(pool: str) -> Manifest:
    return {"template": {"spec": {"machineInventoryPoolRef": {"name": pool}, "allocationPolicy": "Ordered"}}}


def _rolling(**budget: int) -> Manifest:
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": budget}}


def _ref(kind: Kind, name: str) -> Manifest:
    return {"apiGroup": kind.group, "kind": kind.kind, "name": name}
