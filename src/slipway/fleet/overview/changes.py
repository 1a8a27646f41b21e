"""What has happened between two moments: the difference of two overviews, as one value for each thing that changed."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads it
from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster.kinds import CLUSTER, MACHINE, MACHINE_INVENTORY
from slipway.fleet.overview import stages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slipway.fleet.overview.model import ClusterView, HostView, MachineView, Overview, Problem

# Kinds of changes.
CLUSTER_CHANGE, ROLLOUT, MACHINE_CHANGE, HOST, PLAN = "cluster", "rollout", "machine", "host", "plan"
# What lasts until somebody does something; that it is over; what something waits for.
PROBLEM, SOLVED, WAIT = "problem", "solved", "wait"
_TOLD = {
    stages.PENDING: "waits for a host",
    stages.ALLOCATED: "has taken {host}",
    stages.PROVISIONING: "is made",
    stages.REPROVISIONING: "is put onto {host}: {version}",
    stages.BOOTING: "boots{on}: {version}",
    stages.MEMBER: "is the Node {node} of Kubernetes {version}",
    stages.DRAINING: "is deleted: its Node {node} is drained",
    stages.DELETING: "is deleted",
    stages.CLEANING: "goes: {host} is cleaned",
    stages.FAILED: "has failed",
}


class Change(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    event: str
    time: datetime
    namespace: str = ""
    kind: str = ""
    name: str = ""
    """The object that it is about."""
    cluster: str = ""
    text: str = ""
    host: str = ""
    stage: str = ""
    version: str = ""
    done: int | None = None
    total: int | None = None
    estimate_seconds: int | None = None
    condition: str = ""
    reason: str = ""
    to_do: str = ""


def changes(before: Overview, after: Overview, now: datetime) -> list[Change]:
    """In the order of what is seen first: clusters, their machines, hosts, and what is well or not."""
    found: list[Change] = []
    known = {(cluster.namespace, cluster.name): cluster for cluster in before.clusters}
    for cluster in after.clusters:
        found += _cluster(known.pop((cluster.namespace, cluster.name), None), cluster, now)
    for cluster in known.values():
        found.append(Change(CLUSTER_CHANGE, now, cluster.namespace, CLUSTER.kind, cluster.name, cluster.name, "is gone"))
    found += _hosts(before, after, now)
    found += _problems(before, after, now)
    return found


def _cluster(before: ClusterView | None, after: ClusterView, now: datetime) -> Iterator[Change]:
    def told(text: str) -> Change:
        return Change(CLUSTER_CHANGE, now, after.namespace, CLUSTER.kind, after.name, after.name, text)

    if before is None:
        yield told(f"is there: {after.phase or 'nothing is done yet'}")
    elif before.phase != after.phase:
        yield told(f"is {after.phase}")
    if before is not None and before.available != after.available and after.available is not None:
        yield told("is available" if after.available else "is not available")
    yield from _rollout(before, after, now)
    known = {machine.name: machine for machine in _machines(before)}
    for machine in _machines(after):
        yield from _machine(after, known.pop(machine.name, None), machine, now)
    for machine in known.values():
        yield Change(MACHINE_CHANGE, now, after.namespace, MACHINE.kind, machine.name, after.name, "is gone", host=machine.host)


def _rollout(before: ClusterView | None, after: ClusterView, now: datetime) -> Iterator[Change]:
    was, rollout = before.rollout if before is not None else None, after.rollout
    if rollout is None:
        if was is not None:
            yield Change(ROLLOUT, now, after.namespace, CLUSTER.kind, after.name, after.name, "is done", version=was.to_version)
        return
    if was is not None and (was.done, was.total, was.to_version) == (rollout.done, rollout.total, rollout.to_version):
        return
    old = f"{', '.join(rollout.from_versions)} → " if rollout.from_versions else ""
    yield Change(
        ROLLOUT,
        now,
        after.namespace,
        CLUSTER.kind,
        after.name,
        after.name,
        f"{old}{rollout.to_version}: {rollout.done} of {rollout.total} machines",
        version=rollout.to_version,
        done=rollout.done,
        total=rollout.total,
        estimate_seconds=rollout.estimate_seconds,
    )


def _machine(cluster: ClusterView, before: MachineView | None, after: MachineView, now: datetime) -> Iterator[Change]:
    if before is not None and (before.stage == after.stage or (before.stage, after.stage) == (stages.CLEANING, stages.DELETING)):
        return
    on = f" on {after.host}" if after.host else ""
    text = _TOLD[after.stage].format(host=after.host, on=on, version=after.version, node=after.node or after.host)
    yield Change(
        MACHINE_CHANGE,
        now,
        cluster.namespace,
        MACHINE.kind,
        after.name,
        cluster.name,
        text,
        host=after.host,
        stage=after.stage,
        version=after.version,
    )


def _hosts(before: Overview, after: Overview, now: datetime) -> Iterator[Change]:
    known = {(host.namespace, host.name): host for host in before.hosts}
    for host in after.hosts:
        was = known.pop((host.namespace, host.name), None)
        text = _of_host(was, host)
        if text:
            yield _about(host, HOST, text, now)
        if host.plan is not None and (was is None or was.plan is None or _plan(was) != _plan(host)):
            yield _about(host, PLAN, _plan(host), now)
    for host in known.values():
        yield _about(host, HOST, "is gone", now)


def _of_host(was: HostView | None, host: HostView) -> str:
    """What is told of a host apart from the machine that it is."""
    if was is None:
        return "has registered" if host.stage == stages.REGISTERED else f"is {host.stage}" if not host.machine else ""
    if host.stage == was.stage:
        return ""
    if host.stage == stages.FREE:
        return f"is free in {host.pool}" if was.stage == stages.REGISTERED else f"is clean, and back in {host.pool}"
    return "cannot be used" if host.stage == stages.UNAVAILABLE else ""


def _plan(host: HostView) -> str:
    plan = host.plan
    if plan is None:
        return ""
    return f"{plan.type}: {plan.instruction} ({plan.step} of {plan.steps})" if plan.instruction else f"{plan.type}: {plan.state}"


def _about(host: HostView, event: str, text: str, now: datetime) -> Change:
    return Change(
        event,
        now,
        host.namespace,
        MACHINE_INVENTORY.kind,
        host.name,
        host.cluster,
        text,
        host=host.name,
        stage=host.stage,
        version=host.version,
    )


def _problems(before: Overview, after: Overview, now: datetime) -> Iterator[Change]:
    known = {_key(problem): (cluster, problem) for cluster, problem in _all(before)}
    for cluster, problem in _all(after):
        was = known.pop(_key(problem), None)
        if was is None or (problem.lasting and not was[1].lasting):
            yield _told(cluster, problem, PROBLEM if problem.lasting else WAIT, now)
    for cluster, problem in known.values():
        if problem.lasting:
            yield _told(cluster, problem, SOLVED, now)


def _told(cluster: str, problem: Problem, event: str, now: datetime) -> Change:
    return Change(
        event,
        now,
        problem.object.namespace,
        problem.object.kind,
        problem.object.name,
        cluster,
        problem.message,
        condition=problem.condition,
        reason=problem.reason,
        to_do=problem.to_do if event != SOLVED else "",
    )


def _all(view: Overview) -> Iterable[tuple[str, Problem]]:
    for cluster in view.clusters:
        yield from ((cluster.name, problem) for problem in cluster.problems)
    yield from (("", problem) for problem in view.problems)


def _key(problem: Problem) -> tuple[object, ...]:
    return problem.object, problem.condition, problem.reason


def _machines(cluster: ClusterView | None) -> list[MachineView]:
    return [] if cluster is None else [machine for group in cluster.groups for machine in group.machines]
