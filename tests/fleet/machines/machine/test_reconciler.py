"""A Machine from its first reconcile until it is available, on two API servers."""

from __future__ import annotations

import pytest
from fleet.infrastructure import TEST_CONFIG, TEST_MACHINE, reference
from fleet.machines.machine.machineworld import CLUSTER_NAME, MachineWorld, said
from fleet.world import preserving_crd

from slipway.api.cluster.kinds import CLUSTER, CUSTOM_RESOURCE_DEFINITION, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, NODE, SECRET, Kind
from slipway.api.machinery.errors import OperatorError
from slipway.kube.aio import PatchType

pytestmark = pytest.mark.asyncio


async def test_the_finalizer_is_written_before_anything_else(world: MachineWorld) -> None:
    await world.cluster()
    await world.machine("m")
    await world.providers("m")
    await world.reconcile("m")
    machine = await world.get("m")
    assert machine["metadata"]["finalizers"] == ["machine.cluster.x-k8s.io"]
    assert world.writes == ["patch"]
    assert "ownerReferences" not in (await world.client.get(TEST_MACHINE, "m", world.namespace))["metadata"]


async def test_a_machine_with_a_node_runs_and_is_available(world: MachineWorld) -> None:
    await world.running()
    machine = await world.get("m")
    status, spec = machine["status"], machine["spec"]
    assert status["phase"] == "Running"
    assert said(machine, "Ready") == ("True", "Ready", "")
    assert said(machine, "Available") == ("True", "Available", "")
    assert status["nodeRef"] == {"name": "m"}
    assert status["nodeInfo"]["kubeletVersion"] == "v1.35.4"
    assert status["addresses"] == [{"type": "InternalIP", "address": "10.0.0.1"}]
    assert status["initialization"] == {"infrastructureProvisioned": True, "bootstrapDataSecretCreated": True}
    assert (spec["providerID"], spec["bootstrap"]["dataSecretName"]) == ("test:///m", "m")
    assert status["observedGeneration"] == machine["metadata"]["generation"]
    assert {each["type"]: each["status"] for each in status["deprecated"]["v1beta1"]["conditions"]} == {
        "Ready": "True",
        "BootstrapReady": "True",
        "InfrastructureReady": "True",
        "NodeHealthy": "True",
    }


async def test_a_machine_that_nobody_made_belongs_to_its_cluster(world: MachineWorld) -> None:
    await world.running()
    (owner,) = (await world.get("m"))["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], "controller" in owner) == ("Cluster", "c", False)


async def test_the_objects_of_its_providers_become_its_own(world: MachineWorld) -> None:
    await world.running()
    machine = await world.get("m")
    for kind in (TEST_CONFIG, TEST_MACHINE):
        metadata = (await world.client.get(kind, "m", world.namespace))["metadata"]
        (owner,) = metadata["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Machine", machine["metadata"]["uid"], True)
        assert metadata["labels"]["cluster.x-k8s.io/cluster-name"] == "c"


async def test_the_node_gets_labels_and_annotations_and_loses_the_taint_of_a_new_one(world: MachineWorld) -> None:
    await world.running(labels={"node.cluster.x-k8s.io/zone": "a", "other": "b"})
    node = await world.remote.get(NODE, "m")
    metadata = node["metadata"]
    assert metadata["labels"]["node.cluster.x-k8s.io/zone"] == "a"
    assert "other" not in metadata["labels"]
    assert metadata["annotations"]["cluster.x-k8s.io/machine"] == "m"
    assert metadata["annotations"]["cluster.x-k8s.io/labels-from-machine"] == "node.cluster.x-k8s.io/zone"
    assert "node.cluster.x-k8s.io/uninitialized" not in [taint["key"] for taint in node["spec"].get("taints") or ()]


async def test_a_machine_at_rest_is_not_written_again(world: MachineWorld) -> None:
    await world.running()
    before = list(world.requests)
    await world.reconcile("m")
    assert [request for request in world.requests[len(before) :] if request not in ("list", "watch", "workload get")] == []


async def test_a_paused_machine_is_left_alone_and_says_why(world: MachineWorld) -> None:
    await world.cluster(paused=True)
    await world.machine("m", metadata={"finalizers": ["machine.cluster.x-k8s.io"]})
    await world.providers("m")
    await world.rest("m")
    machine = await world.get("m")
    assert said(machine, "Paused") == ("True", "Paused", "Cluster spec.paused is set to true")
    assert said(machine, "Ready") == ("", "", "")
    await world.patch(CLUSTER, "c", {"spec": {"paused": None}})
    await world.rest("m")
    assert said(await world.get("m"), "Paused")[:2] == ("False", "NotPaused")


async def test_a_machine_whose_cluster_is_not_there_waits(world: MachineWorld) -> None:
    await world.machine("m")
    await world.reconcile("m")
    assert world.writes == []


async def test_a_kind_that_nobody_installed_is_told_and_holds_up_no_other_machine(world: MachineWorld) -> None:
    await world.cluster()
    unknown = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "NoSuchMachine", "name": "x"}
    await world.machine("bad", spec={"infrastructureRef": unknown}, metadata={"finalizers": ["machine.cluster.x-k8s.io"]})
    with pytest.raises(OperatorError, match="nosuchmachines"):
        await world.reconcile("bad")
    status, reason, message = said(await world.get("bad"), "InfrastructureReady")
    assert (status, reason) == ("Unknown", "InternalError")
    assert "install the provider" in message
    await world.machine("m")
    await world.providers("m")
    await world.rest("m")
    assert said(await world.get("m"), "InfrastructureReady")[0] == "True"


async def test_objects_that_are_not_there_yet_are_told_and_looked_for_again(world: MachineWorld) -> None:
    await world.cluster()
    await world.machine("m")
    result = await world.rest("m")
    machine = await world.get("m")
    assert said(machine, "BootstrapConfigReady") == ("False", "ObjectDoesNotExist", "TestConfig does not exist")
    assert said(machine, "InfrastructureReady") == ("False", "ObjectDoesNotExist", "TestMachine does not exist")
    assert machine["status"]["phase"] == "Pending"
    assert result.requeue_after == 30.0


async def test_an_object_that_belongs_to_another_machine_is_not_taken(world: MachineWorld) -> None:
    await world.cluster()
    await world.machine("m", metadata={"finalizers": ["machine.cluster.x-k8s.io"]})
    uid = (await world.machine("other"))["metadata"]["uid"]
    other = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "other", "uid": uid, "controller": True}
    await world.providers("m", ownerReferences=[other])
    with pytest.raises(OperatorError, match="belongs to the Machine other already"):
        await world.reconcile("m")
    assert "belongs to the Machine other already" in said(await world.get("m"), "BootstrapConfigReady")[2]


async def test_a_node_that_fails_is_told(world: MachineWorld) -> None:
    await world.running()
    ready = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
    body = {"status": {"conditions": [{**ready, "lastTransitionTime": "2026-01-02T00:00:00Z"}]}}
    await world.remote.patch(NODE, "m", "", body, type=PatchType.MERGE, subresource="status")
    await world.rest("m")
    machine = await world.get("m")
    assert said(machine, "NodeReady")[:2] == ("Unknown", "NodeReadyUnknown")
    assert said(machine, "Ready")[0] == "Unknown"
    condition = next(each for each in machine["status"]["conditions"] if each["type"] == "NodeReady")
    assert condition["lastTransitionTime"] == "2026-01-02T00:00:00Z"


async def test_min_ready_seconds_are_waited_for(world: MachineWorld) -> None:
    await world.running(spec={"minReadySeconds": 60})
    machine = await world.get("m")
    assert said(machine, "Available")[:2] == ("False", "WaitingForMinReadySeconds")
    result = await world.reconcile("m")
    assert result.requeue_after == 60
    await world.later(60, "m")
    assert said(await world.get("m"), "Available")[0] == "True"


async def test_what_was_known_of_a_node_is_told_while_a_manager_has_no_connection_yet(world: MachineWorld) -> None:
    await world.running()
    await world.client.delete(SECRET, "c-kubeconfig", world.namespace)
    await world.workload.close()
    world.reconciler = world.start()
    await world.reconcile("m")
    assert said(await world.get("m"), "NodeReady")[:2] == ("True", "NodeReady")


async def test_nothing_is_known_of_a_node_before_the_first_connection(world: MachineWorld) -> None:
    await world.cluster()
    await world.client.delete(SECRET, "c-kubeconfig", world.namespace)
    await world.machine("m")
    await world.providers("m")
    await world.rest("m")
    assert said(await world.get("m"), "NodeReady") == ("Unknown", "ConnectionDown", "Remote connection not established yet")


async def test_a_machine_that_is_not_there_any_more_needs_nothing(world: MachineWorld) -> None:
    await world.cluster()
    assert (await world.reconcile("gone")).requeue_after == 0
    assert world.writes == []
    assert await world.client.find(MACHINE, "gone", world.namespace) is None


async def test_the_node_of_an_old_revision_is_marked_and_its_machine_is_not_up_to_date(world: MachineWorld) -> None:
    await world.cluster()
    revision = "machinedeployment.clusters.x-k8s.io/revision"
    machine_spec = {
        "clusterName": "c",
        "version": "v1.35.4",
        "bootstrap": {"dataSecretName": "s"},
        "infrastructureRef": reference(TEST_MACHINE, "t"),
    }
    labels = {"cluster.x-k8s.io/deployment-name": "md"}
    template = {"metadata": {"labels": labels}, "spec": machine_spec}
    spec = {"clusterName": "c", "selector": {"matchLabels": labels}, "template": template}
    named = {"namespace": world.namespace, "annotations": {revision: "1"}, "labels": labels}
    await world.client.create(MACHINE_DEPLOYMENT, {"metadata": {"name": "md", **named}, "spec": spec})
    machine_set = await world.client.create(MACHINE_SET, {"metadata": {"name": "ms", **named}, "spec": spec})
    owner = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "ms", "controller": True}
    await world.machine("m", metadata={"ownerReferences": [{**owner, "uid": machine_set["metadata"]["uid"]}]})
    await world.providers("m")
    await world.node("m")
    await world.rest("m")
    assert said(await world.get("m"), "UpToDate") == ("True", "UpToDate", "")
    assert (await world.remote.get(NODE, "m"))["metadata"]["annotations"]["cluster.x-k8s.io/owner-name"] == "ms"

    newer = {"metadata": {"annotations": {revision: "2"}}, "spec": {"template": {"spec": {"version": "v1.36.3"}}}}
    await world.patch(MACHINE_DEPLOYMENT, "md", newer)
    await world.rest("m")
    assert said(await world.get("m"), "UpToDate") == ("False", "NotUpToDate", "* Version v1.35.4, v1.36.3 required")
    taint = {"key": "node.cluster.x-k8s.io/outdated-revision", "effect": "PreferNoSchedule"}
    assert taint in (await world.remote.get(NODE, "m"))["spec"]["taints"]


async def test_a_provider_of_the_older_contract_is_understood(world: MachineWorld) -> None:
    kind = Kind("infrastructure.cluster.x-k8s.io", "v1beta1", "OldMachine", "oldmachines")
    crd = preserving_crd(kind)
    crd["metadata"]["labels"] = {"cluster.x-k8s.io/v1beta1": "v1beta1"}
    await world.client.create(CUSTOM_RESOURCE_DEFINITION, crd)
    await world.cluster()
    await world.machine("m", spec={"infrastructureRef": reference(kind, "m")})
    await world.providers("m")
    await world.client.create(kind, {"metadata": {"name": "m", "namespace": world.namespace}, "spec": {"providerID": "old://m"}})
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    await world.patch(kind, "m", {"status": {"ready": True, "conditions": [ready]}}, subresource="status")
    await world.rest("m")
    machine = await world.get("m")
    assert machine["spec"]["providerID"] == "old://m"
    assert said(machine, "InfrastructureReady") == ("True", "Ready", "")


async def test_the_first_machine_has_its_node_before_the_control_plane_counts_as_initialized(world: MachineWorld) -> None:
    """Without a controlPlaneRef it is this Node by which the control plane becomes so."""
    await world.cluster()
    await world.patch(CLUSTER, CLUSTER_NAME, {"status": {"conditions": None}}, subresource="status")
    await world.machine("m", control_plane=True)
    await world.providers("m")
    await world.node("m")
    await world.rest("m")
    machine = await world.get("m")
    assert machine["status"]["nodeRef"] == {"name": "m"}
    assert said(machine, "NodeReady")[:2] == ("Unknown", "InspectionFailed")
