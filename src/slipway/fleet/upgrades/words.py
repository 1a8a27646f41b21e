"""What an upgrade says of itself, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.fleet.overview.waiting import sentences
from slipway.fleet.upgrades import progress
from slipway.fleet.upgrades.steps import Refuse, plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.fleet.baremetal.rollouts.preflight import Row
    from slipway.fleet.overview.groups import Standing
    from slipway.fleet.upgrades.steps import Goal, Patch

DRY = "Nothing was changed: this was a dry run"
_AGAIN = "Run the same command again to go on from there"


def planned(now: Standing, goal: Goal, ahead: Sequence[Patch]) -> str:
    """What will be done, before anything is."""
    moving = next((each for each in now.groups if not each.settled), None)
    on_its_way = f"{sentences.progress(moving)} That is waited for first. " if moving is not None else ""
    if not ahead:
        return on_its_way.strip() or finished(now, goal)
    total = progress.total(now, goal)
    return f"{on_its_way}{_steps(ahead)}. {total} machine{'s are' if total != 1 else ' is'} replaced."


def finished(now: Standing, goal: Goal) -> str:
    groups = [each for each in now.groups if (goal.control_plane if each.is_control_plane else goal.workers)]
    parts = [f"{each.name} ({each.replicas} machine{'' if each.replicas == 1 else 's'})" for each in groups]
    return f"{now.cluster} is at {goal.version}: {', '.join(parts) or 'it has no workers'}"


def goes_on(now: Standing | None, goal: Goal | None) -> str:
    """What happens without whoever leaves, and what does not."""
    moving = next((each for each in now.groups if not each.settled), None) if now is not None else None
    ahead = plan(now, goal) if now is not None and goal is not None else []
    left = [] if isinstance(ahead, Refuse) else ahead
    rest = f"what is not begun: {_steps(left)}" if left else ""
    if moving is None:
        return f"Nothing is on its way{f'; {rest}' if rest else ''}. {_AGAIN}"
    done = f"{len(moving.done)} of {moving.replicas} machines are done"
    by_itself = f"The {moving.title} goes on to {moving.heading or moving.version} by itself ({done})"
    return f"{by_itself}; {rest}. {_AGAIN}" if rest else f"{by_itself}, and then all is done"


def unmet(failed: Sequence[Row], total: int, version: str) -> str:
    why = "; ".join(f'"{row.check}": {row.message}' for row in failed)
    are = "is" if len(failed) == 1 else "are"
    way = "Mend that and run the same command again; --ignore-preflight goes on all the same"
    return f"{len(failed)} of {total} prerequisites of {version} {are} not met, so nothing was patched: {why}. {way}"


def _steps(ahead: Sequence[Patch]) -> str:
    return ", then ".join(f"{each.group.title} from {each.group.version} to {each.version}" for each in ahead)
