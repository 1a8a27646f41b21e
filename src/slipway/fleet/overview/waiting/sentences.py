"""The sentences that an explanation is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster.infrastructure import names
from slipway.fleet.overview.hosts import APPLIED, FAILED, PENDING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from slipway.fleet.overview.groups import Group
    from slipway.fleet.overview.hosts import HostView, PlanView, PoolView
    from slipway.fleet.overview.waiting.causes import Cause

_SHOWN = 600
_NAMED = 3
# Kinds keep their letters.
_KEPT = ("Pods",)
_WAITS = ("blocked because", "Waiting for", "preflight check failed", "does not exist", "do not exist")


def cause(why: Cause, status: str, now: datetime) -> str:
    """An object, the condition that says so, what that means, and the condition's own words."""
    kind = "host" if why.ref.kind == "MachineInventory" else why.ref.kind
    lasting = f" for {age(why.since, now)}" if why.since is not None else ""
    told = f"{why.condition}={status}" if status else why.condition
    if why.reason and why.reason != why.condition:
        told += f" ({why.reason})"
    # Where there is nothing to do, the meaning says all of it.
    message = one_line(why.message) if why.to_do or why.patience is not None else ""
    said = f" It says: {ended(message)}" if message else ""
    return f"The {kind} {why.ref.name} has {told}{lasting}: {_lower(why.meaning)}{said}"


def progress(group: Group) -> str:
    """How far a rollout is."""
    further = f", on its way to {group.heading}" if group.heading else ""
    if any(each.version != group.version or not each.current for each in group.members):
        return f"The {group.title} goes to {group.version}{further}: {len(group.done)} of {count(group.replicas, 'machine')} are done."
    if len(group.members) != group.replicas:
        there = f"{count(len(group.members), 'machine')} of {group.replicas}"
        return f"The {group.title} has {there} at {group.version}{further}."
    return f"The {group.title} has {len(group.done)} of {count(group.replicas, 'machine')} well at {group.version}{further}."


def plan(host: str, view: PlanView, now: datetime) -> str:
    """What a host does with its plan."""
    since = f" {age(view.since, now)} ago" if view.since is not None else ""
    if view.state == FAILED:
        times = "" if view.failures <= 1 else f" {view.failures} times"
        printed = f": {ended(one_line(view.message))}" if view.message else "."
        return f"The host {host} has failed in its {view.type} plan{times}{printed}"
    if view.state == APPLIED:
        return f"The host {host} has applied its {view.type} plan, and boots."
    if view.state == PENDING:
        return f"The host {host} has not begun with its {view.type} plan{f', written{since}' if since else ''}."
    if view.instruction:
        step = f", {view.step} of {view.steps}" if view.steps else ""
        return (
            f"The host {host} is at the instruction {view.instruction}{step} of its {view.type} plan{f', begun{since}' if since else ''}."
        )
    tries = f", after {count(view.failures, 'failure')}" if view.failures else ""
    return f"The host {host} works on its {view.type} plan{f', written{since}' if since else ''}{tries}."


def host(view: HostView) -> str:
    if view.machine:
        version = f" at {view.version}" if view.version else ""
        return f"The host {view.name} is well: the Machine {view.machine} of the Cluster {view.cluster}{version}."
    if not view.pool:
        return f"The host {view.name} has registered, and no pool names it."
    if view.state == names.AVAILABLE:
        return f"The host {view.name} is free in the pool {view.pool}."
    return f"The host {view.name} is {view.state or 'not counted yet'} in the pool {view.pool}."


def pool(view: PoolView) -> str:
    taken = view.allocated + view.reprovisioning
    parts = [f"{view.available} free", f"{taken} in use"]
    parts += [f"{view.preparing} being cleaned"] if view.preparing else []
    parts += [f"{view.unavailable} unavailable"] if view.unavailable else []
    return f"The pool {view.name} has {count(view.total, 'host')}: {', '.join(parts)}."


def is_blocked(message: str) -> bool:
    """Whether what a condition says is a reason to wait, and not merely what goes on."""
    return any(each in message for each in _WAITS)


def age(since: datetime | None, now: datetime) -> str:
    seconds = 0 if since is None else max(int((now - since).total_seconds()), 0)
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 2 * 3600:
        return f"{seconds // 60} min"
    return f"{seconds // 3600} h" if seconds < 48 * 3600 else f"{seconds // 86400} d"


def count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def listed(texts: Sequence[str]) -> str:
    more = len(texts) - _NAMED
    return ", ".join(texts[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def one_line(message: str) -> str:
    """A message without its bullets; of a long one the end, which tells what went wrong."""
    parts = [line.strip().removeprefix("*").strip() for line in message.splitlines()]
    text = "; ".join(part for part in parts if part).replace(":; ", ": ")
    return text if len(text) <= _SHOWN else f"…{text[-_SHOWN:]}"


def ended(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _lower(sentence: str) -> str:
    return sentence if sentence.startswith(_KEPT) else sentence[:1].lower() + sentence[1:]
