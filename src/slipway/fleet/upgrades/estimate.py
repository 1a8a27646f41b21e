"""How long the rest of an upgrade takes, learned from the nodes that are done already."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from slipway.fleet.overview.groups import Group
    from slipway.fleet.upgrades.steps import Patch


class Pace(NamedTuple):
    """Seconds from one node that is done to the next, and how many were replaced at a time."""

    seconds: float
    at_once: int = 1

    def of(self, group: Group) -> float:
        """What it would be in another group: as fast a node, as many of them at a time as there may be."""
        return self.seconds * self.at_once / max(min(group.at_once, group.replicas), 1)


def pace(group: Group, began: datetime | None = None) -> Pace | None:
    """Of a rollout that is on its way or over; None before its first node is done.  ``began`` is when it did, where that is known."""
    ends = sorted(each.since for each in group.done if each.since is not None and (began is None or each.since >= began))
    if not ends:
        return None
    at_once = max(min(group.at_once, group.replicas), 1)
    if began is not None:
        return Pace((ends[-1] - began).total_seconds() / len(ends), at_once)
    if len(ends) > at_once:
        # The first ones say when, not how long: nobody knows when they began.
        return Pace((ends[-1] - ends[0]).total_seconds() / (len(ends) - 1), at_once)
    lives = [(each.since - each.made).total_seconds() for each in group.done if each.since is not None and each.made is not None]
    return Pace(sum(lives) / len(lives) / at_once, at_once) if lives else None


def remaining(current: Group | None, ahead: Sequence[Patch], known: Pace | None, last_end: datetime | None, now: datetime) -> float | None:
    """Seconds until all is done; None where nothing is known yet.  ``ahead`` are the patches that are still to come."""
    if known is None:
        return None
    found = sum(known.of(each.group) * each.group.replicas for each in ahead)
    if current is not None:
        under_way = min((now - last_end).total_seconds(), known.of(current)) if last_end is not None else 0.0
        found += max(current.left * known.of(current) - under_way, 0.0)
    return found
