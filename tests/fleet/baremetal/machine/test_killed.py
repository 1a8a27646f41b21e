"""A reconcile that is killed, or loses the answer of the API server, after any of its requests, and is run again by another process."""

from __future__ import annotations

import itertools
from functools import partial

import pytest
from fleet.baremetal.estate import NS, Estate

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, MACHINE_INVENTORY, SECRET
from slipway.api.elemental.cycles import KEPT, Cycle, read

pytestmark = [pytest.mark.asyncio]


class Killed(BaseException):
    """Nothing handles this, as nothing handles a kill -9."""


class Fuse:
    """Blows at the ``at``-th write, when the API server has done it."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, verb: str, code: int, seconds: float) -> None:
        if verb in ("create", "update", "patch", "delete"):
            self.left -= 1
            if self.left == 0:
                raise Killed


async def killed(metal: Estate, name: str, at: int) -> bool:
    """Whether the reconcile had so many writes, and was cut short after the last."""
    metal.process(Fuse(at))
    try:
        await metal.reconcile(name)
    except Killed:
        return True
    finally:
        metal.process()
    return False


async def hosts(metal: Estate) -> dict[str, str]:
    """Who has which host."""
    found = {each: await metal.annotations(each) for each in ("rack-1", "rack-2")}
    return {name: annotations.get("owner-baremetalmachine", "") for name, annotations in found.items()}


async def lives(metal: Estate) -> tuple[Cycle, ...]:
    """What the record of the first host has."""
    return read((await metal.get(MACHINE_INVENTORY, "rack-1"))["metadata"].get("annotations") or {})


async def two_hosts(metal: Estate) -> None:
    await metal.cluster()
    for name in ("rack-1", "rack-2"):
        await metal.host(name)
    await metal.pool("rack-1", "rack-2")


async def test_a_provisioning_that_is_killed_after_any_write_ends_in_one_claim_and_one_plan(metal: Estate) -> None:
    await two_hosts(metal)
    for at in itertools.count(1):
        name = f"m{at}"
        await metal.machine(name)
        cut = await killed(metal, name, at)
        await metal.reconcile(name, times=2)
        assert await hosts(metal) == {"rack-1": name, "rack-2": ""}, f"killed after write {at}"
        status = await metal.status(name)
        assert (status["phase"], status["machineInventoryRef"]["name"]) == ("Reprovisioning", "rack-1")
        told = [(await metal.condition(name, each))[0] for each in ("InventoryAllocated", "BootstrapReady", "ImageResolved")]
        assert told == ["True"] * 3, f"killed after write {at}: what has long been so is not told"
        assert {"type": "Hostname", "address": "rack-1"} in status["addresses"], f"killed after write {at}"
        assert (await metal.get(BAREMETAL_MACHINE, name))["spec"]["providerID"] == "baremetal:///rack-1"
        secret = await metal.get(SECRET, "rack-1")
        uid = (await metal.get(BAREMETAL_MACHINE, name))["metadata"]["uid"]
        assert uid.encode() in (await metal.plan("rack-1")).files[1].content
        version = secret["metadata"]["resourceVersion"]
        await metal.reconcile(name)
        assert (await metal.get(SECRET, "rack-1"))["metadata"]["resourceVersion"] == version, "a second plan"
        await gone(metal, name)
        life = (await lives(metal))[-1]
        assert [each.machine for each in await lives(metal)] == [f"m{number}" for number in range(max(1, at - KEPT + 1), at + 1)]
        assert None not in (life.claimed, life.planned, life.released), f"killed after write {at}"
        if not cut:
            break
    assert at > 6, "finalizer, intent, claim, data, state and plan are writes of their own"


async def gone(metal: Estate, name: str) -> None:
    """The machine goes, and its host comes back."""
    await metal.applies("rack-1")
    await metal.client.delete(BAREMETAL_MACHINE, name, NS)
    await metal.reconcile(name)
    await metal.applies("rack-1")
    await metal.reconcile(name)
    assert await metal.annotations("rack-1") == {"pool": "pool", "allocation-state": "Available"}


async def test_a_removal_that_is_killed_after_any_write_ends_in_one_clean_host(metal: Estate) -> None:
    await two_hosts(metal)
    for at in itertools.count(1):
        name = f"m{at}"
        await metal.machine(name)
        await metal.becomes_a_node(name, "rack-1", boot_id=f"boot-{at}")
        await metal.client.delete(BAREMETAL_MACHINE, name, NS)
        cut = await killed(metal, name, at)
        await metal.reconcile(name, times=2)
        assert await metal.plan_type("rack-1") == "clean", f"killed after write {at}"
        plan = (await metal.get(SECRET, "rack-1"))["data"]["plan"]
        await metal.reconcile(name)
        assert (await metal.get(SECRET, "rack-1"))["data"]["plan"] == plan, "a second plan"
        await metal.applies("rack-1")
        await killed(metal, name, at)
        await metal.reconcile(name, times=2)
        assert await metal.find(BAREMETAL_MACHINE, name) is None
        assert await metal.annotations("rack-1") == {"pool": "pool", "allocation-state": "Available"}
        life = (await lives(metal))[-1]
        assert None not in (life.joined, life.running, life.drained, life.cleaned, life.released), f"killed after write {at}"
        await metal.joins("rack-1", boot_id=f"boot-{at}", ready=False)
        if not cut:
            break
    assert at > 2


async def test_a_manager_that_takes_over_goes_on_where_the_last_one_was(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("m")
    for happens in (partial(metal.begins, "rack-1"), partial(metal.applies, "rack-1"), partial(metal.joins, "rack-1")):
        metal.process()
        await metal.reconcile("m")
        await happens()
    metal.process()
    await metal.reconcile("m")
    assert (await metal.status("m"))["phase"] == "Running"


async def test_an_intent_that_was_not_carried_out_is_given_up_when_the_machine_goes(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("m")
    # The finalizer, then the intent.
    assert await killed(metal, "m", 2)
    assert (await metal.status("m"))["machineInventoryRef"]["name"] == "rack-1"
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")
    assert await metal.find(BAREMETAL_MACHINE, "m") is None
    assert await metal.annotations("rack-1") == {}


async def test_a_host_that_was_taken_away_between_intent_and_claim_is_not_fought_for(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("m")
    assert await killed(metal, "m", 2)
    await metal.patch(MACHINE_INVENTORY, "rack-1", {"metadata": {"annotations": {"baremetal.alauda.io/owner-baremetalmachine": "other"}}})
    await metal.reconcile("m")
    assert await hosts(metal) == {"rack-1": "other", "rack-2": "m"}


@pytest.mark.parametrize("days", [1, -1], ids=["ahead", "behind"])
async def test_a_manager_whose_clock_is_a_day_off_goes_on_where_the_last_one_was(metal: Estate, days: int) -> None:
    await metal.cluster()
    await metal.host("rack-1")
    await metal.pool("rack-1")
    await metal.machine("m")
    await metal.reconcile("m")
    written = (await metal.get(SECRET, "rack-1"))["data"]["plan"]
    metal.later(days=days)
    metal.process()
    await metal.reconcile("m")
    await metal.applies("rack-1")
    await metal.joins("rack-1")
    await metal.reconcile("m")
    assert (await metal.status("m"))["phase"] == "Running"
    assert (await metal.get(SECRET, "rack-1"))["data"]["plan"] == written
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")
    metal.later(days=-days)
    await metal.applies("rack-1")
    await metal.reconcile("m")
    assert await metal.find(BAREMETAL_MACHINE, "m") is None


async def test_a_host_that_has_not_begun_with_a_plan_of_tomorrow_is_cleaned_today(metal: Estate) -> None:
    await metal.cluster()
    await metal.host("rack-1")
    await metal.pool("rack-1")
    await metal.machine("m")
    metal.later(days=1)
    await metal.token()
    await metal.reconcile("m")
    assert await metal.plan_type("rack-1") == "reprovision"
    metal.later(days=-1)
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")
    assert await metal.plan_type("rack-1") == "clean"
