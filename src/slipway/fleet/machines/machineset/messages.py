"""What conditions of a MachineSet or a MachineDeployment say of Machines that hold them up, in the words of Cluster API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster import names
from slipway.fleet.machines.times import seconds_since

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from slipway.api.cluster.core.machine import Machine

_STALE = 15 * 60.0
_SLOW_DRAIN = 5 * 60.0
_SHOWN = 3
# What a drain says of itself, and what that is due to.
_DELAYS = (
    ("cannot evict pod as it would violate the pod's disruption budget.", "PodDisruptionBudgets"),
    ("deletionTimestamp set, but still not removed from the Node", "Pods not terminating"),
    ("failed to evict Pod", "Pod eviction errors"),
    ("waiting for completion", "Pods not completed yet"),
)


def stale(machines: Sequence[Machine], now: datetime) -> str:
    """Machines that have been in deletion for long, and why; empty where there are none."""
    late = [machine for machine in machines if _deleting_for(machine, now) > _STALE]
    if not late:
        return ""
    said = [_drain_message(machine, now) for machine in late]
    causes = [cause for words, cause in _DELAYS if any(words in message for message in said)]
    due = f", delay likely due to {', '.join(causes)}" if causes else ""
    return f"{_named(late)} in deletion since more than 15m{due}"


def unhealthy(machines: Sequence[Machine], by: str) -> str:
    """Sick Machines that nobody asked the owner to replace; empty where there are none."""
    return f"{_named(machines)} not healthy (not to be remediated by {by})" if machines else ""


def missing_templates(kinds: Sequence[str]) -> str:
    if not kinds:
        return ""
    return f"{' and '.join(kinds)} {'does' if len(kinds) == 1 else 'do'} not exist"


def _named(machines: Sequence[Machine]) -> str:
    found = sorted(str(machine.metadata["name"]) for machine in machines)
    shown = ", ".join([*found[:_SHOWN], *([f"... ({len(found) - _SHOWN} more)"] if len(found) > _SHOWN else [])])
    return f"Machine {shown} is" if len(found) == 1 else f"Machines {shown} are"


def _deleting_for(machine: Machine, now: datetime) -> float:
    since = machine.metadata.get("deletionTimestamp")
    return seconds_since(since, now) if since else 0.0


def _drain_message(machine: Machine, now: datetime) -> str:
    """What a drain that takes long says; empty where there is none."""
    deletion = machine.status.deletion
    found = next((one for one in machine.status.conditions if one.type == names.DELETING_CONDITION), None)
    if found is None or (found.status, found.reason) != ("True", "DrainingNode") or deletion is None or not deletion.node_drain_start_time:
        return ""
    return found.message if seconds_since(deletion.node_drain_start_time, now) > _SLOW_DRAIN else ""
