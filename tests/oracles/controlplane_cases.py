"""Control planes to ask Cluster API's code about: states that rollouts, failures and people bring about, and random ones.

Ages are in seconds; what is left out is as usual.  ``tests/fleet/controlplane/planes.py`` makes our values of them.
"""

from __future__ import annotations

import random
from typing import Any

Case = dict[str, Any]

CHECKS = ("APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy", "EtcdPodHealthy", "EtcdMemberHealthy")
LABELS = "NodeKubeadmLabelsAndTaintsSet"
VERSION = "v1.35.4"


def machine(name: str, age: int = 7200, **changes: Any) -> Case:
    """A machine that is well; ``ill`` are checks that are not."""
    ill = changes.pop("ill", ())
    status = changes.pop("status", "False")
    checks = {check: [status, "it is down"] if check in ill else ["True", ""] for check in (*CHECKS, LABELS)}
    made = {"name": name, "age": age, "version": VERSION, "node": f"node-{name}", "nodeAge": age, "checks": checks, "since": 60}
    return {**made, **changes}


def starting(name: str, age: int = 30, **changes: Any) -> Case:
    return machine(name, age, node="", checks={}, **changes)


def sick(name: str, age: int = 7200, **changes: Any) -> Case:
    return machine(name, age, **{"ill": CHECKS, "unhealthy": True, "ours": True, **changes})


def members(machines: list[Case], **changes: Any) -> list[Case]:
    made = [{"id": number, "name": one["node"]} for number, one in enumerate(machines, 1) if one["node"]]
    if made:
        made[changes.get("leader", 0)]["leader"] = True
    return made


def plane(*machines: Case, **changes: Any) -> Case:
    all_machines = list(machines)
    usual = {
        "replicas": len(all_machines),
        "version": VERSION,
        "machines": all_machines,
        "members": members(all_machines),
        "membersHealthy": not any(one["checks"].get("EtcdMemberHealthy", ["False"])[0] != "True" for one in all_machines),
        "membersMatch": True,
        "initializedAgo": 7000,
    }
    return {**usual, **changes}


def three(**changes: Any) -> Case:
    return plane(machine("a", 900), machine("b", 800), machine("c", 700), **changes)


def written() -> dict[str, Case]:
    """The states by what they are about."""
    a, b, c, d, e = (machine(name, 900 - 100 * place) for place, name in enumerate("abcde"))
    old = {"outdated": True, "version": "v1.34.10"}
    oa, ob, oc = {**a, **old}, {**b, **old}, {**c, **old}
    going = {"deletedAgo": 60}
    held = {**going, "waitsForHook": True}
    gone = {"machine": "z", "ago": 40, "retries": 0}

    def stray(*extra: Case, **changes: Any) -> Case:
        return three(members=[*members([a, b, c]), *extra], membersHealthy=False, membersMatch=False, **changes)

    ghost = {"id": 9, "name": "node-ghost"}
    unnamed = {"id": 8, "name": ""}
    return {
        "nothing at all": plane(replicas=3, uninitialized=True),
        "the first in a failure domain": plane(replicas=3, uninitialized=True, domains=["x", "y"]),
        "only the first, well": plane(a, replicas=3),
        "only the first, starting": plane(starting("a"), replicas=3, uninitialized=True),
        "the first has a Node and no checks": plane(machine("a", checks={}), replicas=3),
        "two of three": plane(a, b, replicas=3),
        "two of three, certificates missing": plane(a, b, replicas=3, noCertificates=True),
        "two of three in domains": plane({**a, "domain": "x"}, {**b, "domain": "y"}, replicas=3, domains=["x", "y", "z"]),
        "domains, an outdated one counts less": plane(
            {**oa, "domain": "x"}, {**b, "domain": "y"}, {**oc, "domain": "z"}, domains=["x", "y", "z"]
        ),
        "domains, all equal": plane({**a, "domain": "x"}, {**b, "domain": "y"}, replicas=3, domains=["x", "y"]),
        "domains, one that is going counts less": plane({**a, "domain": "x", **held}, {**b, "domain": "y"}, replicas=3, domains=["x", "y"]),
        "domains, an unknown one does not count": plane({**a, "domain": "q"}, {**b, "domain": "y"}, replicas=3, domains=["x", "y"]),
        "three of three": three(),
        "three of one": three(replicas=1),
        "three of one in one domain": plane(*({**one, "domain": "x"} for one in (a, b, c)), replicas=1, domains=["x", "y"]),
        "scale down from the fullest domain": plane(
            {**a, "domain": "x"}, {**b, "domain": "y"}, {**c, "domain": "y"}, replicas=1, domains=["x", "y"]
        ),
        "scale down from a domain that is no more": plane(
            {**a, "domain": "x"}, {**b, "domain": "x"}, {**c, "domain": "q"}, replicas=1, domains=["x", "y"]
        ),
        "scale down, none in a domain": plane(a, {**b, "domain": "x"}, {**c, "domain": "x"}, replicas=1, domains=["x", "y"]),
        "scale down the one asked for": plane(a, {**b, "deleteAsked": True}, c, replicas=1),
        "scale down, one of the others is ill": plane(a, machine("b", ill=CHECKS[:1]), c, replicas=1),
        "scale down, the ill one is the oldest": plane(machine("a", 5000, ill=CHECKS[:1]), b, c, replicas=1),
        "scale down, same age": plane({**b, "age": 10}, {**a, "age": 10}, {**c, "age": 10}, replicas=1),
        "roll, nothing yet": plane(oa, ob, oc),
        "roll without surge": plane(oa, ob, oc, maxSurge=0),
        "roll, one new and starting": plane(oa, ob, oc, starting("d"), replicas=3),
        "roll, one new and well": plane(oa, ob, oc, d, replicas=3),
        "roll, one new and well, the oldest leads not": plane(oa, ob, oc, d, replicas=3, members=members([oa, ob, oc, d], leader=2)),
        "roll, an ill outdated one first": plane(oa, {**ob, "checks": machine("b", ill=CHECKS[2:3])["checks"]}, oc, d, replicas=3),
        "roll, the ill one is unknown only": plane(
            oa, {**ob, "checks": machine("b", ill=CHECKS[2:3], status="Unknown")["checks"]}, oc, d, replicas=3
        ),
        "roll, one asked for": plane(oa, {**ob, "deleteAsked": True}, oc, d, replicas=3),
        "roll, an up to date one asked for": plane(oa, ob, oc, {**d, "deleteAsked": True}, replicas=3),
        "roll, one is going": plane({**oa, **going}, ob, oc, d, replicas=3),
        "roll, the only outdated one is going": plane({**oa, **going}, b, c, d, replicas=3),
        "roll without surge, one gone": plane(ob, oc, replicas=3, maxSurge=0),
        "roll without surge, its place taken": plane(ob, oc, d, replicas=3, maxSurge=0),
        "roll of one": plane(oa),
        "roll of one, the new one well": plane(oa, b, replicas=1),
        "roll of one, external etcd": plane(oa, b, replicas=1, externalEtcd=True, members=[]),
        "roll by domains": plane(
            {**oa, "domain": "x"}, {**ob, "domain": "y"}, {**oc, "domain": "z"}, {**d, "domain": "y"}, replicas=3, domains=["x", "y", "z"]
        ),
        "roll, a check is missing": plane(oa, ob, oc, machine("d", checks={"APIServerPodHealthy": ["True", ""]}), replicas=3),
        "roll, external etcd, no checks of it": plane(oa, ob, oc, machine("d", ill=CHECKS[3:]), replicas=3, externalEtcd=True, members=[]),
        "one is going, not drained": plane({**a, **going}, b, c),
        "one is going, drained": plane({**a, **held}, b, c),
        "one is going, drained, leads not": plane({**a, **held}, b, c, members=members([a, b, c], leader=1)),
        "one is going, leadership to the one that is up to date": plane({**oa, **held}, {**ob, "age": 10}, c, members=members([oa, ob, c])),
        "one is going, leadership to one that was checked": plane({**a, **held}, {**b, "healthChecked": True}, c),
        "one is going, leadership to a healthy member": plane(
            {**a, **held}, b, d, machine("c", 10, ill=CHECKS[4:]), members=members([a, b, d, c]), membersHealthy=False
        ),
        "one is going, somebody else's hook": plane({**a, **held, "otherHooks": True}, b, c),
        "one is going, somebody else's hook, 1.30": plane({**a, **held, "otherHooks": True}, b, c, version="v1.30.9"),
        "one is going, somebody else's hook, 1.31 alpha": plane({**a, **held, "otherHooks": True}, b, c, version="v1.31.0-alpha.1"),
        "one is released": plane({**a, **held, "noHook": True}, b, c),
        "two are going": plane({**a, **held}, {**b, **held, "deletedAgo": 90}, c),
        "two are going, one released": plane({**a, **held}, {**b, **held, "noHook": True}, c),
        "the last one is going": plane({**a, **held}, replicas=1),
        "the last one is going, etcd is silent": plane({**a, **held}, replicas=1, members=[], membersHealthy=False),
        "one is going, etcd is silent": plane({**a, **held}, b, c, members=[], membersHealthy=False),
        "one is going, the leader is not known": plane(
            {**a, **held}, b, c, members=[{**one, "leader": False} for one in members([a, b, c])]
        ),
        "one is going, quorum would be lost": plane({**a, **held}, b, machine("c", ill=CHECKS[4:]), membersHealthy=False),
        "one is going, no other API": plane({**a, **held}, machine("b", ill=CHECKS[:1]), machine("c", ill=CHECKS[:1])),
        "one is going that never had a Node": plane({**starting("a"), **held}, b, c),
        "one is going, its member is gone": plane({**a, **held}, b, c, members=members([b, c])),
        "one is going, a learner is there": plane(
            {**a, **held}, b, c, members=[*members([a, b, c]), {"id": 7, "name": "node-l", "learner": True}], membersHealthy=False
        ),
        "one is going, external etcd": plane({**a, **held}, b, c, externalEtcd=True, members=[]),
        "five, one going and one dead": plane({**a, **held}, b, c, d, machine("e", ill=CHECKS), membersHealthy=False),
        "five, one going and two dead": plane(
            {**a, **held}, b, c, machine("d", ill=CHECKS), machine("e", ill=CHECKS), membersHealthy=False
        ),
        "a member of nobody": stray(ghost),
        "a member of nobody, and a Machine starting": plane(
            a, b, starting("c"), members=[*members([a, b]), ghost], membersHealthy=False, membersMatch=False
        ),
        "two members of nobody": stray(ghost, {"id": 5, "name": "node-elder"}),
        "a member without a name": stray(unnamed),
        "a member without a name, and a young Node": plane(
            a, b, {**c, "nodeAge": 5}, members=[*members([a, b, c]), unnamed], membersHealthy=False, membersMatch=False
        ),
        "a member of nobody, and a young Node": plane(
            a, b, {**c, "nodeAge": 5}, members=[*members([a, b, c]), ghost], membersHealthy=False, membersMatch=False
        ),
        "a member without a name, and the young Node is going": plane(
            a, b, {**c, "nodeAge": 5, **going}, members=[*members([a, b, c]), unnamed], membersHealthy=False, membersMatch=False
        ),
        "a member of nobody, quorum would be lost": plane(
            a, machine("b", ill=CHECKS), members=[*members([a, machine("b")]), ghost], membersHealthy=False, membersMatch=False
        ),
        "a member of nobody with an alarm, and another": stray({**ghost, "alarms": True}, {"id": 5, "name": "node-elder"}),
        "remediate one of three": plane(sick("a"), b, c, membersHealthy=False),
        "remediate one of three, not ours": plane(sick("a", ours=False), b, c, membersHealthy=False),
        "remediate the leader": plane(sick("a"), b, c, members=members([a, b, c], leader=0), membersHealthy=False),
        "remediate two of five": plane(sick("a"), sick("b", 7300), c, d, e, membersHealthy=False),
        "remediate three of five": plane(sick("a"), sick("b"), sick("c"), d, e, membersHealthy=False),
        "remediate two of three": plane(sick("a"), sick("b"), c, membersHealthy=False),
        "remediate one of two": plane(sick("a"), b, membersHealthy=False, replicas=2),
        "remediate the only one": plane(sick("a")),
        "remediate the only one, before it made the cluster": plane(sick("a", node="", checks={}), uninitialized=True),
        "remediate, another is starting": plane(sick("a"), b, starting("c"), membersHealthy=False),
        "remediate, the one that starts is the sick one": plane(a, b, sick("c", node="", checks={}), membersHealthy=False),
        "remediate, another is going": plane(sick("a"), {**b, **going}, c, membersHealthy=False),
        "remediate, one is in progress": plane(sick("a"), b, replicas=3, inProgress=gone, membersHealthy=False),
        "remediate, etcd is silent": plane(sick("a"), b, c, members=[], membersHealthy=False),
        "remediate, a learner is there": plane(
            sick("a"), b, c, members=[*members([a, b, c])[:2], {"id": 3, "name": "node-c", "learner": True}], membersHealthy=False
        ),
        "remediate, external etcd": plane(sick("a"), b, c, externalEtcd=True, members=[]),
        "initialized, and no Machine left": plane(replicas=3),
        "remediate, no other API": plane(sick("a"), machine("b", ill=CHECKS[1:2]), machine("c", ill=CHECKS[:1]), membersHealthy=False),
        "remediate, well but for the health check": plane(sick("a", ill=()), b, c),
        "remediate by annotation first": plane(sick("a"), sick("b", ill=(), remediateAsked=True), c, d, e, membersHealthy=False),
        "remediate the one without a Node first": plane(
            sick("a"), sick("b", node="", checks={}), c, d, e, members=members([a, c, d, e]), membersHealthy=False
        ),
        "remediate by member before Pod": plane(sick("a", ill=CHECKS[3:4]), sick("b", 10, ill=CHECKS[4:]), c, d, e, membersHealthy=False),
        "remediate by etcd before the API": plane(sick("a", ill=CHECKS[:3]), sick("b", 10, ill=CHECKS[3:4]), c, d, e),
        "remediate by the API before the scheduler": plane(sick("a", ill=CHECKS[2:3]), sick("b", 10, ill=CHECKS[:1]), c, d, e),
        "remediate by labels": plane(sick("a", ill=()), sick("b", 10, ill=(LABELS,)), c, d, e),
        "remediate the older of equals": plane(sick("b", 10), sick("a", 20), c, d, e, membersHealthy=False),
        "remediate by name among equals": plane(sick("b", 10), sick("a", 10), c, d, e, membersHealthy=False),
        "a retry": plane(sick("a", replaces={"machine": "z", "ago": 600, "retries": 1}), b, c, membersHealthy=False),
        "a retry too early": plane(
            sick("a", replaces={"machine": "z", "ago": 600, "retries": 1}), b, c, retryPeriod=900, membersHealthy=False
        ),
        "a retry late enough": plane(
            sick("a", replaces={"machine": "z", "ago": 600, "retries": 1}), b, c, retryPeriod=300, maxRetry=2, membersHealthy=False
        ),
        "too many retries": plane(sick("a", replaces={"machine": "z", "ago": 600, "retries": 2}), b, c, maxRetry=2, membersHealthy=False),
        "no retry allowed": plane(sick("a", replaces={"machine": "z", "ago": 600, "retries": 0}), b, c, maxRetry=0, membersHealthy=False),
        "first remediation with no retries": plane(sick("a"), b, c, maxRetry=0, membersHealthy=False),
        "long ago is no retry": plane(
            sick("a", replaces={"machine": "z", "ago": 3700, "retries": 5}), b, c, maxRetry=1, membersHealthy=False
        ),
        "long ago by a longer period": plane(
            sick("a", replaces={"machine": "z", "ago": 3700, "retries": 5}), b, c, maxRetry=1, minHealthyPeriod=7200, membersHealthy=False
        ),
        "a retry at a time that is not known": plane(
            sick("a", replaces={"machine": "z", "ago": None, "retries": 5}), b, c, maxRetry=1, membersHealthy=False
        ),
        "too many retries before it made the cluster": plane(
            sick("a", node="", checks={}, replaces={"machine": "z", "ago": 60, "retries": 3}), maxRetry=3, uninitialized=True
        ),
        "replace one of five, another dead": plane(b, c, d, machine("e", ill=CHECKS), replicas=5, inProgress=gone, membersHealthy=False),
        "replace one of five, another dead and to be remediated": plane(
            b, c, d, sick("e"), replicas=5, inProgress=gone, membersHealthy=False
        ),
        "replace one of three, another dead": plane(b, machine("c", ill=CHECKS), replicas=3, inProgress=gone, membersHealthy=False),
        "replace one of three, a component ill": plane(b, machine("c", ill=CHECKS[:1]), replicas=3, inProgress=gone),
        "replace one, etcd is silent and one ill": plane(
            b, machine("c", ill=CHECKS[:1]), replicas=3, inProgress=gone, members=[], membersHealthy=False
        ),
        "replace one, no API": plane(machine("b", ill=CHECKS[:1]), machine("c", ill=CHECKS[:1]), replicas=3, inProgress=gone),
        "replace one, external etcd": plane(b, machine("c", ill=CHECKS[:1]), replicas=3, inProgress=gone, externalEtcd=True, members=[]),
        "replace one of two": plane(b, replicas=2, inProgress=gone),
        "replace one of two, what is left is ill": plane(machine("b", ill=CHECKS[2:3]), replicas=2, inProgress=gone),
        "a scale down while a replacement is due": plane(b, machine("c", ill=CHECKS[:1]), replicas=1, inProgress=gone),
    }


def drawn(count: int, seed: int) -> dict[str, Case]:
    """Random states; the same for the same seed."""
    draw = random.Random(seed)
    return {f"random {number}": _random(draw) for number in range(count)}


def _random(draw: random.Random) -> Case:
    domains = draw.choice([[], [], ["x", "y", "z"], ["x", "y"]])
    machines = []
    for name in "abcdef"[: draw.randint(1, 6)]:
        age = draw.randint(30, 9000)
        made = starting(name, age) if draw.random() < 0.08 else machine(name, age)
        for check in made["checks"]:
            if draw.random() < 0.06:
                made["checks"][check] = [draw.choice(["False", "Unknown"]), "it is down"]
        if draw.random() < 0.35:
            made |= {"outdated": True, "version": "v1.34.10"}
        if domains and draw.random() < 0.9:
            made["domain"] = draw.choice([*domains, "q"] if draw.random() < 0.2 else domains)
        if draw.random() < 0.12:
            made |= {"deletedAgo": draw.randint(5, 300), "waitsForHook": draw.random() < 0.8, "noHook": draw.random() < 0.15}
        if draw.random() < 0.1:
            made["deleteAsked"] = True
        if draw.random() < 0.2:
            made |= {"unhealthy": True, "ours": draw.random() < 0.9}
            if draw.random() < 0.3:
                made["replaces"] = {"machine": "z", "ago": draw.randint(1, 5000), "retries": draw.randint(0, 3)}
        machines.append(made)
    case = plane(*machines, domains=domains, replicas=draw.choice([1, 3, 3, 3, 5]), maxSurge=draw.choice([0, 1, 1]))
    if case["members"]:
        for one in case["members"]:
            one["leader"] = False
        draw.choice(case["members"])["leader"] = True
    if draw.random() < 0.1:
        case["members"] = [*case["members"], {"id": 99, "name": draw.choice(["node-ghost", ""])}]
        case["membersHealthy"] = case["membersMatch"] = False
    if draw.random() < 0.15:
        case["inProgress"] = {"machine": "z", "ago": 20, "retries": 0}
    if draw.random() < 0.3:
        case |= {"maxRetry": draw.randint(0, 3), "retryPeriod": draw.choice([0, 600])}
    return case
