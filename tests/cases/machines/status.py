"""Cases of what a Machine's status says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cases.machines.base import (
    CLUSTER,
    CONFIG,
    CORE,
    DELETED,
    INFRA,
    MACHINE,
    NODE,
    PROVISIONED,
    RUNNING,
    WELL,
    Manifest,
    Row,
    condition,
    node_with,
    over,
    with_conditions,
)


def status_cases() -> Iterator[Row]:
    """Conditions and the phase."""
    here = {"config": CONFIG, "infra": INFRA, "node": WELL, "lastProbe": "{{-5}}", "cluster": CLUSTER}

    def row(name: str, machine: Manifest, **changes: Any) -> Row:
        case = {**here, "machine": over(MACHINE, machine), **changes}
        return name, {key: value for key, value in case.items() if value is not None}

    yield row("new: nothing there yet", {}, config=None, configNotFound=True, infra=None, infraNotFound=True, node=None)
    yield row("waiting for the data and for the host", {}, node=None)
    yield row("data there", {"status": {"initialization": {"bootstrapDataSecretCreated": True}}}, node=None)
    yield row("host there, no Node", PROVISIONED, node=None)
    yield row("running", RUNNING)
    yield row("a data Secret of the user", over(RUNNING, {"spec": {"bootstrap": {"configRef": None, "dataSecretName": "s"}}}), config=None)
    yield row("config could not be read", RUNNING, config=None)
    yield row("infrastructure could not be read", RUNNING, infra=None)
    yield row("infrastructure lost", RUNNING, infra=None, infraNotFound=True)
    yield row("config lost", RUNNING, config=None, configNotFound=True)
    yield row("config lost while deleting", over(RUNNING, DELETED), config=None, configNotFound=True, deletingReason="Deleting")
    yield row("never had a config, deleting", DELETED, config=None, configNotFound=True, infra=None, infraNotFound=True, node=None)
    yield row("infrastructure gone while deleting", over(RUNNING, DELETED), infra=None, infraNotFound=True, deletingReason="DeletingNode")
    for status in ("True", "False", "Unknown"):
        ready = with_conditions(condition("Ready", status, "Because", "some text"))
        yield row(f"providers say Ready {status}", RUNNING, infra=over(INFRA, ready), config=over(CONFIG, ready))
        older = {"status": {"conditions": [{"type": "Ready", "status": status, "lastTransitionTime": "{{-9}}"}]}}
        yield row(f"providers say Ready {status} as v1beta1 does", RUNNING, infra=over(INFRA, older), config=over(CONFIG, older))
    newer = {"status": {"v1beta2": {"conditions": [condition("Ready", "False", "Newer", "newer")]}}}
    yield row("conditions under v1beta2", RUNNING, infra=over(INFRA, with_conditions(condition("Ready", "True")), newer))
    yield row("a condition without status", RUNNING, infra=over(INFRA, {"status": {"conditions": [{"type": "Ready"}]}}))
    yield row("a condition without type", RUNNING, config=over(CONFIG, {"status": {"conditions": [{"status": "True"}]}}))
    yield row(
        "a condition of an unknown status", RUNNING, infra=over(INFRA, {"status": {"conditions": [{"type": "A", "status": "Maybe"}]}})
    )
    yield row("another condition is not mirrored", RUNNING, infra=over(INFRA, with_conditions(condition("Healthy", "False"))))
    for state in ("True", "False", "Unknown"):
        for pressure in ("False", "True", "Unknown"):
            yield row(f"Node Ready {state}, pressure {pressure}", RUNNING, node=node_with(state, pressure))
    yield row("a Node whose kubelet is gone", RUNNING, node=node_with("Unknown", "Unknown", "Kubelet stopped posting node status."))
    yield row("a Node that is not ready yet, with a text", RUNNING, node=node_with("False", "False", "no network"))
    yield row("a Node without conditions", RUNNING, node=NODE)
    yield row("a Node with one condition", RUNNING, node=over(NODE, with_conditions(condition("Ready", "True"))))
    yield row("a Node with one bad condition and none else", RUNNING, node=over(NODE, with_conditions(condition("DiskPressure", "True"))))
    yield row("the Node was deleted", RUNNING, node=None)
    yield row("the Node is gone while deleting", over(RUNNING, DELETED), node=None, deletingReason="DeletingNode")
    yield row("no Node ever, deleting", over(PROVISIONED, DELETED), node=None, deletingReason="WaitingForInfrastructureDeletion")
    no_infrastructure = over(CLUSTER, {"status": {"initialization": None}})
    yield row("the Cluster has no infrastructure", RUNNING, cluster=no_infrastructure)
    yield row("the Cluster has no control plane", RUNNING, cluster=over(CLUSTER, {"status": {"conditions": None}}))
    not_yet = with_conditions(condition("ControlPlaneInitialized", "False"))
    yield row("the control plane is not initialized", RUNNING, cluster=over(CLUSTER, not_yet))
    told = with_conditions(condition("NodeReady", "True", "NodeReady"), condition("NodeHealthy", "True", "NodeHealthy"))
    for name, machine in (("nothing told", RUNNING), ("told before", over(RUNNING, told))):
        yield row(f"never connected, {name}", machine, lastProbe=None, probeFailures=4, nodeError="not connected", node=None)
        yield row(f"never connected for long, {name}", machine, lastProbe=None, probeFailures=5, nodeError="not connected", node=None)
        yield row(f"not connected, {name}", machine, lastProbe="{{-60}}", nodeError="not connected", node=None)
        yield row(f"not connected for long, {name}", machine, lastProbe="{{-301}}", nodeError="not connected", node=None)
        yield row(f"an old probe with a Node, {name}", machine, lastProbe="{{-301}}")
    fresh = over(CLUSTER, with_conditions(condition("ControlPlaneInitialized", "True", at="{{-60}}")))
    yield row(
        "no probe, but a control plane that is new",
        RUNNING,
        lastProbe=None,
        probeFailures=6,
        cluster=fresh,
        node=None,
        nodeError="not connected",
    )
    updating = {"metadata": {"annotations": {"in-place-updates.internal.cluster.x-k8s.io/update-in-progress": ""}}}
    yield row("an update in place", over(RUNNING, updating))
    pending = {"metadata": {"annotations": {"runtime.cluster.x-k8s.io/pending-hooks": "AfterX,UpdateMachine"}}}
    yield row("an update in place that ends", over(RUNNING, pending))
    yield from ((f"phase: {name}", case) for name, case in phases(row))
    yield from summaries(row)
    yield from deletions_told(row)
    yield from up_to_date(row)


def phases(row: Any) -> Iterator[Row]:
    for old in ("Pending", "Provisioning", "Running", "Deleting", "Failed"):
        yield row(f"was {old}, nothing there", {"status": {"phase": old}}, node=None)
    yield row("was Running and is", over(RUNNING, {"status": {"phase": "Running"}}))
    yield row("a host that was deleted from the Machine", {"status": {"nodeRef": {"name": "n"}}}, node=None)


def summaries(row: Any) -> Iterator[Row]:
    """Ready and Available."""
    checked = condition("HealthCheckSucceeded", "False", "UnhealthyNode", "Node is sick")
    yield row("a health check that failed", over(RUNNING, with_conditions(checked)))
    yield row("a health check that is well", over(RUNNING, with_conditions(condition("HealthCheckSucceeded", "True"))))
    gates = {"spec": {"readinessGates": [{"conditionType": "A"}, {"conditionType": "B", "polarity": "Negative"}]}}
    yield row("gates that nobody reports", over(RUNNING, gates))
    for first, second in (("True", "False"), ("False", "False"), ("True", "True"), ("Unknown", "Unknown")):
        both = with_conditions(condition("A", first, "ReasonA"), condition("B", second, "ReasonB", "text of B"))
        yield row(f"gates A {first}, B {second}", over(RUNNING, gates, both))
    kinds = ("APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy", "EtcdPodHealthy", "EtcdMemberHealthy")
    control_plane = {"spec": {"readinessGates": [{"conditionType": kind} for kind in kinds]}}
    for name, texts in (("all the same", "pppp"), ("one other", "ppqp"), ("one only", "p---"), ("two the same", "p-p-")):
        found = [
            condition(kind, "True" if text == "-" else "False", "R", "" if text == "-" else f"Pod {text}\n* item")
            for kind, text in zip(kinds, [*texts, "-"], strict=True)
        ]
        yield row(f"components of a control plane: {name}", over(RUNNING, control_plane, with_conditions(*found)))
    ready = condition("Ready", "True", "Ready", "", "{{-20}}")
    for seconds in (0, 10, 30):
        yield row(f"ready for 20 s, {seconds} wanted", over(RUNNING, {"spec": {"minReadySeconds": seconds}}, with_conditions(ready)))
    yield row("ready from now on, none wanted", RUNNING)
    yield row("ready from now on, 10 s wanted", over(RUNNING, {"spec": {"minReadySeconds": 10}}))
    same = {"spec": {"readinessGates": [{"conditionType": "NodeHealthy"}, {"conditionType": "A"}]}}
    yield row("a gate that counts anyway", over(RUNNING, same), node=node_with("False"))


def deletions_told(row: Any) -> Iterator[Row]:
    """How Ready tells of a deletion."""
    long = {"metadata": {"deletionTimestamp": "{{-1000}}"}}
    yield row("deleting for a minute", over(RUNNING, DELETED), deletingReason="DrainingNode", deletingMessage="Drain not completed yet")
    for began in (-60, -400):
        drain = {"status": {"deletion": {"nodeDrainStartTime": f"{{{{{began}}}}}"}}}
        for message in (
            "cannot evict pod as it would violate the pod's disruption budget.",
            "deletionTimestamp set, but still not removed from the Node\n* Pod a/b: failed to evict Pod, x",
            "* Pod a/b: waiting for completion",
            "nothing known",
        ):
            machine = over(RUNNING, DELETED, long, drain)
            yield row(f"draining {began}: {message[:20]}", machine, deletingReason="DrainingNode", deletingMessage=message)
    yield row(
        "long deleting, at the infrastructure",
        over(RUNNING, DELETED, long, {"status": {"deletion": {}}}),
        deletingReason="WaitingForInfrastructureDeletion",
    )
    yield row(
        "deleting with sick providers",
        over(RUNNING, DELETED),
        infra=over(INFRA, with_conditions(condition("Ready", "False", "Off", "powered off"))),
        deletingReason="DrainingNode",
    )


def up_to_date(row: Any) -> Iterator[Row]:
    spec = MACHINE["spec"]
    machine_set = {
        "apiVersion": CORE,
        "kind": "MachineSet",
        "metadata": {"name": "ms", "creationTimestamp": "{{-900}}"},
        "spec": {"template": {"spec": spec}},
    }
    deployment = {"apiVersion": CORE, "kind": "MachineDeployment", "metadata": {"name": "md"}, "spec": {"template": {"spec": spec}}}
    info = {"status": {"nodeInfo": {"kubeletVersion": "v1.34.0"}}}
    machine = over(RUNNING, info)

    def wanted(**change: Any) -> Manifest:
        return over(deployment, {"spec": {"template": {"spec": change}}})

    yield row("as the MachineDeployment wants it", machine, machineSet=machine_set, machineDeployment=deployment)
    yield row("of a MachineSet alone", machine, machineSet=machine_set)
    yield row("another version", machine, machineSet=machine_set, machineDeployment=wanted(version="v1.35.0"))
    yield row("another failure domain", machine, machineSet=machine_set, machineDeployment=wanted(failureDomain="b"))
    yield row("another infrastructure", machine, machineSet=machine_set, machineDeployment=wanted(infrastructureRef={"name": "other"}))
    yield row("another bootstrap", machine, machineSet=machine_set, machineDeployment=wanted(bootstrap={"configRef": {"name": "other"}}))
    yield row(
        "all others",
        machine,
        machineSet=machine_set,
        machineDeployment=wanted(
            version="v1.35.0",
            failureDomain="b",
            infrastructureRef={"kind": "XTemplate", "name": "o"},
            bootstrap={"configRef": {"name": "o"}},
        ),
    )
    secret = {"spec": {"template": {"spec": {"bootstrap": {"configRef": None, "dataSecretName": "a"}}}}}
    yield row(
        "another Secret",
        machine,
        machineSet=over(machine_set, secret),
        machineDeployment=wanted(bootstrap={"configRef": None, "dataSecretName": "b"}),
    )
    yield row("a Secret no more", machine, machineSet=over(machine_set, secret), machineDeployment=deployment)
    in_place = wanted(
        minReadySeconds=5, taints=[{"key": "a", "effect": "NoSchedule", "propagation": "Always"}], deletion={"nodeDrainTimeoutSeconds": 5}
    )
    yield row("what changes in place", machine, machineSet=machine_set, machineDeployment=in_place)
    for name, at in (("before the MachineSet was made", "{{-1000}}"), ("after it was made", "{{-100}}"), ("in the future", "{{100}}")):
        yield row(
            f"rollout after: {name}",
            machine,
            machineSet=machine_set,
            machineDeployment=over(deployment, {"spec": {"rollout": {"after": at}}}),
        )
    older = over(machine, {"status": {"nodeInfo": {"kubeletVersion": "v1.33.0"}}})
    yield row("a kubelet of another version", older, machineSet=machine_set, machineDeployment=deployment)
    updating = {"metadata": {"annotations": {"in-place-updates.internal.cluster.x-k8s.io/update-in-progress": ""}}}
    yield row("updated in place", over(machine, updating), machineSet=machine_set, machineDeployment=deployment)
