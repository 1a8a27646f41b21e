"""The table of hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.fleet.overview.selection import worth_telling
from slipway.fleet.overview.views.status import STYLES, missing_text
from slipway.fleet.overview.views.terminal import Cell, Column, ago, table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from slipway.fleet.overview.model import HostView, Overview, PlanView, Problem
    from slipway.fleet.overview.views.terminal import Terminal

_COLUMNS = (
    Column("NAMESPACE", 8),
    Column("HOST"),
    Column("POOL", 5),
    Column("STATE"),
    Column("STAGE"),
    Column("PLAN", 3),
    Column("MACHINE", 2),
    Column("VERSION", 1),
    Column("IMAGE", 7),
    Column("HEARD", 6),
    Column("PROBLEM", 4),
)


def page(found: Sequence[HostView], view: Overview, terminal: Terminal, now: datetime, namespace: str) -> str:
    """The table, or that there is nothing to be in it; and what could not be seen."""
    missing = missing_text(worth_telling(view), terminal)
    if found:
        return hosts(found, terminal, now, namespaces=not namespace) + (f"\n{missing}" if missing else "")
    place = f"in the namespace {namespace}" if namespace else "in any namespace"
    return (
        f"No host {place} is like that; there are {len(view.hosts)}.\n"
        if view.hosts
        else f"There are no hosts {place}{': -A looks in all of them' if namespace else ''}.\n"
    ) + missing


def hosts(found: Sequence[HostView], terminal: Terminal, now: datetime, *, namespaces: bool) -> str:
    """``namespaces``: say which one each host is in."""
    rows = [
        [
            Cell(host.namespace if namespaces else ""),
            Cell(host.name),
            Cell(host.pool),
            Cell(host.state or "-", "lost" if host.state == "Unavailable" else ""),
            Cell(host.stage, STYLES[host.stage]),
            Cell(plan_text(host.plan)),
            Cell(host.machine),
            Cell(host.version),
            Cell(host.image),
            Cell(ago(host.last_heard, now)),
            Cell(_problem(host.problem), "bad" if host.problem is not None and host.problem.lasting else "wait"),
        ]
        for host in found
    ]
    return table(_COLUMNS, rows, terminal)


def plan_text(plan: PlanView | None) -> str:
    """A plan in a few words."""
    if plan is None:
        return ""
    if plan.instruction:
        return f"{plan.type}: {plan.instruction} ({plan.step} of {plan.steps})"
    again = f" {plan.failures} times" if plan.state == "failed" and plan.failures > 1 else ""
    return f"{plan.type}: {plan.state}{again}"


def _problem(problem: Problem | None) -> str:
    return "" if problem is None else f"{problem.condition}: {problem.reason}"
