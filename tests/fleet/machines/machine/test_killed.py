"""A manager that ends at any request, while a Machine comes and while it goes: the next one ends it well, and nothing is left behind."""

from __future__ import annotations

import pytest
from fleet.infrastructure import TEST_CONFIG, TEST_MACHINE
from fleet.machines.machine.machineworld import MachineWorld, said

from slipway.api.cluster.kinds import MACHINE, NODE

pytestmark = pytest.mark.asyncio


async def test_a_machine_comes_up_whatever_request_its_manager_ended_at(world: MachineWorld) -> None:
    await world.cluster()
    await world.machine("cp", control_plane=True)
    await world.machine("m")
    await world.providers("m", finalizers=True)
    await world.node("m")
    ended = [await world.killed("m", request) for request in range(1, 8)]
    assert sum(ended) > 3
    await world.rest("m")
    assert said(await world.get("m"), "Available")[0] == "True"


async def test_a_machine_goes_whatever_request_its_manager_ended_at(world: MachineWorld) -> None:
    await world.running()
    await world.client.delete(MACHINE, "m", world.namespace)
    ended = [await world.killed("m", request) for request in range(1, 6)]
    for kind in (TEST_MACHINE, TEST_CONFIG):
        await world.rest("m")
        await world.let_go(kind, "m")
        ended += [await world.killed("m", request) for request in range(1, 5)]
    assert sum(ended) > 5
    await world.rest("m")
    assert await world.client.find(MACHINE, "m", world.namespace) is None
    assert await world.remote.find(NODE, "m") is None
