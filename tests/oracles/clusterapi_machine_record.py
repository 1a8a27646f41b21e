"""Records what Cluster API's own Machine controller says of cases; needs Go.

``python tests/oracles/clusterapi_machine_record.py`` copies the module, puts the two files of tests/oracles/clusterapi_machine into the
packages whose functions are not exported, builds, asks, and writes tests/golden/clusterapi/machine: each case with its answer.

A time is written as {{seconds from now}} in cases and answers, so that a row means the same whenever it is asked.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slipway.api.machinery.patches.jsonpatch import merge
from slipway.lab.programs.cache import cache_root
from slipway.lab.programs.gobuild import CLUSTER_API, module_source

VERSION = "v1.14.2"
HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden/clusterapi/machine"

Manifest = dict[str, Any]
Row = tuple[str, Manifest]

CORE = "cluster.x-k8s.io/v1beta2"
INFRA = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "TestMachine", "metadata": {"name": "m", "namespace": "default"}}
CONFIG = {"apiVersion": "bootstrap.cluster.x-k8s.io/v1", "kind": "TestConfig", "metadata": {"name": "m", "namespace": "default"}}
CONTROL_PLANE = {
    "apiVersion": "controlplane.cluster.x-k8s.io/v1",
    "kind": "TestControlPlane",
    "metadata": {"name": "cp", "namespace": "default"},
}
CONTROL_PLANE_REF = {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "TestControlPlane", "name": "cp"}
MACHINE = {
    "apiVersion": CORE,
    "kind": "Machine",
    "metadata": {"name": "m", "namespace": "default", "uid": "m-uid", "labels": {"cluster.x-k8s.io/cluster-name": "c"}},
    "spec": {
        "clusterName": "c",
        "version": "v1.34.0",
        "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "TestConfig", "name": "m"}},
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "TestMachine", "name": "m"},
    },
}
CLUSTER = {
    "apiVersion": CORE,
    "kind": "Cluster",
    "metadata": {"name": "c", "namespace": "default", "uid": "c-uid", "labels": {"stage": "test"}},
    "spec": {},
    "status": {
        "initialization": {"infrastructureProvisioned": True},
        "conditions": [
            {
                "type": "ControlPlaneInitialized",
                "status": "True",
                "reason": "Initialized",
                "message": "",
                "lastTransitionTime": "{{-3600}}",
            }
        ],
    },
}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "spec": {"providerID": "test://m"},
    "status": {"nodeInfo": {"kubeletVersion": "v1.34.0"}},
}
DELETED = {"metadata": {"deletionTimestamp": "{{-60}}", "finalizers": ["machine.cluster.x-k8s.io"]}}
PROVISIONED = {
    "spec": {"providerID": "test://m"},
    "status": {"initialization": {"infrastructureProvisioned": True, "bootstrapDataSecretCreated": True}},
}
RUNNING = merge(dict(PROVISIONED), {"status": {"nodeRef": {"name": "n"}}})


def over(base: Manifest, *changes: Manifest) -> Manifest:
    made: Manifest = json.loads(json.dumps(base))
    for change in changes:
        made = merge(made, json.loads(json.dumps(change)))
    return made


def condition(kind: str, status: str, reason: str = "R", message: str = "", at: str = "{{-600}}") -> Manifest:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def with_conditions(*conditions: Manifest) -> Manifest:
    return {"status": {"conditions": list(conditions)}}


def node_with(ready: str = "True", pressure: str = "False", message: str = "") -> Manifest:
    kinds = (("Ready", ready), ("MemoryPressure", pressure), ("DiskPressure", pressure), ("PIDPressure", pressure))
    return over(NODE, with_conditions(*(condition(kind, status, "R", message) for kind, status in kinds)))


WELL = node_with()


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


def node_cases() -> Iterator[Row]:
    """What a Machine gives to its Node."""
    owner = {"apiVersion": CORE, "kind": "MachineSet", "name": "ms", "uid": "u", "controller": True}
    labels = {
        "node-role.kubernetes.io/worker": "",
        "node-role.kubernetes.io.x/worker": "no",
        "node-restriction.kubernetes.io/a": "1",
        "x.node-restriction.kubernetes.io/a": "2",
        "xnode-restriction.kubernetes.io/a": "no",
        "node.cluster.x-k8s.io/b": "3",
        "a.b.node.cluster.x-k8s.io/b": "4",
        "other.example/c": "no",
        "plain": "no",
    }
    annotations = {"node.cluster.x-k8s.io/note": "5", "x.node.cluster.x-k8s.io": "6", "cluster.x-k8s.io/paused-not": "no"}
    full = {"metadata": {"labels": labels, "annotations": annotations, "ownerReferences": [owner]}}

    def row(name: str, machine: Manifest, node: Manifest, **more: Any) -> Row:
        return name, {"machine": over(MACHINE, RUNNING, machine), "node": over(NODE, node), **more}

    def tainted(*taints: Manifest, **metadata: Any) -> Manifest:
        return {"metadata": metadata, "spec": {"taints": list(taints)}}

    yield row("a Node that is new", {}, {})
    yield row("labels and annotations of the domains", full, {})
    yield row("an interruptible host", {}, {}, infra=over(INFRA, {"status": {"interruptible": True}}))
    yield row(
        "no longer interruptible",
        {},
        {
            "metadata": {
                "labels": {"cluster.x-k8s.io/interruptible": ""},
                "annotations": {"cluster.x-k8s.io/labels-from-machine": "cluster.x-k8s.io/interruptible"},
            }
        },
    )
    given = {
        "labels": {"node.cluster.x-k8s.io/old": "1", "node.cluster.x-k8s.io/b": "wrong", "kubelet": "own"},
        "annotations": {
            "cluster.x-k8s.io/labels-from-machine": "node.cluster.x-k8s.io/b,node.cluster.x-k8s.io/old",
            "cluster.x-k8s.io/annotations-from-machine": "node.cluster.x-k8s.io/gone",
            "node.cluster.x-k8s.io/gone": "x",
            "kubelet": "own",
        },
    }
    yield row("what the Machine has no more is taken away", full, {"metadata": given})
    yield row(
        "what others gave stays",
        {},
        {"metadata": {"labels": {"node.cluster.x-k8s.io/manual": "1"}, "annotations": {"node.cluster.x-k8s.io/manual": "1"}}},
    )
    yield row(
        "an owner that is no more",
        {},
        {"metadata": {"annotations": {"cluster.x-k8s.io/owner-kind": "MachineSet", "cluster.x-k8s.io/owner-name": "ms"}}},
    )
    uninitialized = {"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}
    other = {"key": "a", "value": "b", "effect": "NoExecute"}
    yield row("the taint of a Node that is new goes", {}, tainted(uninitialized, other))
    yield row("that taint with a value goes too", {}, tainted({**uninitialized, "value": "x"}))
    yield row("that key with another effect stays", {}, tainted({**uninitialized, "effect": "NoExecute"}))
    outdated = {"key": "node.cluster.x-k8s.io/outdated-revision", "effect": "PreferNoSchedule"}

    def revision(kind: str, number: str | None) -> Manifest:
        marked = {} if number is None else {"annotations": {"machinedeployment.clusters.x-k8s.io/revision": number}}
        return {"apiVersion": CORE, "kind": kind, "metadata": {"name": "x", **marked}}

    for of_set, of_deployment in (("1", "2"), ("2", "2"), ("3", "2"), (None, "1"), ("1", None), ("x", "1"), ("9", "10")):
        for there in (False, True):
            both = {"machineSet": revision("MachineSet", of_set), "machineDeployment": revision("MachineDeployment", of_deployment)}
            yield row(
                f"revision {of_set} of {of_deployment}, tainted {there}", {}, tainted(*([outdated, other] if there else [other])), **both
            )
    yield row("outdated, and of no MachineDeployment any more", {}, tainted(outdated), machineSet=revision("MachineSet", "1"))

    def taints(*wanted: tuple[str, str, str, str]) -> Manifest:
        fields = ("key", "value", "effect", "propagation")
        return {"spec": {"taints": [{name: value for name, value in zip(fields, each, strict=True) if value} for each in wanted]}}

    always, once = ("t", "1", "NoSchedule", "Always"), ("o", "", "NoExecute", "OnInitialization")
    known = {"cluster.x-k8s.io/labels-from-machine": "", "cluster.x-k8s.io/taints-from-machine": ""}
    for name, machine, node in (
        ("to a Node that is new", taints(always, once), {}),
        ("to a Node that was seen before", taints(always, once), tainted(other, annotations=known)),
        (
            "with another value",
            taints(always),
            tainted(
                {"key": "t", "value": "2", "effect": "NoSchedule"},
                annotations={**known, "cluster.x-k8s.io/taints-from-machine": "t:NoSchedule"},
            ),
        ),
        (
            "that the Machine has no more",
            {},
            tainted(
                {"key": "t", "value": "1", "effect": "NoSchedule"},
                other,
                annotations={**known, "cluster.x-k8s.io/taints-from-machine": "t:NoSchedule"},
            ),
        ),
        (
            "always, then once",
            taints(("t", "1", "NoSchedule", "OnInitialization")),
            tainted(
                {"key": "t", "value": "1", "effect": "NoSchedule"},
                annotations={**known, "cluster.x-k8s.io/taints-from-machine": "t:NoSchedule"},
            ),
        ),
        ("with two effects", taints(always, ("t", "", "NoExecute", "Always")), {}),
        ("in a list that nobody can read", taints(always), tainted(annotations={**known, "cluster.x-k8s.io/taints-from-machine": "t"})),
    ):
        yield row(f"taints of the Machine {name}", machine, node, taints=True)


def allowed_cases() -> Iterator[Row]:
    """Which steps of a deletion are left out."""
    member = over(MACHINE, {"metadata": {"name": "cp-0", "labels": {"cluster.x-k8s.io/control-plane": ""}}})
    gone = over(member, DELETED)
    deleted = over(MACHINE, RUNNING, DELETED)

    def row(name: str, machine: Manifest, **more: Any) -> Row:
        case = {"machine": over(deleted, machine), "cluster": CLUSTER, "machines": [member], "infra": INFRA, **more}
        return name, {key: value for key, value in case.items() if value is not None}

    yield row("a worker of a cluster that stays", {})
    yield row("no control-plane Machines", {}, machines=[])
    yield row("the last control-plane Machine is deleted too", {}, machines=[gone])
    yield row("a control-plane Machine beside one that goes", {}, machines=[gone, over(member, {"metadata": {"name": "cp-1"}})])
    yield row("it is itself the last", {"metadata": {"labels": {"cluster.x-k8s.io/control-plane": ""}}}, machines=[])
    foreign = over(member, {"metadata": {"labels": {"cluster.x-k8s.io/cluster-name": "d"}}})
    yield row("a control-plane Machine of another cluster", {}, machines=[foreign])
    yield row("the Cluster is deleted", {}, cluster=over(CLUSTER, {"metadata": {"deletionTimestamp": "{{-60}}", "finalizers": ["x"]}}))
    with_reference = over(CLUSTER, {"spec": {"controlPlaneRef": CONTROL_PLANE_REF}})
    yield row("a control plane", {}, cluster=with_reference, controlPlane=CONTROL_PLANE)
    yield row("a control plane that is missing", {}, cluster=with_reference)
    yield row("a control plane that is missing, and no Machines of it", {}, cluster=with_reference, machines=[])
    going = over(CONTROL_PLANE, {"metadata": {"deletionTimestamp": "{{-60}}", "finalizers": ["x"]}})
    yield row("a control plane that is deleted", {}, cluster=with_reference, controlPlane=going)
    external = over(CONTROL_PLANE, {"status": {"externalManagedControlPlane": True}})
    yield row("a control plane of somebody else", {}, cluster=with_reference, controlPlane=external, machines=[])
    yield row("no Node", {"status": {"nodeRef": None}})
    yield row("no Node known, but there is one", {"status": {"nodeRef": None}}, node=NODE)
    only_infra = {"status": {"nodeRef": None}, "spec": {"providerID": None}}
    yield row("no provider ID but the host's", only_infra, node=NODE, infra=over(INFRA, {"spec": {"providerID": "test://m"}}))
    yield row("no provider ID at all", only_infra, node=NODE)
    yield row("no drain wanted", {"metadata": {"annotations": {"machine.cluster.x-k8s.io/exclude-node-draining": ""}}})
    yield row(
        "no wait for volumes wanted", {"metadata": {"annotations": {"machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach": ""}}}
    )
    yield row("after the hooks", {"status": {"deletion": {"waitForPreTerminateHookStartTime": "{{-5}}"}}})
    yield row("the host is gone", {}, infra=None)
    yield row("the host goes", {}, infra=over(INFRA, {"metadata": {"deletionTimestamp": "{{-60}}", "finalizers": ["x"]}}))
    for limit in (None, 0, 30, 90):
        for field, start in (
            ("nodeDrainTimeoutSeconds", "nodeDrainStartTime"),
            ("nodeVolumeDetachTimeoutSeconds", "waitForNodeVolumeDetachStartTime"),
        ):
            yield row(
                f"{field} {limit}, begun 60 s ago", {"spec": {"deletion": {field: limit}}, "status": {"deletion": {start: "{{-60}}"}}}
            )
    yield row("a limit, and nothing begun", {"spec": {"deletion": {"nodeDrainTimeoutSeconds": 1, "nodeVolumeDetachTimeoutSeconds": 1}}})


def deletion_cases() -> Iterator[Row]:
    """Whole passes of a deletion."""
    member = over(MACHINE, {"metadata": {"name": "cp-0", "labels": {"cluster.x-k8s.io/control-plane": ""}}})
    deleted = over(MACHINE, RUNNING, DELETED)

    def row(name: str, machine: Manifest, **more: Any) -> Row:
        case = {
            "machine": over(deleted, machine),
            "cluster": CLUSTER,
            "machines": [member],
            "infra": INFRA,
            "config": CONFIG,
            "node": WELL,
            **more,
        }
        return name, {key: value for key, value in case.items() if value is not None}

    def pod(name: str, **changes: Any) -> Manifest:
        base = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "apps"},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
        }
        return over(base, changes)

    def hook(kind: str, *names: str) -> Manifest:
        return {"metadata": {"annotations": {f"{kind}.delete.hook.machine.cluster.x-k8s.io/{name}": "" for name in names}}}

    yield row("hooks before the drain", hook("pre-drain", "b", "a"))
    yield row("an empty Node", {})
    yield row("a Pod that is waited for", {}, pods=[pod("a", metadata={"labels": {"cluster.x-k8s.io/drain": "wait-completed"}})])
    yield row("a Pod that is skipped", {}, pods=[pod("a", metadata={"labels": {"cluster.x-k8s.io/drain": "skip"}})])
    yield row("volumes", {}, node=over(WELL, {"status": {"volumesAttached": [{"name": "kubernetes.io/csi/d^v", "devicePath": ""}]}}))
    yield row(
        "volumes of an unreachable Node",
        {},
        node=over(node_with("Unknown"), {"status": {"volumesAttached": [{"name": "v", "devicePath": ""}]}}),
    )
    yield row(
        "volumes that nobody waits for",
        {"metadata": {"annotations": {"machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach": ""}}},
        node=over(WELL, {"status": {"volumesAttached": [{"name": "v", "devicePath": ""}]}}),
    )
    yield row(
        "a drain whose time is over",
        {"spec": {"deletion": {"nodeDrainTimeoutSeconds": 5}}, "status": {"deletion": {"nodeDrainStartTime": "{{-6}}"}}},
        pods=[pod("a", metadata={"labels": {"cluster.x-k8s.io/drain": "wait-completed"}})],
    )
    yield row("hooks before the end", hook("pre-terminate", "x"))
    yield row(
        "hooks before the end without a Node", over(hook("pre-terminate", "x"), {"status": {"nodeRef": None}, "spec": {"providerID": None}})
    )
    going = over(INFRA, {"metadata": {"deletionTimestamp": "{{-60}}", "finalizers": ["x"]}})
    yield row("the host goes", {}, infra=going)
    yield row("the host is gone", {}, infra=None, infraNotFound=True)
    config_going = over(CONFIG, {"metadata": {"deletionTimestamp": "{{-60}}", "finalizers": ["x"]}})
    yield row("the config goes", {}, infra=None, infraNotFound=True, config=config_going)
    yield row("all is gone", {}, infra=None, infraNotFound=True, config=None, configNotFound=True)
    yield row("all is gone, the Node too", {}, infra=None, infraNotFound=True, config=None, configNotFound=True, node=None)
    no_config = {"spec": {"bootstrap": {"configRef": None, "dataSecretName": "s"}}}
    yield row("a data Secret of the user", no_config, infra=None, infraNotFound=True, config=None)
    deleting_cluster = over(CLUSTER, {"metadata": {"deletionTimestamp": "{{-60}}", "finalizers": ["x"]}})
    yield row("the Cluster is deleted: hooks before the drain do not count", hook("pre-drain", "a"), cluster=deleting_cluster)
    yield row(
        "the Cluster is deleted: the Node stays",
        {},
        cluster=deleting_cluster,
        infra=None,
        infraNotFound=True,
        config=None,
        configNotFound=True,
    )
    yield row("the Cluster is deleted: hooks before the end count", hook("pre-terminate", "a"), cluster=deleting_cluster)


def external_cases() -> Iterator[Row]:
    """What the objects of providers give to a Machine, and who they belong to."""

    def row(name: str, machine: Manifest, infra: Manifest | None, config: Manifest | None, **more: Any) -> Row:
        made = {"infra": over(INFRA, infra) if infra is not None else None, "config": over(CONFIG, config) if config is not None else None}
        case = {"machine": over(MACHINE, machine), "cluster": CLUSTER, **made, **more}
        return name, {key: value for key, value in case.items() if value is not None}

    created = {"status": {"initialization": {"dataSecretCreated": True}, "dataSecretName": "s"}}
    host = {"spec": {"providerID": "test://m"}, "status": {"initialization": {"provisioned": True}}}
    yield row("nothing there", {}, None, None)
    yield row("nothing there while deleting", DELETED, None, None)
    yield row("not ready", {}, {}, {})
    yield row("not ready while deleting", DELETED, {}, {})
    yield row("data", {}, {}, created)
    yield row("data without a name", {}, {}, {"status": {"initialization": {"dataSecretCreated": True}}})
    yield row("data under an empty name", {}, {}, {"status": {"initialization": {"dataSecretCreated": True}, "dataSecretName": ""}})
    yield row("a name without data", {}, {}, {"status": {"dataSecretName": "s"}})
    yield row("data of the Machine's own", {"spec": {"bootstrap": {"dataSecretName": "mine"}}}, {}, {})
    yield row("a host", {}, host, created)
    yield row("a host without a provider ID", {}, {"status": {"initialization": {"provisioned": True}}}, created)
    yield row("a provider ID without a host", {}, {"spec": {"providerID": "test://m"}}, created)
    yield row(
        "a host that is provisioned no more",
        RUNNING,
        {"spec": {"providerID": "test://m"}, "status": {"initialization": {"provisioned": False}}},
        created,
    )
    addresses = [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "h"}]
    yield row("a host with all it can say", {}, over(host, {"status": {"addresses": addresses, "failureDomain": "a"}}), created)
    yield row("a failure domain where it was in v1beta1", {}, over(host, {"spec": {"failureDomain": "a"}}), created)
    older = {"status": {"ready": True, "dataSecretName": "s"}}
    old_host = {"spec": {"providerID": "test://m"}, "status": {"ready": True}}
    yield row("v1beta1: ready", {}, old_host, older, contract="v1beta1")
    yield row("v1beta1: not ready", {}, {"status": {"ready": False}}, {"status": {"ready": False}}, contract="v1beta1")
    yield row("v1beta1: new fields do not count", {}, host, created, contract="v1beta1")
    yield row("v1beta2: old fields do not count", {}, old_host, older)
    yield row(
        "a field of another type",
        {},
        {"status": {"initialization": {"provisioned": "yes"}}},
        {"status": {"initialization": {"dataSecretCreated": "yes"}}},
    )
    yield row("a provider ID that is none", {}, over(host, {"spec": {"providerID": 5}}), created)
    yield row("the host was lost", RUNNING, None, created)
    yield row("the host was lost while deleting", over(RUNNING, DELETED), None, created)
    failed = {"status": {"failureReason": "CreateError", "failureMessage": "no more hosts"}}
    yield row("a failure of the host", {}, over(host, failed), created)
    yield row("a failure of the config", {}, {}, failed)
    going = {"metadata": {"deletionTimestamp": "{{-60}}", "finalizers": ["x"]}}
    yield row("providers' objects go", RUNNING, over(host, going), over(created, going))
    for status, severity in (("True", ""), ("False", "Error"), ("False", "Info"), ("Unknown", "")):
        ready = {"type": "Ready", "status": status, "severity": severity, "reason": "R", "message": "text", "lastTransitionTime": "{{-9}}"}
        below = {"status": {"deprecated": {"v1beta1": {"conditions": [ready]}}}}
        yield row(f"Ready {status} {severity} of v1beta1", {}, over(host, below), over(created, below))
        yield row(
            f"Ready {status} {severity} in status.conditions", {}, {"status": {"conditions": [ready]}}, {"status": {"conditions": [ready]}}
        )
    mine = {"apiVersion": CORE, "kind": "Machine", "name": "m", "uid": "m-uid", "controller": True, "blockOwnerDeletion": True}
    of_set = {"apiVersion": CORE, "kind": "MachineSet", "name": "ms", "uid": "u"}
    of_plane = {"apiVersion": "controlplane.cluster.x-k8s.io/v1", "kind": "TestControlPlane", "name": "cp", "uid": "u"}
    labelled = {"labels": {"cluster.x-k8s.io/cluster-name": "c", "own": "x"}}
    with_reference = over(CLUSTER, {"spec": {"controlPlaneRef": CONTROL_PLANE_REF}})
    member = {"metadata": {"labels": {"cluster.x-k8s.io/control-plane": ""}}}
    for name, references, more in (
        ("nobody's", [], {}),
        ("the Machine's", [mine], {}),
        ("a MachineSet's", [of_set], {}),
        ("a MachineSet's and the Machine's", [of_set, mine], {}),
        ("the Machine's of another version", [{**mine, "apiVersion": "cluster.x-k8s.io/v1beta1"}], {}),
        ("an earlier Machine's", [{**mine, "uid": "old"}], {}),
        ("the Machine's, not as controller", [{**mine, "controller": None}], {}),
        ("somebody else's", [{**of_set, "kind": "Other", "controller": True}], {}),
        ("a control plane's, of a worker", [of_plane], {"cluster": with_reference}),
    ):
        owned = {"metadata": {**labelled, "ownerReferences": references}}
        yield row(f"it is {name}", {}, owned, owned, **more)
    owned = {"metadata": {**labelled, "ownerReferences": [of_plane]}}
    yield row("it is a control plane's, of its Machine", member, owned, owned, cluster=with_reference)
    yield row(
        "it has the label of another cluster",
        {},
        {"metadata": {"labels": {"cluster.x-k8s.io/cluster-name": "d"}, "ownerReferences": [mine]}},
        {},
    )
    expiry = {"annotations": {"machine.cluster.x-k8s.io/certificates-expiry": "2030-01-02T03:04:05Z"}}
    yield row("certificates of a worker", {"metadata": expiry}, {}, {})
    yield row("certificates by the Machine", over(member, {"metadata": expiry}), {}, {})
    yield row("certificates by the config", member, {}, {"metadata": expiry})
    other = {"annotations": {"machine.cluster.x-k8s.io/certificates-expiry": "2031-01-02T03:04:05Z"}}
    yield row("certificates by both", over(member, {"metadata": expiry}), {}, {"metadata": other})
    yield row("certificates by nobody any more", over(member, {"status": {"certificatesExpiryDate": "2030-01-02T03:04:05Z"}}), {}, {})
    yield row(
        "certificates at no time",
        over(member, {"metadata": {"annotations": {"machine.cluster.x-k8s.io/certificates-expiry": "soon"}}}),
        {},
        {},
    )


def volume_cases() -> Iterator[Row]:
    """Which volumes are waited for."""
    machine = over(MACHINE, RUNNING, DELETED, {"status": {"deletion": {"waitForNodeVolumeDetachStartTime": "{{-60}}"}}})

    def volume(name: str, handle: str = "", claim: str = "", kind: str = "PersistentVolumeClaim") -> Manifest:
        spec: Manifest = {}
        if handle:
            spec["csi"] = {"driver": "d", "volumeHandle": handle}
        if claim:
            spec["claimRef"] = {"kind": kind, "namespace": "apps", "name": claim}
        return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}

    def attachment(name: str, volume: str | None, *, node: str = "n", attached: bool = True) -> Manifest:
        source = {"persistentVolumeName": volume} if volume else {}
        return {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": name},
            "spec": {"attacher": "d", "nodeName": node, "source": source},
            "status": {"attached": attached},
        }

    def row(name: str, on_node: list[str], **more: Any) -> Row:
        node = over(WELL, {"status": {"volumesAttached": [{"name": each, "devicePath": ""} for each in on_node]}})
        return name, {"machine": machine, "cluster": CLUSTER, "node": node, **more}

    def user(name: str, claim: str, **labels: str) -> Manifest:
        spec = {
            "nodeName": "n",
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}],
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "apps", "labels": labels}, "spec": spec}

    skip = {"cluster.x-k8s.io/drain": "skip"}
    csi = "kubernetes.io/csi/d^h"
    yield row("none", [])
    yield row("a claim, by the Node", [csi], volumes=[volume("pv", "h", "data")])
    yield row("a claim, by an attachment", [], volumes=[volume("pv", "", "data")], attachments=[attachment("va", "pv")])
    yield row("a claim, by both", [csi], volumes=[volume("pv", "h", "data")], attachments=[attachment("va", "pv")])
    yield row("a claim of a Pod that is skipped", [csi], volumes=[volume("pv", "h", "data")], pods=[user("a", "data", **skip)])
    yield row("a claim of a Pod that is drained", [csi], volumes=[volume("pv", "h", "data")], pods=[user("a", "data")])
    yield row("a volume without a claim", [csi], volumes=[volume("pv", "h")])
    yield row("a volume claimed by something else", [csi], volumes=[volume("pv", "h", "x", "Other")])
    yield row("a volume that nobody knows", [csi, "other"], volumes=[volume("pv", "x", "data")])
    yield row("an attachment of a volume that nobody knows", [], attachments=[attachment("va", "gone")])
    yield row("an attachment without a volume", [], attachments=[attachment("va", None)])
    yield row("an attachment of another Node", [], volumes=[volume("pv", "", "data")], attachments=[attachment("va", "pv", node="o")])
    yield row(
        "an attachment that is none yet", [], volumes=[volume("pv", "", "data")], attachments=[attachment("va", "pv", attached=False)]
    )
    yield row(
        "many claims", [f"kubernetes.io/csi/d^h{n}" for n in range(7)], volumes=[volume(f"pv{n}", f"h{n}", f"data{n}") for n in range(7)]
    )
    yield row(
        "everything at once",
        [csi, "x"],
        volumes=[volume("pv", "h"), volume("pv2", "", "data")],
        attachments=[attachment("a", "pv2"), attachment("b", "gone")],
    )


def drain_cases() -> Iterator[Row]:
    """What is done with Pods, and what is said of it."""
    owner = {"apiVersion": "apps/v1", "name": "o", "uid": "u", "controller": True}

    def pod(
        name: str, *, of: str = "ReplicaSet", namespace: str = "apps", phase: str = "Running", labels: Manifest | None = None, **more: Any
    ) -> Manifest:
        references = [{**owner, "kind": of}] if of else []
        metadata = {"name": name, "namespace": namespace, "labels": labels or {}, "ownerReferences": references, **more.pop("metadata", {})}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": "n", **more}, "status": {"phase": phase}}

    def deleted(seconds: int) -> Manifest:
        return {"deletionTimestamp": f"{{{{{seconds}}}}}", "finalizers": ["x"]}

    def rule(
        name: str, behavior: str, order: int | None = None, *, machines: list[Manifest] | None = None, pods: list[Manifest] | None = None
    ) -> Manifest:
        drain: Manifest = {"behavior": behavior, **({} if order is None else {"order": order})}
        spec = {"drain": drain, **({"machines": machines} if machines else {}), **({"pods": pods} if pods else {})}
        return {"apiVersion": CORE, "kind": "MachineDrainRule", "metadata": {"name": name, "namespace": "default"}, "spec": spec}

    def by(labels: Manifest | None = None, *expressions: tuple[str, str, list[str]]) -> Manifest:
        terms = [{"key": key, "operator": operator, **({"values": values} if values else {})} for key, operator, values in expressions]
        return {**({"matchLabels": labels} if labels else {}), **({"matchExpressions": terms} if terms else {})}

    spaces = [
        {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name, "tier": name}}}
        for name in ("apps", "db", "kube-system")
    ]
    sets = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "o", "namespace": "kube-system"}}]

    def row(name: str, pods: list[Manifest], **more: Any) -> Row:
        return name, {
            "machine": over(MACHINE, {"metadata": {"labels": {"pool": "a"}}}),
            "cluster": CLUSTER,
            "pods": pods,
            "namespaces": spaces,
            "daemonSets": sets,
            "started": "{{-60}}",
            **more,
        }

    yield row("no Pods", [])
    for of in ("ReplicaSet", "", "StatefulSet"):
        for phase in ("Running", "Succeeded"):
            yield row(f"a Pod of {of or 'nobody'}, {phase}", [pod("a", of=of, phase=phase)])
    yield row(
        "local storage", [pod("a", volumes=[{"name": "v", "emptyDir": {}}]), pod("b", of="", volumes=[{"name": "v", "emptyDir": {}}])]
    )
    yield row("local storage of one that has finished", [pod("a", phase="Failed", volumes=[{"name": "v", "emptyDir": {}}])])
    yield row("a Pod of a DaemonSet", [pod("a", of="DaemonSet", namespace="kube-system")])
    yield row("a finished Pod of a DaemonSet", [pod("a", of="DaemonSet", namespace="kube-system", phase="Failed")])
    yield row("a Pod of a DaemonSet that is gone", [pod("a", of="DaemonSet", namespace="apps")])
    mirror = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    yield row("a static Pod", [pod("a", of="Node", metadata=mirror)])
    for label in ("skip", "Skip", "SKIP", "wait-completed", "WaitCompleted", "wait-Completed", "wait--completed", "other", ""):
        yield row(f"the label of a Pod: {label!r}", [pod("a", labels={"cluster.x-k8s.io/drain": label})])
    yield row("a static Pod with the label", [pod("a", metadata=mirror, labels={"cluster.x-k8s.io/drain": "wait-completed"})])
    for seconds in (-1, -2, -3, 30):
        for unreachable in (False, True):
            yield row(
                f"deleted {seconds} s from now, unreachable {unreachable}", [pod("a", metadata=deleted(seconds))], unreachable=unreachable
            )
    yield row("a Pod of a namespace that is not there", [pod("a", namespace="gone"), pod("b")])
    a, b = pod("a", labels={"app": "a"}), pod("b", labels={"app": "b"}, namespace="db")
    rules = {
        "none for it": [rule("r", "Skip", pods=[{"selector": by({"app": "x"})}])],
        "for all": [rule("r", "Skip")],
        "by label": [rule("r", "Skip", pods=[{"selector": by({"app": "a"})}])],
        "by namespace": [rule("r", "WaitCompleted", pods=[{"namespaceSelector": by({"tier": "db"})}])],
        "by both": [rule("r", "Skip", pods=[{"selector": by({"app": "a"}), "namespaceSelector": by({"tier": "db"})}])],
        "by either": [rule("r", "Skip", pods=[{"selector": by({"app": "a"})}, {"namespaceSelector": by({"tier": "db"})}])],
        "by an empty selector": [rule("r", "Skip", pods=[{"selector": {}}])],
        "In": [rule("r", "Skip", pods=[{"selector": by(None, ("app", "In", ["a", "c"]))}])],
        "NotIn": [rule("r", "Skip", pods=[{"selector": by(None, ("app", "NotIn", ["a", "c"]))}])],
        "Exists": [rule("r", "Skip", pods=[{"selector": by(None, ("app", "Exists", []))}])],
        "DoesNotExist": [rule("r", "Skip", pods=[{"selector": by(None, ("app", "DoesNotExist", []))}])],
        "labels and expressions": [rule("r", "Skip", pods=[{"selector": by({"app": "a"}, ("app", "NotIn", ["a"]))}])],
        "for this Machine": [rule("r", "Skip", machines=[{"selector": by({"pool": "a"})}])],
        "for another Machine": [rule("r", "Skip", machines=[{"selector": by({"pool": "b"})}])],
        "for this Cluster": [rule("r", "Skip", machines=[{"clusterSelector": by({"stage": "test"})}])],
        "for another Cluster": [rule("r", "Skip", machines=[{"selector": by({"pool": "a"}), "clusterSelector": by({"stage": "x"})}])],
        "for one of two": [rule("r", "Skip", machines=[{"selector": by({"pool": "b"})}, {"clusterSelector": by({"stage": "test"})}])],
        "the first by name": [rule("b", "Skip"), rule("a", "WaitCompleted", pods=[{"selector": by({"app": "a"})}])],
        "in an order": [
            rule("a", "Drain", 10, pods=[{"selector": by({"app": "a"})}]),
            rule("b", "Drain", 5, pods=[{"selector": by({"app": "b"})}]),
        ],
        "before all others": [rule("a", "Drain", -5, pods=[{"selector": by({"app": "b"})}])],
        "after a Pod that is waited for": [
            rule("a", "Drain", 5, pods=[{"selector": by({"app": "a"})}]),
            rule("b", "WaitCompleted", pods=[{"selector": by({"app": "b"})}]),
        ],
        "while a Pod is waited for later": [
            rule("a", "Drain", -5, pods=[{"selector": by({"app": "a"})}]),
            rule("b", "WaitCompleted", pods=[{"selector": by({"app": "b"})}]),
        ],
    }
    for name, given in rules.items():
        yield row(f"a rule: {name}", [a, b], rules=given)
    yield row("a rule of another namespace", [a], rules=[over(rule("r", "Skip"), {"metadata": {"namespace": "other"}})])
    yield row(
        "a rule for Pods of later ones that go already",
        [pod("a", metadata=deleted(30)), pod("b", labels={"app": "b"})],
        rules=[rule("r", "Drain", 5, pods=[{"selector": by({"app": "b"})}])],
    )
    yield row("the label counts before a rule", [pod("a", labels={"cluster.x-k8s.io/drain": "skip"})], rules=[rule("r", "WaitCompleted")])
    yield row("a rule for a DaemonSet's Pod", [pod("a", of="DaemonSet", namespace="kube-system")], rules=[rule("r", "Drain", 5)])
    invalid = [{"selector": by(None, ("app", "Contains", ["a"]))}]
    yield row("an invalid rule", [a, b], rules=[rule("r", "Skip", pods=invalid)])
    budget = {
        "code": 429,
        "message": "Cannot evict pod as it would violate the pod's disruption budget.",
        "causes": ["The disruption budget p needs 1 healthy pods and has 1 currently"],
    }
    for name, refusal in (
        ("by a budget", budget),
        ("by too many requests", {"code": 429, "message": "slow down"}),
        ("as it is gone", {"code": 404, "message": 'pods "a" not found'}),
        ("as its namespace goes", {"code": 403, "message": "forbidden", "causes": ["namespace is being terminated"]}),
        ("as it is forbidden", {"code": 403, "message": "may not"}),
        (
            "by a mistake",
            {"code": 500, "message": "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."},
        ),
    ):
        yield row(f"refused {name}", [a, b], refusals={"apps/a": refusal})
    many = [pod(f"p{n}") for n in range(9)]
    yield row("many", many)
    yield row("many refused for one reason", many, refusals={f"apps/p{n}": budget for n in range(5)})
    yield row("many refused for many reasons", many, refusals={f"apps/p{n}": {"code": 500, "message": f"reason {n}"} for n in range(8)})
    yield row("many refused for six reasons", many, refusals={f"apps/p{n}": {"code": 500, "message": f"reason {n}"} for n in range(6)})
    yield row(
        "later and waited for",
        [pod("a"), pod("b", labels={"app": "b"}), pod("c", labels={"app": "c"})],
        rules=[
            rule("b", "Drain", 5, pods=[{"selector": by({"app": "b"})}]),
            rule("c", "WaitCompleted", pods=[{"selector": by({"app": "c"})}]),
        ],
    )


SUBJECTS = {
    "status": status_cases,
    "node": node_cases,
    "allowed": allowed_cases,
    "deletion": deletion_cases,
    "external": external_cases,
    "volumes": volume_cases,
    "drain": drain_cases,
}


def oracle() -> Path:
    """The oracle, built inside a copy of the module: its functions are not exported."""
    if given := os.environ.get("SLIPWAY_MACHINE_ORACLE"):
        return Path(given)
    work = cache_root() / "build" / VERSION / "clusterapi_machine"
    shutil.copytree(module_source(CLUSTER_API, VERSION), work, dirs_exist_ok=True)
    shutil.copytree(module_source(f"{CLUSTER_API}/api", VERSION), work / "api", dirs_exist_ok=True)
    subprocess.run(["chmod", "-R", "u+w", str(work)], check=True)
    machine = work / "core/reconcilers/machine"
    for name, target in (("shim_machine.go", machine), ("shim_drain.go", machine / "drain"), ("main.go", work / "zz_oracle")):
        target.mkdir(exist_ok=True)
        shutil.copyfile(HERE / "clusterapi_machine" / name, target / ("main.go" if name == "main.go" else "zz_oracle.go"))
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": f"-mod=mod {os.environ.get('GOFLAGS', '')}".strip()}
    subprocess.run(["go", "build", "-o", "oracle", "./zz_oracle"], cwd=work, env=environment, check=True)
    return work / "oracle"


def main() -> None:
    program = oracle()
    for subject, cases in SUBJECTS.items():
        rows = list(cases())
        names = [name for name, _ in rows]
        assert len(set(names)) == len(names), f"two cases of {subject} have one name"
        asked = [{"name": name, "subject": subject, "case": case} for name, case in rows]
        done = subprocess.run([str(program)], input=json.dumps(asked), capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{subject}: {done.stderr[:2000]}")
        answers = json.loads(done.stdout)
        lines = [json.dumps({"name": name, "case": case, "answer": answer}) for (name, case), answer in zip(rows, answers, strict=True)]
        (GOLDEN / f"{subject}.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
        print(f"{subject}: {len(lines)} rows")


if __name__ == "__main__":
    main()
