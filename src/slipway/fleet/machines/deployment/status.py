"""What a MachineDeployment reports: counters, phase and conditions, from its MachineSets and Machines as they are.

``waiting`` is ours: what a rollout waits for (a control plane, another MachineDeployment, a check), one line each, in RollingOut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names
from slipway.fleet.contract import selectors
from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN, Condition
from slipway.fleet.contract.status import DeprecatedCondition, well
from slipway.fleet.machines.limits import limits
from slipway.fleet.machines.machineset import messages, versions
from slipway.fleet.machines.machineset.status import (
    CHECK_LOGS,
    deleting_machines,
    machines_ready,
    machines_up_to_date,
    remediating,
    with_stale,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from slipway.api.cluster.core.machine import Machine
    from slipway.api.cluster.core.machinedeployment import MachineDeployment
    from slipway.api.cluster.core.machineset import MachineSet
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.status import Severity
    from slipway.fleet.machines.limits import Limits

ROLLING_UPDATE, ON_DELETE = "RollingUpdate", "OnDelete"
OWNED = (
    names.PAUSED_CONDITION,
    names.AVAILABLE_CONDITION,
    names.MACHINES_READY_CONDITION,
    names.MACHINES_UP_TO_DATE_CONDITION,
    names.ROLLING_OUT_CONDITION,
    names.SCALING_DOWN_CONDITION,
    names.SCALING_UP_CONDITION,
    names.REMEDIATING_CONDITION,
    names.DELETING_CONDITION,
)
MACHINE_SET_READY = "MachineSetReady"
OWNED_DEPRECATED = (names.READY_CONDITION, names.AVAILABLE_CONDITION, MACHINE_SET_READY)
WAITING_FOR_AVAILABLE_REPLICAS_SET = "WaitingForAvailableReplicasSet"
_VERSION = "* Version"


class Seen(NamedTuple):
    """What a reconcile found; ``sets`` is None where it did not get so far."""

    deployment: MachineDeployment
    sets: Sequence[MachineSet] | None
    machines: Sequence[Machine] = ()
    missing: tuple[str, ...] = ()
    """The kinds of its templates that are not there."""
    waiting: tuple[str, ...] = ()
    problem: str = ""
    """Why the reconcile failed; a sentence."""

    @property
    def deleting(self) -> bool:
        return bool(self.deployment.metadata.get("deletionTimestamp"))


def is_rolling(deployment: MachineDeployment) -> bool:
    """Whether machines are replaced by themselves; that is what is meant where nothing is said."""
    return deployment.spec.rollout.strategy.type != ON_DELETE


def limits_of(deployment: MachineDeployment) -> Limits:
    rolling_update = deployment.spec.rollout.strategy.rolling_update
    return limits(
        rolling=is_rolling(deployment),
        surge=rolling_update.max_surge,
        unavailable=rolling_update.max_unavailable,
        replicas=deployment.spec.replicas or 0,
    )


def total(numbers: Sequence[int | None]) -> int | None:
    """The sum of those that are known; None where none is."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def counters(seen: Seen) -> Manifest:
    """The fields of the status that are no conditions; without MachineSets the counters stay as they are."""
    found: Manifest = {"selector": selectors.text(seen.deployment.spec.selector), "phase": _phase(seen)}
    if seen.sets is None:
        return found
    return {
        **found,
        "replicas": total([one.status.replicas for one in seen.sets]),
        "readyReplicas": total([one.status.ready_replicas for one in seen.sets]),
        "availableReplicas": total([one.status.available_replicas for one in seen.sets]),
        "upToDateReplicas": total([one.status.up_to_date_replicas for one in seen.sets]),
        "versions": versions.of_sets(seen.sets) or None,
    }


def conditions(seen: Seen, available: int | None, now: datetime) -> list[Condition]:
    """``available`` is the counter of the status; it is what it was where MachineSets could not be read."""
    return [
        _available(seen, available),
        _rolling_out(seen),
        _scaling_up(seen),
        _scaling_down(seen, now),
        machines_ready(seen.machines),
        machines_up_to_date(seen.machines, now),
        remediating(seen.machines, "MachineDeployment/MachineSet"),
        _deleting(seen, now),
    ]


def deprecated_counters(seen: Seen, new: MachineSet | None) -> Manifest:
    """``status.deprecated.v1beta1`` but for its conditions."""
    yesterday = [one.status.deprecated.v1beta1 for one in seen.sets or () if one.status.deprecated and one.status.deprecated.v1beta1]
    available = sum(one.available_replicas for one in yesterday)
    wanted = sum(one.spec.replicas or 0 for one in seen.sets or ())
    return {
        "updatedReplicas": (new.status.replicas or 0) if new is not None else 0,
        "readyReplicas": sum(one.ready_replicas for one in yesterday),
        "availableReplicas": available,
        "unavailableReplicas": max(wanted - available, 0),
    }


def deprecated_conditions(seen: Seen, new: MachineSet | None, available: int, available_today: int) -> list[DeprecatedCondition]:
    needed = (seen.deployment.spec.replicas or 0) - limits_of(seen.deployment).unavailable
    if available >= needed:
        first = well(names.AVAILABLE_CONDITION)
    else:
        message = f"Minimum availability requires {needed} replicas, current {available_today} available"
        first = _not_yet(names.AVAILABLE_CONDITION, "WaitingForAvailableMachines", "Warning", message)
    if new is None:
        return [first, _not_yet(MACHINE_SET_READY, "WaitingForMachineSet", "Info", "MachineSet not found")]
    deprecated = new.status.deprecated
    known = deprecated.v1beta1.conditions if deprecated is not None and deprecated.v1beta1 is not None else []
    ready = next((one for one in known if one.type == names.READY_CONDITION), None)
    if ready is None:
        return [first, _not_yet(MACHINE_SET_READY, "WaitingForMachineSet", "Info", "")]
    mirrored = DeprecatedCondition(
        type=MACHINE_SET_READY,
        status=ready.status,  # type: ignore[arg-type]
        reason=ready.reason,
        severity=ready.severity,  # type: ignore[arg-type]
        message=ready.message,
    )
    return [first, mirrored]


def _not_yet(condition_type: str, reason: str, severity: Severity, message: str) -> DeprecatedCondition:
    return DeprecatedCondition(type=condition_type, status=FALSE, reason=reason, severity=severity, message=message)


def _phase(seen: Seen) -> str:
    replicas = seen.deployment.spec.replicas
    if seen.sets is None or replicas is None:
        return "Unknown"
    machines = _machines(seen.sets)
    if seen.deleting or machines > replicas:
        return "ScalingDown"
    return "Running" if machines == replicas else "ScalingUp"


def _machines(sets: Sequence[MachineSet]) -> int:
    return sum(one.status.replicas or 0 for one in sets)


def _available(seen: Seen, available: int | None) -> Condition:
    condition_type, replicas = names.AVAILABLE_CONDITION, seen.deployment.spec.replicas
    if seen.sets is None:
        return _failed(condition_type, seen)
    if replicas is None:
        return _waiting(condition_type)
    if available is None:
        reason = WAITING_FOR_AVAILABLE_REPLICAS_SET
        return Condition(type=condition_type, status=UNKNOWN, reason=reason, message="Waiting for status.availableReplicas set")
    needed = replicas - limits_of(seen.deployment).unavailable
    if available >= needed:
        return Condition(type=condition_type, status=TRUE, reason=names.AVAILABLE_REASON)
    message = f"{available} available replicas, at least {needed} required"
    if is_rolling(seen.deployment):
        unavailable = seen.deployment.spec.rollout.strategy.rolling_update.max_unavailable
        # Go prints the pointer that is not set like this.
        shown = "nil" if unavailable is None else unavailable
        message += f" (spec.strategy.rollout.maxUnavailable is {shown}, spec.replicas is {replicas})"
    if seen.deleting:
        message = "Deletion in progress"
    return Condition(type=condition_type, status=FALSE, reason=names.NOT_AVAILABLE_REASON, message=message)


def _rolling_out(seen: Seen) -> Condition:
    condition_type = names.ROLLING_OUT_CONDITION
    outdated = [
        one
        for machine in seen.machines
        for one in machine.status.conditions
        if one.type == names.UP_TO_DATE_CONDITION and one.status == FALSE
    ]
    waits = [f"* {why}" for why in seen.waiting]
    if not outdated:
        return Condition(type=condition_type, status=FALSE, reason=names.NOT_ROLLING_OUT_REASON, message="\n".join(waits))
    reasons = {line for one in outdated if one.message for line in one.message.split("\n")}
    lines = sorted(reasons, key=lambda line: (not line.startswith(_VERSION), line))
    message = "\n".join([f"Rolling out {len(outdated)} not up-to-date replicas", *lines, *waits])
    return Condition(type=condition_type, status=TRUE, reason=names.ROLLING_OUT_REASON, message=message)


def _scaling_up(seen: Seen) -> Condition:
    condition_type, replicas = names.SCALING_UP_CONDITION, seen.deployment.spec.replicas
    if seen.sets is None:
        return _failed(condition_type, seen)
    if replicas is None:
        return _waiting(condition_type)
    machines = _machines(seen.sets)
    missing = messages.missing_templates(seen.missing)
    # Ours: what else is in the way is told here, too.
    blocked = f"because {missing}" if missing else f"because {seen.problem}" if seen.problem else ""
    if seen.deleting or machines >= replicas:
        message = f"Scaling up would be blocked {blocked}" if blocked and not seen.deleting else ""
        return Condition(type=condition_type, status=FALSE, reason=names.NOT_SCALING_UP_REASON, message=message)
    message = f"Scaling up from {machines} to {replicas} replicas{f' is blocked {blocked}' if blocked else ''}"
    return Condition(type=condition_type, status=TRUE, reason=names.SCALING_UP_REASON, message=message)


def _scaling_down(seen: Seen, now: datetime) -> Condition:
    condition_type, replicas = names.SCALING_DOWN_CONDITION, seen.deployment.spec.replicas
    if seen.sets is None:
        return _failed(condition_type, seen)
    if replicas is None:
        return _waiting(condition_type)
    machines, wanted = _machines(seen.sets), 0 if seen.deleting else replicas
    if machines <= wanted:
        return Condition(type=condition_type, status=FALSE, reason=names.NOT_SCALING_DOWN_REASON)
    message = with_stale(f"Scaling down from {machines} to {wanted} replicas", seen.machines, now)
    return Condition(type=condition_type, status=TRUE, reason=names.SCALING_DOWN_REASON, message=message)


def _deleting(seen: Seen, now: datetime) -> Condition:
    condition_type = names.DELETING_CONDITION
    if seen.sets is None:
        return _failed(condition_type, seen)
    if not seen.deleting:
        return Condition(type=condition_type, status=FALSE, reason=names.NOT_DELETING_REASON)
    if seen.machines:
        message = with_stale(deleting_machines(seen.machines), seen.machines, now)
    else:
        message = f"Deleting {len(seen.sets)} MachineSets" if seen.sets else "Deletion completed"
    return Condition(type=condition_type, status=TRUE, reason=names.DELETING_REASON, message=message)


def _failed(condition_type: str, seen: Seen) -> Condition:
    # Ours: the sentence, where upstream sends people to its log.
    return Condition(type=condition_type, status=UNKNOWN, reason=names.INTERNAL_ERROR_REASON, message=seen.problem or CHECK_LOGS)


def _waiting(condition_type: str) -> Condition:
    reason = names.WAITING_FOR_REPLICAS_SET_REASON
    return Condition(type=condition_type, status=UNKNOWN, reason=reason, message="Waiting for spec.replicas set")
