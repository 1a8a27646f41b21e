"""A bare-metal cluster of simulated hosts is upgraded by ``fleet upgrade``, whose process is killed and started again in the middle."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from fleet.fuse import Fuse, Killed
from simulation.clusters import NAME, Bare
from simulation.estate import FIRST, SECOND, SPACE, Estate

from slipway.api.cluster.kinds import MACHINE
from slipway.fleet.upgrades import events
from slipway.fleet.upgrades.run import Options, Upgrade
from slipway.fleet.upgrades.vigil import Patience
from slipway.kube.aio import AsyncClient

pytestmark = pytest.mark.asyncio
PATIENT = Patience(interval=0.1, seen=60, observed=60, prerequisites=60, answer=60, stall=60)
_MOST_REQUESTS = 200
_PLANE, _WORKERS = f"{NAME}-control-plane {SECOND}", f"{NAME}-workers {SECOND}"


async def test_an_upgrade_that_is_killed_again_and_again_replaces_every_node_once() -> None:
    chance = random.Random(3)
    async with Estate() as estate:
        bare = Bare(estate, await estate.hosts(5), planes=3, workers=2)
        await bare.make()
        await bare.at(FIRST, FIRST)
        made = bare.watchman.made[MACHINE.kind]
        patched: list[str] = []

        def tell(event: events.Event) -> None:
            if event.event == events.PATCH:
                patched.append(f"{event.name} {event.version}")

        while True:
            fuse = Fuse(chance.randint(1, _MOST_REQUESTS), Killed)
            async with AsyncClient(estate.server.connection(), on_request=fuse) as client:
                with suppress(Killed):
                    await Upgrade(Options(SPACE, NAME, SECOND, patience=PATIENT), tell).run(client)
                    break
        # Who is killed when a patch is made has no time to tell of it.
        assert patched in ([], [_PLANE], [_WORKERS], [_PLANE, _WORKERS])
        await bare.verify(SECOND)
        assert bare.watchman.made[MACHINE.kind] - made == 5
        assert bare.wrong == []
