"""What the other conditions of a Machine come to: Ready, Available and the phase."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names
from slipway.fleet.contract import conditions
from slipway.fleet.contract.conditions import FALSE, TRUE, Condition
from slipway.fleet.contract.status import READY_REASONS
from slipway.fleet.machines.machine import words
from slipway.fleet.machines.machine.values import moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from slipway.api.cluster.core.machine import Machine
    from slipway.api.machinery.objects import Manifest

_SUMMED_UP = (
    names.DELETING_CONDITION,
    names.UPDATING_CONDITION,
    names.BOOTSTRAP_CONFIG_READY_CONDITION,
    names.INFRASTRUCTURE_READY_CONDITION,
    names.NODE_HEALTHY_CONDITION,
    names.HEALTH_CHECK_SUCCEEDED_CONDITION,
)
# While a Machine is being deleted, what goes with it is no issue.
_EXPECTED = {
    names.BOOTSTRAP_CONFIG_READY_CONDITION: (names.OBJECT_DELETED_REASON, names.OBJECT_DOES_NOT_EXIST_REASON),
    names.INFRASTRUCTURE_READY_CONDITION: (names.OBJECT_DELETED_REASON, names.OBJECT_DOES_NOT_EXIST_REASON),
    names.NODE_HEALTHY_CONDITION: (names.NODE_DELETED_REASON, names.NODE_DOES_NOT_EXIST_REASON),
}
_LONG = 15 * 60
_LONG_DRAIN = 5 * 60
# What a drain waits for, by what its message says of it.
_DELAYS = (
    ("cannot evict pod as it would violate the pod's disruption budget.", "PodDisruptionBudgets"),
    ("deletionTimestamp set, but still not removed from the Node", "Pods not terminating"),
    ("failed to evict Pod", "Pod eviction errors"),
    ("waiting for completion", "Pods not completed yet"),
)
_COMPONENTS = ("* APIServer", "* ControllerManager", "* Scheduler")
_ETCD_POD = "* EtcdPodHealthy"


class Availability(NamedTuple):
    """``seconds`` until it changes by itself; 0 where it does not."""

    condition: Condition
    seconds: float = 0.0


def ready(machine: Machine, told: Sequence[Manifest], now: datetime) -> Condition:
    """The summary of all conditions and of the readiness gates of the spec."""
    gates = machine.spec.readiness_gates
    negative = {names.DELETING_CONDITION, names.UPDATING_CONDITION, *(gate.condition_type for gate in gates if gate.polarity == "Negative")}
    wanted = [*_SUMMED_UP, *(gate.condition_type for gate in gates)]
    if machine.metadata.get("deletionTimestamp"):
        told = [_as_expected(condition) for condition in told]
        told = [
            *conditions.remove(told, names.DELETING_CONDITION),
            _deleting_in_short(machine, conditions.find(told, names.DELETING_CONDITION), now),
        ]
    return conditions.summary(
        told,
        names.READY_CONDITION,
        # The last mention of a condition decides its place.
        list(dict.fromkeys(reversed(wanted)))[::-1],
        READY_REASONS,
        negative=negative,
        ignored_if_missing=(names.HEALTH_CHECK_SUCCEEDED_CONDITION,),
        reworded=grouped,
    )


def available(condition: Condition, min_ready_seconds: int | None, now: datetime) -> Availability:
    """Available is Ready for long enough."""
    name = names.AVAILABLE_CONDITION
    if condition.status != TRUE:
        return Availability(Condition(type=name, status=FALSE, reason=names.NOT_READY_REASON))
    since = moment(condition.last_transition_time) or now
    left = (min_ready_seconds or 0) - (now - since).total_seconds()
    if left <= 0:
        return Availability(Condition(type=name, status=TRUE, reason=names.AVAILABLE_CONDITION))
    return Availability(Condition(type=name, status=FALSE, reason="WaitingForMinReadySeconds"), left)


def phase(machine: Machine, *, in_place_update: bool) -> str:
    """How far a Machine has come; the last of these that holds."""
    initialization = machine.status.initialization
    provisioned = initialization.infrastructure_provisioned is True
    found = machine.status.phase or "Pending"
    if initialization.bootstrap_data_secret_created is True and not provisioned:
        found = "Provisioning"
    if machine.spec.provider_id:
        found = "Provisioned"
    if machine.status.node_ref.name and provisioned:
        found = "Running"
    if in_place_update:
        found = "Updating"
    if machine.metadata.get("deletionTimestamp"):
        found = "Deleting"
    return found


def _as_expected(condition: Manifest) -> Manifest:
    if condition.get("reason") in _EXPECTED.get(condition.get("type", ""), ()):
        return {**condition, "status": TRUE, "message": ""}
    return condition


def _deleting_in_short(machine: Machine, condition: Condition | None, now: datetime) -> Manifest:
    """The Deleting condition as Ready tells it: few different texts, so that those of many Machines can be told together."""
    message = "Machine deletion in progress"
    if condition is not None:
        since = moment(machine.metadata.get("deletionTimestamp"))
        long = since is not None and (now - since).total_seconds() > _LONG
        message += f"{' since more than 15m' if long else ''}, stage: {condition.reason}"
        deletion = machine.status.deletion
        began = moment(deletion.node_drain_start_time) if deletion is not None else None
        if long and condition.reason == words.DRAINING_NODE and began is not None and (now - began).total_seconds() > _LONG_DRAIN:
            causes = [cause for text, cause in _DELAYS if text in condition.message]
            message += f", delay likely due to {', '.join(causes)}" if causes else ""
    return {"type": names.DELETING_CONDITION, "status": TRUE, "reason": "Deleting", "message": message}


def grouped(lines: list[str]) -> list[str]:
    """The lines of a summary, with those of the components of a control plane as one where all say the same."""
    out: list[str] = []
    said, count = "", 0
    for line in lines:
        name, colon, text = line.partition(":")
        if not colon or not (name.startswith(_COMPONENTS) or name == _ETCD_POD):
            out.append(line)
            continue
        if count and text != said:
            return lines
        if not count:
            said = text
            out.append(f"* Control plane components:{text}")
        count += 1
    return lines if count == 1 else out
