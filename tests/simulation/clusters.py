"""A bare-metal cluster as users write it, and what its life must show at every moment."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import chain
from typing import Any

from simulation.estate import FIRST, SECOND, SPACE, Estate, condition, virtual_address
from simulation.watchman import COUNTERS, Watchman

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
    MACHINE_INVENTORY_POOL,
    NODE,
    SECRET,
    Kind,
)
from slipway.kube.aio import PatchType
from slipway.simulation.boot import Life
from slipway.simulation.workload.cluster import WorkloadCluster
from slipway.simulation.workload.local import LocalClient

Manifest = dict[str, Any]
NAME = "prod"
PLANE, WORKERS = f"{NAME}-control-plane", f"{NAME}-workers"


def manifests(
    estate: Estate, vip: str, planes: list[str], workers: list[str], *, version: str = FIRST, name: str = NAME, vrid: int = 51, **plane: Any
) -> list[tuple[Kind, Manifest]]:
    of_planes, of_workers = f"{name}-control-plane", f"{name}-workers"
    registry = estate.world.registry.address
    group = BAREMETAL_MACHINE_TEMPLATE.group
    labels = {"cluster.x-k8s.io/cluster-name": name}
    reference = {"apiGroup": group, "kind": "BaremetalMachineTemplate"}
    selector = {**labels, "cluster.x-k8s.io/deployment-name": of_workers}
    machine = {
        "clusterName": name,
        "version": version,
        "bootstrap": {"configRef": {"apiGroup": KUBEADM_CONFIG_TEMPLATE.group, "kind": "KubeadmConfigTemplate", "name": of_workers}},
        "infrastructureRef": {**reference, "name": of_workers},
    }
    written: list[tuple[Kind, str, Manifest]] = [
        (MACHINE_INVENTORY_POOL, f"{of_planes}-pool", _pool(planes, name)),
        (MACHINE_INVENTORY_POOL, f"{of_workers}-pool", _pool(workers, name)),
        (BAREMETAL_MACHINE_TEMPLATE, of_planes, template(f"{of_planes}-pool")),
        (BAREMETAL_MACHINE_TEMPLATE, of_workers, template(f"{of_workers}-pool")),
        (KUBEADM_CONFIG_TEMPLATE, of_workers, {"template": {"spec": {"verbosity": 1}}}),
        (BAREMETAL_CLUSTER, name, {"controlPlaneLoadBalancer": {"host": vip, "port": 6443, "type": "Internal", "vrid": vrid}}),
        (
            KUBEADM_CONTROL_PLANE,
            of_planes,
            {
                "replicas": len(planes),
                "version": version,
                "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}}},
                "machineTemplate": {"spec": {"infrastructureRef": {**reference, "name": of_planes}}},
                "kubeadmConfigSpec": {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}},
                **plane,
            },
        ),
        (
            MACHINE_DEPLOYMENT,
            of_workers,
            {
                "clusterName": name,
                "replicas": len(workers),
                "selector": {"matchLabels": selector},
                "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}},
                "template": {"metadata": {"labels": selector}, "spec": machine},
            },
        ),
        (
            CLUSTER,
            name,
            {
                "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "serviceDomain": "cluster.local"},
                "infrastructureRef": {"apiGroup": group, "kind": "BaremetalCluster", "name": name},
                "controlPlaneRef": {"apiGroup": KUBEADM_CONTROL_PLANE.group, "kind": "KubeadmControlPlane", "name": of_planes},
            },
        ),
    ]
    made = [(kind, {"metadata": {"name": named, "namespace": SPACE, "labels": labels}, "spec": spec}) for kind, named, spec in written]
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
        self.control_planes, self.replicas = planes, workers
        """How many there are to be: a pool may have more hosts."""
        self.worker_pool = f"{WORKERS}-pool"
        minor, _, patch = FIRST.rpartition(".")
        before = f"v1.{int(minor.rpartition('.')[2]) - 1}"
        self._older = chain((f"{minor}.{each}" for each in reversed(range(int(patch)))), (f"{before}.{each}" for each in range(99, -1, -1)))
        self.vip = virtual_address()
        self.watchman = Watchman(estate)

    @property
    def wrong(self) -> list[str]:
        return self.watchman.wrong

    async def make(self, *versions: str, version: str = FIRST, **plane: Any) -> None:
        client = self.estate.client
        await client.create(CONFIG_MAP, catalog(self.estate, *(versions or (FIRST, SECOND))))
        for kind, manifest in manifests(self.estate, self.vip, self.planes, self.workers, version=version, **plane):
            await client.create(kind, manifest)

    async def patch(self, kind: Kind, name: str, body: Any, type_: PatchType = PatchType.MERGE) -> None:
        await self.estate.client.patch(kind, name, SPACE, body, type=type_)

    async def older_release(self, *, listed: bool = True) -> str:
        """Another patch release of the first version with an image: older ones, as a worker may not be ahead of its control plane."""
        version = next(self._older)
        self.estate.world.registry.push("os", version, version)
        if listed:
            await self.list_image(version)
        return version

    async def list_image(self, version: str) -> None:
        """Option B of the guide, word for word."""
        patch = [{"op": "add", "path": f"/data/{version}", "value": f"elsewhere.example.com/os:{version}"}]
        await self.patch(CONFIG_MAP, "elemental-image-catalog", patch, PatchType.JSON)

    async def roll_workers(self, version: str, **spec: Any) -> None:
        await self.patch(MACHINE_DEPLOYMENT, WORKERS, {"spec": {"template": {"spec": {"version": version}}, **spec}})

    async def scale_workers(self, replicas: int) -> None:
        self.replicas = replicas
        await self.patch(MACHINE_DEPLOYMENT, WORKERS, {"spec": {"replicas": replicas}})

    async def hosts_of(self, control_plane: bool) -> set[str]:
        """The inventories that machines of a kind are on, as far as they have one yet."""
        label = "cluster.x-k8s.io/control-plane"
        found = await self.estate.client.list(BAREMETAL_MACHINE, SPACE)
        of_kind = [each for each in found if (label in each["metadata"]["labels"]) is control_plane]
        meant = [(each.get("status") or {}).get("machineInventoryRef") for each in of_kind]
        return {reference["name"] for reference in meant if reference}

    def host(self, name: str) -> Life:
        """The host of an inventory."""
        return next(each for each in self.hosts if self.estate.name_of(each) == name)

    @property
    def workload(self) -> WorkloadCluster:
        (cluster,) = self.estate.world.clusters.values()
        return cluster

    @property
    def nodes(self) -> int:
        return self.control_planes + self.replicas

    async def machines(self) -> list[Manifest]:
        return await self.estate.client.list(MACHINE, SPACE)

    async def workers_at(self, version: str, patience: float = 60) -> None:
        """Until every worker is there, in its version, and well, whatever its control plane is."""
        local = LocalClient(self.estate.server.core)

        async def there() -> bool:
            await asyncio.sleep(0.1)
            found = [each for each in local.list(MACHINE, SPACE) if "cluster.x-k8s.io/control-plane" not in each["metadata"]["labels"]]
            well = [each for each in found if condition(each, "Ready").get("status") == "True" and each["spec"]["version"] == version]
            return len(found) == len(well) == self.replicas

        await self.estate.until(there, f"workers are at {version}", patience)

    async def at(self, planes: str, workers: str, patience: float = 60) -> None:
        """Until every machine is there, in its version, and well."""
        local = LocalClient(self.estate.server.core)

        async def there() -> bool:
            # Looking at everything a hundred times a second would be most of the work.
            await asyncio.sleep(0.1)
            found = Counter(
                (
                    "control-plane" if "cluster.x-k8s.io/control-plane" in machine["metadata"]["labels"] else "worker",
                    machine["spec"]["version"],
                )
                for machine in local.list(MACHINE, SPACE)
                if condition(machine, "Ready").get("status") == "True" and "deletionTimestamp" not in machine["metadata"]
            )
            return found == Counter({("control-plane", planes): self.control_planes, ("worker", workers): self.replicas})

        try:
            await self.estate.until(there, f"control planes are at {planes} and workers at {workers}", patience)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{await self.told()}") from None

    async def verify(self, version: str) -> None:
        """The section *Verification* of the guide, sentence by sentence."""
        client = self.estate.client
        owned = [(each, each["metadata"]["ownerReferences"][0]["kind"]) for each in await client.list(BAREMETAL_MACHINE, SPACE)]
        machines = [each for each, owner in owned if owner == "Machine"]
        assert [machine["status"]["phase"] for machine in machines] == ["Running"] * self.nodes
        assert {machine["spec"]["version"] for machine in await self.machines()} == {version}
        nodes = self.workload.client.list(NODE)
        assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes} == {version}
        assert len(nodes) == self.nodes
        for node in nodes:
            assert any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])
        for machine in machines:
            secret = await client.get(SECRET, machine["status"]["machineInventoryRef"]["name"], SPACE)
            assert secret["metadata"]["annotations"]["baremetal.alauda.io/plan.type"] == "reprovision"

        await self.rest()
        # Owners of those in use, and of none else.
        used = {machine["status"]["machineInventoryRef"]["name"] for machine in machines}
        assert {name for name, owner in self.watchman.owners.items() if owner} == used
        assert len(used) == self.nodes
        etcd = self.workload.etcd
        assert len(etcd.members) == self.control_planes
        assert etcd.has_quorum()

    async def rest(self) -> None:
        """Until nothing moves in the pools."""

        def at_rest(pool: dict[str, object]) -> bool:
            status = pool.get("status")
            assert isinstance(status, dict)
            counted = sum(status.get(key) or 0 for key in COUNTERS)
            return counted == status["total"] and not status.get("preparing") and not status.get("reprovisioning")

        for pool in (f"{PLANE}-pool", self.worker_pool):
            await self.estate.when(MACHINE_INVENTORY_POOL, pool, at_rest, f"{pool} is at rest")

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


def _pool(names: list[str], cluster: str) -> Manifest:
    return {"clusterName": cluster, "machineInventories": [{"name": name} for name in names]}


def template(pool: str) -> Manifest:
    return {"template": {"spec": {"machineInventoryPoolRef": {"name": pool}, "allocationPolicy": "Ordered"}}}
