"""Images staged ahead, all of it ours and the hosts simulated: what is on the hosts' disks is enough for a whole upgrade."""

from __future__ import annotations

import pytest
from simulation.clusters import PLANE, WORKERS, Bare
from simulation.estate import FIRST, SECOND, Estate, condition

from slipway.api.cluster.kinds import KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_INVENTORY_POOL
from slipway.api.elemental import staging

pytestmark = pytest.mark.asyncio


async def test_a_cluster_whose_images_are_staged_is_upgraded_though_its_registry_is_away() -> None:
    async with Estate() as estate:
        hosts = await estate.hosts(3)
        bare = Bare(estate, hosts, planes=2, workers=1)
        bare.control_planes = 1
        await bare.make(replicas=1, rollout={"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}})
        await bare.at(FIRST, FIRST)
        for pool in (f"{PLANE}-pool", f"{WORKERS}-pool"):
            await bare.patch(MACHINE_INVENTORY_POOL, pool, {"spec": {"imageStaging": "Ahead"}})
        for pool in (f"{PLANE}-pool", f"{WORKERS}-pool"):
            found = await estate.when(
                MACHINE_INVENTORY_POOL,
                pool,
                lambda found: condition(found, "ImagesStaged").get("reason") == "AllStaged",
                f"{pool} has {SECOND}",
            )
            assert [(each["version"], each["staged"]) for each in found["status"]["images"]] == [(SECOND, found["status"]["total"])]
        # They serve as before.
        assert {host.machine.installed.kubernetes for host in hosts} == {FIRST}
        estate.world.registry.reachable = False
        await bare.patch(KUBEADM_CONTROL_PLANE, PLANE, {"spec": {"version": SECOND}})
        await bare.at(SECOND, FIRST)
        await bare.patch(MACHINE_DEPLOYMENT, WORKERS, {"spec": {"template": {"spec": {"version": SECOND}}}})
        await bare.at(SECOND, SECOND)

        async def is_dropped() -> bool:
            return not hosts[2].machine.tree.names(staging.FOLDER)

        await estate.until(is_dropped, "the worker's host has no image any more that it does not need")
        assert bare.wrong == []
