"""The MachineDeployment controller, with that of MachineSets, on the embedded API server."""

from __future__ import annotations

from typing import Any

import pytest
from fleet.infrastructure import TEST_CONFIG, TEST_CONFIG_TEMPLATE, TEST_MACHINE, TEST_MACHINE_TEMPLATE, crds, reference, template
from fleet.machines.workers import SPACE, Workers, condition
from support.definitions import defined_anew

from slipway.api.cluster import names
from slipway.api.cluster.kinds import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.machines.deployment.order import ORDER_ANNOTATION
from slipway.runtime.objects import Request

pytestmark = pytest.mark.asyncio


def to_version(version: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"version": version}}}}


async def rolled_out(workers: Workers, version: str, replicas: int, sets: int = 1) -> bool:
    machines = await workers.all(MACHINE)
    well = all(any(one["type"] == "Available" for one in (machine.get("status") or {}).get("conditions") or ()) for machine in machines)
    done = await workers.versions() == [version] * replicas and well
    return done and len(await workers.names(MACHINE_SET)) == sets


async def create(workers: Workers, replicas: int = 3, **more: Any) -> None:
    await workers.deployment(replicas=replicas, **more)
    await workers.until(lambda: rolled_out(workers, "v1.35.0", replicas))
    await workers.everything()


async def test_a_machine_set_is_made_for_the_template(workers: Workers) -> None:
    await workers.deployment(replicas=2, annotations={"note": "x"}, spec={"deletion": {"order": "Oldest"}})
    await workers.roll(times=2)
    (made,) = await workers.all(MACHINE_SET)
    metadata, spec = made["metadata"], made["spec"]
    suffix = metadata["name"].removeprefix("md-")
    unique = metadata["labels"][names.TEMPLATE_HASH_LABEL]
    assert unique.endswith(f"-{suffix}")
    assert metadata["labels"] == {
        "pool": "md",
        names.TEMPLATE_HASH_LABEL: unique,
        names.DEPLOYMENT_NAME_LABEL: "md",
        names.CLUSTER_NAME_LABEL: "c",
    }
    assert metadata["annotations"] == {
        "note": "x",
        names.REVISION_ANNOTATION: "1",
        names.DISABLE_MACHINE_CREATE_ANNOTATION: "false",
        names.DESIRED_REPLICAS_ANNOTATION: "2",
        names.MAX_REPLICAS_ANNOTATION: "3",
    }
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("MachineDeployment", "md", True)
    assert (spec["replicas"], spec["deletion"]["order"]) == (2, "Oldest")
    assert spec["selector"]["matchLabels"] == {"pool": "md", names.TEMPLATE_HASH_LABEL: unique, names.CLUSTER_NAME_LABEL: "c"}
    assert [entry["manager"] for entry in metadata["managedFields"] if entry["operation"] == "Apply"] == ["capi-machinedeployment"]
    deployment = await workers.get(MACHINE_DEPLOYMENT, "md")
    assert deployment["metadata"]["annotations"][names.REVISION_ANNOTATION] == "1"
    assert [one["kind"] for one in deployment["metadata"]["ownerReferences"]] == ["Cluster"]
    assert await workers.said() == ["SuccessfulCreate"]


async def test_it_comes_up_and_says_so(workers: Workers) -> None:
    await create(workers)
    await workers.everything()
    deployment = await workers.get(MACHINE_DEPLOYMENT, "md")
    status = deployment["status"]
    assert {key: status[key] for key in ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas", "phase")} == {
        "replicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "upToDateReplicas": 3,
        "phase": "Running",
    }
    assert status["observedGeneration"] == deployment["metadata"]["generation"]
    told = {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}
    assert told == {
        "Available": ("True", "Available"),
        "RollingOut": ("False", "NotRollingOut"),
        "Remediating": ("False", "NotRemediating"),
        "ScalingDown": ("False", "NotScalingDown"),
        "ScalingUp": ("False", "NotScalingUp"),
        "MachinesReady": ("True", "Ready"),
        "MachinesUpToDate": ("True", "UpToDate"),
        "Paused": ("False", "NotPaused"),
        "Deleting": ("False", "NotDeleting"),
    }


async def test_nothing_is_written_where_nothing_changes(workers: Workers) -> None:
    await create(workers)
    for _ in range(3):
        await workers.everything()
    await workers.events.flush()
    workers.verbs.clear()
    for _ in range(3):
        await workers.everything()
    assert workers.verbs == {}


@pytest.mark.parametrize(("surge", "unavailable", "most", "fewest"), [(1, 0, 4, 3), (0, 1, 3, 2), (0, 2, 3, 1), ("50%", "50%", 5, 2)])
async def test_a_new_version_is_rolled_out_within_the_bounds(
    workers: Workers, surge: int | str, unavailable: int | str, most: int, fewest: int
) -> None:
    await create(workers, surge=surge, unavailable=unavailable)
    await workers.patch(MACHINE_DEPLOYMENT, "md", to_version("v1.36.0"))

    async def bounded() -> None:
        machines = await workers.all(MACHINE)
        assert len(machines) <= most
        assert len([one for one in machines if not one["metadata"].get("deletionTimestamp")]) >= fewest

    await workers.until(lambda: rolled_out(workers, "v1.36.0", 3), each=bounded)
    assert await workers.names(TEST_MACHINE) == await workers.names(TEST_CONFIG) == await workers.names(MACHINE)
    (left,) = await workers.all(MACHINE_SET)
    assert left["metadata"]["annotations"][names.REVISION_ANNOTATION] == "2"


async def test_another_bootstrap_template_is_a_rollout_of_its_own(workers: Workers) -> None:
    await create(workers, replicas=2, surge=0, unavailable=1)
    before = await workers.names(MACHINE)
    await workers.client.create(TEST_CONFIG_TEMPLATE, template(TEST_CONFIG_TEMPLATE, "b2", SPACE, {"size": "other"}))
    await workers.patch(
        MACHINE_DEPLOYMENT, "md", {"spec": {"template": {"spec": {"bootstrap": {"configRef": reference(TEST_CONFIG_TEMPLATE, "b2")}}}}}
    )

    async def replaced() -> bool:
        return not set(before) & set(await workers.names(MACHINE)) and await rolled_out(workers, "v1.35.0", 2)

    await workers.until(replaced)
    assert [config["spec"] for config in await workers.all(TEST_CONFIG)] == [{"size": "other"}] * 2


async def test_workers_follow_their_control_plane_over_two_minor_versions_in_one_step(workers: Workers) -> None:
    await workers.control_plane("v1.37.0", "v1.37.0")
    await create(workers, replicas=2, surge=0, unavailable=1)
    await workers.patch(MACHINE_DEPLOYMENT, "md", to_version("v1.37.0"))

    async def direct() -> None:
        assert set(await workers.versions()) <= {"v1.35.0", "v1.37.0"}

    await workers.until(lambda: rolled_out(workers, "v1.37.0", 2), each=direct)


async def test_what_needs_no_new_machine_is_changed_on_the_machines_that_are_there(workers: Workers) -> None:
    await create(workers, replicas=1)
    before = await workers.names(MACHINE)
    changed = {"metadata": {"annotations": {"a": "b"}}, "spec": {"deletion": {"nodeDrainTimeoutSeconds": 9}}}
    await workers.patch(MACHINE_DEPLOYMENT, "md", {"spec": {"template": changed}})
    await workers.everything()
    await workers.everything()
    (machine,) = await workers.all(MACHINE)
    assert [machine["metadata"]["name"]] == before
    assert machine["metadata"]["annotations"]["a"] == "b"
    assert machine["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 9


async def test_an_old_machine_set_becomes_the_current_one_again(workers: Workers) -> None:
    await create(workers, replicas=2)
    (first,) = await workers.names(MACHINE_SET)
    await workers.patch(MACHINE_DEPLOYMENT, "md", to_version("v1.36.0"))
    await workers.roll(times=2)
    await workers.patch(MACHINE_DEPLOYMENT, "md", to_version("v1.35.0"))
    await workers.until(lambda: rolled_out(workers, "v1.35.0", 2))
    (left,) = await workers.all(MACHINE_SET)
    assert left["metadata"]["name"] == first
    assert left["metadata"]["annotations"][names.REVISION_ANNOTATION] == "3"


async def test_it_is_scaled_both_ways(workers: Workers) -> None:
    await create(workers, replicas=2)
    for replicas in (4, 1, 0):
        await workers.patch(MACHINE_DEPLOYMENT, "md", {"spec": {"replicas": replicas}})

        async def scaled(replicas: int = replicas) -> bool:
            return len(await workers.names(MACHINE)) == replicas

        await workers.until(scaled)


async def test_a_paused_rollout_rests_and_is_still_scaled(workers: Workers) -> None:
    await create(workers, replicas=2)
    await workers.patch(MACHINE_DEPLOYMENT, "md", {"spec": {"paused": True, "replicas": 3, **to_version("v1.36.0")["spec"]}})
    for _ in range(4):
        await workers.everything()
    assert await workers.versions() == ["v1.35.0"] * 3


async def test_with_on_delete_a_machine_is_replaced_when_somebody_deletes_it(workers: Workers) -> None:
    await create(workers, replicas=2, strategy={"type": "OnDelete"})
    await workers.patch(MACHINE_DEPLOYMENT, "md", to_version("v1.36.0"))
    for _ in range(3):
        await workers.everything()
    assert await workers.versions() == ["v1.35.0"] * 2
    first = (await workers.names(MACHINE))[0]
    await workers.client.delete(MACHINE, first, SPACE)

    async def replaced() -> bool:
        return sorted(await workers.versions()) == ["v1.35.0", "v1.36.0"]

    await workers.until(replaced)


async def test_with_on_delete_a_sick_old_machine_is_replaced(workers: Workers) -> None:
    await create(workers, replicas=2, strategy={"type": "OnDelete"})
    await workers.patch(MACHINE_DEPLOYMENT, "md", to_version("v1.36.0"))
    await workers.everything()
    await workers.sick((await workers.names(MACHINE))[0])

    async def replaced() -> bool:
        return sorted(await workers.versions()) == ["v1.35.0", "v1.36.0"]

    await workers.until(replaced)


async def test_a_sick_machine_of_an_old_template_is_not_remediated_during_a_rollout(workers: Workers) -> None:
    await create(workers, replicas=2)
    (old,) = await workers.names(MACHINE_SET)
    await workers.patch(MACHINE_DEPLOYMENT, "md", to_version("v1.36.0"))
    await workers.roll(times=2)
    sick = (await workers.names(MACHINE))[0]
    await workers.sick(sick)
    await workers.set(old)
    told = await workers.told(MACHINE, sick, "OwnerRemediated")
    assert told[1:] == ("CannotBeRemediated", "Machine won't be remediated because it is pending removal due to rollout")


async def test_no_more_machines_are_remediated_at_a_time_than_allowed(workers: Workers) -> None:
    await create(workers, replicas=3, spec={"remediation": {"maxInFlight": 1}})
    (one,) = await workers.names(MACHINE_SET)
    for name in await workers.names(MACHINE):
        await workers.sick(name)
    await workers.set(one, times=2)
    machines = await workers.all(MACHINE)
    assert sum(bool(machine["metadata"].get("deletionTimestamp")) for machine in machines) == 1
    waiting = next(machine for machine in machines if not machine["metadata"].get("deletionTimestamp"))
    assert (await workers.told(MACHINE, waiting["metadata"]["name"], "OwnerRemediated"))[1] == "RemediationDeferred"


async def test_a_machine_set_without_an_owner_is_adopted(workers: Workers) -> None:
    labels = {"pool": "md", names.DEPLOYMENT_NAME_LABEL: "md", names.TEMPLATE_HASH_LABEL: "1-abcde"}
    template = workers.template()
    template["metadata"]["labels"] = labels
    await workers.machine_set("md-abcde", 1, template=template, spec={"selector": {"matchLabels": labels}}, labels=labels)
    await workers.deployment(replicas=1)
    await workers.roll(times=3)
    (one,) = await workers.all(MACHINE_SET)
    assert [owner["kind"] for owner in one["metadata"]["ownerReferences"]] == ["MachineDeployment"]
    assert "SuccessfulAdopt" in await workers.said()


async def test_a_deleted_one_goes_after_its_machine_sets_and_machines(workers: Workers) -> None:
    await create(workers, replicas=2)
    await workers.client.delete(MACHINE_DEPLOYMENT, "md", SPACE)
    await workers.roll()
    await workers.set((await workers.names(MACHINE_SET))[0], times=2)
    await workers.roll()
    assert await workers.told(MACHINE_DEPLOYMENT, "md", "Deleting") == ("True", "Deleting", "Deleting 2 Machines")

    async def gone() -> bool:
        return not await workers.names(MACHINE_DEPLOYMENT)

    await workers.until(gone)
    assert await workers.names(MACHINE_SET) == await workers.names(MACHINE) == []


async def test_a_paused_cluster_is_left_alone(workers: Workers) -> None:
    await workers.patch(CLUSTER, "c", {"spec": {"paused": True}})
    await workers.deployment()
    await workers.roll(times=3)
    assert await workers.names(MACHINE_SET) == []
    assert (await workers.told(MACHINE_DEPLOYMENT, "md", "Paused"))[0] == "True"


async def test_a_process_that_is_killed_at_any_time_leaves_nothing_doubled(workers: Workers) -> None:
    await create(workers)
    await workers.patch(MACHINE_DEPLOYMENT, "md", to_version("v1.36.0"))

    async def killed() -> None:
        workers.restart()

    await workers.until(lambda: rolled_out(workers, "v1.36.0", 3), each=killed)
    assert await workers.names(TEST_MACHINE) == await workers.names(TEST_CONFIG) == await workers.names(MACHINE)


async def test_what_upstream_updates_in_place_is_left_alone(workers: Workers) -> None:
    await create(workers, replicas=2)
    (one,) = await workers.names(MACHINE_SET)
    updating = (await workers.names(MACHINE))[0]
    await workers.patch(MACHINE, updating, {"metadata": {"annotations": {names.UPDATE_IN_PROGRESS_ANNOTATION: ""}}})
    await workers.patch(MACHINE_DEPLOYMENT, "md", {"spec": {"replicas": 1, **to_version("v1.36.0")["spec"]}})
    for step in (workers.roll(), workers.set(one)):
        with pytest.raises(OperatorError, match=f"update in place of Machine {updating}"):
            await step
    assert await workers.versions() == ["v1.35.0"] * 2
    assert "update in place" in (await workers.told(MACHINE_DEPLOYMENT, "md", "ScalingUp"))[2]


async def test_what_somebody_else_writes_meanwhile_stays(workers: Workers) -> None:
    await create(workers, replicas=1)
    (one,) = await workers.names(MACHINE_SET)
    await workers.settle()
    for kind, name in ((MACHINE_DEPLOYMENT, "md"), (MACHINE_SET, one)):
        await workers.patch(kind, name, {"metadata": {"annotations": {"theirs": "x"}}})
    # The cache does not know of it yet.
    await workers.deployments.reconcile(Request(SPACE, "md"))
    await workers.sets.reconcile(Request(SPACE, one))
    for kind, name in ((MACHINE_DEPLOYMENT, "md"), (MACHINE_SET, one)):
        assert (await workers.get(kind, name))["metadata"]["annotations"]["theirs"] == "x"


# Order and safety beyond Cluster API.


async def test_old_machines_stay_until_new_ones_may_be_made(workers: Workers) -> None:
    await workers.control_plane("v1.36.0", "v1.36.0")
    await create(workers, surge=0, unavailable=1)
    # The control plane is being upgraded, and no worker may be made.
    await workers.control_plane("v1.37.0", "v1.36.0")
    await workers.patch(MACHINE_DEPLOYMENT, "md", to_version("v1.36.0"))
    for _ in range(4):
        await workers.everything()
    assert await workers.versions() == ["v1.35.0"] * 3
    assert not any(one["metadata"].get("deletionTimestamp") for one in await workers.all(MACHINE))
    assert "KubeadmControlPlane ns/cp is upgrading" in (await workers.told(MACHINE_DEPLOYMENT, "md", "RollingOut"))[2]
    await workers.control_plane("v1.37.0", "v1.37.0")
    await workers.until(lambda: rolled_out(workers, "v1.36.0", 3))


async def test_workers_wait_for_the_version_of_their_control_plane(workers: Workers) -> None:
    await workers.control_plane("v1.35.0", "v1.35.0")
    await create(workers, replicas=2)
    await workers.patch(MACHINE_DEPLOYMENT, "md", to_version("v1.35.1"))
    for _ in range(3):
        await workers.everything()
    assert len(await workers.names(MACHINE_SET)) == 1
    assert await workers.versions() == ["v1.35.0"] * 2
    message = (await workers.told(MACHINE_DEPLOYMENT, "md", "RollingOut"))[2]
    assert "Waiting for KubeadmControlPlane ns/cp to have version v1.35.1 first" in message
    # It is still scaled.
    await workers.patch(MACHINE_DEPLOYMENT, "md", {"spec": {"replicas": 3}})
    await workers.until(lambda: rolled_out(workers, "v1.35.0", 3))
    await workers.control_plane("v1.35.1", "v1.35.1")
    await workers.until(lambda: rolled_out(workers, "v1.35.1", 3))


async def test_machine_deployments_are_rolled_out_in_their_order(workers: Workers) -> None:
    for name, order in (("a", "2"), ("b", "1")):
        await workers.deployment(name, replicas=1, annotations={ORDER_ANNOTATION: order})
    await workers.until(lambda: rolled_out(workers, "v1.35.0", 2, sets=2))
    await workers.everything()
    for name in ("a", "b"):
        await workers.patch(MACHINE_DEPLOYMENT, name, to_version("v1.36.0"))
    await workers.everything()
    expected = f"Waiting for MachineDeployment b to be rolled out first ({ORDER_ANNOTATION} 1 is before 2)"
    assert expected in (await workers.told(MACHINE_DEPLOYMENT, "a", "RollingOut"))[2]

    async def in_order() -> None:
        versions = {one["metadata"]["labels"][names.DEPLOYMENT_NAME_LABEL]: one["spec"]["version"] for one in await workers.all(MACHINE)}
        first = [
            one["spec"]["version"] for one in await workers.all(MACHINE) if one["metadata"]["labels"][names.DEPLOYMENT_NAME_LABEL] == "b"
        ]
        if "v1.35.0" in first:
            assert versions["a"] == "v1.35.0"

    await workers.until(lambda: rolled_out(workers, "v1.36.0", 2, sets=2), each=in_order)


# Bad input.


async def test_an_order_that_is_no_number_is_told(workers: Workers) -> None:
    await create(workers, replicas=1, annotations={ORDER_ANNOTATION: "first"})
    await workers.patch(MACHINE_DEPLOYMENT, "md", to_version("v1.36.0"))
    with pytest.raises(OperatorError, match="must be an integer"):
        await workers.roll()
    assert "must be an integer" in (await workers.told(MACHINE_DEPLOYMENT, "md", "ScalingUp"))[2]


async def test_a_template_that_does_not_exist_is_told_and_waited_for(workers: Workers) -> None:
    template = workers.template(infrastructureRef=reference(TEST_MACHINE_TEMPLATE, "later"))
    await workers.deployment(replicas=1, template=template)
    await workers.roll()
    with pytest.raises(OperatorError, match="TestMachineTemplate"):
        await workers.roll()
    told = await workers.told(MACHINE_DEPLOYMENT, "md", "ScalingUp")
    assert told == ("True", "ScalingUp", "Scaling up from 0 to 1 replicas is blocked because TestMachineTemplate does not exist")
    await workers.create(TEST_MACHINE_TEMPLATE, "later", {"template": {"spec": {}}})
    await workers.until(lambda: rolled_out(workers, "v1.35.0", 1))


async def test_a_contract_label_that_is_missing_is_told(workers: Workers) -> None:
    crd = next(one for one in crds() if one["metadata"]["name"].startswith("testmachinetemplates"))
    await defined_anew(workers.client, {**crd, "metadata": {"name": crd["metadata"]["name"]}})
    await workers.deployment(replicas=1)
    await workers.roll()
    with pytest.raises(OperatorError, match="by no label"):
        await workers.roll()
    assert "says by no label which of its versions fulfil the contract" in (await workers.told(MACHINE_DEPLOYMENT, "md", "ScalingUp"))[2]


async def test_a_selector_that_does_not_choose_its_own_machines_makes_no_machine_set(workers: Workers) -> None:
    await workers.deployment(spec={"selector": {"matchLabels": {"pool": "another"}}})
    await workers.roll()
    with pytest.raises(OperatorError, match="does not choose"):
        await workers.roll()
    assert await workers.names(MACHINE_SET) == []


async def test_both_bounds_zero_leave_one_machine_to_be_unavailable(workers: Workers) -> None:
    await create(workers, replicas=2, surge=0, unavailable=0)
    await workers.patch(MACHINE_DEPLOYMENT, "md", to_version("v1.36.0"))
    await workers.until(lambda: rolled_out(workers, "v1.36.0", 2))


@pytest.mark.parametrize("replicas", [-1, 2_000_000_000])
async def test_numbers_of_replicas_that_cannot_be_meant_are_told(workers: Workers, replicas: int) -> None:
    await workers.deployment(replicas=replicas)
    await workers.roll()
    with pytest.raises(OperatorError, match="0 or more"):
        await workers.roll()
    assert await workers.names(MACHINE_SET) == []


async def test_a_rollout_of_machines_that_do_not_come_up_stops(workers: Workers) -> None:
    await create(workers, replicas=3)
    await workers.patch(MACHINE_DEPLOYMENT, "md", to_version("v1.36.0"))
    for _ in range(4):
        await workers.everything(ready=False)
    assert sorted(await workers.versions()) == ["v1.35.0"] * 3 + ["v1.36.0"]
    outdated = condition("UpToDate", "False", "NotUpToDate", "* Version v1.35.0, v1.36.0 required")
    old = next(one["metadata"]["name"] for one in await workers.all(MACHINE) if one["spec"]["version"] == "v1.35.0")
    await workers.patch(MACHINE, old, {"status": {"conditions": [outdated]}}, subresource="status")
    await workers.roll()
    told = await workers.told(MACHINE_DEPLOYMENT, "md", "RollingOut")
    assert told == ("True", "RollingOut", "Rolling out 1 not up-to-date replicas\n* Version v1.35.0, v1.36.0 required")
