"""Hosts of a pool with ``imageStaging: Ahead`` are asked for their next image, some at a time, and never while they work on a plan."""

from __future__ import annotations

import pytest
from fleet.baremetal.estate import NS, REGISTRY, VERSION, Estate
from fleet.baremetal.staging.staging import NEXT, prepared

from slipway.api.cluster.kinds import CONFIG_MAP, KUBEADM_CONTROL_PLANE, MACHINE, MACHINE_DEPLOYMENT, MACHINE_INVENTORY_POOL, SECRET
from slipway.api.elemental import plan as plans
from slipway.fleet.baremetal.options import BaremetalOptions

pytestmark = pytest.mark.asyncio
IMAGE = f"{REGISTRY}/os:2"
CATALOG = {"data": {NEXT: "elsewhere.example.com/os:2"}}


async def test_a_version_that_comes_into_the_catalog_is_staged_before_anybody_asks_for_it(metal: Estate) -> None:
    staged = await prepared(metal, hosts=2)
    await staged.look()
    # One that waits is for a machine of the present version.
    assert [each and each.version for each in (await staged.asked("rack-1"), await staged.asked("rack-2"))] == [None, VERSION]
    await metal.patch(CONFIG_MAP, "elemental-image-catalog", CATALOG)
    await staged.look()
    for host in ("rack-1", "rack-2"):
        asked = await staged.asked(host)
        assert asked is not None
        assert (asked.image, asked.version) == (IMAGE, NEXT)
    await staged.tells("rack-1", "Staged")
    await staged.look()
    assert await staged.status() == [{"version": NEXT, "image": IMAGE, "hosts": 2, "staged": 1, "failed": 0}]
    assert (await metal.condition("pool", "ImagesStaged", MACHINE_INVENTORY_POOL))[2] == f"1 of 2 hosts have {NEXT}"


async def test_workers_stage_the_version_of_their_control_plane_while_that_is_rolled(metal: Estate) -> None:
    staged = await prepared(metal)
    data = {**CATALOG["data"], "v1.36.0": "elsewhere.example.com/os:3"}
    await metal.patch(CONFIG_MAP, "elemental-image-catalog", {"data": data})
    await metal.patch(KUBEADM_CONTROL_PLANE, "cp", {"spec": {"version": NEXT}})
    await staged.look()
    asked = await staged.asked("rack-1")
    assert asked is not None
    assert asked.version == NEXT


async def test_some_hosts_of_a_pool_fetch_at_a_time(metal: Estate) -> None:
    metal.options = BaremetalOptions(staging_hosts=2)
    staged = await prepared(metal, hosts=4, machines=0)
    await metal.patch(CONFIG_MAP, "elemental-image-catalog", CATALOG)

    async def asked() -> list[str]:
        return [host for host in ("rack-1", "rack-2", "rack-3", "rack-4") if await staged.asked(host) is not None]

    await staged.look(3)
    assert await asked() == ["rack-1", "rack-2"]
    await staged.tells("rack-2", "Staged")
    await staged.look(3)
    assert await asked() == ["rack-1", "rack-2", "rack-3"]
    # One that does not answer does not hold the others up for ever.
    metal.later(minutes=31)
    await staged.look(3)
    assert await asked() == ["rack-1", "rack-2", "rack-3", "rack-4"]


async def test_a_host_that_works_on_a_plan_is_not_disturbed(metal: Estate) -> None:
    staged = await prepared(metal)
    data = plans.written(plans.Plan(instructions=(plans.Instruction("x", "true"),)), "clean", 1)
    await metal.patch(SECRET, "rack-1", {"data": data})
    await metal.patch(CONFIG_MAP, "elemental-image-catalog", CATALOG)
    before = (await metal.get(SECRET, "rack-1"))["metadata"]["resourceVersion"]
    await staged.look()
    assert (await metal.get(SECRET, "rack-1"))["metadata"]["resourceVersion"] == before
    await metal.applies("rack-1")
    await staged.look()
    assert await staged.asked("rack-1") is not None


async def test_a_machine_that_has_its_version_wants_nothing_any_more(metal: Estate) -> None:
    staged = await prepared(metal)
    await metal.patch(CONFIG_MAP, "elemental-image-catalog", CATALOG)
    await staged.look()
    assert await staged.asked("rack-1") is not None
    await metal.patch(MACHINE_DEPLOYMENT, "md", {"spec": {"template": {"spec": {"version": NEXT}}}})
    await metal.patch(KUBEADM_CONTROL_PLANE, "cp", {"spec": {"version": NEXT}})
    await metal.patch(MACHINE, "m-1", {"spec": {"version": NEXT}})
    await staged.look()
    assert await staged.asked("rack-1") is None
    assert (await metal.condition("pool", "ImagesStaged", MACHINE_INVENTORY_POOL))[1] == "NothingToStage"


async def test_a_pool_that_stages_no_more_takes_all_of_it_back(metal: Estate) -> None:
    staged = await prepared(metal)
    await metal.patch(CONFIG_MAP, "elemental-image-catalog", CATALOG)
    await staged.look()
    assert await staged.asked("rack-1") is not None
    await metal.patch(MACHINE_INVENTORY_POOL, "pool", {"spec": {"imageStaging": "OnDemand"}})
    await staged.look(3)
    assert await staged.asked("rack-1") is None
    status = (await metal.get(MACHINE_INVENTORY_POOL, "pool"))["status"]
    assert "images" not in status
    assert [each["type"] for each in status["conditions"] if each["type"] == "ImagesStaged"] == []


async def test_a_host_that_leaves_the_pool_needs_no_image_any_more(metal: Estate) -> None:
    staged = await prepared(metal, hosts=3)
    await metal.patch(CONFIG_MAP, "elemental-image-catalog", CATALOG)
    await staged.look()
    # One goes to a pool that does not stage, the other to none.
    await metal.patch(MACHINE_INVENTORY_POOL, "pool", {"spec": {"machineInventories": [{"name": "rack-1"}]}})
    await metal.pool("rack-2", name="other")
    await metal.settle()
    await staged.settle_secrets()
    await metal.reconcile("other", metal.pools)
    await metal.reconcile("pool", metal.pools)
    assert [await staged.asked(host) is not None for host in ("rack-1", "rack-2", "rack-3")] == [True, False, False]


async def test_a_pool_at_rest_is_written_no_more(metal: Estate) -> None:
    staged = await prepared(metal)
    await metal.patch(CONFIG_MAP, "elemental-image-catalog", CATALOG)
    await staged.look(3)
    await staged.tells("rack-1", "Staged")
    await staged.look(3)
    before = await metal.get(MACHINE_INVENTORY_POOL, "pool"), await metal.get(SECRET, "rack-1")
    await staged.look(2)
    assert (await metal.get(MACHINE_INVENTORY_POOL, "pool"), await metal.get(SECRET, "rack-1")) == before


async def test_a_version_that_is_asked_for_brings_the_pool_back_at_once(metal: Estate) -> None:
    staged = await prepared(metal)
    await staged.look()
    staged.enqueued.clear()
    await metal.patch(MACHINE_DEPLOYMENT, "md", {"spec": {"template": {"spec": {"version": NEXT}}}})
    await metal.settle((MACHINE_DEPLOYMENT,))
    assert [str(each) for each in staged.enqueued] == [f"{NS}/pool"]
