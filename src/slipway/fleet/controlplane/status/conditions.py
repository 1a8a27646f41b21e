"""The conditions of a KubeadmControlPlane that follow from its Machines: types, reasons and messages are Cluster API's."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names
from slipway.fleet.contract.aggregation import Source, aggregate
from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN, Condition, Reasons, moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.cluster.core.machine import Machine
    from slipway.api.cluster.meta import Condition as ApiCondition

# A Machine is not called late before it had time to be reported on.
_REPORTED_AFTER = timedelta(seconds=10)
_STALE_AFTER = timedelta(minutes=15)
_DRAINED_FOR = timedelta(minutes=5)
_SHOWN = 3
# Parts of what the Machine controller says while it drains, and what they are due to.
_DELAYS = {
    "cannot evict pod as it would violate the pod's disruption budget.": "PodDisruptionBudgets",
    "deletionTimestamp set, but still not removed from the Node": "Pods not terminating",
    "failed to evict Pod": "Pod eviction errors",
    "waiting for completion": "Pods not completed yet",
}


class Scale(NamedTuple):
    """How many machines there are, how many there are to be, and what keeps the step between them."""

    replicas: int | None
    machines: Sequence[Machine]
    now: datetime
    blocked: Sequence[str] = ()
    missing: str = ""
    """The kind of the infrastructure template, where it does not exist."""
    deleting: bool = False

    @property
    def wanted(self) -> int:
        return 0 if self.deleting or self.replicas is None else self.replicas


def condition_of(machine: Machine, condition_type: str) -> ApiCondition | None:
    return next((condition for condition in machine.status.conditions if condition.type == condition_type), None)


def says(machine: Machine, condition_type: str, status: str) -> bool:
    found = condition_of(machine, condition_type)
    return found is not None and found.status == status


def initialized(done: bool) -> Condition:
    reason = names.INITIALIZED_REASON if done else names.NOT_INITIALIZED_REASON
    return Condition(type=names.INITIALIZED_CONDITION, status=TRUE if done else FALSE, reason=reason)


def rolling_out(machines: Sequence[Machine]) -> Condition:
    found = [condition_of(machine, names.UP_TO_DATE_CONDITION) for machine in machines]
    outdated = [condition for condition in found if condition is not None and condition.status == FALSE]
    if not outdated:
        return Condition(type=names.ROLLING_OUT_CONDITION, status=FALSE, reason=names.NOT_ROLLING_OUT_REASON)
    reasons = {line for condition in outdated if condition.message for line in condition.message.split("\n")}
    # A change of the version is what people look for.
    lines = sorted(reasons, key=lambda line: (not line.startswith("* Version"), line))
    message = "\n".join([f"Rolling out {len(outdated)} not up-to-date replicas", *lines])
    return Condition(type=names.ROLLING_OUT_CONDITION, status=TRUE, reason=names.ROLLING_OUT_REASON, message=message)


def scaling_up(scale: Scale) -> Condition:
    if scale.replicas is None:
        return _waiting_for_replicas(names.SCALING_UP_CONDITION)
    missing = f"{scale.missing} does not exist" if scale.missing else ""
    count = len(scale.machines)
    if count >= scale.wanted:
        message = f"Scaling up would be blocked because {missing}" if missing else ""
        return Condition(type=names.SCALING_UP_CONDITION, status=FALSE, reason=names.NOT_SCALING_UP_REASON, message=message)
    message = _blocked(f"Scaling up from {count} to {scale.wanted} replicas", [*scale.blocked, *([missing] if missing else ())])
    return Condition(type=names.SCALING_UP_CONDITION, status=TRUE, reason=names.SCALING_UP_REASON, message=message)


def scaling_down(scale: Scale) -> Condition:
    if scale.replicas is None:
        return _waiting_for_replicas(names.SCALING_DOWN_CONDITION)
    count = len(scale.machines)
    if count <= scale.wanted:
        return Condition(type=names.SCALING_DOWN_CONDITION, status=FALSE, reason=names.NOT_SCALING_DOWN_REASON)
    stale = stale_machines(scale.machines, scale.now)
    message = _blocked(f"Scaling down from {count} to {scale.wanted} replicas", [*scale.blocked, *([stale] if stale else ())])
    return Condition(type=names.SCALING_DOWN_CONDITION, status=TRUE, reason=names.SCALING_DOWN_REASON, message=message)


def machines_ready(machines: Sequence[Machine]) -> Condition:
    reasons = Reasons(names.NOT_READY_REASON, names.READY_UNKNOWN_REASON, names.READY_REASON)
    return _of_all(machines, names.READY_CONDITION, names.MACHINES_READY_CONDITION, reasons)


def machines_up_to_date(machines: Sequence[Machine], now: datetime) -> Condition:
    reasons = Reasons(names.NOT_UP_TO_DATE_REASON, names.UP_TO_DATE_UNKNOWN_REASON, names.UP_TO_DATE_REASON)
    counted = [
        machine
        for machine in machines
        if condition_of(machine, names.UP_TO_DATE_CONDITION) is not None or now - created(machine) > _REPORTED_AFTER
    ]
    return _of_all(counted, names.UP_TO_DATE_CONDITION, names.MACHINES_UP_TO_DATE_CONDITION, reasons)


def remediating(machines: Sequence[Machine]) -> Condition:
    unhealthy = [machine for machine in machines if says(machine, names.HEALTH_CHECK_SUCCEEDED_CONDITION, FALSE)]
    ours = [machine for machine in unhealthy if says(machine, names.OWNER_REMEDIATED_CONDITION, FALSE)]
    if ours:
        message = aggregate(list(map(_source, ours)), names.OWNER_REMEDIATED_CONDITION).message
        return Condition(type=names.REMEDIATING_CONDITION, status=TRUE, reason=names.REMEDIATING_REASON, message=message)
    message = f"{_listed(unhealthy)} not healthy (not to be remediated by KubeadmControlPlane)" if unhealthy else ""
    return Condition(type=names.REMEDIATING_CONDITION, status=FALSE, reason=names.NOT_REMEDIATING_REASON, message=message)


def stale_machines(machines: Sequence[Machine], now: datetime) -> str:
    """A sentence about those that should be gone by now, with what may be the cause; empty where there are none."""
    stale = [machine for machine in machines if (since := deleted(machine)) is not None and now - since > _STALE_AFTER]
    if not stale:
        return ""
    causes = {cause for machine in stale for cause in _delays(machine, now)}
    likely = [cause for cause in _DELAYS.values() if cause in causes]
    delay = f", delay likely due to {', '.join(likely)}" if likely else ""
    return f"{_listed(stale)} in deletion since more than 15m{delay}"


def created(machine: Machine) -> datetime:
    return datetime.fromisoformat(machine.metadata["creationTimestamp"])


def deleted(machine: Machine) -> datetime | None:
    return moment(machine.metadata.get("deletionTimestamp"))


def _delays(machine: Machine, now: datetime) -> list[str]:
    condition, deletion = condition_of(machine, names.DELETING_CONDITION), machine.status.deletion
    if condition is None or (condition.status, condition.reason) != (TRUE, "DrainingNode") or deletion is None:
        return []
    began = moment(deletion.node_drain_start_time)
    if began is None or now - began <= _DRAINED_FOR:
        return []
    return [cause for part, cause in _DELAYS.items() if part in condition.message]


def _of_all(machines: Sequence[Machine], source_type: str, target_type: str, reasons: Reasons) -> Condition:
    if not machines:
        return Condition(type=target_type, status=TRUE, reason=names.NO_REPLICAS_REASON)
    return aggregate(list(map(_source, machines)), source_type, target_type=target_type, reasons=reasons)


def _source(machine: Machine) -> Source:
    control_plane = names.CONTROL_PLANE_LABEL in (machine.metadata.get("labels") or {})
    return Source(machine.metadata["name"], machine.status.conditions, control_plane=control_plane)


def _waiting_for_replicas(condition_type: str) -> Condition:
    message = "Waiting for spec.replicas set"
    return Condition(type=condition_type, status=UNKNOWN, reason=names.WAITING_FOR_REPLICAS_SET_REASON, message=message)


def _blocked(message: str, causes: Sequence[str]) -> str:
    return "\n".join([f"{message} is blocked because:", *(f"* {cause}" for cause in causes)]) if causes else message


def _listed(machines: Sequence[Machine]) -> str:
    found = sorted(machine.metadata["name"] for machine in machines)
    more = [f"... ({len(found) - _SHOWN} more)"] if len(found) > _SHOWN else []
    shown = ", ".join([*found[:_SHOWN], *more])
    return f"Machine {shown} is" if len(found) == 1 else f"Machines {shown} are"
