"""What a soak takes for granted of what it sees: the order of writes, whose power it has cut, and what is gone meanwhile."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, MACHINE_INVENTORY
from slipway.simulation.soak.cuts import Cuts
from slipway.simulation.soak.ground import Ground
from slipway.simulation.soak.judging.written import Written
from slipway.simulation.soak.operator import Hand
from slipway.simulation.soak.options import NAMESPACE
from slipway.simulation.soak.record import Record


def test_a_write_is_told_only_once_all_that_were_made_before_it_are() -> None:
    written, seen = Written(), {MACHINE_INVENTORY: 0, BAREMETAL_MACHINE: 0}
    written.note(MACHINE_INVENTORY, NAMESPACE, 7)
    written.note(BAREMETAL_MACHINE, NAMESPACE, 8)
    written.note(MACHINE_INVENTORY, "elsewhere", 9)
    written.note(MACHINE_INVENTORY, NAMESPACE, 10)
    seen[BAREMETAL_MACHINE] = 8
    assert written.told(seen.__getitem__) == 6, "a host is released before its machine goes, and the watch of hosts is behind"
    seen[MACHINE_INVENTORY] = 7
    assert written.told(seen.__getitem__) == 9
    seen[MACHINE_INVENTORY] = 12
    assert written.told(seen.__getitem__) == 10


def test_a_host_is_cut_from_the_moment_on_when_it_loses_its_power_in_a_plan_until_it_is_back() -> None:
    cuts, due = Cuts(), ["power"]
    with cuts.during("host-1", due):
        assert not cuts.is_cut("host-1")
        due.clear()
        assert cuts.is_cut("host-1")
        cuts.is_back("host-1")
        assert cuts.is_cut("host-1"), "it may be cut off and back again and again"
    assert cuts.is_cut("host-1"), "its etcd takes its time"
    cuts.is_back("host-1")
    assert not cuts.is_cut("host-1")


def test_a_host_that_does_not_come_to_a_plan_was_never_cut() -> None:
    cuts = Cuts()
    with cuts.during("host-1", ["power"]):
        pass
    assert not cuts.is_cut("host-1")


@pytest.mark.asyncio
async def test_an_operator_does_not_insist_on_what_is_gone(tmp_path: Path) -> None:
    record = Record(lambda event: None)
    ground = Ground(tmp_path, record, seed=1, deadline=timedelta(seconds=5), stalled=60.0)
    try:
        await ground.plane.serve()
        async with asyncio.timeout(30):
            await Hand(ground, record).annotate(BAREMETAL_MACHINE, "gone", "slipway.io/force-release", "soak")
    finally:
        await ground.plane.stop()
    assert not record.refusals
