"""A bare-metal cluster as users write it, and what its life must show at every moment."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from simulation.estate import FIRST, SECOND, SPACE, Estate, condition, virtual_address

from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    CLUSTER,
    CONFIG_MAP,
    KUBEADM_CONFIG_TEMPLATE,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    Kind,
)
from slipway.kube.aio import PatchType
from slipway.simulation.boot import Life
from slipway.simulation.workload.cluster import WorkloadCluster

Manifest = dict[str, Any]
NAME = "prod"
PLANE, WORKERS = f"{NAME}-control-plane", f"{NAME}-workers"
COUNTERS = ("available", "allocated", "preparing", "reprovisioning", "unavailable")


def manifests(
    estate: Estate, vip: str, planes: list[str], workers: list[str], *, version: str = FIRST, **plane: Any
) -> list[tuple[Kind, Manifest]]:
    registry = estate.world.registry.address
    group = BAREMETAL_MACHINE_TEMPLATE.group
    labels = {"cluster.x-k8s.io/cluster-name": NAME}
    template = {"apiGroup": group, "kind": "BaremetalMachineTemplate"}
    selector = {**labels, "cluster.x-k8s.io/deployment-name": WORKERS}
    machine = {
        "clusterName": NAME,
        "version": version,
        "bootstrap": {"configRef": {"apiGroup": KUBEADM_CONFIG_TEMPLATE.group, "kind": "KubeadmConfigTemplate", "name": WORKERS}},
        "infrastructureRef": {**template, "name": WORKERS},
    }
    written: list[tuple[Kind, str, Manifest]] = [
        (MACHINE_INVENTORY_POOL, f"{PLANE}-pool", _pool(planes)),
        (MACHINE_INVENTORY_POOL, f"{WORKERS}-pool", _pool(workers)),
        (BAREMETAL_MACHINE_TEMPLATE, PLANE, _template(f"{PLANE}-pool")),
        (BAREMETAL_MACHINE_TEMPLATE, WORKERS, _template(f"{WORKERS}-pool")),
        (KUBEADM_CONFIG_TEMPLATE, WORKERS, {"template": {"spec": {"verbosity": 1}}}),
        (BAREMETAL_CLUSTER, NAME, {"controlPlaneLoadBalancer": {"host": vip, "port": 6443, "type": "Internal", "vrid": 51}}),
        (
            KUBEADM_CONTROL_PLANE,
            PLANE,
            {
                "replicas": len(planes),
                "version": version,
                "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}}},
                "machineTemplate": {"spec": {"infrastructureRef": {**template, "name": PLANE}}},
                "kubeadmConfigSpec": {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}},
                **plane,
            },
        ),
        (
            MACHINE_DEPLOYMENT,
            WORKERS,
            {
                "clusterName": NAME,
                "replicas": len(workers),
                "selector": {"matchLabels": selector},
                "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}},
                "template": {"metadata": {"labels": selector}, "spec": machine},
            },
        ),
        (
            CLUSTER,
            NAME,
            {
                "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "serviceDomain": "cluster.local"},
                "infrastructureRef": {"apiGroup": group, "kind": "BaremetalCluster", "name": NAME},
                "controlPlaneRef": {"apiGroup": KUBEADM_CONTROL_PLANE.group, "kind": "KubeadmControlPlane", "name": PLANE},
            },
        ),
    ]
    made = [(kind, {"metadata": {"name": name, "namespace": SPACE, "labels": labels}, "spec": spec}) for kind, name, spec in written]
    made[-1][1]["metadata"]["annotations"] = {"cpaas.io/registry-address": registry}
    return made


def catalog(estate: Estate, *versions: str) -> Manifest:
    data = {version: f"elsewhere.example.com/os:{version}" for version in versions}
    return {"metadata": {"name": "elemental-image-catalog", "namespace": SPACE}, "data": data}


class Bare:
    """A bare-metal cluster on an estate, and the watch over what must never be otherwise."""

    def __init__(self, estate: Estate, hosts: list[Life], *, planes: int, workers: int) -> None:
        self.estate, self.hosts = estate, hosts
        names = [estate.name_of(host) for host in hosts]
        self.planes, self.workers = names[:planes], names[planes : planes + workers]
        self.control_planes = planes
        """How many there are to be: a pool may have more hosts."""
        self.vip = virtual_address()
        self.wrong: list[str] = []
        """What was seen that must never be."""
        self.looks = 0
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Bare:
        self._watch = asyncio.create_task(self._watch_over())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)

    async def make(self, *versions: str, version: str = FIRST, **plane: Any) -> None:
        client = self.estate.client
        await client.create(CONFIG_MAP, catalog(self.estate, *(versions or (FIRST, SECOND))))
        for kind, manifest in manifests(self.estate, self.vip, self.planes, self.workers, version=version, **plane):
            await client.create(kind, manifest)

    async def patch(self, kind: Kind, name: str, body: Any, type_: PatchType = PatchType.MERGE) -> None:
        await self.estate.client.patch(kind, name, SPACE, body, type=type_)

    @property
    def workload(self) -> WorkloadCluster:
        (cluster,) = self.estate.world.clusters.values()
        return cluster

    async def machines(self) -> list[Manifest]:
        return await self.estate.client.list(MACHINE, SPACE)

    async def at(self, planes: str, workers: str, patience: float = 60) -> None:
        """Until every machine is there, in its version, and well."""

        async def there() -> bool:
            # A list of everything a hundred times a second would be most of the work.
            await asyncio.sleep(0.1)
            found = Counter(
                (
                    "control-plane" if "cluster.x-k8s.io/control-plane" in machine["metadata"]["labels"] else "worker",
                    machine["spec"]["version"],
                )
                for machine in await self.machines()
                if condition(machine, "Ready").get("status") == "True" and "deletionTimestamp" not in machine["metadata"]
            )
            return found == Counter({("control-plane", planes): self.control_planes, ("worker", workers): len(self.workers)})

        try:
            await self.estate.until(there, f"control planes are at {planes} and workers at {workers}", patience)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{await self.told()}") from None

    async def told(self) -> str:
        """Everything that says why it is not as it should be."""
        lines = []
        for kind in (BAREMETAL_CLUSTER, KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE, BAREMETAL_MACHINE, MACHINE_INVENTORY_POOL):
            for item in await self.estate.client.list(kind, SPACE):
                status = item.get("status") or {}
                bad = [
                    f"{each['type']}={each['status']}/{each.get('reason')}: {each.get('message')}"
                    for each in status.get("conditions") or ()
                    if each["status"] != "True" and not each["type"].endswith("ing")
                ]
                lines.append(f"{kind.kind} {item['metadata']['name']} {status.get('phase', '')} {bad}")
        for host in self.hosts:
            lines.append(f"{host.machine.hardware.name} {host.machine.installed.kubernetes} boots={host.machine.boots} {host.log[-2:]}")
            path = "/var/log/cloud-init-output.log"
            if host.machine.tree.exists(path):
                lines.append(host.machine.tree.file(path).content.decode()[-400:])
        return "\n".join(lines)

    async def _watch_over(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(0.1)

    async def _look(self) -> None:
        self.looks += 1
        client = self.estate.client
        for pool in await client.list(MACHINE_INVENTORY_POOL, SPACE):
            status = pool.get("status") or {}
            counted = sum(status.get(key) or 0 for key in COUNTERS)
            if status.get("total") is not None and counted != status["total"]:
                self.wrong.append(f"{pool['metadata']['name']}: {status}")
        claimed = Counter(
            ((machine.get("status") or {}).get("machineInventoryRef") or {}).get("name")
            for machine in await client.list(BAREMETAL_MACHINE, SPACE)
            # Two may want the same one; it is had by one alone.
            if condition(machine, "InventoryAllocated").get("status") == "True"
        )
        self.wrong += [f"{name} is claimed {count} times" for name, count in claimed.items() if name and count > 1]
        self.wrong += [f"{vip} is doubled" for vip in self.estate.world.segment.doubled]
        for cluster in self.estate.world.clusters.values():
            if len(cluster.etcd.members) > 2 and not cluster.etcd.has_quorum():
                self.wrong.append("etcd has lost its quorum")
        if len(self.estate.world.clusters) > 1:
            self.wrong.append("a second cluster was made")


def _pool(names: list[str]) -> Manifest:
    return {"clusterName": NAME, "machineInventories": [{"name": name} for name in names]}


def _template(pool: str) -> Manifest:
    return {"template": {"spec": {"machineInventoryPoolRef": {"name": pool}, "allocationPolicy": "Ordered"}}}


__all__ = ["MACHINE_INVENTORY", "NAME", "PLANE", "WORKERS", "Bare"]
