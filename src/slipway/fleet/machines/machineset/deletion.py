"""Which Machines of a MachineSet go first: when it is scaled down, and when more are sick than may be replaced at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster import names
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.machines.times import seconds_since

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from slipway.api.cluster.core.machine import Machine

RANDOM, NEWEST, OLDEST = "Random", "Newest", "Oldest"

# Before any age counts: those that go already, those that a person chose, those that are in the middle of an update, sick ones.
_DELETING, _CHOSEN, _UPDATING, _SICK, _OTHER = range(5)


def deletion_order(machines: Sequence[Machine], order: str, now: datetime) -> list[Machine]:
    """All of them, the first to go first."""
    if order not in ("", RANDOM, NEWEST, OLDEST):
        raise OperatorError(f'the deletion order "{order}" is not known: it is {RANDOM}, {NEWEST} or {OLDEST}')
    return sorted(machines, key=lambda machine: (_rank(machine), _age(machine, order, now), machine.metadata["name"]))


def remediation_order(machines: Sequence[Machine]) -> list[Machine]:
    """First what a person asked for, then the newest: one that never came up has no Pods to lose."""
    by_name = sorted(machines, key=lambda machine: str(machine.metadata["name"]))
    newest_first = sorted(by_name, key=lambda machine: machine.metadata.get("creationTimestamp") or "", reverse=True)
    return sorted(newest_first, key=lambda machine: names.REMEDIATE_MACHINE_ANNOTATION not in annotations_of(machine))


def annotations_of(machine: Machine) -> dict[str, str]:
    return machine.metadata.get("annotations") or {}


def is_deleting(machine: Machine) -> bool:
    return bool(machine.metadata.get("deletionTimestamp"))


def is_updating(machine: Machine) -> bool:
    """Upstream updates it in place, which is not for us to disturb."""
    annotations = annotations_of(machine)
    if names.UPDATE_IN_PROGRESS_ANNOTATION in annotations:
        return True
    return names.PENDING_HOOKS_ANNOTATION in annotations and "UpdateMachine" in annotations[names.PENDING_HOOKS_ANNOTATION].split(",")


def status_of(machine: Machine, condition_type: str) -> str:
    """The status of a condition; empty where it is not there."""
    # A loop, as it is asked of every Machine of a large set again and again.
    for one in machine.status.conditions:
        if one.type == condition_type:
            return one.status
    return ""


def is_healthy(machine: Machine) -> bool:
    """Nothing is known against it; what is unknown is not."""
    if not machine.status.node_ref.name:
        return False
    return "False" not in (status_of(machine, names.NODE_HEALTHY_CONDITION), status_of(machine, names.HEALTH_CHECK_SUCCEEDED_CONDITION))


def _rank(machine: Machine) -> int:
    if is_deleting(machine):
        return _DELETING
    if names.DELETE_MACHINE_ANNOTATION in annotations_of(machine):
        return _CHOSEN
    if is_updating(machine):
        return _UPDATING
    return _OTHER if is_healthy(machine) else _SICK


def _age(machine: Machine, order: str, now: datetime) -> float:
    """What sorts machines of one rank; those that only the name tells apart are all 0."""
    if _rank(machine) != _OTHER or order not in (NEWEST, OLDEST):
        return 0.0
    created = machine.metadata.get("creationTimestamp")
    # One without a time is taken for the youngest, as Cluster API does.
    age = max(seconds_since(created, now), 0.0) if created else 0.0
    return age if order == NEWEST else -age
