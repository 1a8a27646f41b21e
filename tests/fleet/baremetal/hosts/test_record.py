"""The record of a host's cycles: what is noted, when, and what it costs."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from fleet.baremetal.estate import NS, VERSION, Estate

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, MACHINE, MACHINE_INVENTORY
from slipway.api.elemental.cycles import CYCLES_ANNOTATION, Cycle, read
from slipway.fleet.baremetal.hosts.record import is_unfinished, with_cleaned, with_seen

AT = datetime(2026, 3, 1, 10, 0, 0, tzinfo=UTC)
LATER = AT + timedelta(minutes=5)


def test_what_was_seen_first_stays() -> None:
    cycles = with_seen([Cycle(machine="m", claimed=AT)], Cycle(machine="m", claimed=LATER, planned=LATER))
    assert cycles == [Cycle(machine="m", claimed=AT, planned=LATER)]


def test_a_machine_that_is_not_the_last_one_begins_a_life() -> None:
    assert [each.machine for each in with_seen([Cycle(machine="a")], Cycle(machine="b"))] == ["a", "b"]


def test_a_machine_of_a_name_that_was_there_before_begins_a_life() -> None:
    cycles = with_seen([Cycle(machine="m", released=AT)], Cycle(machine="m", claimed=LATER))
    assert cycles == [Cycle(machine="m", released=AT), Cycle(machine="m", claimed=LATER)]


def test_a_host_that_was_cleaned_after_all_was_released_by_then() -> None:
    assert with_cleaned([Cycle(machine="m", released=AT)], LATER) == [Cycle(machine="m", released=AT, cleaned=LATER)]
    assert with_cleaned([Cycle(machine="m")], LATER) == [Cycle(machine="m", released=LATER, cleaned=LATER)]
    assert with_cleaned([], LATER) == []


@pytest.mark.parametrize(
    ("cycles", "unfinished"),
    [
        ([], False),
        ([Cycle(machine="m")], False),
        ([Cycle(machine="m", joined=AT)], True),
        ([Cycle(machine="m", joined=AT, running=AT)], False),
        ([Cycle(machine="m", joined=AT), Cycle(machine="other", joined=AT)], False),
    ],
)
def test_a_life_is_unfinished_while_a_node_that_joined_was_not_ready(cycles: list[Cycle], unfinished: bool) -> None:
    assert is_unfinished(cycles, "m") == unfinished


async def one_host(metal: Estate) -> None:
    await metal.cluster()
    await metal.host("rack-1")
    await metal.pool("rack-1")


async def lives(metal: Estate, host: str = "rack-1") -> tuple[Cycle, ...]:
    return read((await metal.get(MACHINE_INVENTORY, host))["metadata"].get("annotations") or {})


@pytest.mark.asyncio
async def test_the_whole_life_of_a_machine_is_noted(metal: Estate) -> None:
    await one_host(metal)
    await metal.machine("m")
    at = [metal.now]

    def later() -> None:
        metal.later(minutes=1)
        at.append(metal.now)

    await metal.reconcile("m")
    later()
    await metal.applies("rack-1")
    await metal.reconcile("m")
    later()
    await metal.joins("rack-1", ready=False)
    await metal.reconcile("m")
    later()
    await metal.joins("rack-1")
    await metal.reconcile("m")
    until_running = {"claimed": at[0], "planned": at[0], "applied": at[1], "joined": at[2], "running": at[3]}
    assert await lives(metal) == (Cycle(machine="m", cluster="c", version=VERSION, **until_running),)

    later()
    await metal.patch(MACHINE, "m", {"metadata": {"finalizers": ["test.example.com/held"]}})
    await metal.client.delete(MACHINE, "m", NS)
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")
    (life,) = await lives(metal)
    assert life.draining is not None
    assert life.drained is not None
    assert life.draining <= life.drained
    assert (life.cleaned, life.released) == (None, None)
    later()
    await metal.applies("rack-1")
    await metal.reconcile("m")
    (life,) = await lives(metal)
    assert (life.cleaned, life.released) == (at[5], at[5])

    later()
    await metal.machine("n")
    await metal.reconcile("n")
    assert [(each.machine, each.claimed) for each in await lives(metal)] == [("m", at[0]), ("n", at[6])]


@pytest.mark.asyncio
async def test_a_life_costs_no_write_but_the_one_of_a_node_that_is_ready_after_it_joined(metal: Estate) -> None:
    await one_host(metal)
    writes: Counter[str] = Counter()

    metal.process(lambda verb, code, seconds: writes.update([verb]))
    await metal.machine("m")
    await metal.becomes_a_node("m", "rack-1", ready=False)
    before = writes.copy()
    await metal.joins("rack-1")
    await metal.reconcile("m", times=3)
    assert (writes - before)["patch"] == 1


@pytest.mark.asyncio
async def test_a_node_that_was_ready_once_is_noted_no_more(metal: Estate) -> None:
    await one_host(metal)
    await metal.machine("m")
    await metal.becomes_a_node("m", "rack-1")
    noted = await lives(metal)
    metal.later(hours=1)
    await metal.joins("rack-1", ready=False)
    await metal.reconcile("m")
    await metal.joins("rack-1")
    await metal.reconcile("m")
    assert noted[-1].running is not None
    assert await lives(metal) == noted


@pytest.mark.asyncio
async def test_garbage_is_told_and_begun_anew(metal: Estate, caplog: pytest.LogCaptureFixture) -> None:
    await one_host(metal)
    await metal.patch(MACHINE_INVENTORY, "rack-1", {"metadata": {"annotations": {CYCLES_ANNOTATION: "{"}}})
    await metal.machine("m")
    await metal.reconcile("m")
    assert [each.machine for each in await lives(metal)] == ["m"]
    assert "the annotation slipway.io/host-cycles of the MachineInventory metal/rack-1 cannot be read, and is begun anew" in caplog.text


@pytest.mark.asyncio
async def test_a_machine_that_is_older_than_the_record_has_the_rest_of_its_life_noted(metal: Estate) -> None:
    await one_host(metal)
    await metal.machine("m")
    await metal.becomes_a_node("m", "rack-1")
    await metal.patch(MACHINE_INVENTORY, "rack-1", {"metadata": {"annotations": {CYCLES_ANNOTATION: None}}})
    await metal.reconcile("m")
    assert await lives(metal) == (), "nothing is written for the record's sake"
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")
    (life,) = await lives(metal)
    assert (life.machine, life.cluster, life.claimed, life.drained is None) == ("m", "c", None, False)


@pytest.mark.asyncio
async def test_a_host_that_was_given_up_is_noted_as_clean_when_it_is(metal: Estate) -> None:
    await one_host(metal)
    await metal.machine("m")
    await metal.becomes_a_node("m", "rack-1")
    await metal.patch(BAREMETAL_MACHINE, "m", {"metadata": {"annotations": {"slipway.io/force-release": ""}}})
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")
    given_up = metal.now
    (life,) = await lives(metal)
    assert (life.released, life.cleaned) == (given_up, None)
    metal.later(hours=1)
    await metal.applies("rack-1")
    await metal.reconcile("pool", metal.pools)
    (life,) = await lives(metal)
    assert (life.released, life.cleaned) == (given_up, metal.now)
