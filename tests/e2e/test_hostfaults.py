"""What befalls hosts, and what they need, in the middle of a rollout: provoked, told, and come out of, as docs/faults.md says.

On simulated hosts with the production agent.  One cluster lives through all of it: every test takes it as it is, and leaves it well.
"""

from __future__ import annotations

import asyncio
import os
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio
from simulation.clusters import WORKERS, Bare
from simulation.estate import FIRST, SPACE, condition
from simulation.hostfaults import STATE, comes_back_clean, delete_machine_of, give_up, in_plan, small_cluster, spares, worker
from simulation.links import Link
from simulation.rollouts import failing

from slipway.api.cluster.kinds import (
    BAREMETAL_MACHINE,
    CONFIG_MAP,
    CORE_EVENT,
    MACHINE,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    NODE,
    POD,
    SECRET,
)
from slipway.simulation.workload.controllers import BUDGET

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(os.environ.get("SLIPWAY_E2E") != "1", reason="takes a minute: run it with `make e2e`"),
]
Manifest = dict[str, Any]
DAY = 86400.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[Bare]:
    async with small_cluster() as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def bare(shared: Bare) -> AsyncIterator[Bare]:
    yield shared
    assert shared.wrong == []


async def test_a_host_that_dies_in_its_plan_is_told_as_silent_and_another_one_is_taken(bare: Bare) -> None:
    version = await bare.older_release()
    bare.estate.world.registry.flows.clear()
    await bare.roll_workers(version)
    host, _ = await in_plan(bare)
    host.machine.faults.dead = True
    host.power_off()
    bare.estate.world.registry.flows.set()
    silent = await failing(bare, "PlanApplied", "HostSilent", message="to try another host, delete the Machine")
    await delete_machine_of(bare, silent)
    await give_up(bare, bare.estate.name_of(host), "no answer from its console")
    # Else it would go on with becoming a node, should it come back.
    bare.watchman.excuse(f"{bare.estate.name_of(host)} got the plan clean of")
    await bare.at(FIRST, version)
    await comes_back_clean(bare, host)


# The network, the clock, the disk.


async def test_hosts_whose_link_flaps_end_their_plans_once(bare: Bare) -> None:
    version, boots = await bare.older_release(), sum(host.machine.boots for host in spares(bare))
    async with AsyncExitStack() as stack:
        links = [await stack.enter_async_context(Link(bare.estate, host)) for host in spares(bare)]
        flapping = [asyncio.create_task(link.flap(up=0.3, down=0.2)) for link in links]
        try:
            await bare.roll_workers(version)
            await bare.at(FIRST, version)
        finally:
            for task in flapping:
                task.cancel()
            await asyncio.gather(*flapping, return_exceptions=True)
        assert sum(link.cuts for link in links) > 2
        assert sum(link.carried for link in links) > 2
    assert sum(host.machine.boots for host in spares(bare)) == boots + 1


async def test_a_host_whose_link_is_cut_for_longer_than_a_plan_may_take_is_told_as_silent_and_goes_on_when_it_is_back(bare: Bare) -> None:
    version = await bare.older_release()
    async with AsyncExitStack() as stack:
        links = [await stack.enter_async_context(Link(bare.estate, host)) for host in spares(bare)]
        bare.estate.world.registry.flows.clear()
        await bare.roll_workers(version)
        await in_plan(bare)
        for link in links:
            await link.cut()
        bare.estate.world.registry.flows.set()
        silent = await failing(bare, "PlanApplied", "HostSilent", message="look whether it has power")
        assert silent["status"]["phase"] == "Reprovisioning"
        for link in links:
            await link.mend()
        await bare.at(FIRST, version)


@pytest.mark.parametrize("seconds", [DAY, -DAY], ids=["ahead", "behind"])
async def test_hosts_whose_clock_is_a_day_off_are_replaced_as_others_are(bare: Bare, seconds: float) -> None:
    version = await bare.older_release()
    for host in spares(bare):
        host.machine.faults.clock = seconds
    await bare.roll_workers(version)
    await bare.at(FIRST, version)
    for host in spares(bare):
        host.machine.faults.clock = 0.0


async def test_a_host_whose_disk_is_full_says_so_and_is_cleaned_once_there_is_room(bare: Bare) -> None:
    version = await bare.older_release()
    host = await worker(bare)
    host.machine.faults.disk_full = True
    await bare.roll_workers(version)
    failed = await failing(bare, "HostCleaned", "CleanFailed", message="No space left on device")
    inventory = await bare.estate.client.get(MACHINE_INVENTORY, bare.estate.name_of(host), SPACE)
    assert inventory["metadata"]["annotations"][STATE] == "Unavailable"
    host.machine.faults.disk_full = False
    await bare.patch(BAREMETAL_MACHINE, failed["metadata"]["name"], {"metadata": {"annotations": {"slipway.io/retry-clean": ""}}})
    await bare.at(FIRST, version)
    await bare.rest()
    bare.watchman.excuse("wrote its plan clean a second time")


# The registry and the catalog.


async def test_a_registry_that_is_slow_is_waited_for_and_told_when_it_takes_too_long(bare: Bare) -> None:
    version = await bare.older_release()
    bare.estate.world.registry.flows.clear()
    await bare.roll_workers(version)
    await failing(bare, "PlanApplied", "HostSilent")
    bare.estate.world.registry.flows.set()
    await bare.at(FIRST, version)


async def test_a_registry_that_ends_in_the_middle_of_a_layer_stages_nothing_and_is_told_with_what_the_host_printed(bare: Bare) -> None:
    version = await bare.older_release()
    bare.estate.world.registry.broken = 1
    await bare.roll_workers(version)
    failed = await failing(bare, "PlanApplied", "PlanFailed", message="unexpected EOF in a layer")
    host = bare.host(failed["status"]["machineInventoryRef"]["name"])
    assert (host.machine.staged, host.machine.installed.kubernetes == version) == (None, False)
    await delete_machine_of(bare, failed)
    await bare.at(FIRST, version)


async def test_an_image_whose_digest_the_registry_does_not_have_is_told_and_a_right_one_lets_it_go_on(bare: Bare) -> None:
    version = await bare.older_release(listed=False)
    wrong = {"data": {version: f"elsewhere.example.com/os@sha256:{'0' * 64}"}}
    await bare.patch(CONFIG_MAP, "elemental-image-catalog", wrong)
    await bare.roll_workers(version)
    failed = await failing(bare, "PlanApplied", "PlanFailed", message="no such image")
    await bare.list_image(version)
    await delete_machine_of(bare, failed)
    await bare.at(FIRST, version)


# What people do to objects.


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


async def test_an_inventory_that_is_deleted_goes_when_its_machine_does_and_its_host_registers_anew(bare: Bare) -> None:
    version = await bare.older_release()
    host = await worker(bare)
    name = bare.estate.name_of(host)
    before = await bare.estate.client.get(MACHINE_INVENTORY, name, SPACE)
    await bare.estate.client.delete(MACHINE_INVENTORY, name, SPACE)
    await bare.estate.when(
        MACHINE_INVENTORY, name, lambda found: condition(found, "Ready").get("reason") == "InUse", "that it is in use is told"
    )
    await bare.roll_workers(version)
    await bare.at(FIRST, version)

    def anew(found: Manifest) -> bool:
        return bool(found["metadata"]["uid"] != before["metadata"]["uid"]) and condition(found, "Ready").get("status") == "True"

    await bare.estate.when(MACHINE_INVENTORY, name, anew, "the host has registered anew", 60)
    pool = f"{WORKERS}-pool"
    await bare.estate.when(MACHINE_INVENTORY_POOL, pool, lambda found: found["status"]["available"] == 1, "the pool has it again")


async def test_a_budget_that_never_allows_an_eviction_is_told_at_the_machine_and_holds_it_until_somebody_gives_way(bare: Bare) -> None:
    version = await bare.older_release()
    node = next(
        each for each in bare.workload.client.list(NODE) if "node-role.kubernetes.io/control-plane" not in each["metadata"]["labels"]
    )
    workload = bare.workload.client
    metadata = {"name": "lasting", "namespace": "default", "labels": {"app": "lasting"}}
    container = {"name": "app", "image": "app"}
    await workload.create(POD, {"metadata": metadata, "spec": {"nodeName": node["metadata"]["name"], "containers": [container]}})
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "lasting"}}}
    await workload.create(BUDGET, {"metadata": {"name": "lasting", "namespace": "default"}, "spec": spec})
    await bare.roll_workers(version)

    def told(found: Manifest) -> bool:
        said = condition(found, "Deleting")
        return said.get("reason") == "DrainingNode" and "would violate the pod's disruption budget" in said["message"]

    (machine,) = [each for each in await bare.machines() if "cluster.x-k8s.io/control-plane" not in each["metadata"]["labels"]]
    held = await bare.estate.when(MACHINE, machine["metadata"]["name"], told, "what keeps the drain from ending is told")
    assert "default/lasting" in condition(held, "Deleting")["message"]
    await workload.delete(BUDGET, "lasting", "default")
    await bare.at(FIRST, version)


async def test_a_token_that_ended_before_its_host_booted_is_restored_and_the_host_joins_with_it(bare: Bare) -> None:
    """The manager was away for longer than a token lives, so that nobody extended it, and the cluster took it away."""
    version = await bare.older_release()
    for host in spares(bare):
        host.machine.faults.hangs_at_boot = True
    await bare.roll_workers(version)
    waiting = await failing(bare, "NodeJoined", "WaitingForNode")
    await bare.estate.stop()
    ended = [secret for secret in bare.workload.client.list(SECRET, "kube-system") if secret.get("type") == "bootstrap.kubernetes.io/token"]
    for secret in ended:
        await bare.workload.client.delete(SECRET, secret["metadata"]["name"], "kube-system")
    assert ended
    host = bare.host(waiting["status"]["machineInventoryRef"]["name"])
    for each in spares(bare):
        each.machine.faults.hangs_at_boot = False
    await host.power_cycle()
    await bare.estate.start()
    await bare.at(FIRST, version)
    events = {event["reason"] for event in await bare.estate.client.list(CORE_EVENT, SPACE)}
    assert "BootstrapTokenRestored" in events
