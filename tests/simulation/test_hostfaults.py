"""A host that dies for good; more of what befalls hosts in the middle of a rollout is in tests/e2e."""

from __future__ import annotations

import pytest
from simulation.clusters import WORKERS
from simulation.estate import FIRST, SPACE
from simulation.hostfaults import comes_back_clean, give_up, health_check, small_cluster, version_of_worker, worker

from slipway.api.cluster.kinds import MACHINE_HEALTH_CHECK, NODE

pytestmark = pytest.mark.asyncio


async def test_a_worker_whose_host_dies_is_replaced_from_the_pool_and_its_host_stays_out_of_use_until_it_is_clean() -> None:
    async with small_cluster() as bare:
        version = await version_of_worker(bare)
        host = await worker(bare)
        name = bare.estate.name_of(host)
        await health_check(bare, WORKERS, {"cluster.x-k8s.io/deployment-name": WORKERS})
        host.machine.faults.dead = True
        host.power_off()
        await give_up(bare, name, "its board burnt")
        await bare.at(FIRST, version)
        assert await worker(bare) is not host, "the replacement is on the spare host"
        assert [node for node in bare.workload.client.list(NODE) if node["spec"].get("providerID") == f"baremetal:///{name}"] == []
        await bare.estate.client.delete(MACHINE_HEALTH_CHECK, WORKERS, SPACE)
        await comes_back_clean(bare, host)
