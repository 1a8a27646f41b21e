"""A rollout as it stands: how many machines are as they should be, which ones are on their way, and when it will be over.

The estimate is learned from the machines that this rollout has made already: what they took on the average is what the others will take.
Before there is one, it is what hosts took for a replacement in the past, as their record has it.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads it
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from slipway.fleet.overview.stages import ALLOCATED, BOOTING, FAILED, PENDING, PROVISIONING, REPROVISIONING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slipway.api.elemental.cycles import Cycle
    from slipway.fleet.overview.machines import GroupView, MachineView

_ON_ITS_WAY = frozenset((PENDING, ALLOCATED, PROVISIONING, REPROVISIONING, BOOTING, FAILED))


class RolloutView(msgspec.Struct, frozen=True, rename="camel"):
    from_versions: tuple[str, ...]
    """What the machines have that go; empty where none goes, as when a cluster is made or grows."""
    to_version: str
    done: int
    total: int
    current: tuple[str, ...]
    """The Machines that are on their way: they come, or go."""
    began: datetime | None
    estimate_seconds: int | None
    """How long it will still take; None before anything is known."""
    target: str = ""
    """The version after further steps, where it goes over several minor versions."""


def rollout(groups: Sequence[GroupView], now: datetime, past: float | None = None) -> RolloutView | None:
    """None where every machine is there and as it should be.  ``past``: the seconds that a replacement took before."""
    unfinished = [group for group in groups if not _is_finished(group)]
    if not unfinished:
        return None
    began = min((group.rolling_since for group in unfinished if group.rolling_since is not None), default=None)
    # One that ended while the others were at it is part of the same rollout: the bar must not go back when it ends.
    taking_part = [group for group in groups if not _is_finished(group) or _ended_since(group, began)]
    machines = [machine for group in taking_part for machine in group.machines]
    done = [machine for machine in machines if is_done(machine)]
    total = sum(group.desired for group in taking_part)
    outdated = {machine.version for machine in machines if not machine.up_to_date and machine.version}
    return RolloutView(
        from_versions=tuple(sorted(outdated)),
        to_version=newest(group.version for group in unfinished),
        done=min(len(done), total),
        total=total,
        current=tuple(machine.name for machine in machines if not is_done(machine) and (machine.deleting or machine.up_to_date)),
        began=began,
        estimate_seconds=estimate([each.joined for each in done if each.joined is not None], total - len(done), began, now, past),
        target=next((group.target for group in unfinished if group.target), ""),
    )


def is_done(machine: MachineView) -> bool:
    """Whether a machine is as its group wants it, and has become a Node: whether that is well now is not the rollout's question."""
    return machine.up_to_date and not machine.deleting and bool(machine.node) and machine.stage not in _ON_ITS_WAY


def estimate(joined: Iterable[datetime], left: int, began: datetime | None, now: datetime, past: float | None = None) -> int | None:
    """Seconds until ``left`` more machines are there, if they take what those took that came since it began, or what others took before."""
    if began is None or left <= 0:
        return None
    came = sorted(each for each in joined if each > began)
    each = (came[-1] - began).total_seconds() / len(came) if came else past
    if each is None:
        return None
    # One that takes longer than the others did may be there at any moment; the rest still need their time.
    waited = min((now - (came[-1] if came else began)).total_seconds(), each)
    return max(0, round(each * left - waited))


def replacements(lives: Iterable[Sequence[Cycle]]) -> list[float]:
    """How long the hosts of some records took from the end of one machine to the next that was a Node, in seconds."""
    found = []
    for record in lives:
        for old, new in pairwise(record):
            came = new.running or new.joined
            if old.draining is not None and came is not None and came > old.draining:
                # A host that was idle in between says nothing of how long a replacement takes.
                idle = (new.claimed - old.released).total_seconds() if new.claimed is not None and old.released is not None else 0.0
                found.append((came - old.draining).total_seconds() - max(0.0, idle))
    return found


def _is_finished(group: GroupView) -> bool:
    if not group.machines:
        # Of a control plane that somebody else runs there may be no Machines at all: its counters count.
        return group.up_to_date >= group.desired and group.replicas == group.desired
    return sum(map(is_done, group.machines)) == group.desired == len(group.machines)


def _ended_since(group: GroupView, began: datetime | None) -> bool:
    if began is None or group.settled is None or group.settled <= began:
        return False
    return any(machine.joined is not None and machine.joined > began for machine in group.machines)


def newest(versions: Iterable[str]) -> str:
    """The highest of some versions."""
    return max(versions, key=_order, default="")


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else 0 for part in version.removeprefix("v").partition("+")[0].partition("-")[0].split("."))
