"""The deletion of a Machine, step by step, on two API servers: hooks, drain with real evictions, volumes, host, config, Node."""

from __future__ import annotations

from typing import Any

import pytest
from fleet.infrastructure import TEST_CONFIG, TEST_MACHINE, condition
from fleet.machines.machine.machineworld import MachineWorld, said

from slipway.api.cluster.kinds import CLUSTER, MACHINE, MACHINE_DRAIN_RULE, NODE, POD, SECRET, VOLUME_ATTACHMENT, Kind
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.machines.machine.words import NODE_DELETION_STARTED
from slipway.kube.aio import PatchType

pytestmark = pytest.mark.asyncio

BUDGET = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
PRE_DRAIN = "pre-drain.delete.hook.machine.cluster.x-k8s.io/backup"
PRE_TERMINATE = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/etcd"


async def budget(world: MachineWorld, name: str = "b", *, allowed: int) -> None:
    """One that covers Pods of the app "a"."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    if await world.remote.find(BUDGET, name, "default") is None:
        await world.remote.create(BUDGET, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    status = {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "observedGeneration": 1}
    await world.remote.patch(BUDGET, name, "default", {"status": status}, type=PatchType.MERGE, subresource="status")


async def test_a_pod_with_two_budgets_is_told_as_one_that_cannot_be_evicted(world: MachineWorld) -> None:
    await world.running()
    await world.pod("a", "m", labels={"app": "a"})
    await budget(world, allowed=1)
    await budget(world, "c", allowed=1)
    assert (
        "Pod default/a: failed to evict Pod, This pod has more than one PodDisruptionBudget" in said(await world.delete("m"), "Deleting")[2]
    )


async def rule(world: MachineWorld, name: str, spec: dict[str, Any]) -> None:
    await world.client.create(MACHINE_DRAIN_RULE, {"metadata": {"name": name, "namespace": world.namespace}, "spec": spec})


async def host_goes(world: MachineWorld, name: str = "m") -> None:
    await world.let_go(TEST_MACHINE, name)
    await world.reconcile(name)
    await world.let_go(TEST_CONFIG, name)


async def test_a_deletion_takes_its_steps_in_order(world: MachineWorld) -> None:
    await world.running(metadata={"annotations": {PRE_DRAIN: "", PRE_TERMINATE: ""}})
    await world.pod("a", "m", labels={"app": "a"})
    await budget(world, allowed=0)

    machine = await world.delete("m")
    assert said(machine, "Deleting") == (
        "True",
        "WaitingForPreDrainHook",
        f"Waiting for pre-drain hooks to succeed (hooks: {PRE_DRAIN})",
    )
    assert machine["status"]["phase"] == "Deleting"
    assert "unschedulable" not in (await world.remote.get(NODE, "m"))["spec"]

    await world.patch(MACHINE, "m", {"metadata": {"annotations": {PRE_DRAIN: None}}})
    result = await world.reconcile("m")
    started = (await world.get("m"))["status"]["deletion"]["nodeDrainStartTime"]
    assert said(await world.get("m"), "Deleting")[1:] == (
        "DrainingNode",
        f"Drain not completed yet (started at {started}):\n* Pod default/a: cannot evict pod as it would violate the pod's disruption "
        "budget. The disruption budget b needs 1 healthy pods and has 1 currently",
    )
    assert result.requeue_after == 20
    assert (await world.remote.get(NODE, "m"))["spec"]["unschedulable"] is True

    await budget(world, allowed=1)
    await world.later(20, "m")
    assert "deletionTimestamp set, but still not removed from the Node" in said(await world.get("m"), "Deleting")[2]

    await world.stopped("a")
    attachment = {"attacher": "d", "nodeName": "m", "source": {"persistentVolumeName": "pv"}}
    await world.remote.create(VOLUME_ATTACHMENT, {"metadata": {"name": "va"}, "spec": attachment})
    await world.remote.patch(VOLUME_ATTACHMENT, "va", "", {"status": {"attached": True}}, type=PatchType.MERGE, subresource="status")
    await world.later(20, "m")
    _, reason, message = said(await world.get("m"), "Deleting")
    assert reason == "WaitingForVolumeDetach"
    assert "VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume: pv" in message

    await world.remote.delete(VOLUME_ATTACHMENT, "va")
    await world.later(20, "m")
    assert said(await world.get("m"), "Deleting")[1] == "WaitingForPreTerminateHook"
    assert not (await world.client.get(TEST_MACHINE, "m", world.namespace))["metadata"].get("deletionTimestamp")

    await world.patch(MACHINE, "m", {"metadata": {"annotations": {PRE_TERMINATE: None}}})
    await world.reconcile("m")
    assert said(await world.get("m"), "Deleting")[1:] == ("WaitingForInfrastructureDeletion", "Waiting for TestMachine to be deleted")
    assert await world.remote.find(NODE, "m") is not None

    await world.let_go(TEST_MACHINE, "m")
    await world.reconcile("m")
    assert said(await world.get("m"), "Deleting")[1:] == ("WaitingForBootstrapDeletion", "Waiting for TestConfig to be deleted")

    await world.let_go(TEST_CONFIG, "m")
    await world.reconcile("m")
    assert await world.remote.find(NODE, "m") is None
    assert await world.client.find(MACHINE, "m", world.namespace) is None


async def test_yesterdays_conditions_tell_of_the_steps(world: MachineWorld) -> None:
    await world.running(metadata={"annotations": {PRE_TERMINATE: ""}})
    machine = await world.delete("m")
    told = {each["type"]: (each["status"], each.get("reason", "")) for each in machine["status"]["deprecated"]["v1beta1"]["conditions"]}
    assert told["PreDrainDeleteHookSucceeded"] == ("True", "")
    assert told["DrainingSucceeded"] == ("True", "")
    assert told["VolumeDetachSucceeded"] == ("True", "")
    assert told["PreTerminateDeleteHookSucceeded"] == ("False", "WaitingExternalHook")


async def test_a_drain_is_looked_at_every_twenty_seconds_however_often_the_machine_changes(world: MachineWorld) -> None:
    await world.running()
    await world.pod("a", "m", labels={"cluster.x-k8s.io/drain": "wait-completed"})
    await world.delete("m")
    before = len(world.requests)
    result = await world.later(5, "m")
    assert result.requeue_after == 15
    assert not [request for request in world.requests[before:] if request == "workload list"]
    assert "waiting for completion" in said(await world.get("m"), "Deleting")[2]


async def test_a_drain_ends_with_its_time(world: MachineWorld) -> None:
    await world.running(spec={"deletion": {"nodeDrainTimeoutSeconds": 60}})
    await world.pod("a", "m", labels={"cluster.x-k8s.io/drain": "wait-completed"})
    machine = await world.delete("m")
    assert said(machine, "Deleting")[1] == "DrainingNode"
    await world.later(60, "m")
    assert said(await world.get("m"), "Deleting")[1] == "WaitingForInfrastructureDeletion"


async def test_pods_go_in_the_order_of_the_rules(world: MachineWorld) -> None:
    await world.running()
    await world.pod("first", "m")
    await world.pod("last", "m", labels={"app": "db"})
    await rule(world, "db", {"drain": {"behavior": "Drain", "order": 10}, "pods": [{"selector": {"matchLabels": {"app": "db"}}}]})
    await world.delete("m")
    assert (await world.remote.get(POD, "first", "default"))["metadata"].get("deletionTimestamp")
    assert not (await world.remote.get(POD, "last", "default"))["metadata"].get("deletionTimestamp")
    await world.stopped("first")
    await world.later(20, "m")
    assert (await world.remote.get(POD, "last", "default"))["metadata"].get("deletionTimestamp")


async def test_an_invalid_rule_holds_only_the_pods_that_it_may_be_about(world: MachineWorld) -> None:
    await world.running()
    await world.pod("a", "m", labels={"app": "a"})
    await world.pod("b", "m", labels={"app": "b"})
    wrong = {"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "tier", "operator": "Contains", "values": ["x"]}]}
    await rule(world, "wrong", {"drain": {"behavior": "Skip"}, "pods": [{"selector": wrong}]})
    message = said(await world.delete("m"), "Deleting")[2]
    assert (
        'Pod default/a: failed to evict Pod, the MachineDrainRule "wrong" is invalid: spec.pods[0].selector: '
        '"Contains" is not a valid label selector operator'
    ) in message
    assert (await world.remote.get(POD, "b", "default"))["metadata"].get("deletionTimestamp")
    assert not (await world.remote.get(POD, "a", "default"))["metadata"].get("deletionTimestamp")


async def test_the_pods_of_a_host_that_is_off_are_deleted_whatever_a_budget_says(world: MachineWorld) -> None:
    await world.running()
    await world.pod("a", "m", labels={"app": "a"})
    await world.pod("job", "m", labels={"cluster.x-k8s.io/drain": "wait-completed"})
    await budget(world, allowed=0)
    await world.remote.patch(
        NODE, "m", "", {"status": {"conditions": [condition("Ready", "Unknown")]}}, type=PatchType.MERGE, subresource="status"
    )
    await world.delete("m")
    assert said(await world.get("m"), "Deleting")[1] == "DrainingNode"

    off = [condition("Ready", "False"), condition("HostPoweredOff")]
    await world.patch(TEST_MACHINE, "m", {"status": {"conditions": off}}, subresource="status")
    await world.later(20, "m")
    assert await world.remote.list(POD, "default") == []
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
    assert taint in (await world.remote.get(NODE, "m"))["spec"]["taints"]
    assert said(await world.get("m"), "Deleting")[1] == "WaitingForInfrastructureDeletion"


async def test_a_host_whose_kubelet_is_heard_of_is_not_off(world: MachineWorld) -> None:
    await world.running()
    await world.pod("a", "m", labels={"app": "a"})
    await budget(world, allowed=0)
    await world.patch(TEST_MACHINE, "m", {"status": {"conditions": [condition("HostPoweredOff")]}}, subresource="status")
    assert said(await world.delete("m"), "Deleting")[1] == "DrainingNode"
    assert not (await world.remote.get(POD, "a", "default"))["metadata"].get("deletionTimestamp")


async def test_the_machines_of_a_cluster_that_goes_are_not_drained(world: MachineWorld) -> None:
    await world.running()
    await world.pod("a", "m")
    await world.patch(CLUSTER, "c", {"metadata": {"finalizers": ["cluster.cluster.x-k8s.io"]}})
    await world.client.delete(CLUSTER, "c", world.namespace)
    await world.delete("m")
    assert said(await world.get("m"), "Deleting")[1] == "WaitingForInfrastructureDeletion"
    await host_goes(world)
    await world.reconcile("m")
    assert await world.client.find(MACHINE, "m", world.namespace) is None
    assert await world.remote.find(NODE, "m") is not None


async def test_the_last_control_plane_machine_takes_no_node_with_it(world: MachineWorld) -> None:
    await world.running()
    await world.client.delete(MACHINE, "cp", world.namespace)
    await world.delete("m")
    assert said(await world.get("m"), "Deleting")[1] == "WaitingForInfrastructureDeletion"


async def test_the_node_is_deleted_however_long_the_clean_took(world: MachineWorld) -> None:
    await world.running(spec={"deletion": {"nodeDeletionTimeoutSeconds": 10}})
    await world.delete("m")
    secret = await world.client.get(SECRET, "c-kubeconfig", world.namespace)
    await world.client.delete(SECRET, "c-kubeconfig", world.namespace)
    await world.workload.close()
    world.reconciler = world.start()
    world.now = world.now.replace(year=world.now.year + 1)
    await host_goes(world)

    result = await world.reconcile("m")
    machine = await world.get("m")
    assert said(machine, "Deleting")[1] == "DeletingNode"
    assert "there is no Secret" in said(machine, "Deleting")[2]
    assert NODE_DELETION_STARTED in machine["metadata"]["annotations"]
    assert result.requeue_after == 2.0

    del secret["metadata"]["resourceVersion"]
    await world.client.create(SECRET, secret)
    await world.workload.close()
    world.reconciler = world.start()
    await world.later(5, "m")
    assert await world.remote.find(NODE, "m") is None
    assert await world.client.find(MACHINE, "m", world.namespace) is None


async def test_a_node_that_cannot_be_deleted_is_left_behind_when_its_time_is_over(world: MachineWorld) -> None:
    await world.running(spec={"deletion": {"nodeDeletionTimeoutSeconds": 10}})
    await world.delete("m")
    await world.client.delete(SECRET, "c-kubeconfig", world.namespace)
    await world.workload.close()
    world.reconciler = world.start()
    await host_goes(world)
    await world.reconcile("m")
    await world.later(9, "m")
    assert said(await world.get("m"), "Deleting")[1] == "DeletingNode"
    await world.later(1, "m")
    assert await world.client.find(MACHINE, "m", world.namespace) is None


async def test_a_node_that_another_machine_has_by_now_is_not_deleted(world: MachineWorld) -> None:
    await world.running()
    await world.delete("m")
    owner = {"cluster.x-k8s.io/cluster-namespace": world.namespace, "cluster.x-k8s.io/machine": "successor"}
    await world.remote.delete(NODE, "m")
    await world.remote.create(NODE, {"metadata": {"name": "m", "annotations": owner}})
    await host_goes(world)
    await world.reconcile("m")
    assert await world.client.find(MACHINE, "m", world.namespace) is None
    assert await world.remote.find(NODE, "m") is not None


async def test_a_machine_that_never_had_a_node_goes_without_one(world: MachineWorld) -> None:
    await world.cluster()
    await world.machine("m", metadata={"finalizers": ["machine.cluster.x-k8s.io"]})
    await world.client.delete(MACHINE, "m", world.namespace)
    await world.reconcile("m")
    assert await world.client.find(MACHINE, "m", world.namespace) is None


async def test_a_node_that_came_late_is_still_found(world: MachineWorld) -> None:
    await world.cluster()
    await world.machine("cp", control_plane=True, metadata={"finalizers": ["machine.cluster.x-k8s.io"]})
    await world.machine("m", metadata={"finalizers": ["machine.cluster.x-k8s.io"]})
    await world.providers("m", finalizers=True)
    await world.client.delete(MACHINE, "m", world.namespace)
    await world.reconcile("m")
    await world.node("m")
    await host_goes(world)
    await world.reconcile("m")
    assert await world.remote.find(NODE, "m") is None


async def test_a_host_that_cannot_be_read_is_told_and_not_taken_for_gone(world: MachineWorld) -> None:
    await world.cluster()
    unknown = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "NoSuchMachine", "name": "x"}
    await world.machine("m", spec={"infrastructureRef": unknown}, metadata={"finalizers": ["machine.cluster.x-k8s.io"]})
    await world.client.delete(MACHINE, "m", world.namespace)
    with pytest.raises(OperatorError, match="nosuchmachines"):
        await world.reconcile("m")
    _, reason, message = said(await world.get("m"), "Deleting")
    assert reason == "InternalError"
    assert message.startswith("It is not known whether the NoSuchMachine is still there: ")
