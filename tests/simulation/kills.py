"""A rollout of three control planes and two workers with no spare host, during which the manager is killed again and again."""

from __future__ import annotations

import asyncio
import random

from simulation.clusters import PLANE, WORKERS, Bare
from simulation.estate import FIRST, SECOND
from simulation.managers import KillableEstate

from slipway.api.cluster.kinds import KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT


async def rollout_with_kills(times: int, *, most_writes: int, seed: int, patience: float) -> Bare:
    """The cluster when everything is at rest; each kill comes after some writes of anybody, ``most_writes`` at most."""
    chance = random.Random(seed)
    async with KillableEstate() as estate:
        hosts = await estate.hosts(5)
        bare = Bare(estate, hosts, planes=3, workers=2)
        await bare.make()
        await bare.at(FIRST, FIRST, patience)
        estate.follow(bare.workload)
        made = dict(bare.watchman.made)
        await bare.patch(KUBEADM_CONTROL_PLANE, PLANE, {"spec": {"version": SECOND}})
        killer = asyncio.create_task(_kill(estate, chance, times, most_writes))
        try:
            await bare.at(SECOND, FIRST, patience)
            await bare.patch(MACHINE_DEPLOYMENT, WORKERS, {"spec": {"template": {"spec": {"version": SECOND}}}})
            await bare.at(SECOND, SECOND, patience)
            assert estate.kills == times, f"the rollout was over after {estate.kills} kills"
            await killer
        finally:
            killer.cancel()
            await asyncio.gather(killer, return_exceptions=True)
        await bare.verify(SECOND)
        assert bare.wrong == []
        # Each was replaced once, and by one.
        assert {kind: number - made[kind] for kind, number in bare.watchman.made.items()} == {
            **dict.fromkeys(made, 0),
            "Machine": 5,
            "BaremetalMachine": 5,
        }
        assert [host.machine.boots for host in hosts] == [3] * 5, "registered, made a node, and made another one"
        return bare


async def _kill(estate: KillableEstate, chance: random.Random, times: int, most_writes: int) -> None:
    for _ in range(times):
        await estate.kill_and_restart(chance.randint(1, most_writes), chance.uniform(0.5, 10.0))
