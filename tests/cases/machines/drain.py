"""Cases of what a drain does with Pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cases.machines.base import CLUSTER, CORE, MACHINE, Manifest, Row, over


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
