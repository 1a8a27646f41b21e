"""The MachineSet controller on the embedded API server."""

from __future__ import annotations

import pytest
from fleet.infrastructure import TEST_CONFIG, TEST_CONFIG_TEMPLATE, TEST_MACHINE, TEST_MACHINE_TEMPLATE
from fleet.machines.workers import SPACE, Workers, condition

from slipway.api.cluster import names
from slipway.api.cluster.kinds import CLUSTER, MACHINE, MACHINE_SET
from slipway.api.machinery.errors import OperatorError
from slipway.runtime.objects import Request

pytestmark = pytest.mark.asyncio


async def test_machines_are_made_with_their_clones(workers: Workers) -> None:
    await workers.machine_set(replicas=2)
    await workers.set("ms", times=2)
    machines = await workers.all(MACHINE)
    assert len(machines) == 2
    machine = machines[0]
    name = machine["metadata"]["name"]
    assert name.startswith("ms-")
    assert machine["spec"]["bootstrap"]["configRef"] == {"apiGroup": TEST_CONFIG.group, "kind": "TestConfig", "name": name}
    assert machine["spec"]["infrastructureRef"] == {"apiGroup": TEST_MACHINE.group, "kind": "TestMachine", "name": name}
    assert machine["metadata"]["labels"] == {"pool": "p", names.SET_NAME_LABEL: "ms", names.CLUSTER_NAME_LABEL: "c"}
    assert machine["metadata"]["finalizers"] == [names.MACHINE_FINALIZER]
    clone = await workers.get(TEST_MACHINE, name)
    assert clone["spec"] == {"size": "m"}
    assert clone["metadata"]["labels"] == {**machine["metadata"]["labels"], "from": "template"}
    assert clone["metadata"]["annotations"][names.CLONED_FROM_NAME_ANNOTATION] == "i"
    (owner,) = clone["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner.get("controller")) == ("MachineSet", "ms", None)
    assert await workers.said() == ["SuccessfulCreate", "SuccessfulCreate"]


async def test_a_machine_set_that_stands_alone_and_its_templates_belong_to_the_cluster(workers: Workers) -> None:
    await workers.machine_set(replicas=1)
    await workers.set("ms", times=2)
    uid = (await workers.get(CLUSTER, "c"))["metadata"]["uid"]
    for kind, name in ((MACHINE_SET, "ms"), (TEST_MACHINE_TEMPLATE, "i")):
        (owner,) = (await workers.get(kind, name))["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner.get("controller")) == ("Cluster", uid, None)


async def test_the_status_counts_what_machines_say(workers: Workers) -> None:
    await workers.machine_set(replicas=2)
    await workers.set("ms", times=2)
    one, _ = await workers.names(MACHINE)
    await workers.bring_up(one)
    result = await workers.set("ms")
    status = (await workers.get(MACHINE_SET, "ms"))["status"]
    assert {key: status[key] for key in ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")} == {
        "replicas": 2,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "upToDateReplicas": 1,
    }
    assert status["selector"] == f"{names.CLUSTER_NAME_LABEL}=c,pool=p"
    assert status["versions"] == [{"version": "v1.35.0", "replicas": 2}]
    assert status["deprecated"]["v1beta1"]["fullyLabeledReplicas"] == 2
    assert result.requeue_after == 15


async def test_nothing_is_written_where_nothing_changes(workers: Workers) -> None:
    await workers.machine_set(replicas=3)
    await workers.set("ms", times=2)
    await workers.bring_up()
    await workers.set("ms", times=3)
    await workers.events.flush()
    workers.verbs.clear()
    await workers.set("ms", times=3)
    assert workers.verbs == {}


async def test_a_label_that_is_taken_from_the_template_goes_from_machines_and_clones(workers: Workers) -> None:
    template = workers.template()
    template["metadata"] = {"labels": {"pool": "p", "extra": "x"}, "annotations": {"note": "1"}}
    await workers.machine_set(replicas=1, template=template)
    await workers.set("ms", times=2)
    await workers.set("ms")
    workers.restart()
    await workers.patch(MACHINE_SET, "ms", {"spec": {"template": {"metadata": {"labels": {"extra": None}, "annotations": {"note": "2"}}}}})
    await workers.set("ms")
    for kind in (MACHINE, TEST_MACHINE, TEST_CONFIG):
        (one,) = await workers.all(kind)
        assert "extra" not in one["metadata"]["labels"]
        assert one["metadata"]["annotations"]["note"] == "2"
    managers = {entry["manager"] for entry in one["metadata"]["managedFields"] if entry["operation"] == "Apply"}
    assert managers == {names.MACHINE_SET_FIELD_MANAGER, names.MACHINE_SET_METADATA_FIELD_MANAGER}


async def test_what_needs_no_new_machine_is_changed_in_place_and_the_version_is_not(workers: Workers) -> None:
    await workers.machine_set(replicas=1)
    await workers.set("ms", times=2)
    gates = [{"conditionType": "Mine"}]
    changed = {"version": "v1.36.0", "minReadySeconds": 7, "readinessGates": gates, "deletion": {"nodeDrainTimeoutSeconds": 5}}
    await workers.patch(MACHINE_SET, "ms", {"spec": {"template": {"spec": changed}}})
    await workers.set("ms")
    (machine,) = await workers.all(MACHINE)
    spec = machine["spec"]
    assert (spec["version"], spec["minReadySeconds"], spec["readinessGates"]) == ("v1.35.0", 7, gates)
    assert spec["deletion"]["nodeDrainTimeoutSeconds"] == 5


async def test_a_machine_that_is_being_deleted_follows_the_timeouts(workers: Workers) -> None:
    await workers.machine_set(replicas=1)
    await workers.set("ms", times=2)
    (name,) = await workers.names(MACHINE)
    await workers.client.delete(MACHINE, name, SPACE)
    await workers.patch(MACHINE_SET, "ms", {"spec": {"template": {"spec": {"deletion": {"nodeDrainTimeoutSeconds": 5}}}}})
    await workers.set("ms")
    assert (await workers.get(MACHINE, name))["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 5


async def test_the_chosen_machine_goes_first_when_scaled_down(workers: Workers) -> None:
    await workers.machine_set(replicas=3)
    await workers.set("ms", times=2)
    await workers.bring_up()
    chosen = (await workers.names(MACHINE))[1]
    await workers.patch(MACHINE, chosen, {"metadata": {"annotations": {names.DELETE_MACHINE_ANNOTATION: ""}}})
    await workers.patch(MACHINE_SET, "ms", {"spec": {"replicas": 2}})
    await workers.set("ms", times=3)
    going = [one["metadata"]["name"] for one in await workers.all(MACHINE) if one["metadata"].get("deletionTimestamp")]
    assert going == [chosen]
    assert (await workers.told(MACHINE_SET, "ms", "ScalingDown"))[2] == "Scaling down from 3 to 2 replicas"


async def test_a_machine_without_an_owner_is_adopted(workers: Workers) -> None:
    await workers.machine_set(replicas=1)
    labels = {"pool": "p", names.CLUSTER_NAME_LABEL: "c"}
    await workers.create(MACHINE, "stray", workers.template()["spec"], labels=labels)
    await workers.set("ms", times=3)
    (machine,) = await workers.all(MACHINE)
    (owner,) = machine["metadata"]["ownerReferences"]
    assert (machine["metadata"]["name"], owner["kind"], owner["controller"]) == ("stray", "MachineSet", True)
    assert "SuccessfulAdopt" in await workers.said()


async def test_a_clone_that_a_killed_process_left_behind_is_deleted(workers: Workers) -> None:
    made = await workers.machine_set(replicas=0)
    owner = {"apiVersion": MACHINE_SET.api_version, "kind": "MachineSet", "name": "ms", "uid": made["metadata"]["uid"]}
    for kind in (TEST_MACHINE, TEST_CONFIG):
        await workers.create(kind, "lost", {}, ownerReferences=[owner])
        await workers.create(kind, "others", {})
    await workers.set("ms", times=2)
    assert await workers.names(TEST_MACHINE) == await workers.names(TEST_CONFIG) == ["others"]


async def test_a_clone_that_a_machine_of_another_name_has_taken_over_is_left_to_it(workers: Workers) -> None:
    """As former releases of Cluster API named clones; the Machine was let go since, and its clones still name both."""
    made = await workers.machine_set(replicas=0)
    owner = {"apiVersion": MACHINE_SET.api_version, "kind": "MachineSet", "name": "ms", "uid": made["metadata"]["uid"]}
    released = await workers.create(MACHINE, "released", workers.template()["spec"])
    machine = {"apiVersion": MACHINE.api_version, "kind": "Machine", "name": "released", "uid": released["metadata"]["uid"]}
    await workers.create(TEST_MACHINE, "i-abcde", {}, ownerReferences=[owner, machine])
    await workers.set("ms", times=2)
    assert await workers.names(TEST_MACHINE) == ["i-abcde"]


async def test_what_was_made_is_undone_when_the_rest_cannot_be(workers: Workers) -> None:
    await workers.machine_set(replicas=1)
    await workers.set("ms")
    await workers.patch(TEST_MACHINE_TEMPLATE, "i", {"spec": {"template": {"metadata": {"labels": {"a": "no label!"}}}}})
    with pytest.raises(OperatorError, match="its infrastructure from TestMachineTemplate i"):
        await workers.set("ms")
    assert await workers.names(TEST_CONFIG) == await workers.names(MACHINE) == []


async def test_a_template_that_does_not_exist_is_told(workers: Workers) -> None:
    await workers.client.delete(TEST_MACHINE_TEMPLATE, "i", SPACE)
    await workers.machine_set(replicas=1)
    await workers.set("ms")
    with pytest.raises(OperatorError, match="TestMachineTemplate ns/i"):
        await workers.set("ms")
    status, reason, message = await workers.told(MACHINE_SET, "ms", "ScalingUp")
    assert (status, reason) == ("True", "ScalingUp")
    assert "TestMachineTemplate does not exist" in message


async def test_a_kind_that_is_not_installed_is_told(workers: Workers) -> None:
    unknown = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "NobodyTemplate", "name": "i"}
    await workers.machine_set(replicas=1, template=workers.template(infrastructureRef=unknown))
    await workers.set("ms")
    with pytest.raises(OperatorError, match="nobodytemplates"):
        await workers.set("ms")
    assert "install the provider" in (await workers.told(MACHINE_SET, "ms", "ScalingUp"))[2]


async def test_a_selector_that_does_not_choose_its_own_machines_makes_none(workers: Workers) -> None:
    await workers.machine_set(replicas=1, spec={"selector": {"matchLabels": {"pool": "another"}}})
    await workers.set("ms")
    for _ in range(3):
        with pytest.raises(OperatorError, match="does not choose"):
            await workers.set("ms")
    assert await workers.names(MACHINE) == []
    assert "does not choose" in (await workers.told(MACHINE_SET, "ms", "ScalingUp"))[2]


async def test_no_machine_is_made_while_the_control_plane_is_upgraded(workers: Workers) -> None:
    await workers.control_plane("v1.35.0", "v1.34.0")
    await workers.machine_set(replicas=1)
    result = await workers.set("ms", times=2)
    assert await workers.names(MACHINE) == []
    assert result.requeue_after == 15
    expected = 'KubeadmControlPlane ns/cp is upgrading ("ControlPlaneIsStable" preflight check failed)'
    assert expected in (await workers.told(MACHINE_SET, "ms", "ScalingUp"))[2]
    await workers.control_plane("v1.35.0", "v1.35.0")
    await workers.set("ms")
    assert len(await workers.names(MACHINE)) == 1


async def test_a_check_that_is_skipped_by_the_bootstrap_template_is_not_run(workers: Workers) -> None:
    await workers.control_plane("v1.35.0", "v1.34.0")
    await workers.patch(TEST_CONFIG_TEMPLATE, "b", {"metadata": {"annotations": {names.SKIP_PREFLIGHT_CHECKS_ANNOTATION: "All"}}})
    await workers.machine_set(replicas=1)
    await workers.set("ms", times=2)
    assert len(await workers.names(MACHINE)) == 1


async def test_a_sick_machine_is_replaced(workers: Workers) -> None:
    await workers.machine_set(replicas=2)
    await workers.set("ms", times=2)
    await workers.bring_up()
    sick, other = await workers.names(MACHINE)
    await workers.sick(sick)
    await workers.set("ms")
    machine = await workers.get(MACHINE, sick)
    assert machine["metadata"]["deletionTimestamp"]
    assert await workers.told(MACHINE, sick, "OwnerRemediated") == ("False", "MachineDeleting", "Machine is deleting")
    await workers.let_go()
    await workers.set("ms")
    left = await workers.names(MACHINE)
    assert other in left
    assert len(left) == 2


async def test_a_machine_that_is_well_again_is_not_asked_for_any_more(workers: Workers) -> None:
    await workers.machine_set(replicas=1)
    await workers.set("ms", times=2)
    (name,) = await workers.names(MACHINE)
    found = [condition("HealthCheckSucceeded"), condition("OwnerRemediated", "False", "WaitingForRemediation")]
    await workers.patch(MACHINE, name, {"status": {"conditions": found}}, subresource="status")
    await workers.set("ms")
    left = [one["type"] for one in (await workers.get(MACHINE, name))["status"]["conditions"]]
    assert left == ["HealthCheckSucceeded"]


async def test_a_paused_machine_set_is_left_alone(workers: Workers) -> None:
    await workers.machine_set(replicas=2, annotations={names.PAUSED_ANNOTATION: ""})
    await workers.set("ms", times=3)
    assert await workers.names(MACHINE) == []
    assert (await workers.told(MACHINE_SET, "ms", "Paused"))[:2] == ("True", "Paused")
    await workers.patch(MACHINE_SET, "ms", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})
    await workers.set("ms", times=2)
    assert len(await workers.names(MACHINE)) == 2


async def test_a_deleted_machine_set_goes_after_its_machines(workers: Workers) -> None:
    await workers.machine_set(replicas=2)
    await workers.set("ms", times=2)
    await workers.client.delete(MACHINE_SET, "ms", SPACE)
    await workers.set("ms", times=2)
    assert (await workers.told(MACHINE_SET, "ms", "Deleting"))[2] == "Deleting 2 Machines"
    await workers.let_go()
    await workers.set("ms")
    assert await workers.names(MACHINE_SET) == await workers.names(MACHINE) == []


async def test_machines_are_not_made_twice_while_the_cache_is_behind(workers: Workers) -> None:
    await workers.machine_set(replicas=3)
    await workers.set("ms", times=2)
    # Without waiting for the cache.
    for _ in range(3):
        await workers.sets.reconcile(Request(SPACE, "ms"))
    assert len(await workers.names(MACHINE)) == 3


async def test_a_naming_template_that_names_nothing_is_told(workers: Workers) -> None:
    await workers.machine_set(replicas=1, spec={"machineNaming": {"template": "{{ .nobody.name }}-{{ .random }}"}})
    await workers.set("ms")
    with pytest.raises(OperatorError, match="no name can be made"):
        await workers.set("ms")
    assert "no name can be made" in (await workers.told(MACHINE_SET, "ms", "ScalingUp"))[2]
    assert await workers.names(TEST_CONFIG) == []


async def test_a_control_plane_whose_version_is_none_is_told(workers: Workers) -> None:
    await workers.control_plane("v1.35.0", "banana")
    await workers.machine_set(replicas=1)
    await workers.set("ms")
    with pytest.raises(OperatorError, match="banana"):
        await workers.set("ms")
    assert '"banana" of a machine of KubeadmControlPlane ns/cp is not one' in (await workers.told(MACHINE_SET, "ms", "ScalingUp"))[2]
