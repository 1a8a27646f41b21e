"""What a MachineSet reports: counters, versions and conditions, from its Machines as they are.

All of it is computed anew in every reconcile, also after one that failed; yesterday's form of it too, whose counters go by Nodes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names
from slipway.fleet.contract import selectors
from slipway.fleet.contract.aggregation import Source, aggregate
from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN, Condition, Reasons
from slipway.fleet.contract.status import DeprecatedCondition, well
from slipway.fleet.machines.machineset import messages, versions
from slipway.fleet.machines.machineset.deletion import annotations_of, is_updating, status_of
from slipway.fleet.machines.times import seconds_since

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from slipway.api.cluster import meta
    from slipway.api.cluster.core.machine import Machine
    from slipway.api.cluster.core.machineset import MachineSet
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.status import Severity

OWNED = (
    names.PAUSED_CONDITION,
    names.SCALING_UP_CONDITION,
    names.SCALING_DOWN_CONDITION,
    names.MACHINES_READY_CONDITION,
    names.MACHINES_UP_TO_DATE_CONDITION,
    names.REMEDIATING_CONDITION,
    names.DELETING_CONDITION,
)
MACHINES_CREATED, RESIZED, MACHINES_READY = "MachinesCreated", "Resized", "MachinesReady"
OWNED_DEPRECATED = (names.READY_CONDITION, MACHINES_CREATED, RESIZED, MACHINES_READY)
SUMMED_UP = (MACHINES_CREATED, RESIZED, MACHINES_READY)

READY_REASONS = Reasons(names.NOT_READY_REASON, names.READY_UNKNOWN_REASON, names.READY_REASON)
UP_TO_DATE_REASONS = Reasons(names.NOT_UP_TO_DATE_REASON, names.UP_TO_DATE_UNKNOWN_REASON, names.UP_TO_DATE_REASON)
CHECK_LOGS = "Please check controller logs for errors"
# So long a new Machine may be without its UpToDate condition before that counts.
_NEW = 10.0


class Seen(NamedTuple):
    """What a reconcile found; ``machines`` is None where it did not get so far."""

    machine_set: MachineSet
    machines: Sequence[Machine] | None
    missing: tuple[str, ...] = ()
    """The kinds of its templates that are not there."""
    preflights: tuple[str, ...] = ()
    """Why no Machine may be made now."""

    @property
    def deleting(self) -> bool:
        return bool(self.machine_set.metadata.get("deletionTimestamp"))


def counters(seen: Seen) -> Manifest:
    """The fields of the status that are no conditions; without Machines they stay as they are."""
    found: Manifest = {"selector": selectors.text(seen.machine_set.spec.selector)}
    if seen.machines is None:
        return found
    at_work = [machine for machine in seen.machines if not is_updating(machine)]
    true = Counter([one.type for machine in at_work for one in machine.status.conditions if one.status == TRUE])
    return {
        **found,
        "replicas": len(seen.machines),
        "readyReplicas": true[names.READY_CONDITION],
        "availableReplicas": true[names.AVAILABLE_CONDITION],
        "upToDateReplicas": true[names.UP_TO_DATE_CONDITION],
        "versions": versions.of_machines(seen.machines) or None,
    }


def conditions(seen: Seen, now: datetime) -> list[Condition]:
    if seen.machines is None:
        unknown = [name for name in OWNED if name != names.PAUSED_CONDITION]
        return [Condition(type=name, status=UNKNOWN, reason=names.INTERNAL_ERROR_REASON, message=CHECK_LOGS) for name in unknown]
    machines = seen.machines
    return [
        _scaling_up(seen, machines),
        _scaling_down(seen, machines, now),
        machines_ready(machines),
        machines_up_to_date(machines, now),
        remediating(machines, "MachineSet"),
        _deleting(seen, machines, now),
    ]


def machines_ready(machines: Sequence[Machine]) -> Condition:
    return _aggregated(machines, names.READY_CONDITION, names.MACHINES_READY_CONDITION, READY_REASONS)


def machines_up_to_date(machines: Sequence[Machine], now: datetime) -> Condition:
    """Of the Machines that have the condition or have had the time to get it."""
    settled = [
        machine
        for machine in machines
        if status_of(machine, names.UP_TO_DATE_CONDITION) or seconds_since(machine.metadata.get("creationTimestamp"), now) > _NEW
    ]
    return _aggregated(settled, names.UP_TO_DATE_CONDITION, names.MACHINES_UP_TO_DATE_CONDITION, UP_TO_DATE_REASONS)


def remediating(machines: Sequence[Machine], by: str) -> Condition:
    sick = [machine for machine in machines if status_of(machine, names.HEALTH_CHECK_SUCCEEDED_CONDITION) == FALSE]
    ours = [machine for machine in sick if status_of(machine, names.OWNER_REMEDIATED_CONDITION) == FALSE]
    condition_type = names.REMEDIATING_CONDITION
    if not ours:
        message = messages.unhealthy(sick, by)
        return Condition(type=condition_type, status=FALSE, reason=names.NOT_REMEDIATING_REASON, message=message)
    message = aggregate([source(machine) for machine in ours], names.OWNER_REMEDIATED_CONDITION).message
    return Condition(type=condition_type, status=TRUE, reason=names.REMEDIATING_REASON, message=message)


def source(machine: Machine) -> Source:
    control_plane = names.CONTROL_PLANE_LABEL in (machine.metadata.get("labels") or {})
    return Source(machine.metadata["name"], machine.status.conditions, control_plane=control_plane)


def _aggregated(machines: Sequence[Machine], of: str, condition_type: str, reasons: Reasons) -> Condition:
    if not machines:
        return Condition(type=condition_type, status=TRUE, reason=names.NO_REPLICAS_REASON)
    # One that is well and says nothing stands for all that do.
    saying = [machine for machine in machines if not _is_silent(machine, of)] or machines[:1]
    return aggregate([source(machine) for machine in saying], of, target_type=condition_type, reasons=reasons)


def _is_silent(machine: Machine, condition_type: str) -> bool:
    for one in machine.status.conditions:
        if one.type == condition_type:
            return one.status == TRUE and not one.message
    return False


def _scaling_up(seen: Seen, machines: Sequence[Machine]) -> Condition:
    condition_type, replicas = names.SCALING_UP_CONDITION, seen.machine_set.spec.replicas
    if replicas is None:
        return _waiting(condition_type)
    missing = messages.missing_templates(seen.missing)
    if seen.deleting or len(machines) >= replicas:
        message = f"Scaling up would be blocked because {missing}" if missing and not seen.deleting else ""
        return Condition(type=condition_type, status=FALSE, reason=names.NOT_SCALING_UP_REASON, message=message)
    message = f"Scaling up from {len(machines)} to {replicas} replicas"
    blocked = [*seen.preflights, *([missing] if missing else [])]
    if blocked:
        message += " is blocked because:\n" + "\n".join(f"* {why}" for why in blocked)
    return Condition(type=condition_type, status=TRUE, reason=names.SCALING_UP_REASON, message=message)


def _scaling_down(seen: Seen, machines: Sequence[Machine], now: datetime) -> Condition:
    condition_type, replicas = names.SCALING_DOWN_CONDITION, seen.machine_set.spec.replicas
    if replicas is None:
        return _waiting(condition_type)
    wanted = 0 if seen.deleting else replicas
    # Upstream moved them here a moment ago, and the MachineSet is not yet as large.
    settled = sum(names.PENDING_ACKNOWLEDGE_MOVE_ANNOTATION not in annotations_of(machine) for machine in machines)
    if settled <= wanted:
        return Condition(type=condition_type, status=FALSE, reason=names.NOT_SCALING_DOWN_REASON)
    message = with_stale(f"Scaling down from {settled} to {wanted} replicas", machines, now)
    return Condition(type=condition_type, status=TRUE, reason=names.SCALING_DOWN_REASON, message=message)


def _deleting(seen: Seen, machines: Sequence[Machine], now: datetime) -> Condition:
    if not seen.deleting:
        return Condition(type=names.DELETING_CONDITION, status=FALSE, reason=names.NOT_DELETING_REASON)
    message = with_stale(deleting_machines(machines), machines, now) if machines else "Deletion completed"
    return Condition(type=names.DELETING_CONDITION, status=TRUE, reason=names.DELETING_REASON, message=message)


def deleting_machines(machines: Sequence[Machine]) -> str:
    return f"Deleting {len(machines)} Machine{'' if len(machines) == 1 else 's'}"


def with_stale(message: str, machines: Sequence[Machine], now: datetime) -> str:
    late = messages.stale(machines, now)
    return f"{message}\n* {late}" if late else message


def _waiting(condition_type: str) -> Condition:
    reason = names.WAITING_FOR_REPLICAS_SET_REASON
    return Condition(type=condition_type, status=UNKNOWN, reason=reason, message="Waiting for spec.replicas set")


class NodeState(NamedTuple):
    """What yesterday's counters go by: whether the Node of a Machine is ready, and has been for long enough."""

    ready: bool = False
    available: bool = False


def deprecated_counters(seen: Seen, node: Callable[[str], NodeState]) -> Manifest:
    """``status.deprecated.v1beta1`` but for its conditions; ``node`` is asked for the Node of each Machine that has one."""
    machines = seen.machines or ()
    template = seen.machine_set.spec.template.metadata.labels.items()
    nodes = [node(machine.status.node_ref.name) for machine in machines if machine.status.node_ref.name]
    return {
        "fullyLabeledReplicas": sum(template <= (machine.metadata.get("labels") or {}).items() for machine in machines),
        "readyReplicas": sum(one.ready for one in nodes),
        "availableReplicas": sum(one.ready and one.available for one in nodes),
    }


def deprecated_conditions(seen: Seen, ready: int, created: DeprecatedCondition | None) -> list[DeprecatedCondition]:
    """Yesterday's conditions but for Ready; ``created`` is what went wrong when Machines were made, None where nothing did."""
    machines = seen.machines or ()
    wanted = 0 if seen.deleting else seen.machine_set.spec.replicas or 0
    found: list[DeprecatedCondition] = [created] if created is not None else []
    if len(machines) < wanted:
        found.append(_resized("ScalingUp", f"Scaling up MachineSet to {wanted} replicas (actual {len(machines)})"))
    else:
        if len(machines) > wanted:
            found.append(_resized("ScalingDown", f"Scaling down MachineSet to {wanted} replicas (actual {len(machines)})"))
        elif ready == len(machines):
            # Resized when they are there and at work, not when the last one was asked for.
            found.append(well(RESIZED))
        found = [well(MACHINES_CREATED), *(one for one in found if one.type != MACHINES_CREATED)]
    aggregated = deprecated_ready(machines)
    if aggregated is not None:
        found.append(aggregated)
    return found


def _resized(reason: str, message: str) -> DeprecatedCondition:
    return DeprecatedCondition(type=RESIZED, status=FALSE, reason=reason, severity="Warning", message=message)


def deprecated_ready(machines: Iterable[Machine]) -> DeprecatedCondition | None:
    """MachinesReady of yesterday's Ready of each Machine; None where no Machine has one."""
    machines = list(machines)
    if not machines:
        return well(MACHINES_READY)
    found = [(machine, one) for machine in machines for one in _yesterday(machine) if one.type == names.READY_CONDITION]
    if not found:
        return None
    ranks = {("False", "Error"): 0, ("False", "Warning"): 1, ("False", "Info"): 2, ("True", ""): 3, ("Unknown", ""): 4}
    machine, worst = min(found, key=lambda each: (ranks.get((each[1].status, each[1].severity), 99), each[0].metadata["name"]))
    if worst.status == TRUE:
        return well(MACHINES_READY)
    reason = worst.reason if "@" in worst.reason else f"{worst.reason} @ Machine/{machine.metadata['name']}"
    done = sum(one.status == TRUE and not one.severity for _, one in found)
    message = f"{done} of {len(machines)} completed"
    if worst.status == FALSE:
        known: dict[str, Severity] = {"Error": "Error", "Warning": "Warning", "Info": "Info"}
        severity = known.get(worst.severity, "")
        return DeprecatedCondition(type=MACHINES_READY, status=FALSE, reason=reason, severity=severity, message=message)
    return DeprecatedCondition(type=MACHINES_READY, status=UNKNOWN, reason=reason, message=message)


def _yesterday(machine: Machine) -> Sequence[meta.DeprecatedCondition]:
    deprecated = machine.status.deprecated
    return deprecated.v1beta1.conditions if deprecated is not None and deprecated.v1beta1 is not None else ()


def requeue(seen: Seen, status: Manifest) -> float:
    """In how many seconds the counters may have changed without an event."""
    spec = seen.machine_set.spec
    replicas, wait = spec.replicas or 0, spec.template.spec.min_ready_seconds or 0
    ready, available = status.get("readyReplicas") or 0, status.get("availableReplicas") or 0
    if wait > 0 and ready == replicas and available != replicas:
        return float(wait)
    return 15.0 if ready != replicas else 0.0
