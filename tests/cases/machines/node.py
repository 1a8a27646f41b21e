"""Cases of what a Machine gives to its Node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cases.machines.base import CORE, INFRA, MACHINE, NODE, RUNNING, Manifest, Row, over


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
