"""Whether an upgrade that waits still waits for something that comes: for what does not end by itself it has to stop.

What an object waits for says itself how long that may take (:mod:`slipway.fleet.overview.waiting.causes`); the rest is time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.fleet.overview.problems import Ref
from slipway.fleet.overview.waiting.account import account
from slipway.fleet.overview.waiting.world import World

if TYPE_CHECKING:
    from datetime import datetime

    from slipway.fleet.overview.groups import Group, Standing
    from slipway.fleet.overview.objects import Objects
    from slipway.fleet.overview.waiting.causes import Cause

# Why an upgrade stops, beside the reasons of conditions.
PAUSED, NOT_OBSERVED, STALLED = "Paused", "NotObserved", "Stalled"


class Patience(NamedTuple):
    """In seconds: how often is looked, and how long is waited for what may well pass."""

    interval: float = 2.0
    seen: float = 10.0
    """A problem that somebody has just mended is told for a moment longer."""
    observed: float = 120.0
    """A manager acts on a patch."""
    prerequisites: float = 60.0
    """In the middle of an upgrade: the last node is Ready a moment before everything is at rest."""
    answer: float = 300.0
    """The management cluster answers."""
    stall: float = 3600.0
    """Nothing happens at all."""


class Vigil:
    """Remembers since when something lasts that must not last for long."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._since: dict[str, datetime] = {}
        self._causes: dict[tuple[Ref, str], tuple[object, datetime | None]] = {}
        """By object and condition: what was told last, and since when, where it was told here that it changed."""
        self._last: object = None

    def too_long(self, what: str, now: datetime, limit: float, *, holds: bool) -> bool:
        """Whether something that holds now has done so for longer than it may."""
        if not holds:
            self.over(what)
            return False
        return (now - self._since.setdefault(what, now)).total_seconds() >= limit

    def over(self, *those: str) -> None:
        """It holds no longer."""
        for what in those:
            self._since.pop(what, None)

    def lasts(self, what: str) -> bool:
        """Whether it held when it was last asked about."""
        return what in self._since

    def reason_to_stop(self, objects: Objects, standing: Standing, group: Group, happened: object, now: datetime) -> str:
        """Why to stop waiting for a group; empty where that may well come.  ``happened`` differs where anything has."""
        if standing.paused or group.paused:
            return PAUSED
        links = account(World(objects, now), Ref(group.kind, standing.namespace, group.name))
        causes = [self._as_seen(link.cause, now) for link in links if link.cause is not None]
        lasting = [each for each in causes if each.lasts(now)]
        if self.too_long("trouble", now, self._patience.seen, holds=bool(lasting)):
            return lasting[0].reason or lasting[0].condition
        if self.too_long("unobserved", now, self._patience.observed, holds=not group.observed):
            return NOT_OBSERVED
        still, self._last = happened == self._last, happened
        return STALLED if self.too_long("still", now, self._patience.stall, holds=still) else ""

    def _as_seen(self, cause: Cause, now: datetime) -> Cause:
        """A condition keeps its time when only its reason changes: a drain of an hour does not count for what is waited for after it."""
        at, told = (cause.ref, cause.condition), (cause.reason, cause.meaning, cause.patience)
        before = self._causes.get(at)
        if before is None or before[0] != told:
            self._causes[at] = told, None if before is None else now
        began = self._causes[at][1]
        return cause if began is None or cause.since is None else cause._replace(since=max(began, cause.since))
