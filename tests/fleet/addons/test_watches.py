"""The controllers in a manager: what changes is seen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from fleet.addons.stage import CONFIG, PLACE, USER, Stage
from support.waiting import eventually

from slipway.api.cluster.kinds import CLUSTER, CLUSTER_RESOURCE_SET, CLUSTER_RESOURCE_SET_BINDING, CONFIG_MAP
from slipway.fleet.addons.controllers import controllers
from slipway.fleet.clustercache import WorkloadClusters
from slipway.kube.aio import PatchType
from slipway.runtime.manager import Manager, ManagerOptions

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    """A stage with a manager at work."""
    async with Stage() as made:
        manager = Manager(made.management.connection(USER, ()), ManagerOptions(namespace=PLACE, leader_elect=False))
        workload = WorkloadClusters(manager.client)
        manager.at_end(workload.close)
        for reconciler in controllers(manager, workload):
            manager.add(reconciler)
        stop = asyncio.Event()
        running = asyncio.create_task(manager.run(stop))
        yield made
        stop.set()
        await running


async def test_a_set_a_config_map_and_a_cluster_may_come_in_any_order(stage: Stage) -> None:
    await stage.resource_set("calico")
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.cluster()

    async def applied() -> bool:
        return await stage.applied("one") is not None

    await eventually(applied, "the cluster has its CNI")


async def test_a_config_map_that_changes_is_applied_again_with_reconcile(stage: Stage) -> None:
    await stage.cluster()
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.resource_set("calico", strategy="Reconcile")

    async def has(mtu: str) -> bool:
        return ((await stage.applied("one") or {}).get("data") or {}).get("mtu") == mtu

    await eventually(lambda: has("1"), "the first is applied")
    await stage.config_map("calico", CONFIG % ("one", 2))
    await eventually(lambda: has("2"), "the second is applied")


async def test_a_binding_goes_with_its_cluster_and_a_set_with_its_binding(stage: Stage) -> None:
    await stage.cluster()
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.resource_set("calico")

    async def bound() -> bool:
        return await stage.client.find(CLUSTER_RESOURCE_SET_BINDING, "c", PLACE) is not None

    async def unbound() -> bool:
        return not await bound()

    await eventually(bound, "there is a binding")
    await stage.client.delete(CLUSTER, "c", PLACE)
    await eventually(unbound, "the binding is gone")
    await stage.client.delete(CLUSTER_RESOURCE_SET, "cni", PLACE)

    async def gone() -> bool:
        return await stage.client.find(CLUSTER_RESOURCE_SET, "cni", PLACE) is None

    await eventually(gone, "the set is gone")


async def test_a_label_chooses_a_cluster_later(stage: Stage) -> None:
    await stage.cluster(cni="none")
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.resource_set("calico")
    await stage.client.patch(CLUSTER, "c", PLACE, {"metadata": {"labels": {"cni": "calico"}}}, type=PatchType.MERGE)

    async def applied() -> bool:
        return await stage.remote.find(CONFIG_MAP, "one", "kube-system") is not None

    await eventually(applied, "the cluster has its CNI")
