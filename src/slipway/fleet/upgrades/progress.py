"""How far an upgrade is, over all of its steps: a pure function of where it was when it was begun and of where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.fleet.upgrades.estimate import Pace, pace, remaining
from slipway.fleet.upgrades.steps import Refuse, plan

if TYPE_CHECKING:
    from datetime import datetime

    from slipway.fleet.overview.groups import Group, Standing
    from slipway.fleet.upgrades.steps import Goal


class Progress(NamedTuple):
    """In machines that are replaced."""

    done: int
    total: int
    estimate: float | None = None
    """Seconds until the end; None where nothing is known yet."""


def total(at_first: Standing, goal: Goal) -> int:
    """Of an upgrade that is looked at for the first time: what is on its way has come a part of it already."""
    begun = sum(len(each.done) for each in at_first.groups if not each.settled and _is_rolling(each))
    return _left(at_first, goal) + begun


def progress(of: int, now: Standing, goal: Goal, known: Pace | None, moment: datetime) -> Progress:
    """``of`` is the total; ``known`` the pace that was learned last."""
    moving = next((each for each in now.groups if not each.settled), None)
    ahead = plan(now, goal)
    ends = [each.since for each in moving.done if each.since is not None] if moving is not None else []
    estimate = remaining(moving, [] if isinstance(ahead, Refuse) else ahead, known, max(ends, default=None), moment)
    return Progress(max(of - _left(now, goal), 0), of, estimate)


def learned(before: Pace | None, moving: Group, began: datetime | None) -> Pace | None:
    """What the machines that are done say, else what was known before."""
    return pace(moving, began) or before


def _left(now: Standing, goal: Goal) -> int:
    ahead = plan(now, goal)
    planned = 0 if isinstance(ahead, Refuse) else sum(each.group.replicas for each in ahead)
    return planned + sum(each.left for each in now.groups if not each.settled)


def _is_rolling(group: Group) -> bool:
    return any(each.version != group.version or not each.current for each in group.members) or len(group.members) != group.replicas
