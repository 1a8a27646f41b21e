"""The controller of the virtual address: the condition of a BaremetalCluster, and the ConfigMap of its workload cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, NoReturn

import msgspec
import pytest
import pytest_asyncio
from fleet.baremetal.estate import Estate
from fleet.world import World, lean_crd, preserving_crd
from support.waiting import eventually

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CLUSTER,
    CONFIG_MAP,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    Kind,
)
from slipway.api.cluster.names import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.baremetal.vip.reconciler import KEPT, RETRY, AliveReconciler
from slipway.fleet.clustercache import WorkloadClusters
from slipway.kube.aio import PatchType
from slipway.runtime.objects import Object, Request, Result

Manifest = dict[str, Any]

KINDS = (BAREMETAL_CLUSTER, BAREMETAL_MACHINE, MACHINE_INVENTORY, MACHINE_INVENTORY_POOL)
PEERS = "192.0.2.11,192.0.2.12,192.0.2.13"


class Fleet:
    """A Cluster whose control plane has a pool of three hosts; the management cluster is its workload cluster as well."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.workload = WorkloadClusters(world.client)
        self.reconciler = AliveReconciler(world.client, world.cache, self.workload)

    async def make(self, *, initialized: bool = True, **balancer: Any) -> None:
        world = self.world
        cluster = await world.cluster(initialized=initialized)
        owner = {"apiVersion": CLUSTER.api_version, "kind": "Cluster", "name": "c", "uid": cluster["metadata"]["uid"]}
        load_balancer = {"host": "192.0.2.100", "port": 6443, "type": "Internal", "vrid": 51, **balancer}
        await self._create(BAREMETAL_CLUSTER, "c", {"controlPlaneLoadBalancer": load_balancer}, ownerReferences=[owner])
        for number in (1, 2, 3):
            network = {"interfaces": [{"name": "eth0", "addresses": [f"192.0.2.1{number}/24"]}]}
            await self._create(MACHINE_INVENTORY, f"host-{number}", {"observedNetwork": network})
        members = [{"name": f"host-{number}"} for number in (1, 2, 3)]
        await self._create(MACHINE_INVENTORY_POOL, "planes", {"clusterName": "c", "machineInventories": members})
        await self.another_machine("c-1")

    async def another_machine(self, name: str) -> None:
        labels = {CLUSTER_NAME_LABEL: "c", CONTROL_PLANE_LABEL: ""}
        await self._create(BAREMETAL_MACHINE, name, {"machineInventoryPoolRef": {"name": "planes"}}, labels=labels)

    async def _create(self, kind: Kind, name: str, spec: Manifest, **metadata: Any) -> None:
        await self.world.client.create(kind, {"metadata": {"name": name, "namespace": self.world.namespace, **metadata}, "spec": spec})

    async def reconcile(self) -> Result:
        for kind in (*KINDS, CLUSTER):
            await self._caught_up(kind)
        return await self.reconciler.reconcile(Request(self.world.namespace, "c"))

    async def _caught_up(self, kind: Kind) -> None:
        """The cache has what was written so far."""
        there = {
            (found["metadata"]["name"], found["metadata"]["resourceVersion"])
            for found in await self.world.client.list(kind, self.world.namespace)
        }

        async def caught_up() -> bool:
            return {(found.name, found.metadata.resource_version) for found in await self.world.cache.list(kind)} == there

        await eventually(caught_up, f"the cache has all {kind.plural}")

    async def condition(self) -> Manifest | None:
        found = await self.world.client.get(BAREMETAL_CLUSTER, "c", self.world.namespace)
        conditions = (found.get("status") or {}).get("conditions") or []
        return next((condition for condition in conditions if condition["type"] == names.VIP_READY_CONDITION), None)

    async def published(self) -> Manifest | None:
        found = await self.world.client.find(CONFIG_MAP, "alive", "kube-system")
        return None if found is None else found["data"]


@pytest_asyncio.fixture
async def fleet() -> AsyncIterator[Fleet]:
    async def nobody(world: World) -> NoReturn:
        raise AssertionError("these tests need no account of their own")

    async with EmbeddedServer() as server, World(server.connection(), "fleet", nobody) as world:
        await world.install_crds(lean_crd(BAREMETAL_CLUSTER), *(preserving_crd(kind) for kind in (CLUSTER, *KINDS[1:])))
        made = Fleet(world)
        yield made
        await made.workload.close()


@pytest.mark.asyncio
async def test_peers_are_published_when_the_control_plane_is_there(fleet: Fleet) -> None:
    await fleet.make()
    await fleet.world.kubeconfig()
    assert await fleet.reconcile() == Result(KEPT)
    assert await fleet.published() == {"vip": "192.0.2.100", "peers": PEERS, "ipvs.ips": ""}
    condition = await fleet.condition()
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("True", names.VIP_READY_REASON)


@pytest.mark.asyncio
async def test_what_somebody_changed_in_the_workload_cluster_is_put_right(fleet: Fleet) -> None:
    await fleet.make()
    await fleet.world.kubeconfig()
    await fleet.reconcile()
    changed = {"data": {"peers": "192.0.2.99", "note": "mine"}}
    await fleet.world.client.patch(CONFIG_MAP, "alive", "kube-system", changed, type=PatchType.MERGE)
    await fleet.reconcile()
    assert await fleet.published() == {"vip": "192.0.2.100", "peers": PEERS, "ipvs.ips": "", "note": "mine"}


@pytest.mark.asyncio
async def test_before_the_first_init_nothing_is_published(fleet: Fleet) -> None:
    await fleet.make(initialized=False)
    await fleet.reconcile()
    condition = await fleet.condition()
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("Unknown", names.VIP_WAITING_FOR_CONTROL_PLANE_REASON)
    assert await fleet.published() is None


@pytest.mark.asyncio
async def test_a_workload_cluster_that_cannot_be_reached_is_tried_again(fleet: Fleet) -> None:
    await fleet.make()
    assert await fleet.reconcile() == Result(RETRY)
    condition = await fleet.condition()
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("Unknown", names.VIP_API_NOT_REACHABLE_REASON)
    assert "The hosts keep the peers that they have" in condition["message"]
    assert "c-kubeconfig" in condition["message"]


@pytest.mark.asyncio
async def test_an_address_that_is_a_hosts_own_is_told_and_not_published(fleet: Fleet) -> None:
    await fleet.make(host="192.0.2.12")
    await fleet.world.kubeconfig()
    await fleet.reconcile()
    condition = await fleet.condition()
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("False", names.VIP_IS_HOST_ADDRESS_REASON)
    assert await fleet.published() is None


@pytest.mark.asyncio
async def test_external_has_neither_a_condition_nor_a_config_map(fleet: Fleet) -> None:
    await fleet.make(type="External")
    await fleet.world.kubeconfig()
    await fleet.reconcile()
    assert await fleet.condition() is None
    assert await fleet.published() is None


@pytest.mark.asyncio
async def test_a_host_outside_of_the_pool_goes_from_the_list_with_its_machine(fleet: Fleet) -> None:
    await fleet.make()
    await fleet.world.kubeconfig()
    await fleet.world.client.patch(
        BAREMETAL_MACHINE,
        "c-1",
        fleet.world.namespace,
        {"status": {"machineInventoryRef": {"name": "host-1"}}},
        type=PatchType.MERGE,
        subresource="status",
    )
    rest = {"spec": {"machineInventories": [{"name": "host-2"}, {"name": "host-3"}]}}
    await fleet.world.client.patch(MACHINE_INVENTORY_POOL, "planes", fleet.world.namespace, rest, type=PatchType.MERGE)
    await fleet.another_machine("c-2")
    await fleet.reconcile()
    published = await fleet.published()
    assert published is not None
    assert published["peers"] == PEERS
    await fleet.world.client.delete(BAREMETAL_MACHINE, "c-1", fleet.world.namespace)
    await fleet.reconcile()
    published = await fleet.published()
    assert published is not None
    assert published["peers"] == "192.0.2.12,192.0.2.13"


@pytest.mark.asyncio
async def test_the_others_know_of_a_control_plane_when_it_gets_its_plan(metal: Estate) -> None:
    await metal.cluster()
    for name in ("rack-1", "rack-2"):
        await metal.host(name)
    await metal.pool("rack-1", "rack-2")
    await metal.machine("cp", control_plane=True)
    await metal.reconcile("cp")
    assert await metal.plan_type("rack-1") == names.PLAN_REPROVISION
    found = await metal.client.get(CONFIG_MAP, "alive", "kube-system")
    assert len(found["data"]["peers"].split(",")) == 2


def _watched(kind: Kind, **labels: str) -> tuple[Callable[[Object | None, Object | None], bool], Object]:
    (watch,) = [watch for watch in AliveReconciler.watches if watch.kind == kind]
    assert watch.when is not None
    return watch.when, Object(kind, msgspec.json.encode({"metadata": {"name": "x", "namespace": "y", "labels": labels}}))


@pytest.mark.parametrize("kind", [BAREMETAL_MACHINE, MACHINE_INVENTORY_POOL], ids=lambda kind: str(kind.kind))
def test_what_is_gone_is_a_change(kind: Kind) -> None:
    counts, gone = _watched(kind, **{CONTROL_PLANE_LABEL: ""})
    assert counts(gone, None)


def test_workers_that_come_and_go_change_nothing() -> None:
    counts, worker = _watched(BAREMETAL_MACHINE)
    assert not counts(None, worker)
    assert not counts(worker, None)
