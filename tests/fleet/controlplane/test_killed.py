"""The control plane's controller killed, or without the API server's answer, at any of its requests, and run again by another process."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from fleet.controlplane.estate import PLACE, Estate, estate
from fleet.fuse import Fuse, Killed
from fleet.infrastructure import TEST_MACHINE

from slipway.api.cluster.kinds import KUBEADM_CONFIG, MACHINE
from slipway.kube.errors import UnreachableError
from slipway.runtime.objects import Request

pytestmark = pytest.mark.asyncio

OF_A_MACHINE = (MACHINE, KUBEADM_CONFIG, TEST_MACHINE)


@pytest_asyncio.fixture
async def world() -> AsyncIterator[Estate]:
    async with estate() as made:
        yield made


async def objects(world: Estate) -> list[list[str]]:
    return [[found["metadata"]["name"] for found in await world.client.list(kind, PLACE)] for kind in OF_A_MACHINE]


@pytest.mark.parametrize("error", [Killed, UnreachableError])
async def test_a_machine_that_is_cut_off_at_any_request_is_made_once_and_leaves_no_clone(world: Estate, error: type[BaseException]) -> None:
    await world.make(replicas=1)
    await world.rest()
    for at in itertools.count(1):
        for kind in OF_A_MACHINE:
            for found in await world.client.list(kind, PLACE):
                await world.client.delete(kind, found["metadata"]["name"], PLACE)
        cut = await world.cut_short(Fuse(at, error))
        made = await objects(world)
        await world.rest()
        machines, configs, infrastructure = await objects(world)
        assert machines == configs == infrastructure, f"cut off at request {at}: there was {made}"
        assert len(machines) == 1, f"cut off at request {at}: there was {made}"
        if not cut:
            break
    # Three objects, two of which give up their metadata, the template, and the status.
    assert at > 6


async def test_a_machine_that_the_cache_does_not_know_yet_keeps_its_clones_and_is_not_made_twice(world: Estate) -> None:
    await world.make(replicas=1)
    await world.rest()
    (name,) = await world.names()
    # As it is while the watch is slower than the next process.
    stored = world.cache.informer(MACHINE).store
    known = stored.get(name, PLACE)
    assert known is not None
    stored.remove(known)
    await world.restarted().reconcile(Request(PLACE, "cp"))
    assert await objects(world) == [[name]] * 3
