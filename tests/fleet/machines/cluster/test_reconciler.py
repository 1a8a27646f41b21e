"""The Cluster controller on the embedded API server: what it takes over, what it says, and in which order a Cluster goes."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import msgspec
import pytest
from fleet.infrastructure import TEST_CLUSTER
from fleet.machines.stage import CONTROL_PLANE, NAME_LABEL, NETWORK, Stage
from fleet.world import CA_PAIR, kubeconfig
from support.waiting import eventually

from slipway.api.cluster.kinds import CLUSTER, CUSTOM_RESOURCE_DEFINITION, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, SECRET
from slipway.api.machinery.errors import OperatorError
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.machines.cluster.reconciler import DELETE_RETRY, MISSING_RETRY, ClusterReconciler
from slipway.kube.kubeconfig import load
from slipway.runtime.objects import DONE, Request, Result

pytestmark = pytest.mark.asyncio

INFRASTRUCTURE = {"apiGroup": TEST_CLUSTER.group, "kind": "TestCluster", "name": "c"}
CONTROL = {"apiGroup": CONTROL_PLANE.group, "kind": "TestControlPlane", "name": "cp"}
ENDPOINT = {"host": "10.0.0.1", "port": 6443}
BOTH = {"infrastructureRef": INFRASTRUCTURE, "controlPlaneRef": CONTROL}


def _reconciler(stage: Stage) -> ClusterReconciler:
    return ClusterReconciler(
        stage.client,
        stage.cache,
        workload=stage.workload,
        events=stage.events,
        watch=stage.watched.append,
        enqueue=stage.enqueued.append,
        clock=lambda: stage.now,
    )


async def _begun(stage: Stage, **spec: Any) -> ClusterReconciler:
    """A Cluster that has its finalizer and is known not to be paused."""
    await stage.create(CLUSTER, "c", {"clusterNetwork": NETWORK, **spec})
    reconciler = _reconciler(stage)
    await stage.reconcile(reconciler, "c", times=2)
    return reconciler


async def _provisioned(stage: Stage) -> ClusterReconciler:
    await stage.create(TEST_CLUSTER, "c", {"controlPlaneEndpoint": ENDPOINT}, {"initialization": {"provisioned": True}})
    await stage.create(CONTROL_PLANE, "cp", {"replicas": 3}, {"initialization": {"controlPlaneInitialized": True}, "replicas": 3})
    reconciler = await _begun(stage, **BOTH)
    await stage.reconcile(reconciler, "c")
    return reconciler


async def test_the_finalizer_comes_first_and_by_itself(stage: Stage) -> None:
    await stage.create(CLUSTER, "c", BOTH)
    await stage.reconcile(_reconciler(stage), "c")
    found = await stage.get(CLUSTER, "c")
    assert found["metadata"]["finalizers"] == ["cluster.cluster.x-k8s.io"]
    assert not found.get("status")


async def test_a_paused_cluster_is_told_to_be_so_and_left_alone(stage: Stage) -> None:
    await stage.create(TEST_CLUSTER, "c")
    reconciler = await _begun(stage, paused=True, **BOTH)
    await stage.reconcile(reconciler, "c")
    assert await stage.conditions(CLUSTER, "c") == {"Paused": ("True", "Paused")}
    assert "ownerReferences" not in (await stage.get(TEST_CLUSTER, "c"))["metadata"]


async def test_infrastructure_and_control_plane_become_the_clusters_without_being_controlled(stage: Stage) -> None:
    await _provisioned(stage)
    uid = (await stage.get(CLUSTER, "c"))["metadata"]["uid"]
    for kind, name in ((TEST_CLUSTER, "c"), (CONTROL_PLANE, "cp")):
        metadata = (await stage.get(kind, name))["metadata"]
        assert metadata["ownerReferences"] == [{"apiVersion": CLUSTER.api_version, "kind": "Cluster", "name": "c", "uid": uid}]
        assert metadata["labels"][NAME_LABEL] == "c"


async def test_what_the_infrastructure_and_the_control_plane_say_is_taken_over(stage: Stage) -> None:
    await _provisioned(stage)
    found = await stage.get(CLUSTER, "c")
    assert found["spec"]["controlPlaneEndpoint"] == ENDPOINT
    status = found["status"]
    assert status["initialization"] == {"infrastructureProvisioned": True, "controlPlaneInitialized": True}
    assert status["phase"] == "Provisioned"
    assert status["controlPlane"] == {"desiredReplicas": 3, "replicas": 3}
    told = [reason for reason, _ in await stage.told()]
    assert sorted(told) == ["ControlPlaneInitialized", "InfrastructureReady", "Provisioned"]


async def test_at_rest_nothing_is_written(stage: Stage) -> None:
    reconciler = await _provisioned(stage)
    await stage.reconcile(reconciler, "c", times=2)
    before = await stage.get(CLUSTER, "c")
    assert before["status"]["observedGeneration"] == before["metadata"]["generation"]
    assert await stage.reconcile(reconciler, "c") == DONE
    assert await stage.get(CLUSTER, "c") == before


async def test_the_endpoint_of_the_control_plane_counts_where_the_infrastructure_has_none(stage: Stage) -> None:
    await stage.create(TEST_CLUSTER, "c", {}, {"initialization": {"provisioned": True}})
    await stage.create(CONTROL_PLANE, "cp", {"controlPlaneEndpoint": ENDPOINT}, {"initialization": {"controlPlaneInitialized": True}})
    reconciler = await _begun(stage, **BOTH)
    await stage.reconcile(reconciler, "c")
    assert (await stage.get(CLUSTER, "c"))["spec"]["controlPlaneEndpoint"] == ENDPOINT


async def test_the_fields_of_the_contract_v1beta1_are_read_where_a_kind_says_so(stage: Stage) -> None:
    await stage.patch(
        CUSTOM_RESOURCE_DEFINITION,
        f"{TEST_CLUSTER.plural}.{TEST_CLUSTER.group}",
        {"metadata": {"labels": {"cluster.x-k8s.io/v1beta2": None, "cluster.x-k8s.io/v1beta1": TEST_CLUSTER.version}}},
    )
    domains = {"b": {"controlPlane": True, "attributes": {"rack": "2"}}, "a": {}}
    await stage.create(TEST_CLUSTER, "c", {"controlPlaneEndpoint": ENDPOINT}, {"ready": True, "failureDomains": domains})
    reconciler = await _begun(stage, infrastructureRef=INFRASTRUCTURE)
    await stage.reconcile(reconciler, "c")
    status = (await stage.get(CLUSTER, "c"))["status"]
    assert status["initialization"] == {"infrastructureProvisioned": True}
    assert status["failureDomains"] == [
        {"name": "a", "controlPlane": False},
        {"name": "b", "controlPlane": True, "attributes": {"rack": "2"}},
    ]


async def test_what_was_provisioned_stays_so(stage: Stage) -> None:
    reconciler = await _provisioned(stage)
    await stage.status(TEST_CLUSTER, "c", {"initialization": {"provisioned": False}})
    await stage.reconcile(reconciler, "c")
    assert (await stage.get(CLUSTER, "c"))["status"]["initialization"]["infrastructureProvisioned"] is True


async def test_a_reference_to_nothing_is_told_and_looked_up_again(stage: Stage) -> None:
    reconciler = await _begun(stage, **BOTH)
    assert (await stage.reconcile(reconciler, "c")).requeue_after == MISSING_RETRY
    assert await stage.condition(CLUSTER, "c", "InfrastructureReady") == ("False", "ObjectDoesNotExist", "TestCluster does not exist")
    assert await stage.condition(CLUSTER, "c", "ControlPlaneAvailable") == (
        "False",
        "ObjectDoesNotExist",
        "TestControlPlane does not exist",
    )
    assert {watch.kind for watch in stage.watched} == {TEST_CLUSTER, CONTROL_PLANE}


async def test_an_object_that_comes_later_is_the_clusters_event(stage: Stage) -> None:
    reconciler = await _begun(stage, **BOTH)
    await stage.reconcile(reconciler, "c")
    await stage.create(TEST_CLUSTER, "c")
    await stage.settle([TEST_CLUSTER])
    watch = next(watch for watch in stage.watched if watch.kind == TEST_CLUSTER)
    (found,) = await stage.cache.list(TEST_CLUSTER)
    assert watch.requests is not None
    assert await watch.requests(found, stage.cache) == [Request("ns", "c")]


async def test_infrastructure_that_went_is_told(stage: Stage) -> None:
    reconciler = await _provisioned(stage)
    await stage.client.delete(TEST_CLUSTER, "c", "ns")
    await stage.reconcile(reconciler, "c")
    message = "TestCluster has been deleted while the cluster still exists"
    assert await stage.condition(CLUSTER, "c", "InfrastructureReady") == ("False", "ObjectDeleted", message)


async def test_an_unknown_kind_is_told_and_holds_up_nothing_else(stage: Stage) -> None:
    await stage.create(CONTROL_PLANE, "cp", {"replicas": 1}, {"initialization": {"controlPlaneInitialized": True}})
    reconciler = await _begun(stage, infrastructureRef={**INFRASTRUCTURE, "kind": "NoSuchCluster"}, controlPlaneRef=CONTROL)
    with pytest.raises(OperatorError, match=r"no CustomResourceDefinition nosuchclusters\.infrastructure"):
        await stage.reconcile(reconciler, "c")
    state, reason, message = await stage.condition(CLUSTER, "c", "InfrastructureReady")
    assert (state, reason) == ("Unknown", "InternalError")
    assert "install the provider that brings it, or mend the reference" in message
    assert (await stage.get(CLUSTER, "c"))["status"]["initialization"] == {"controlPlaneInitialized": True}
    assert "observedGeneration" not in (await stage.get(CLUSTER, "c"))["status"]


async def test_a_kind_without_a_contract_label_is_told(stage: Stage) -> None:
    name = f"{TEST_CLUSTER.plural}.{TEST_CLUSTER.group}"
    await stage.patch(CUSTOM_RESOURCE_DEFINITION, name, {"metadata": {"labels": {"cluster.x-k8s.io/v1beta2": None}}})
    await stage.create(TEST_CLUSTER, "c")
    reconciler = await _begun(stage, infrastructureRef=INFRASTRUCTURE)
    with pytest.raises(OperatorError):
        await stage.reconcile(reconciler, "c")
    _, reason, message = await stage.condition(CLUSTER, "c", "InfrastructureReady")
    assert reason == "InternalError"
    assert message.startswith(f"the CustomResourceDefinition {name} says by no label which of its versions fulfil the contract")


async def test_a_field_of_another_type_than_the_contract_says_is_told(stage: Stage) -> None:
    await stage.create(TEST_CLUSTER, "c", {}, {"initialization": {"provisioned": "yes"}})
    reconciler = await _begun(stage, infrastructureRef=INFRASTRUCTURE)
    with pytest.raises(OperatorError, match=r"status.initialization.provisioned of the TestCluster c is 'yes', .* wants a boolean"):
        await stage.reconcile(reconciler, "c")
    assert (await stage.get(CLUSTER, "c"))["status"]["phase"] == "Provisioning"


async def test_a_cluster_with_a_topology_is_left_alone_and_says_so(stage: Stage) -> None:
    await stage.create(TEST_CLUSTER, "c")
    await stage.create(CLUSTER, "c", {**BOTH, "topology": {"classRef": {"name": "k"}, "version": "v1.35.0"}})
    assert await stage.reconcile(_reconciler(stage), "c", times=2) == DONE
    found = await stage.get(CLUSTER, "c")
    assert "finalizers" not in found["metadata"]
    assert await stage.conditions(CLUSTER, "c") == {"TopologyReconciled": ("False", "NotSupported")}
    assert "ownerReferences" not in (await stage.get(TEST_CLUSTER, "c"))["metadata"]


async def test_without_references_the_infrastructure_is_provisioned_and_a_node_initializes(stage: Stage) -> None:
    reconciler = await _begun(stage)
    await stage.reconcile(reconciler, "c")
    assert (await stage.get(CLUSTER, "c"))["status"]["initialization"] == {"infrastructureProvisioned": True}
    waiting = "Waiting for the first control plane machine to have status.nodeRef set"
    assert await stage.condition(CLUSTER, "c", "ControlPlaneInitialized") == ("False", "NotInitialized", waiting)
    await stage.member(MACHINE, "m", own=True, labels={"cluster.x-k8s.io/control-plane": ""})
    await stage.status(MACHINE, "m", {"nodeRef": {"name": "m"}})
    await stage.reconcile(reconciler, "c")
    assert (await stage.conditions(CLUSTER, "c"))["ControlPlaneInitialized"] == ("True", "Initialized")
    older = (await stage.get(CLUSTER, "c"))["status"]["deprecated"]["v1beta1"]["conditions"]
    assert {one["type"]: one["status"] for one in older} == {
        "Ready": "True",
        "ControlPlaneInitialized": "True",
        "InfrastructureReady": "True",
    }


async def test_without_a_control_plane_object_the_kubeconfig_is_made_once_the_ca_is_there(stage: Stage) -> None:
    reconciler = await _begun(stage, controlPlaneEndpoint=ENDPOINT)
    assert (await stage.reconcile(reconciler, "c")).requeue_after == MISSING_RETRY
    await stage.secret("c-ca", {"tls.crt": CA_PAIR.certificate, "tls.key": CA_PAIR.key})
    await stage.reconcile(reconciler, "c")
    secret = await stage.get(SECRET, "c-kubeconfig")
    assert secret["type"] == "cluster.x-k8s.io/secret"
    assert secret["metadata"]["ownerReferences"][0]["name"] == "c"
    document = load(b64decode(secret["data"]["value"]), "the Secret")
    assert document["clusters"][0]["cluster"]["server"] == "https://10.0.0.1:6443"
    assert document["current-context"] == "c-admin@c"


async def test_a_ca_that_is_garbage_is_an_error_with_a_sentence(stage: Stage) -> None:
    await stage.secret("c-ca", {"tls.crt": b"nothing", "tls.key": b"nothing"})
    reconciler = await _begun(stage, controlPlaneEndpoint=ENDPOINT)
    with pytest.raises(OperatorError, match="the CA of the Cluster c cannot be read"):
        await stage.reconcile(reconciler, "c")


async def test_a_kubeconfig_that_is_garbage_is_told_by_the_probe(stage: Stage) -> None:
    await stage.secret("c-kubeconfig", {"value": b"{"})
    reconciler = await _provisioned(stage)
    await eventually(lambda: stage.enqueued == [Request("ns", "c")])
    await stage.reconcile(reconciler, "c")
    state, reason, message = await stage.condition(CLUSTER, "c", "RemoteConnectionProbe")
    assert (state, reason) == ("False", "ProbeFailed")
    assert message.startswith("Remote connection not established yet: the kubeconfig of Secret ns/c-kubeconfig cannot be read")


async def test_a_workload_cluster_with_the_certificate_of_another_is_told_by_the_probe(stage: Stage) -> None:
    async with EmbeddedServer() as other:
        stranger = msgspec.structs.replace(other.connection(), ca=CA_PAIR.certificate)
        await stage.secret("c-kubeconfig", {"value": kubeconfig(stranger).encode()})
        reconciler = await _provisioned(stage)
        await eventually(lambda: stage.enqueued == [Request("ns", "c")])
        await stage.reconcile(reconciler, "c")
    message = (await stage.condition(CLUSTER, "c", "RemoteConnectionProbe"))[2]
    assert message.startswith("Remote connection not established yet: ")
    assert "certificate" in message


async def test_a_workload_cluster_that_answers_is_told(stage: Stage) -> None:
    await stage.kubeconfig()
    reconciler = await _provisioned(stage)
    await eventually(lambda: stage.enqueued)
    await stage.reconcile(reconciler, "c")
    assert await stage.condition(CLUSTER, "c", "RemoteConnectionProbe") == ("True", "ProbeSucceeded", "")


async def test_a_connection_that_was_lost_is_looked_at_when_it_counts(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    reconciler = await _provisioned(stage)
    lost = stage.workload.probe("ns", "c")._replace(succeeded_at=stage.now, failed_in_a_row=1, why="no answer")
    monkeypatch.setattr(stage.workload, "probe", lambda namespace, name: lost)
    stage.later(20)
    assert (await stage.reconcile(reconciler, "c")).requeue_after == 31.0
    stage.later(31)
    await stage.reconcile(reconciler, "c")
    _, reason, message = await stage.condition(CLUSTER, "c", "RemoteConnectionProbe")
    assert reason == "ProbeFailed"
    assert message.endswith(": no answer")


async def test_a_cluster_goes_in_order(stage: Stage) -> None:
    reconciler = await _provisioned(stage)
    for kind, name in ((TEST_CLUSTER, "c"), (CONTROL_PLANE, "cp")):
        await stage.patch(kind, name, {"metadata": {"finalizers": ["held.io/up"]}})
    await stage.member(MACHINE_DEPLOYMENT, "md", own=True, finalizers=["held.io/up"])
    await stage.member(MACHINE_SET, "ms")
    await stage.member(MACHINE, "alone", own=True)
    await stage.member(MACHINE, "w", finalizers=["held.io/up"])
    await stage.member(MACHINE, "cp-0", own=True, labels={"cluster.x-k8s.io/control-plane": ""})
    await stage.client.delete(CLUSTER, "c", "ns")

    assert (await stage.reconcile(reconciler, "c")).requeue_after == DELETE_RETRY
    state, reason, message = await stage.condition(CLUSTER, "c", "Deleting")
    assert (state, reason) == ("True", "WaitingForWorkersDeletion")
    assert message == "* MachineDeployments: md\n* MachineSets: ms\n* Worker Machines: alone, w"
    assert (await stage.get(MACHINE_DEPLOYMENT, "md"))["metadata"]["deletionTimestamp"]
    assert await stage.names(MACHINE) == ["cp-0", "w"]
    assert "deletionTimestamp" not in (await stage.get(MACHINE, "w"))["metadata"]
    assert await stage.names(MACHINE_SET) == ["ms"]
    assert "deletionTimestamp" not in (await stage.get(CONTROL_PLANE, "cp"))["metadata"]

    await stage.release(MACHINE_DEPLOYMENT, "md")
    await stage.client.delete(MACHINE_SET, "ms", "ns")
    await stage.release(MACHINE, "w")
    await stage.client.delete(MACHINE, "w", "ns")
    # One Machine is left: the Cluster is looked at again at any event, and after a second for each thousand.
    assert await stage.reconcile(reconciler, "c") == Result(pause=0.001)
    waiting = "Waiting for TestControlPlane to be deleted"
    assert await stage.condition(CLUSTER, "c", "Deleting") == ("True", "WaitingForControlPlaneDeletion", waiting)
    assert (await stage.get(CONTROL_PLANE, "cp"))["metadata"]["deletionTimestamp"]
    assert "deletionTimestamp" not in (await stage.get(TEST_CLUSTER, "c"))["metadata"]

    await stage.release(CONTROL_PLANE, "cp")
    await stage.reconcile(reconciler, "c")
    waiting = "Waiting for TestCluster to be deleted"
    assert await stage.condition(CLUSTER, "c", "Deleting") == ("True", "WaitingForInfrastructureDeletion", waiting)
    assert await stage.condition(CLUSTER, "c", "ControlPlaneAvailable") == ("False", "ObjectDeleted", "TestControlPlane has been deleted")

    await stage.release(TEST_CLUSTER, "c")
    await stage.reconcile(reconciler, "c")
    assert await stage.find(CLUSTER, "c") is None
    assert ("Deleted", "Cluster c has been deleted") in await stage.told()


async def test_a_cluster_whose_control_plane_cannot_be_looked_up_does_not_go_on(stage: Stage) -> None:
    await stage.create(TEST_CLUSTER, "c")
    reconciler = await _begun(stage, infrastructureRef=INFRASTRUCTURE, controlPlaneRef={**CONTROL, "kind": "NoSuchControlPlane"})
    await stage.client.delete(CLUSTER, "c", "ns")
    with pytest.raises(OperatorError):
        await stage.reconcile(reconciler, "c")
    state, reason, message = await stage.condition(CLUSTER, "c", "Deleting")
    assert (state, reason) == ("True", "InternalError")
    assert "nosuchcontrolplanes" in message
    assert "deletionTimestamp" not in (await stage.get(TEST_CLUSTER, "c"))["metadata"]


async def test_members_that_cannot_be_read_are_told_and_hold_up_the_deletion(stage: Stage) -> None:
    reconciler = await _provisioned(stage)
    await stage.member(MACHINE_SET, "ms")
    await stage.status(MACHINE_SET, "ms", {"replicas": "three"})
    await stage.client.delete(CLUSTER, "c", "ns")
    with pytest.raises(OperatorError):
        await stage.reconcile(reconciler, "c")
    for name, state in (("Deleting", "True"), ("WorkersAvailable", "Unknown")):
        assert (await stage.condition(CLUSTER, "c", name))[:2] == (state, "InternalError")
        assert "the MachineSet ns/ms cannot be read" in (await stage.condition(CLUSTER, "c", name))[2]
    assert "deletionTimestamp" not in (await stage.get(CONTROL_PLANE, "cp"))["metadata"]


async def test_a_cluster_that_was_never_provisioned_goes(stage: Stage) -> None:
    reconciler = await _begun(stage, **BOTH)
    await stage.client.delete(CLUSTER, "c", "ns")
    await stage.reconcile(reconciler, "c")
    assert await stage.find(CLUSTER, "c") is None


async def test_the_time_of_a_mirrored_condition_is_kept(stage: Stage) -> None:
    since = "2026-01-01T00:00:00Z"
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": since}
    await stage.create(TEST_CLUSTER, "c", {}, {"initialization": {"provisioned": True}, "conditions": [ready]})
    reconciler = await _begun(stage, infrastructureRef=INFRASTRUCTURE)
    await stage.reconcile(reconciler, "c")
    found = (await stage.get(CLUSTER, "c"))["status"]["conditions"]
    assert next(one for one in found if one["type"] == "InfrastructureReady")["lastTransitionTime"] == since
