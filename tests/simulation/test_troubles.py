"""What the guide's *Troubleshooting* table is about, on simulated hosts: brought about, told, and recovered from."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from simulation.clusters import WORKERS, Bare
from simulation.estate import FIRST, SPACE, Estate, condition

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, CONFIG_MAP, MACHINE, MACHINE_DEPLOYMENT, MACHINE_INVENTORY_POOL, Kind
from slipway.fleet.baremetal.options import BaremetalOptions
from slipway.kube.aio import PatchType

pytestmark = pytest.mark.asyncio
Manifest = dict[str, Any]


@pytest_asyncio.fixture
async def bare() -> AsyncIterator[Bare]:
    """One control plane of two hosts' pool and one worker, at the first version; three hosts more wait."""
    async with Estate(options=BaremetalOptions(max_failures=1)) as estate:
        hosts = await estate.hosts(4)
        made = Bare(estate, hosts, planes=2, workers=1)
        made.control_planes = 1
        await made.make(FIRST, replicas=1)
        await made.at(FIRST, FIRST)
        yield made
        assert made.wrong == []


async def upgrade_workers(bare: Bare) -> None:
    # A worker may not be ahead of its control plane; another patch release of the image will do for what is tried here.
    await bare.patch(MACHINE_DEPLOYMENT, WORKERS, {"spec": {"template": {"spec": {"version": "v1.34.9"}}}})


async def some(bare: Bare, kind: Kind, check: Any, what: str) -> Manifest:
    found: list[Manifest] = []

    async def probe() -> bool:
        found[:] = [item for item in await bare.estate.client.list(kind, SPACE) if check(item)]
        return bool(found)

    try:
        await bare.estate.until(probe, what, 60)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{await bare.told()}") from None
    return found[0]


def because(type_: str, reason: str) -> Any:
    return lambda item: condition(item, type_).get("reason") == reason


async def test_a_version_that_the_catalog_lacks_fails_and_goes_on_by_itself_when_it_is_added(bare: Bare) -> None:
    await upgrade_workers(bare)
    failed = await some(bare, BAREMETAL_MACHINE, because("ImageResolved", "ImageCatalogMiss"), "the miss is told")
    assert failed["status"]["phase"] == "Failed"
    assert "planSecretRef" not in failed["status"] or not failed["status"].get("lastAppliedPlanChecksum")
    bare.estate.world.registry.push("os", "v1.34.9", "v1.34.9")
    # Option B of the guide, word for word.
    patch = [{"op": "add", "path": "/data/v1.34.9", "value": "elsewhere.example.com/os:v1.34.9"}]
    await bare.patch(CONFIG_MAP, "elemental-image-catalog", patch, PatchType.JSON)
    await bare.at(FIRST, "v1.34.9")


async def test_a_host_that_cannot_reach_its_registry_is_told_with_its_output_and_replaced(bare: Bare) -> None:
    registry = bare.estate.world.registry
    registry.push("os", "v1.34.9", "v1.34.9")
    await bare.patch(CONFIG_MAP, "elemental-image-catalog", {"data": {"v1.34.9": "elsewhere.example.com/os:v1.34.9"}})
    registry.reachable = False
    await upgrade_workers(bare)
    failed = await some(bare, BAREMETAL_MACHINE, because("PlanApplied", "PlanFailed"), "the plan's failure is told")
    assert "ended with 18" in condition(failed, "PlanApplied")["message"]
    registry.reachable = True
    # What the reference says to do.
    await bare.estate.client.delete(MACHINE, failed["metadata"]["ownerReferences"][0]["name"], SPACE)
    await bare.at(FIRST, "v1.34.9")


async def test_an_exhausted_pool_is_told_and_a_host_that_is_added_lets_it_go_on(bare: Bare) -> None:
    await bare.patch(MACHINE_DEPLOYMENT, WORKERS, {"spec": {"replicas": 2}})
    waiting = await some(bare, BAREMETAL_MACHINE, because("InventoryAllocated", "PoolExhausted"), "the exhausted pool is told")
    assert waiting["status"]["phase"] == "Pending"
    members = [{"name": bare.workers[0]}, {"name": bare.estate.name_of(bare.hosts[3])}]
    await bare.patch(MACHINE_INVENTORY_POOL, f"{WORKERS}-pool", {"spec": {"machineInventories": members}})
    bare.workers.append(members[1]["name"])
    await bare.at(FIRST, FIRST)


async def test_a_host_that_dies_while_it_boots_is_told_and_joins_when_it_comes_back(bare: Bare) -> None:
    registry = bare.estate.world.registry
    registry.push("os", "v1.34.9", "v1.34.9")
    await bare.patch(CONFIG_MAP, "elemental-image-catalog", {"data": {"v1.34.9": "elsewhere.example.com/os:v1.34.9"}})
    worker = bare.hosts[2]
    worker.machine.faults.hangs_at_boot = True
    await upgrade_workers(bare)
    await some(bare, BAREMETAL_MACHINE, because("NodeJoined", "WaitingForNode"), "what is awaited is told")
    worker.machine.faults.hangs_at_boot = False
    await worker.power_cycle()
    await bare.at(FIRST, "v1.34.9")
