"""Which sick Machines a MachineSet replaces now, and what it says of the others: a decision about values.

A MachineHealthCheck finds a Machine sick (HealthCheckSucceeded False) and asks its owner to act (OwnerRemediated False).  The owner acts by
deleting it, not more than ``maxInFlight`` at a time, and only where a new one may be made.

Beyond Cluster API: with the strategy OnDelete nothing else would ever remove a sick Machine of an old template, so those are remediated,
too; the current MachineSet makes the successor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names
from slipway.fleet.contract.conditions import FALSE, TRUE, Condition
from slipway.fleet.contract.status import DeprecatedCondition, well
from slipway.fleet.machines.machineset.deletion import is_deleting, remediation_order, status_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.cluster.core.machine import Machine

OWNER_REMEDIATED = names.OWNER_REMEDIATED_CONDITION


class Verdict(NamedTuple):
    """What is said of a Machine, in today's and, where that changes, in yesterday's form."""

    machine: Machine
    condition: Condition
    deprecated: DeprecatedCondition | None = None


class Remediation(NamedTuple):
    recovered: Sequence[Machine] = ()
    """Healthy again: what was said of them is taken back."""
    said: Sequence[Verdict] = ()
    delete: Sequence[Machine] = ()
    needs_checks: Sequence[Machine] = ()
    """To be deleted once the checks before a Machine is made have passed."""


def to_remediate(machines: Sequence[Machine]) -> list[Machine]:
    """Sick ones that we were asked to replace and that are not going already."""
    return [machine for machine in machines if _is_asked_for(machine, FALSE)]


def recovered(machines: Sequence[Machine]) -> list[Machine]:
    return [machine for machine in machines if _is_asked_for(machine, TRUE)]


def _is_asked_for(machine: Machine, health: str) -> bool:
    return (
        status_of(machine, OWNER_REMEDIATED) == FALSE
        and status_of(machine, names.HEALTH_CHECK_SUCCEEDED_CONDITION) == health
        and not is_deleting(machine)
    )


def decide(machines: Sequence[Machine], *, outdated: bool, max_in_flight: int | None, shown: str = "") -> Remediation:
    """``outdated``: the MachineSet is of an old template whose Machines go with the rollout.  ``shown``: the limit as the spec has it."""
    well_again, sick = recovered(machines), to_remediate(machines)
    if not sick:
        return Remediation(well_again)
    if outdated:
        message = "Machine won't be remediated because it is pending removal due to rollout"
        return Remediation(well_again, [_say(machine, names.CANNOT_BE_REMEDIATED_REASON, message) for machine in sick])
    free = len(sick) if max_in_flight is None else max(max_in_flight - sum(map(_in_flight, machines)), 0)
    ordered = remediation_order(sick)
    later = f"Waiting because there are already too many remediations in progress (spec.strategy.remediation.maxInFlight is {shown})"
    deferred = [_say(machine, names.REMEDIATION_DEFERRED_REASON, later) for machine in ordered[free:]]
    return Remediation(well_again, deferred, needs_checks=ordered[:free])


def checked(decision: Remediation, failed: Sequence[str]) -> Remediation:
    """The same after the checks: what may be deleted is, unless one failed."""
    if not decision.needs_checks:
        return decision
    if failed:
        message = "\n".join(f"* {why}" for why in failed)
        older = _deprecated("WaitingForRemediation", "; ".join(failed))
        said = [_say(machine, names.REMEDIATION_DEFERRED_REASON, message, older) for machine in decision.needs_checks]
        return decision._replace(said=[*decision.said, *said], needs_checks=())
    # Said before the deletion: a Machine that is going is not looked at any more.
    said = [
        _say(machine, names.REMEDIATION_MACHINE_DELETING_REASON, "Machine is deleting", well(OWNER_REMEDIATED))
        for machine in decision.needs_checks
    ]
    return decision._replace(said=[*decision.said, *said], delete=decision.needs_checks, needs_checks=())


def _in_flight(machine: Machine) -> bool:
    reason = next((one.reason for one in machine.status.conditions if one.type == OWNER_REMEDIATED and one.status == FALSE), "")
    return is_deleting(machine) and reason == names.REMEDIATION_MACHINE_DELETING_REASON


def _say(machine: Machine, reason: str, message: str, deprecated: DeprecatedCondition | None = None) -> Verdict:
    return Verdict(machine, Condition(type=OWNER_REMEDIATED, status=FALSE, reason=reason, message=message), deprecated)


def _deprecated(reason: str, message: str) -> DeprecatedCondition:
    return DeprecatedCondition(type=OWNER_REMEDIATED, status=FALSE, reason=reason, severity="Warning", message=message)
