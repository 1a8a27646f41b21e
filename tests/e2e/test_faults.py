"""Faults in the middle of a rollout, at length: on simulated hosts with the production agent, and managers in processes of their own."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from simulation import predecessor
from simulation.clusters import NAME, PLANE, Bare
from simulation.estate import FIRST, SECOND, SPACE, condition
from simulation.hostfaults import comes_back_clean, give_up, health_check
from simulation.managers import KillableEstate, SucceededEstate, TwinEstate
from simulation.rollouts import cluster, failing, killed, replacing, roll_control_plane
from simulation.sabotage import CLEAN, REPROVISION, Fault, Saboteur, everywhere
from support.ports import free_port
from support.waiting import eventually

from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CONFIG_MAP,
    MACHINE,
    MACHINE_HEALTH_CHECK,
    NODE,
    POD,
)
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.baremetal.options import BaremetalOptions
from slipway.fleet.controlplane.decisions.machines import LABELS_AND_TAINTS

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.skipif(os.environ.get("SLIPWAY_E2E") != "1", reason="takes minutes: run it with `make e2e`"),
]
PATIENCE = 900.0
THIRD = "v1.36.3"
# Seconds: longer than anybody waits between two attempts.
GONE = 100.0


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


async def test_a_control_plane_whose_clock_is_ahead_when_it_joins_is_told_and_replaced() -> None:
    """The certificate of its administrator is one of tomorrow, which nobody takes today: its join ends without its last step."""
    async with cluster(PATIENCE) as (estate, bare):
        for host in bare.hosts[:3]:
            host.machine.faults.clock = 86400.0
        await roll_control_plane(bare, SECOND)

        async def unmarked() -> dict[str, Any] | None:
            for machine in await estate.client.list(MACHINE, SPACE):
                if condition(machine, LABELS_AND_TAINTS).get("reason") == "NotSet":
                    return machine
            return None

        found = await eventually(unmarked, "a Machine says that its Node is no control plane's", PATIENCE)
        for host in bare.hosts[:3]:
            host.machine.faults.clock = 0.0
        # Its join does not end later, and the rollout does not go on to the next one.
        await asyncio.sleep(5)
        assert (await unmarked() or {}).get("metadata", {}).get("uid") == found["metadata"]["uid"]
        going = [one["metadata"]["name"] for one in await estate.client.list(MACHINE, SPACE) if one["metadata"].get("deletionTimestamp")]
        assert going == []
        await estate.client.delete(MACHINE, found["metadata"]["name"], SPACE)
        await bare.at(SECOND, FIRST, PATIENCE)


# Managers.


@pytest.mark.parametrize("after", [20, 90, 250])
async def test_a_manager_that_is_upgraded_in_the_middle_of_a_rollout_goes_on_with_what_the_older_one_wrote(
    tmp_path: Path, after: int
) -> None:
    """The older one is of the first commit that had all of this: its objects and its plans are in flight."""
    if not predecessor.extract(tmp_path):
        pytest.skip(f"the history of this repository does not have the commit {predecessor.COMMIT}")
    estate = SucceededEstate(tmp_path)
    async with cluster(PATIENCE, estate) as (_, bare):
        async with replacing(bare, 5):
            await roll_control_plane(bare, SECOND)
            await estate.upgrade(after, 60)
            await bare.at(SECOND, FIRST, PATIENCE)
            await bare.roll_workers(SECOND)
            await bare.at(SECOND, SECOND, PATIENCE)
        await bare.verify(SECOND)


async def test_of_two_managers_one_leads_and_one_that_was_frozen_while_the_other_took_over_does_nothing_twice() -> None:
    estate = TwinEstate()
    async with cluster(PATIENCE, estate) as (_, bare):
        frozen, leading = estate.first, estate.holder()
        await estate.start_other()
        async with replacing(bare, 5):
            await roll_control_plane(bare, SECOND)
            await replaced(bare, SECOND)
            assert estate.holder() == leading
            os.kill(frozen, signal.SIGSTOP)
            await estate.until(lambda: asyncio.sleep(0, estate.holder() not in ("", leading)), "the other one leads", 120)
            await replaced(bare, SECOND, 2)
            os.kill(frozen, signal.SIGCONT)
            await bare.at(SECOND, FIRST, PATIENCE)
            await bare.roll_workers(SECOND)
            await bare.at(SECOND, SECOND, PATIENCE)
        await bare.verify(SECOND)


async def replaced(bare: Bare, version: str, number: int = 1) -> None:
    """Until so many control planes are at a version, and well."""

    async def there() -> bool:
        found = [each for each in await bare.machines() if "cluster.x-k8s.io/control-plane" in each["metadata"]["labels"]]
        well = [each for each in found if each["spec"]["version"] == version and condition(each, "Ready").get("status") == "True"]
        return len(well) >= number

    await bare.estate.until(there, f"{number} control planes are at {version}", PATIENCE)


async def test_an_api_server_that_is_gone_for_minutes_holds_a_rollout_up_for_no_longer_than_that(tmp_path: Path) -> None:
    estate = KillableEstate()
    estate.server = EmbeddedServer(database=tmp_path / "objects", port=free_port())
    async with cluster(PATIENCE, estate) as (_, bare), replacing(bare, 2):
        estate.world.registry.flows.clear()
        version = await bare.older_release()
        await bare.roll_workers(version)
        working = await failing(bare, "PlanApplied", "PlanRunning", PATIENCE)
        await estate.server.stop()
        # The host ends its plan meanwhile, and boots into the node.
        estate.world.registry.flows.set()
        host = bare.host(working["status"]["machineInventoryRef"]["name"])
        await eventually(lambda: host.machine.installed.kubernetes == version, "the host has ended its plan", PATIENCE)
        await asyncio.sleep(GONE)
        await estate.server.start()
        bare.watchman.look_at(estate.server.core.store)
        await bare.at(FIRST, version, PATIENCE)


# Control planes.


async def test_a_control_plane_whose_host_dies_in_the_middle_of_a_rollout_is_replaced_without_its_etcd_member_and_its_node() -> None:
    estate = KillableEstate(options=BaremetalOptions(host_deadline=timedelta(seconds=5)))
    async with cluster(PATIENCE, estate, spare=1) as (_, bare):
        await health_check(bare, PLANE, {"cluster.x-k8s.io/control-plane": ""})
        await roll_control_plane(bare, SECOND)
        await replaced(bare, SECOND)
        old = next(each for each in await bare.machines() if is_old_plane(each))
        name = old["spec"]["providerID"].removeprefix("baremetal:///")
        host = bare.host(name)
        host.machine.faults.dead = True
        host.power_off()
        await give_up(bare, name, "its power supply is gone")
        await bare.at(SECOND, FIRST, PATIENCE)
        assert name not in await bare.hosts_of(control_plane=True)
        own = host.machine.hardware.address.partition("/")[0]
        assert [member.peer_url for member in bare.workload.etcd.members.values() if own in member.peer_url] == []
        assert [node for node in bare.workload.client.list(NODE) if node["spec"].get("providerID") == f"baremetal:///{name}"] == []
        await estate.client.delete(MACHINE_HEALTH_CHECK, PLANE, SPACE)
        await comes_back_clean(bare, host)


def is_old_plane(machine: dict[str, Any]) -> bool:
    metadata = machine["metadata"]
    plane = "cluster.x-k8s.io/control-plane" in metadata["labels"]
    return plane and machine["spec"]["version"] == FIRST and "deletionTimestamp" not in metadata


async def test_an_etcd_member_that_never_starts_is_told_and_goes_with_its_machine() -> None:
    async with cluster(PATIENCE) as (estate, bare):
        for host in bare.hosts[:3]:
            host.machine.faults.etcd_fails = True
        await roll_control_plane(bare, SECOND)
        etcd = bare.workload.etcd

        async def added() -> bool:
            return any(member.learner and not member.running for member in etcd.members.values())

        await estate.until(added, "a member that does not start was added", PATIENCE)

        async def told() -> list[str]:
            new = [each for each in await bare.machines() if each["spec"]["version"] == SECOND]
            said = [condition(each, "EtcdMemberHealthy") for each in new]
            return [each["message"] for each in said if each.get("status") in ("False", "Unknown")]

        await estate.until(told, "the Machine tells of its member", PATIENCE)
        assert etcd.has_quorum()
        for host in bare.hosts[:3]:
            host.machine.faults.etcd_fails = False
        (new,) = [each for each in await bare.machines() if each["spec"]["version"] == SECOND]
        await estate.client.delete(MACHINE, new["metadata"]["name"], SPACE)
        await bare.at(SECOND, FIRST, PATIENCE)
        assert len(etcd.members) == 3
        assert all(member.running and not member.learner for member in etcd.members.values())


async def test_when_the_holder_of_the_address_is_cut_off_another_one_has_it_and_the_rollout_goes_on() -> None:
    async with cluster(PATIENCE) as (estate, bare), replacing(bare, 2):
        machines = [host.machine for host in bare.hosts[:3]]
        (holder,) = estate.world.segment.holders(bare.vip, machines)
        version = await bare.older_release()
        await bare.roll_workers(version)
        holder.faults.cut_off = True
        holder.changed()
        await bare.estate.until(lambda: asyncio.sleep(0, estate.world.segment.takeovers[bare.vip] > 1), "another one has the address")
        await bare.workers_at(version, PATIENCE)
        (other,) = estate.world.segment.holders(bare.vip, machines)
        assert other is not holder
        holder.faults.cut_off = False
        holder.changed()
        await estate.until(lambda: asyncio.sleep(0, len(estate.world.segment.holders(bare.vip, machines)) == 1), "one has the address")
        assert bare.workload.etcd.has_quorum()


async def test_a_control_plane_that_is_cut_off_while_another_is_being_replaced_is_waited_for() -> None:
    """Two of three are left then, and one of two is no quorum: nothing can be done until it is back, and nothing is done meanwhile."""
    async with cluster(PATIENCE) as (estate, bare), replacing(bare, 3):
        estate.world.registry.flows.clear()
        await roll_control_plane(bare, SECOND)
        await failing(bare, "PlanApplied", "PlanRunning", PATIENCE)
        machines = [host.machine for host in bare.hosts[:3]]
        (holder,) = estate.world.segment.holders(bare.vip, machines)
        holder.faults.cut_off = True
        holder.changed()

        def unreachable(found: dict[str, Any]) -> bool:
            return condition(found, "VIPReady").get("reason") == "APINotReachable"

        await estate.when(BAREMETAL_CLUSTER, NAME, unreachable, "that nobody answers at the address is told", PATIENCE)
        estate.world.registry.flows.set()
        holder.faults.cut_off = False
        holder.changed()
        await bare.at(SECOND, FIRST, PATIENCE)


async def test_a_layer_that_ends_in_its_middle_is_pulled_again_by_itself() -> None:
    async with cluster(PATIENCE) as (estate, bare), replacing(bare, 3):
        estate.world.registry.broken = 1
        await roll_control_plane(bare, SECOND)
        await failing(bare, "PlanApplied", "PlanRunning", PATIENCE, message="unexpected EOF in a layer")
        await bare.at(SECOND, FIRST, PATIENCE)
