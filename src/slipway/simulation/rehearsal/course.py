"""The course of a rehearsed upgrade: who went and who came in which order, and the times that this would take on the real hosts.  Pure.

A simulation is much faster than hosts are, and not evenly so.  What counts of it is what came after what: a leg begins when those of its
group have ended that had ended before it in the simulation, and lasts as long as its host took for such a thing in the past.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from slipway.fleet.overview.stages import BOOTING, CLEANING, DRAINING, PENDING, REPROVISIONING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slipway.simulation.rehearsal.measured import Durations

Way = Literal["leaves", "comes"]


class Leg(NamedTuple):
    """A machine leaves, or one comes.  Times are those of the simulation; None where it did not get there."""

    way: Way
    machine: str
    group: str
    version: str
    step: int
    """The number of the patch that it follows from."""
    began: float
    host: str = ""
    claimed: float | None = None
    """When it got its host, where it comes."""
    ended: float | None = None
    held: float = 0.0
    """Seconds for which its drain would be held up before it is forced."""


class Stretch(msgspec.Struct, frozen=True, rename="camel"):
    """A stage that a host is in, in seconds since the upgrade began."""

    stage: str
    begin: float
    end: float


class Move(msgspec.Struct, frozen=True, rename="camel"):
    """A leg with the times that it would take."""

    way: Way
    machine: str
    group: str
    version: str
    host: str
    begin: float
    end: float | None
    """None where it would not end."""
    stretches: tuple[Stretch, ...] = ()


class Level(msgspec.Struct, frozen=True, rename="camel"):
    """How many nodes each group has that take work, from a moment on."""

    at: float
    available: dict[str, int]


def moves(legs: Sequence[Leg], durations: Mapping[str, Durations]) -> list[Move]:
    """In the order in which they begin."""
    found: list[Move] = []
    done: list[tuple[Leg, float]] = []
    released: dict[str, float] = {}
    for leg in sorted(legs, key=lambda each: each.began):
        begin = max((end for before, end in done if _is_before(before, leg)), default=0.0)
        stretches = _leaves(leg, begin, durations) if leg.way == "leaves" else _comes(leg, begin, released, durations)
        end = stretches[-1].end if leg.ended is not None and stretches else None
        found.append(Move(leg.way, leg.machine, leg.group, leg.version, leg.host, begin, end, tuple(stretches)))
        if end is not None:
            done.append((leg, end))
            if leg.way == "leaves":
                released[leg.host] = end
    return sorted(found, key=lambda each: each.begin)


def _is_before(before: Leg, leg: Leg) -> bool:
    """Whether a leg had to wait for another: one of an earlier step, or one of its own group that had ended."""
    if before.step < leg.step:
        return True
    return before.group == leg.group and before.ended is not None and before.ended <= leg.began


def _leaves(leg: Leg, begin: float, durations: Mapping[str, Durations]) -> list[Stretch]:
    known = durations.get(leg.host)
    if known is None:
        return [Stretch(DRAINING, begin, begin)]
    drained = begin + known.drain.seconds + leg.held
    if leg.ended is None:
        return [Stretch(DRAINING, begin, drained)]
    return [Stretch(DRAINING, begin, drained), Stretch(CLEANING, drained, drained + known.clean.seconds)]


def _comes(leg: Leg, begin: float, released: Mapping[str, float], durations: Mapping[str, Durations]) -> list[Stretch]:
    known = durations.get(leg.host)
    if leg.claimed is None or known is None:
        return [Stretch(PENDING, begin, begin)]
    claimed = max(begin, released.get(leg.host, 0.0))
    waited = [Stretch(PENDING, begin, claimed)] if claimed > begin else []
    applied = claimed + known.image.seconds
    made = [*waited, Stretch(REPROVISIONING, claimed, applied)]
    return made if leg.ended is None else [*made, Stretch(BOOTING, applied, applied + known.boot.seconds)]


def total(found: Iterable[Move]) -> float:
    """Seconds until the last has ended, of those that would."""
    return max((each.end for each in found if each.end is not None), default=0.0)


def levels(found: Iterable[Move], nodes: Mapping[str, int]) -> list[Level]:
    """How many nodes there are at each moment, beginning with ``nodes``: one that is drained takes no more work."""
    # Who has come is there before the next one goes.
    changes = sorted(
        [(each.begin, 1, each.group, -1) for each in found if each.way == "leaves"]
        + [(each.end, 0, each.group, 1) for each in found if each.way == "comes" and each.end is not None]
    )
    now = dict(nodes)
    made = [Level(0.0, dict(now))]
    for at, _, group, by in changes:
        now[group] = now.get(group, 0) + by
        made.append(Level(at, dict(now)))
    return made


def lowest(found: Sequence[Level]) -> dict[str, int]:
    """The least that each group ever has."""
    groups = found[0].available if found else {}
    return {group: min(level.available.get(group, 0) for level in found) for group in groups}
