"""What the guide's *Troubleshooting* table is about, and what happens to hosts in a rollout: brought about, told, and recovered from.

One cluster lives through all of it, as those of operators do: every test takes it as it is, and leaves it well.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from simulation.clusters import NAME, WORKERS, Bare, template
from simulation.estate import FIRST, SPACE, Estate, condition
from simulation.sabotage import CLEAN, REPROVISION, Fault, Saboteur, everywhere

from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    KUBEADM_CONFIG,
    KUBEADM_CONFIG_TEMPLATE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    Kind,
)
from slipway.fleet.baremetal.options import BaremetalOptions

pytestmark = pytest.mark.asyncio(loop_scope="module")
Manifest = dict[str, Any]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[Bare]:
    """One control plane of two hosts' pool and one worker, at the first version; three hosts more wait."""
    async with Estate(options=BaremetalOptions(max_failures=1)) as estate:
        made = Bare(estate, await estate.hosts(6), planes=2, workers=1)
        made.control_planes = 1
        await made.make(FIRST, replicas=1)
        await made.at(FIRST, FIRST)
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def bare(shared: Bare) -> AsyncIterator[Bare]:
    yield shared
    assert shared.wrong == []


async def some(bare: Bare, kind: Kind, check: Any, what: str) -> Manifest:
    found: list[Manifest] = []

    async def probe() -> bool:
        found[:] = [item for item in await bare.estate.client.list(kind, SPACE) if check(item)]
        return bool(found)

    try:
        await bare.estate.until(probe, what, 60)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{await bare.told()}") from None
    return found[0]


def because(type_: str, reason: str) -> Any:
    return lambda item: condition(item, type_).get("reason") == reason


async def test_a_version_that_the_catalog_lacks_fails_and_goes_on_by_itself_when_it_is_added(bare: Bare) -> None:
    version = await bare.older_release(listed=False)
    await bare.roll_workers(version)
    failed = await some(bare, BAREMETAL_MACHINE, because("ImageResolved", "ImageCatalogMiss"), "the miss is told")
    assert failed["status"]["phase"] == "Failed"
    assert "planSecretRef" not in failed["status"] or not failed["status"].get("lastAppliedPlanChecksum")
    await bare.list_image(version)
    await bare.at(FIRST, version)


async def test_a_host_that_cannot_reach_its_registry_is_told_with_its_output_and_replaced(bare: Bare) -> None:
    registry, version = bare.estate.world.registry, await bare.older_release()
    registry.reachable = False
    await bare.roll_workers(version)
    failed = await some(bare, BAREMETAL_MACHINE, because("PlanApplied", "PlanFailed"), "the plan's failure is told")
    assert "ended with 18" in condition(failed, "PlanApplied")["message"]
    registry.reachable = True
    # What the reference says to do.
    await bare.estate.client.delete(MACHINE, failed["metadata"]["ownerReferences"][0]["name"], SPACE)
    await bare.at(FIRST, version)


async def test_a_host_that_dies_while_it_boots_is_told_and_joins_when_it_comes_back(bare: Bare) -> None:
    version = await bare.older_release()
    worker = bare.hosts[2]
    worker.machine.faults.hangs_at_boot = True
    await bare.roll_workers(version)
    await some(bare, BAREMETAL_MACHINE, because("NodeJoined", "WaitingForNode"), "what is awaited is told")
    worker.machine.faults.hangs_at_boot = False
    await worker.power_cycle()
    await bare.at(FIRST, version)


@pytest.mark.parametrize("what", ["power", "agent"])
async def test_a_rollout_goes_on_after_whatever_goes_in_any_instruction_of_both_plans(bare: Bare, what: Fault) -> None:
    version = await bare.older_release()
    # Those after the seed is in its place are one to a plan, and in the long run of this.
    planned = {CLEAN: everywhere(what, CLEAN)[:1], REPROVISION: everywhere(what, REPROVISION)[:1]}
    async with Saboteur(bare, **planned) as saboteur:
        await bare.roll_workers(version)
        await bare.at(FIRST, version)
        assert saboteur.left == []


async def test_a_new_bootstrap_template_replaces_the_workers_at_the_same_version(bare: Bare) -> None:
    version = (await bare.estate.client.get(MACHINE_DEPLOYMENT, WORKERS, SPACE))["spec"]["template"]["spec"]["version"]
    before = {machine["metadata"]["name"] for machine in await bare.machines()}
    spec = {"template": {"spec": {"verbosity": 1, "users": [{"name": "operator"}]}}}
    metadata = {"name": f"{WORKERS}-next", "namespace": SPACE, "labels": {"cluster.x-k8s.io/cluster-name": NAME}}
    await bare.estate.client.create(KUBEADM_CONFIG_TEMPLATE, {"metadata": metadata, "spec": spec})
    reference = {"bootstrap": {"configRef": {"name": metadata["name"]}}}
    await bare.patch(MACHINE_DEPLOYMENT, WORKERS, {"spec": {"template": {"spec": reference}}})

    async def replaced() -> bool:
        return len({machine["metadata"]["name"] for machine in await bare.machines()} - before) == bare.replicas

    await bare.estate.until(replaced, "the workers are replaced")
    await bare.at(FIRST, version)
    users = [each["spec"].get("users") for each in await bare.estate.client.list(KUBEADM_CONFIG, SPACE)]
    assert users.count([{"name": "operator"}]) == bare.replicas


async def test_a_surge_is_told_with_the_way_that_there_is(bare: Bare) -> None:
    def told(found: Manifest) -> bool:
        return "maxUnavailable" in condition(found, "RolloutGuarded").get("message", "")

    rolling: Manifest = {"maxSurge": 1, "maxUnavailable": 0}
    await bare.patch(MACHINE_DEPLOYMENT, WORKERS, {"spec": {"rollout": {"strategy": {"rollingUpdate": rolling}}}})
    await some(bare, BAREMETAL_CLUSTER, told, "the surge is told")
    rolling = {"maxSurge": 0, "maxUnavailable": 1}
    await bare.patch(MACHINE_DEPLOYMENT, WORKERS, {"spec": {"rollout": {"strategy": {"rollingUpdate": rolling}}}})
    await some(bare, BAREMETAL_CLUSTER, lambda found: not told(found), "all is well again")


async def test_an_exhausted_pool_is_told_and_a_host_that_is_added_lets_it_go_on(bare: Bare) -> None:
    version = (await bare.estate.client.get(MACHINE_DEPLOYMENT, WORKERS, SPACE))["spec"]["template"]["spec"]["version"]
    await bare.scale_workers(2)
    waiting = await some(bare, BAREMETAL_MACHINE, because("InventoryAllocated", "PoolExhausted"), "the exhausted pool is told")
    assert waiting["status"]["phase"] == "Pending"
    members = [{"name": bare.estate.name_of(host)} for host in bare.hosts[2:4]]
    await bare.patch(MACHINE_INVENTORY_POOL, bare.worker_pool, {"spec": {"machineInventories": members}})
    await bare.at(FIRST, version)


async def test_workers_move_to_another_pool_by_a_new_template_and_two_at_once_where_two_may_be_missing(bare: Bare) -> None:
    version = await bare.older_release()
    await _two_workers(bare)
    before = await bare.hosts_of(control_plane=False)
    other, hosts = f"{WORKERS}-other", [bare.estate.name_of(host) for host in bare.hosts[4:6]]
    metadata = {"name": other, "namespace": SPACE, "labels": {"cluster.x-k8s.io/cluster-name": NAME}}
    pool = {"clusterName": NAME, "machineInventories": [{"name": name} for name in hosts]}
    await bare.estate.client.create(MACHINE_INVENTORY_POOL, {"metadata": metadata, "spec": pool})
    await bare.estate.client.create(BAREMETAL_MACHINE_TEMPLATE, {"metadata": metadata, "spec": template(other)})
    bare.watchman.most_leaving = 0
    spec = {"version": version, "infrastructureRef": {"name": other}}
    rolling = {"rollout": {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 2}}}}
    await bare.patch(MACHINE_DEPLOYMENT, WORKERS, {"spec": {"template": {"spec": spec}, **rolling}})
    await bare.at(FIRST, version)
    bare.worker_pool = other
    assert bare.watchman.most_leaving == 2, "both go at once"
    assert await bare.hosts_of(control_plane=False) == set(hosts)
    for name in before:
        left = (await bare.estate.client.get(MACHINE_INVENTORY, name, SPACE))["metadata"]["annotations"]
        assert left["baremetal.alauda.io/allocation-state"] == "Available"
        assert left["baremetal.alauda.io/pool"] == f"{WORKERS}-pool"
    await bare.rest()


async def _two_workers(bare: Bare) -> None:
    if bare.replicas != 2:
        members = [{"name": bare.estate.name_of(host)} for host in bare.hosts[2:4]]
        await bare.patch(MACHINE_INVENTORY_POOL, bare.worker_pool, {"spec": {"machineInventories": members}})
        await bare.scale_workers(2)

    async def there() -> bool:
        status = (await bare.estate.client.get(MACHINE_DEPLOYMENT, WORKERS, SPACE)).get("status") or {}
        return len(await bare.hosts_of(control_plane=False)) == 2 and status.get("availableReplicas") == 2

    # One that is not well would go first, and alone.
    await bare.estate.until(there, "there are two workers, and both are well")
