"""A bare-metal cluster of simulated hosts is upgraded by ``fleet upgrade``, whose process is killed and started again in the middle."""

from __future__ import annotations

import asyncio
import random

import pytest
from simulation.clusters import NAME, Bare
from simulation.estate import FIRST, SECOND, SPACE, Estate

from slipway.api.cluster.kinds import MACHINE
from slipway.fleet.upgrades import events
from slipway.fleet.upgrades.run import Options, Upgrade
from slipway.fleet.upgrades.vigil import Patience
from slipway.kube.aio import AsyncClient

pytestmark = pytest.mark.asyncio
QUICK = Patience(interval=0.1, seen=20, observed=30, prerequisites=30, answer=30, stall=60)


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

        async with asyncio.timeout(120):
            while True:
                async with AsyncClient(estate.server.connection()) as client:
                    upgrade = asyncio.create_task(Upgrade(Options(SPACE, NAME, SECOND, patience=QUICK), tell).run(client))
                    done, _ = await asyncio.wait({upgrade}, timeout=chance.uniform(0.2, 3.0))
                    if done:
                        upgrade.result()
                        break
                    upgrade.cancel()
                    await asyncio.wait({upgrade})
        assert patched == [f"{NAME}-control-plane {SECOND}", f"{NAME}-workers {SECOND}"]
        await bare.verify(SECOND)
        assert bare.watchman.made[MACHINE.kind] - made == 5
        assert bare.wrong == []
