"""What an operator wants to see at a glance, as text: clusters with their machines, rollouts, what is not well, and what to do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from slipway.api.cluster.kinds import CLUSTER, KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT
from slipway.api.machinery.duration import human_duration
from slipway.fleet.overview import stages
from slipway.fleet.overview.selection import worth_telling
from slipway.fleet.overview.views.terminal import Cell, Column, ago, table, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from slipway.fleet.overview.model import ClusterView, GroupView, HostView, MachineView, Overview, PoolView, Problem, RolloutView
    from slipway.fleet.overview.views.terminal import Terminal

STYLES = {
    stages.REGISTERED: "quiet",
    stages.FREE: "free",
    stages.PENDING: "wait",
    stages.ALLOCATED: "taken",
    stages.PROVISIONING: "work",
    stages.REPROVISIONING: "work",
    stages.BOOTING: "boot",
    stages.MEMBER: "node",
    stages.DRAINING: "leave",
    stages.DELETING: "leave",
    stages.CLEANING: "leave",
    stages.FAILED: "bad",
    stages.UNAVAILABLE: "lost",
}
"""How the stages look."""
_BAR, _LEAST_BAR, _MARGIN = 24, 6, 2
# Of a cluster at a glance; `fleet status CLUSTER` tells all.
_MOST_PROBLEMS, _MOST_MACHINES, _LINES_OF_A_MESSAGE = 5, 8, 3


def status(view: Overview, terminal: Terminal, now: datetime, namespace: str = "", *, whole: bool = False) -> str:
    """``whole``: every machine and every problem, too.  ``namespace`` is the one that was looked at; empty for all."""
    hosts = {(host.namespace, host.name): host for host in view.hosts}
    parts = [cluster_text(cluster, view, hosts, terminal, now, whole=whole) for cluster in view.clusters]
    if view.problems:
        parts.append("Hosts and pools of no cluster\n" + _problems(view.problems, terminal, now, whole=whole))
    summary = _summary(view, terminal)
    if summary:
        parts.append(summary)
    if not view.clusters and CLUSTER.kind not in view.missing:
        where = f"the namespace {namespace}: -A looks in all of them" if namespace else "any namespace"
        parts.insert(0, f"There are no clusters in {where}.\n")
    missing = worth_telling(view)
    if missing:
        parts.append(missing_text(missing, terminal))
    return "\n".join(parts)


def missing_text(sentences: Iterable[str], terminal: Terminal) -> str:
    """What could not be seen, and why."""
    return "".join(f"{terminal.paint('not shown:', 'quiet')} {each}\n" for each in dict.fromkeys(sentences))


def cluster_text(
    cluster: ClusterView,
    view: Overview,
    hosts: dict[tuple[str, str], HostView],
    terminal: Terminal,
    now: datetime,
    *,
    whole: bool,
) -> str:
    word, style = _state(cluster)
    facts = " · ".join(each for each in (cluster.phase, cluster.endpoint) if each)
    title = terminal.paint(f"{cluster.namespace}/{cluster.name}", "title")
    text = f"{title}  {terminal.paint(word, style)}  {terminal.paint(facts, 'quiet')}".rstrip() + "\n"
    text += _groups(cluster, terminal)
    text += "".join(
        f"  {_pool(pool, terminal)}\n" for pool in view.pools if (pool.namespace, pool.cluster) == (cluster.namespace, cluster.name)
    )
    if cluster.rollout is not None:
        text += "  " + rollout_text(cluster.rollout, terminal, now)
    machines = [machine for group in cluster.groups for machine in group.machines]
    if not whole:
        machines = [machine for machine in machines if machine.stage != stages.MEMBER]
    text += _machines(cluster.namespace, machines if whole else machines[:_MOST_MACHINES], hosts, terminal, now)
    if not whole and len(machines) > _MOST_MACHINES:
        text += f"    … and {len(machines) - _MOST_MACHINES} more on their way\n"
    return text + _problems(cluster.problems, terminal, now, whole=whole)


def rollout_text(rollout: RolloutView, terminal: Terminal, now: datetime) -> str:
    """One line: what becomes of what, how far it is, and how long it will take."""
    old = ", ".join(rollout.from_versions)
    if not old:
        what = f"making {rollout.to_version}"
    elif rollout.from_versions == (rollout.to_version,):
        what = f"replacing machines of {rollout.to_version}"
    else:
        what = f"{old} → {rollout.to_version}"
    if rollout.target:
        what += f", then {rollout.target}"
    took = f", for {ago(rollout.began, now)}" if rollout.began is not None else ""
    left = f", about {human_duration(rollout.estimate_seconds)} left" if rollout.estimate_seconds is not None else ""
    head, tail = f"rollout  {what}  ", f"  {rollout.done}/{rollout.total}{took}{left}"
    room = min(_BAR, max(_LEAST_BAR, terminal.width - len(head) - len(tail) - _MARGIN)) if terminal.width else _BAR
    filled = room * rollout.done // rollout.total if rollout.total else 0
    bar = terminal.paint("█" * filled, "good") + terminal.paint("░" * (room - filled), "quiet")
    return f"{head}{bar}{tail}\n"


def _state(cluster: ClusterView) -> tuple[str, str]:
    if cluster.deleting:
        return "is deleted", "leave"
    if cluster.paused:
        return "paused", "wait"
    if cluster.available is None:
        return "availability unknown", "wait"
    if not cluster.available and cluster.rollout is not None and not cluster.rollout.from_versions:
        return "not available yet", "wait"
    return ("available", "good") if cluster.available else ("not available", "bad")


def _groups(cluster: ClusterView, terminal: Terminal) -> str:
    columns = [Column(""), Column("NAME"), Column("VERSION"), Column("READY"), Column("AVAILABLE", 1), Column("UP-TO-DATE")]
    rows = [
        [
            Cell("control plane" if group is cluster.control_plane else "workers"),
            Cell(group.name + (f" ({group.kind})" if group.kind not in _USUAL else "")),
            Cell(_versions(group)),
            _counted(group.ready, group.desired),
            _counted(group.available, group.desired),
            _counted(group.up_to_date, group.desired),
        ]
        for group in cluster.groups
    ]
    return table(columns, rows, terminal, margin="  ") if rows else "  there is no control plane and there are no workers yet\n"


_USUAL = (KUBEADM_CONTROL_PLANE.kind, MACHINE_DEPLOYMENT.kind)


def _versions(group: GroupView) -> str:
    """What it is to have, and what some of its machines have instead."""
    others = sorted({machine.version for machine in group.machines if machine.version} - {group.version})
    if not group.version:
        return ", ".join(others)
    return group.version + (f" (from {', '.join(others)})" if others else "")


def _counted(number: int, desired: int) -> Cell:
    return Cell(f"{number}/{desired}", "" if number == desired else "wait" if number else "bad")


def _pool(pool: PoolView, terminal: Terminal) -> str:
    parts = [
        (f"{number} {word}", style)
        for number, word, style in (
            (pool.available, "available", "free"),
            (pool.allocated, "allocated", ""),
            (pool.reprovisioning, "reprovisioning", "work"),
            (pool.preparing, "preparing", "leave"),
            (pool.unavailable, "unavailable", "lost"),
        )
        if number
    ]
    told = ", ".join(terminal.paint(text, style) for text, style in parts)
    return f"{terminal.paint('pool', 'quiet')}  {pool.name}: {pool.total} host{'' if pool.total == 1 else 's'}{': ' if told else ''}{told}"


def _machines(
    namespace: str, machines: Sequence[MachineView], hosts: dict[tuple[str, str], HostView], terminal: Terminal, now: datetime
) -> str:
    if not machines:
        return ""
    columns = [
        Column("MACHINE"),
        Column("HOST", 1),
        Column("STAGE"),
        Column("FOR"),
        Column("VERSION", 3),
        Column("NODE", 4),
        Column("DOES", 2),
    ]
    rows = []
    for machine in machines:
        host = hosts.get((namespace, machine.host))
        rows.append(
            [
                Cell(machine.name),
                Cell(machine.host),
                Cell(machine.stage, STYLES[machine.stage]),
                Cell(ago(machine.since, now)),
                Cell(machine.version),
                Cell(machine.node),
                Cell(doing(machine, host)),
            ]
        )
    return table(columns, rows, terminal, margin="    ")


def doing(machine: MachineView, host: HostView | None) -> str:
    """What a machine's host does at the moment, or what the machine waits for."""
    plan = host.plan if host is not None else None
    if plan is not None and plan.state == "running" and plan.instruction:
        return f"{plan.type}: {plan.instruction} ({plan.step} of {plan.steps})"
    if machine.stage == stages.MEMBER:
        return f"{machine.problem.condition}: {machine.problem.reason}" if machine.problem is not None else ""
    if plan is not None and plan.state in ("pending", "running"):
        return f"{plan.type}: {plan.state}"
    return f"{machine.problem.condition}: {machine.problem.reason}" if machine.problem is not None else ""


def _problems(problems: Sequence[Problem], terminal: Terminal, now: datetime, *, whole: bool) -> str:
    # What is on its way belongs to work that goes on; at a glance only what lasts is told.
    told = [each for each in problems if whole or each.lasting]
    text = "".join(problem_text(each, terminal, now, whole=whole) for each in (told if whole else told[:_MOST_PROBLEMS]))
    more = len(told) - _MOST_PROBLEMS
    return text + (f"  … and {more} more problem{'' if more == 1 else 's'}\n" if not whole and more > 0 else "")


def problem_text(problem: Problem, terminal: Terminal, now: datetime, *, whole: bool = True) -> str:
    """What is not well, in its own words, and what to do."""
    mark, style = ("!", "bad") if problem.lasting else ("·", "wait")
    since = f", for {ago(problem.since, now)}" if problem.since is not None else ""
    head = f"{problem.object.kind} {problem.object.name}: {problem.condition}: {problem.reason}{since}"
    lines = problem.message.splitlines()
    if not whole and len(lines) > _LINES_OF_A_MESSAGE:
        lines = [*lines[:_LINES_OF_A_MESSAGE], "…"]
    text = f"  {terminal.paint(f'{mark} {head}', style)}\n" + wrapped("\n".join(lines), terminal, "      ")
    return text + (wrapped(f"→ {problem.to_do}", terminal, "      ") if problem.to_do else "")


def _summary(view: Overview, terminal: Terminal) -> str:
    lines = []
    if len(view.clusters) > 1:
        rolling = sum(cluster.rollout is not None for cluster in view.clusters)
        wrong = sum(any(problem.lasting for problem in cluster.problems) for cluster in view.clusters)
        lines.append(f"{len(view.clusters)} clusters: {rolling} in a rollout, {wrong} with problems")
    if view.hosts:
        counted = Counter(host.stage for host in view.hosts)
        told = ", ".join(f"{counted[stage]} {terminal.paint(stage, STYLES[stage])}" for stage in stages.STAGES if counted[stage])
        lines.append(f"{len(view.hosts)} host{'' if len(view.hosts) == 1 else 's'}: {told}")
    return "".join(f"{line}\n" for line in lines)
