"""The objects of a fleet for the measure of its size: clusters like one another, each with hosts of its own."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from slipway.api.cluster.infrastructure.names import CATALOG_NAME, REGISTRY_ADDRESS_ANNOTATION
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE_TEMPLATE,
    CLUSTER,
    KUBEADM_CONFIG_TEMPLATE,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY_POOL,
    Kind,
)
from slipway.api.cluster.names import CLUSTER_NAME_LABEL

Manifest = dict[str, Any]
SPACE = "fleet"
REGISTRY, REPOSITORY = "registry.sim:5000", "os"
FIRST, SECOND = "v1.34.10", "v1.35.4"
REGISTRATION = "hosts"
PLANES = 3
_SPARE_OF = 25
"""One host of so many is a spare one."""


class ClusterOfHosts(NamedTuple):
    number: int
    hosts: int
    network: str = "127.100"
    """Of its virtual address."""
    namespace: str = SPACE

    @property
    def name(self) -> str:
        return f"c{self.number:03d}"

    @property
    def host_names(self) -> list[str]:
        return [f"{self.name}-host-{number:03d}" for number in range(self.hosts)]

    @property
    def vip(self) -> str:
        """One of the loopback network, where nothing else listens."""
        return f"{self.network}.{self.number // 250}.{self.number % 250 + 1}"

    @property
    def workers(self) -> int:
        return self.hosts - PLANES - max(1, self.hosts // _SPARE_OF)

    @property
    def nodes(self) -> int:
        return PLANES + self.workers

    def manifests(self) -> list[tuple[Kind, Manifest]]:
        """As users write them."""
        planes, workers = f"{self.name}-planes", f"{self.name}-workers"
        labels = {CLUSTER_NAME_LABEL: self.name}
        selector = {**labels, "cluster.x-k8s.io/deployment-name": workers}
        machine = {
            "clusterName": self.name,
            "version": FIRST,
            "bootstrap": {"configRef": _ref(KUBEADM_CONFIG_TEMPLATE, workers)},
            "infrastructureRef": _ref(BAREMETAL_MACHINE_TEMPLATE, workers),
        }
        written: list[tuple[Kind, str, Manifest]] = [
            (MACHINE_INVENTORY_POOL, planes, self._pool(self.host_names[:PLANES])),
            (MACHINE_INVENTORY_POOL, workers, self._pool(self.host_names[PLANES:])),
            (BAREMETAL_MACHINE_TEMPLATE, planes, _template(planes)),
            (BAREMETAL_MACHINE_TEMPLATE, workers, _template(workers)),
            (KUBEADM_CONFIG_TEMPLATE, workers, {"template": {"spec": {"verbosity": 1}}}),
            (BAREMETAL_CLUSTER, self.name, {"controlPlaneLoadBalancer": {"host": self.vip, "port": 6443, "type": "Internal", "vrid": 51}}),
            (
                KUBEADM_CONTROL_PLANE,
                planes,
                {
                    "replicas": PLANES,
                    "version": FIRST,
                    "rollout": _rolling(maxSurge=0),
                    "machineTemplate": {"spec": {"infrastructureRef": _ref(BAREMETAL_MACHINE_TEMPLATE, planes)}},
                    "kubeadmConfigSpec": {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}},
                },
            ),
            (
                MACHINE_DEPLOYMENT,
                workers,
                {
                    "clusterName": self.name,
                    "replicas": self.workers,
                    "selector": {"matchLabels": selector},
                    "rollout": _rolling(maxSurge=0, maxUnavailable="10%"),
                    "template": {"metadata": {"labels": selector}, "spec": machine},
                },
            ),
            (
                CLUSTER,
                self.name,
                {
                    "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "serviceDomain": "cluster.local"},
                    "infrastructureRef": _ref(BAREMETAL_CLUSTER, self.name),
                    "controlPlaneRef": _ref(KUBEADM_CONTROL_PLANE, planes),
                },
            ),
        ]
        made = [
            (kind, {"metadata": {"name": name, "namespace": self.namespace, "labels": labels}, "spec": spec})
            for kind, name, spec in written
        ]
        made[-1][1]["metadata"]["annotations"] = {REGISTRY_ADDRESS_ANNOTATION: REGISTRY}
        return made

    def _pool(self, names: list[str]) -> Manifest:
        return {"clusterName": self.name, "machineInventories": [{"name": name} for name in names]}


def clusters(hosts: int, number: int, namespaces: int = 1) -> list[ClusterOfHosts]:
    # Another process that measures has other addresses.
    network = f"127.{64 + os.getpid() % 60}"
    spaces = [SPACE] if namespaces == 1 else [f"{SPACE}-{index}" for index in range(namespaces)]
    return [ClusterOfHosts(index, hosts // number, network, spaces[index * namespaces // number]) for index in range(number)]


def registration(namespace: str) -> Manifest:
    told = {"registration": {"auth": "tpm", "emulate-tpm": True}}
    spec = {"machineName": "${Runtime/Hostname}", "config": {"elemental": told}}
    return {"metadata": {"name": REGISTRATION, "namespace": namespace}, "spec": spec}


def catalog(namespace: str) -> Manifest:
    data = {version: f"{REGISTRY}/{REPOSITORY}:{version}" for version in (FIRST, SECOND)}
    return {"metadata": {"name": CATALOG_NAME, "namespace": namespace}, "data": data}


def _template(pool: str) -> Manifest:
    return {"template": {"spec": {"machineInventoryPoolRef": {"name": pool}, "allocationPolicy": "Ordered"}}}


def _rolling(**budget: Any) -> Manifest:
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": budget}}


def _ref(kind: Kind, name: str) -> Manifest:
    return {"apiGroup": kind.group, "kind": kind.kind, "name": name}
