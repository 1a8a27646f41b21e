"""A dead host, and a plan Secret that people lay hands on, in the middle of a rollout; more of what befalls hosts is in tests/e2e."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from simulation.clusters import WORKERS, Bare
from simulation.estate import FIRST, SPACE
from simulation.hostfaults import comes_back_clean, give_up, health_check, in_plan, small_cluster, version_of_worker, worker
from simulation.rollouts import failing

from slipway.api.cluster.kinds import MACHINE_HEALTH_CHECK, NODE, SECRET

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[Bare]:
    async with small_cluster() as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def bare(shared: Bare) -> AsyncIterator[Bare]:
    yield shared
    assert shared.wrong == []


async def test_a_worker_whose_host_dies_is_replaced_from_the_pool_and_its_host_stays_out_of_use_until_it_is_clean(bare: Bare) -> None:
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


@pytest.mark.parametrize("how", ["changed", "deleted"])
async def test_a_plan_secret_that_somebody_changes_or_deletes_while_its_host_works_on_it_costs_time_and_nothing_else(
    bare: Bare, how: str
) -> None:
    version = await bare.older_release()
    bare.estate.world.registry.flows.clear()
    await bare.roll_workers(version)
    host, secret = await in_plan(bare)
    name = secret["metadata"]["name"]
    if how == "changed":
        plan = b'{"instructions":[{"name":"by-hand","command":"/usr/bin/true"}]}'
        await bare.patch(SECRET, name, {"data": {"plan": b64encode(plan).decode()}})
        await failing(bare, "PlanApplied", "PlanEdited")
    else:
        await bare.estate.client.delete(SECRET, name, SPACE)
        await bare.estate.when(SECRET, name, lambda found: found["metadata"]["uid"] != secret["metadata"]["uid"], "it is made anew")
    bare.estate.world.registry.flows.set()
    await bare.at(FIRST, version)
    assert host.machine.installed.kubernetes == version
    bare.watchman.excuse("wrote its plan reprovision a second time")
