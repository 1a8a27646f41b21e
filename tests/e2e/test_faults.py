"""Faults in the middle of a rollout, at length: on simulated hosts with the production agent, and managers in processes of their own."""

from __future__ import annotations

import os

import pytest
from simulation.estate import FIRST, SECOND, SPACE, condition
from simulation.rollouts import cluster, failing, killed, replacing, roll_control_plane
from simulation.sabotage import CLEAN, REPROVISION, Fault, Saboteur, everywhere

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, CONFIG_MAP, MACHINE, POD

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.skipif(os.environ.get("SLIPWAY_E2E") != "1", reason="takes minutes: run it with `make e2e`"),
]
PATIENCE = 900.0
THIRD = "v1.36.3"


async def test_a_rollout_whose_manager_is_killed_a_hundred_times_ends_as_if_nothing_had_been() -> None:
    async with cluster(PATIENCE) as (estate, bare):
        async with replacing(bare, 5), killed(estate, 100, most_writes=16, seed=100):
            await roll_control_plane(bare, SECOND)
            await bare.at(SECOND, FIRST, PATIENCE)
            await bare.roll_workers(SECOND)
            await bare.at(SECOND, SECOND, PATIENCE)
        await bare.verify(SECOND)


@pytest.mark.parametrize("what", ["power", "agent"])
async def test_whatever_goes_in_any_instruction_of_both_plans_on_any_host_the_rollout_ends_right(what: Fault) -> None:
    """As often as there are places: the control plane is rolled twice, as the power goes once at most in a host that is about to join."""
    reprovision = everywhere(what, REPROVISION)
    planned = {CLEAN: everywhere(what, CLEAN) * 5, REPROVISION: reprovision * (5 if what == "agent" else 1)}
    async with cluster(PATIENCE) as (_, bare):
        async with Saboteur(bare, **planned) as saboteur:
            await roll_control_plane(bare, SECOND)
            await bare.at(SECOND, FIRST, PATIENCE)
            await bare.roll_workers(SECOND)
            await bare.at(SECOND, SECOND, PATIENCE)
            await roll_control_plane(bare, THIRD)
            await bare.at(THIRD, SECOND, PATIENCE)
            await bare.roll_workers(THIRD)
            await bare.at(THIRD, THIRD, PATIENCE)
            assert saboteur.left == []
        await bare.verify(THIRD)


async def test_a_registry_that_is_away_for_a_while_is_told_and_holds_the_rollout_up_no_longer_than_that() -> None:
    async with cluster(PATIENCE) as (estate, bare), replacing(bare, 3):
        estate.world.registry.reachable = False
        await roll_control_plane(bare, SECOND)
        await failing(bare, "PlanApplied", "PlanRunning", PATIENCE, message="ended with 18")
        estate.world.registry.reachable = True
        await bare.at(SECOND, FIRST, PATIENCE)


async def test_a_control_plane_that_cannot_join_is_told_with_what_to_look_at_and_replaced() -> None:
    async with cluster(PATIENCE) as (estate, bare):
        for host in bare.hosts[:3]:
            host.machine.faults.fails = {"kubeadm": 1}
        await roll_control_plane(bare, SECOND)
        failed = await failing(bare, "NodeJoined", "WaitingForNode", PATIENCE)
        name = failed["metadata"]["name"]
        await bare.patch(BAREMETAL_MACHINE, name, {"metadata": {"annotations": {"slipway.io/join-deadline": "1s"}}})
        failed = await failing(bare, "NodeJoined", "JoinDeadlineExceeded", PATIENCE)
        told = condition(failed, "NodeJoined")["message"]
        assert "/var/log/cloud-init-output.log" in told
        assert bare.vip in told
        # Who holds the address, and what its keepalived says, can be looked at meanwhile.
        machines = [host.machine for host in bare.hosts]
        assert len(estate.world.segment.holders(bare.vip, machines)) == 1
        workload = bare.workload.client
        assert workload.find(CONFIG_MAP, "alive", "kube-system") is not None
        assert len([pod for pod in workload.list(POD, "kube-system") if pod["metadata"]["labels"].get("app") == "alive"]) >= 2
        for host in bare.hosts[:3]:
            host.machine.faults.fails = {}
        await estate.client.delete(MACHINE, failed["metadata"]["ownerReferences"][0]["name"], SPACE)
        await bare.at(SECOND, FIRST, PATIENCE)
