"""The MachineHealthCheck controller on the embedded API server, which is also the workload cluster."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from fleet.machines.stage import NAME_LABEL, NETWORK, Stage
from fleet.world import preserving_crd
from support.waiting import eventually

from slipway.api.cluster.kinds import CLUSTER, CUSTOM_RESOURCE_DEFINITION, MACHINE, MACHINE_HEALTH_CHECK, NODE, Kind
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.machines.healthcheck.reconciler import RECONNECT_RETRY, MachineHealthCheckReconciler
from slipway.fleet.machines.healthcheck.watches import of_machine
from slipway.runtime.objects import DONE, Object, Request, Result, timestamp

pytestmark = pytest.mark.asyncio

REQUEST = Kind("remediation.test.io", "v1", "HostRemediation", "hostremediations")
TEMPLATE = Kind("remediation.test.io", "v1", "HostRemediationTemplate", "hostremediationtemplates")
TEMPLATE_REF = {"apiVersion": TEMPLATE.api_version, "kind": TEMPLATE.kind, "name": "t"}
CHECKS = {"unhealthyNodeConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 300}]}


def _reconciler(stage: Stage) -> MachineHealthCheckReconciler:
    return MachineHealthCheckReconciler(
        stage.client,
        stage.cache,
        workload=stage.workload,
        events=stage.events,
        enqueue=stage.enqueued.append,
        watch=stage.watched.append,
        clock=lambda: stage.now,
    )


async def _cluster(stage: Stage, *, initialized: bool = True, **spec: Any) -> None:
    since = timestamp(stage.now - timedelta(hours=1))
    types = ("InfrastructureReady", "ControlPlaneInitialized") if initialized else ("InfrastructureReady",)
    conditions = [{"type": name, "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": since} for name in types]
    await stage.create(CLUSTER, "c", {"clusterNetwork": NETWORK, **spec}, {"conditions": conditions})


async def _check(stage: Stage, selector: dict[str, Any] | None = None, **remediation: Any) -> None:
    spec = {"clusterName": "c", "selector": selector or {"matchLabels": {"pool": "a"}}, "checks": CHECKS}
    await stage.create(MACHINE_HEALTH_CHECK, "h", {**spec, **({"remediation": remediation} if remediation else {})})


async def _machine(stage: Stage, name: str, *, failed_for: int = 0, **metadata: Any) -> None:
    """A Machine whose Node is well, or has not been for so many seconds."""
    await stage.member(MACHINE, name, labels={"pool": "a"}, **metadata)
    await stage.status(MACHINE, name, {"nodeRef": {"name": name}})
    await stage.create(NODE, name)
    await _node(stage, name, "False" if failed_for else "True", failed_for or 3600)


async def _node(stage: Stage, name: str, status: str, age: int) -> None:
    """What the Node says, for so many seconds."""
    since = timestamp(stage.now - timedelta(seconds=age))
    reason = "KubeletReady" if status == "True" else "KubeletStopped"
    ready = {"type": "Ready", "status": status, "reason": reason, "lastTransitionTime": since}
    await stage.patch(NODE, name, {"status": {"conditions": [ready]}}, subresource="status")


async def _settle_nodes(stage: Stage) -> None:
    """Wait until the workload cluster's Nodes are known as they are."""
    nodes = await stage.workload.nodes("ns", "c")
    wanted = {node["metadata"]["name"]: node["metadata"]["resourceVersion"] for node in await stage.client.list(NODE)}

    async def known() -> bool:
        return {node.name: node.metadata.resource_version for node in await nodes.list(NODE)} == wanted

    await eventually(known, "the Nodes are known")


async def _begun(stage: Stage, **remediation: Any) -> MachineHealthCheckReconciler:
    """A health check of a cluster that can be reached, known not to be paused."""
    await _cluster(stage)
    await stage.kubeconfig()
    await _check(stage, **remediation)
    reconciler = _reconciler(stage)
    await _reconcile(stage, reconciler)
    await eventually(lambda: stage.workload.probe("ns", "c").connected, "the workload cluster is connected to")
    return reconciler


async def _reconcile(stage: Stage, reconciler: MachineHealthCheckReconciler, *, times: int = 1) -> Result:
    result = DONE
    for _ in range(times):
        if stage.workload.probe("ns", "c").connected:
            await _settle_nodes(stage)
        result = await stage.reconcile(reconciler, "h")
    return result


async def _status(stage: Stage) -> dict[str, Any]:
    status: dict[str, Any] = (await stage.get(MACHINE_HEALTH_CHECK, "h"))["status"]
    return {name: status[name] for name in ("expectedMachines", "currentHealthy", "remediationsAllowed", "targets")}


async def _install_requests(stage: Stage, *, template: bool = True) -> None:
    for kind in (REQUEST, TEMPLATE):
        await stage.client.create(CUSTOM_RESOURCE_DEFINITION, preserving_crd(kind))
    if template:
        await stage.create(TEMPLATE, "t", {"template": {"spec": {"strategy": "Reboot"}}})


async def test_a_health_check_becomes_its_clusters(stage: Stage) -> None:
    reconciler = await _begun(stage)
    await _reconcile(stage, reconciler)
    metadata = (await stage.get(MACHINE_HEALTH_CHECK, "h"))["metadata"]
    assert metadata["labels"] == {NAME_LABEL: "c"}
    assert [(owner["kind"], owner["name"], owner.get("controller")) for owner in metadata["ownerReferences"]] == [("Cluster", "c", None)]


async def test_healthy_machines_are_counted_and_marked(stage: Stage) -> None:
    reconciler = await _begun(stage)
    await _machine(stage, "m1")
    await _machine(stage, "m2")
    assert await _reconcile(stage, reconciler) == DONE
    assert await _status(stage) == {"expectedMachines": 2, "currentHealthy": 2, "remediationsAllowed": 2, "targets": ["m1", "m2"]}
    assert await stage.conditions(MACHINE, "m1") == {"HealthCheckSucceeded": ("True", "HealthCheckSucceeded")}
    assert await stage.condition(MACHINE_HEALTH_CHECK, "h", "RemediationAllowed") == ("True", "RemediationAllowed", "")


async def test_at_rest_nothing_is_written(stage: Stage) -> None:
    reconciler = await _begun(stage)
    await _machine(stage, "m1")
    await _machine(stage, "m2", failed_for=400)
    await _reconcile(stage, reconciler, times=2)
    before = [await stage.get(MACHINE_HEALTH_CHECK, "h"), await stage.get(MACHINE, "m1"), await stage.get(MACHINE, "m2")]
    stage.later(20)
    await _reconcile(stage, reconciler)
    assert [await stage.get(MACHINE_HEALTH_CHECK, "h"), await stage.get(MACHINE, "m1"), await stage.get(MACHINE, "m2")] == before


async def test_an_unhealthy_machine_is_for_its_owner_to_remediate(stage: Stage) -> None:
    reconciler = await _begun(stage)
    await _machine(stage, "m", failed_for=400)
    await _reconcile(stage, reconciler)
    message = "Health check failed:\n  * Condition Ready on Node is reporting status False with reason KubeletStopped for more than 5m0s"
    assert await stage.condition(MACHINE, "m", "HealthCheckSucceeded") == ("False", "UnhealthyNode", message)
    waiting = ("False", "WaitingForRemediation", "Waiting for remediation")
    assert await stage.condition(MACHINE, "m", "OwnerRemediated") == waiting
    older = (await stage.get(MACHINE, "m"))["status"]["deprecated"]["v1beta1"]["conditions"]
    assert {one["type"]: (one["status"], one["reason"], one["severity"]) for one in older} == {
        "HealthCheckSucceeded": ("False", "UnhealthyNode", "Warning"),
        "OwnerRemediated": ("False", "WaitingForRemediation", "Warning"),
    }
    assert ("MachineMarkedUnhealthy", "Machine ns/m has been marked as unhealthy by ns/h") in await stage.told()


async def test_a_remediation_under_way_is_its_owners(stage: Stage) -> None:
    reconciler = await _begun(stage)
    await _machine(stage, "m", failed_for=400)
    await _reconcile(stage, reconciler)
    now = timestamp(stage.now)
    deferred = {"type": "OwnerRemediated", "status": "False", "reason": "RemediationDeferred", "message": "", "lastTransitionTime": now}
    others = [one for one in (await stage.get(MACHINE, "m"))["status"]["conditions"] if one["type"] != "OwnerRemediated"]
    await stage.status(MACHINE, "m", {"conditions": [*others, deferred]})
    await _reconcile(stage, reconciler)
    assert (await stage.condition(MACHINE, "m", "OwnerRemediated"))[1] == "RemediationDeferred"


async def test_a_node_that_went_makes_its_machine_unhealthy(stage: Stage) -> None:
    reconciler = await _begun(stage)
    await _machine(stage, "m")
    await stage.client.delete(NODE, "m")
    await _settle_nodes(stage)
    await _reconcile(stage, reconciler)
    assert (await stage.condition(MACHINE, "m", "HealthCheckSucceeded"))[1:] == (
        "NodeDeleted",
        "Health check failed:\n  * Node m has been deleted",
    )


async def test_it_looks_again_a_second_after_the_next_expiry(stage: Stage) -> None:
    reconciler = await _begun(stage)
    await _machine(stage, "m1", failed_for=100)
    await _machine(stage, "m2", failed_for=200)
    assert (await _reconcile(stage, reconciler)).requeue_after == 101.0
    assert (await _status(stage))["currentHealthy"] == 0
    assert await stage.conditions(MACHINE, "m1") == {}


async def test_too_many_unhealthy_machines_are_told_and_left(stage: Stage) -> None:
    reconciler = await _begun(stage, triggerIf={"unhealthyLessThanOrEqualTo": "40%"})
    await _machine(stage, "m1", failed_for=400)
    await _machine(stage, "m2")
    await _reconcile(stage, reconciler)
    message = (
        "Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy "
        "(total: 2, unhealthy: 1, maxUnhealthy: 40%)"
    )
    assert await stage.condition(MACHINE_HEALTH_CHECK, "h", "RemediationAllowed") == ("False", "TooManyUnhealthy", message)
    assert (await _status(stage))["remediationsAllowed"] == 0
    assert await stage.conditions(MACHINE, "m1") == {"HealthCheckSucceeded": ("False", "UnhealthyNode")}
    assert ("RemediationRestricted", message) in await stage.told()


async def test_a_range_is_told_as_one(stage: Stage) -> None:
    reconciler = await _begun(stage, triggerIf={"unhealthyInRange": "[2-3]"})
    await _machine(stage, "m1", failed_for=400)
    await _reconcile(stage, reconciler)
    _, reason, message = await stage.condition(MACHINE_HEALTH_CHECK, "h", "RemediationAllowed")
    assert reason == "TooManyUnhealthy"
    assert message.endswith("does not fall within the range (total: 1, unhealthy: 1, unhealthyRange: [2-3])")


async def test_machines_that_say_so_are_skipped_or_remediated_at_once(stage: Stage) -> None:
    reconciler = await _begun(stage)
    await _machine(stage, "m1", failed_for=400, annotations={"cluster.x-k8s.io/skip-remediation": ""})
    await _machine(stage, "m2", annotations={"cluster.x-k8s.io/remediate-machine": ""})
    await _reconcile(stage, reconciler)
    assert (await _status(stage))["targets"] == ["m2"]
    assert await stage.conditions(MACHINE, "m1") == {}
    assert await stage.conditions(MACHINE, "m2") == {
        "HealthCheckSucceeded": ("False", "HasRemediateAnnotation"),
        "OwnerRemediated": ("False", "WaitingForRemediation"),
    }


async def test_machines_that_the_selector_does_not_choose_are_left(stage: Stage) -> None:
    reconciler = await _begun(stage)
    await stage.member(MACHINE, "other", labels={"pool": "b"})
    await _reconcile(stage, reconciler)
    assert (await _status(stage))["targets"] == []
    allowed = ("True", "RemediationAllowed", "The selector matches no Machine of the Cluster c")
    assert await stage.condition(MACHINE_HEALTH_CHECK, "h", "RemediationAllowed") == allowed


async def test_a_request_is_made_from_a_template_and_withdrawn_when_the_machine_is_well(stage: Stage) -> None:
    await _install_requests(stage)
    reconciler = await _begun(stage, templateRef=TEMPLATE_REF)
    await _machine(stage, "m1", failed_for=400)
    await _machine(stage, "m2", failed_for=400)
    await _reconcile(stage, reconciler, times=2)
    assert await stage.names(REQUEST) == ["m1", "m2"]
    request = await stage.get(REQUEST, "m1")
    assert request["spec"] == {"strategy": "Reboot"}
    assert [(one["kind"], one["name"]) for one in request["metadata"]["ownerReferences"]] == [("Machine", "m1")]
    assert (await stage.conditions(MACHINE, "m1"))["ExternallyRemediated"] == ("False", "WaitingForRemediation")
    assert "OwnerRemediated" not in await stage.conditions(MACHINE, "m1")
    await _node(stage, "m1", "True", 0)
    await _settle_nodes(stage)
    await _reconcile(stage, reconciler)
    assert await stage.names(REQUEST) == ["m2"]


async def test_requests_and_their_template_are_watched_for_the_checks_that_they_concern(stage: Stage) -> None:
    await _install_requests(stage)
    reconciler = await _begun(stage, templateRef=TEMPLATE_REF)
    await _machine(stage, "m1", failed_for=400)
    await _machine(stage, "m2", failed_for=400)
    await _reconcile(stage, reconciler, times=2)
    assert [watch.kind for watch in stage.watched] == [TEMPLATE, REQUEST]
    for watch in stage.watched:
        assert watch.requests is not None
        assert watch.when is not None
        for manifest in await stage.client.list(watch.kind, "ns"):
            found = Object(watch.kind, msgspec.json.encode(manifest))
            assert set(await watch.requests(found, stage.cache)) == {Request("ns", "h")}
            # What others write to it is not ours to judge.
            assert (watch.when(None, found), watch.when(found, None), watch.when(found, found)) == (True, True, False)


async def test_a_template_that_is_missing_is_waited_for_where_there_can_be_one(stage: Stage) -> None:
    reconciler = await _begun(stage, templateRef=TEMPLATE_REF)
    await _machine(stage, "m", failed_for=400)
    with pytest.raises(OperatorError):
        await _reconcile(stage, reconciler)
    assert stage.watched == []
    await _install_requests(stage, template=False)
    with pytest.raises(OperatorError):
        await _reconcile(stage, reconciler)
    assert [watch.kind for watch in stage.watched] == [TEMPLATE]


async def test_a_template_that_is_missing_is_told_on_each_machine(stage: Stage) -> None:
    await _install_requests(stage, template=False)
    reconciler = await _begun(stage, templateRef=TEMPLATE_REF)
    await _machine(stage, "m1", failed_for=400)
    await _machine(stage, "m2", failed_for=400)
    with pytest.raises(OperatorError, match="there is no remediation template HostRemediationTemplate ns/t"):
        await _reconcile(stage, reconciler)
    for name in ("m1", "m2"):
        message = "Error retrieving remediation template HostRemediationTemplate ns/t"
        assert await stage.condition(MACHINE, name, "ExternallyRemediated") == ("False", "RemediationTemplateNotFound", message)


async def test_a_template_of_an_unknown_kind_is_told(stage: Stage) -> None:
    reconciler = await _begun(stage, templateRef=TEMPLATE_REF)
    await _machine(stage, "m", failed_for=400)
    with pytest.raises(OperatorError):
        await _reconcile(stage, reconciler)
    assert (await stage.conditions(MACHINE, "m"))["ExternallyRemediated"] == ("False", "RemediationTemplateNotFound")


async def test_a_cluster_that_is_missing_is_told(stage: Stage) -> None:
    await _check(stage)
    assert await stage.reconcile(_reconciler(stage), "h") == DONE
    message = 'The Cluster "c" that spec.clusterName names does not exist'
    assert await stage.condition(MACHINE_HEALTH_CHECK, "h", "RemediationAllowed") == ("Unknown", "InternalError", message)


async def test_a_selector_that_means_nothing_is_told(stage: Stage) -> None:
    await _cluster(stage)
    await _check(stage, {"matchExpressions": [{"key": "pool", "operator": "Like", "values": ["a"]}]})
    reconciler = _reconciler(stage)
    await _reconcile(stage, reconciler)
    with pytest.raises(OperatorError):
        await _reconcile(stage, reconciler)
    _, reason, message = await stage.condition(MACHINE_HEALTH_CHECK, "h", "RemediationAllowed")
    assert reason == "InternalError"
    assert '"Like" is not a valid label selector operator' in message


async def test_a_selector_that_means_nothing_holds_up_no_other_health_check(stage: Stage) -> None:
    await _check(stage)
    selector = {"matchExpressions": [{"key": "pool", "operator": "Like", "values": ["a"]}]}
    await stage.create(MACHINE_HEALTH_CHECK, "a-broken-one", {"clusterName": "c", "selector": selector, "checks": CHECKS})
    await _cluster(stage)
    await stage.member(MACHINE, "m", labels={"pool": "a"})
    await stage.settle([MACHINE, MACHINE_HEALTH_CHECK])
    (machine,) = await stage.cache.list(MACHINE)
    assert await of_machine(machine, stage.cache) == [Request("ns", "h")]


async def test_a_workload_cluster_that_cannot_be_reached_is_told_and_nothing_judged(stage: Stage) -> None:
    await _cluster(stage)
    await stage.secret("c-kubeconfig", {"value": b"{"})
    await _check(stage)
    await _machine(stage, "m", failed_for=400)
    reconciler = _reconciler(stage)
    assert (await _reconcile(stage, reconciler, times=2)).requeue_after == RECONNECT_RETRY
    state, reason, _ = await stage.condition(MACHINE_HEALTH_CHECK, "h", "RemediationAllowed")
    assert (state, reason) == ("Unknown", "ConnectionDown")
    assert await stage.conditions(MACHINE, "m") == {}


async def test_before_the_control_plane_is_initialized_nobody_is_asked(stage: Stage) -> None:
    await _cluster(stage, initialized=False)
    await _check(stage)
    await stage.member(MACHINE, "m", labels={"pool": "a"})
    assert await stage.reconcile(_reconciler(stage), "h", times=2) == DONE
    assert (await _status(stage))["currentHealthy"] == 0


async def test_with_its_cluster_a_health_check_is_paused(stage: Stage) -> None:
    await _cluster(stage, paused=True)
    await _check(stage)
    assert await stage.reconcile(_reconciler(stage), "h", times=2) == DONE
    assert await stage.conditions(MACHINE_HEALTH_CHECK, "h") == {"Paused": ("True", "Paused")}


async def test_a_request_that_is_there_already_holds_up_no_other(stage: Stage) -> None:
    await _install_requests(stage)
    await stage.create(REQUEST, "m1", {"strategy": "Replace"})
    reconciler = await _begun(stage, templateRef=TEMPLATE_REF)
    await _machine(stage, "m1", failed_for=400)
    await _machine(stage, "m2", failed_for=400)
    await _reconcile(stage, reconciler)
    assert await stage.names(REQUEST) == ["m1", "m2"]
    assert (await stage.get(REQUEST, "m1"))["spec"] == {"strategy": "Replace"}
    assert (await stage.conditions(MACHINE, "m1"))["ExternallyRemediated"] == ("False", "WaitingForRemediation")


async def test_nodes_whose_conditions_change_are_the_health_checks_events(stage: Stage) -> None:
    await _begun(stage)
    await _machine(stage, "m")
    await stage.settle([MACHINE, MACHINE_HEALTH_CHECK])
    await _settle_nodes(stage)
    stage.enqueued.clear()
    await stage.patch(NODE, "m", {"metadata": {"labels": {"seen": "again"}}})
    await _settle_nodes(stage)
    assert stage.enqueued == []
    await _node(stage, "m", "False", 0)
    await _settle_nodes(stage)
    assert stage.enqueued == [Request("ns", "h")]
