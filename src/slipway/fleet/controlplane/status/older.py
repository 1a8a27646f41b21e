"""The conditions of v1beta1, which stand beside today's: other names, severities, and a Ready that sums them up."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN
from slipway.fleet.contract.status import DeprecatedCondition, well
from slipway.fleet.controlplane.status.conditions import says

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.cluster.core.machine import Machine
    from slipway.api.cluster.meta import DeprecatedCondition as ApiDeprecatedCondition
    from slipway.fleet.contract.status import Severity

AVAILABLE = "Available"
CERTIFICATES_AVAILABLE = "CertificatesAvailable"
MACHINES_CREATED = "MachinesCreated"
MACHINES_READY = "MachinesReady"
MACHINES_SPEC_UP_TO_DATE = "MachinesSpecUpToDate"
RESIZED = "Resized"
SUMMED_UP = (MACHINES_CREATED, MACHINES_SPEC_UP_TO_DATE, RESIZED, MACHINES_READY, AVAILABLE, CERTIFICATES_AVAILABLE)

_SEVERITIES: dict[str, int] = {"Error": 0, "Warning": 1, "Info": 2}


def false(condition_type: str, reason: str, severity: Severity, message: str = "") -> DeprecatedCondition:
    return DeprecatedCondition(type=condition_type, status=FALSE, reason=reason, severity=severity, message=message)


def machines_ready(machines: Sequence[Machine]) -> DeprecatedCondition | None:
    """The Ready of all Machines, by the worst of them, which is named; None where none of them says anything."""
    said = [(machine.metadata["name"], condition) for machine in machines if (condition := _ready(machine)) is not None]
    if not said:
        return None
    name, worst = min(said, key=lambda one: (_rank(one[1]), one[0]))
    if worst.status == TRUE:
        return well(MACHINES_READY)
    count = sum(condition.status == TRUE for _, condition in said)
    reason = worst.reason if "@" in worst.reason else f"{worst.reason} @ Machine/{name}"
    message = f"{count} of {len(machines)} completed"
    if worst.status == FALSE:
        return false(MACHINES_READY, reason, cast("Severity", worst.severity), message)
    return DeprecatedCondition(type=MACHINES_READY, status=UNKNOWN, reason=reason, message=message)


def resized(machines: Sequence[Machine], wanted: int) -> list[DeprecatedCondition]:
    """Whether there are as many Machines as are wanted, and whether they could be made."""
    count = len(machines)
    if count < wanted:
        return [false(RESIZED, "ScalingUp", "Warning", f"Scaling up control plane to {wanted} replicas (actual {count})")]
    if count > wanted:
        down = false(RESIZED, "ScalingDown", "Warning", f"Scaling down control plane to {wanted} replicas (actual {count})")
        return [down, well(MACHINES_CREATED)]
    if all(says(machine, "Ready", TRUE) for machine in machines):
        return [well(RESIZED), well(MACHINES_CREATED)]
    return [well(MACHINES_CREATED)]


def rolling(outdated: int, machines: int) -> DeprecatedCondition:
    message = f"Rolling {outdated} replicas with outdated spec ({machines - outdated} replicas up to date)"
    return false(MACHINES_SPEC_UP_TO_DATE, "RollingUpdateInProgress", "Warning", message)


def _ready(machine: Machine) -> ApiDeprecatedCondition | None:
    older = machine.status.deprecated.v1beta1 if machine.status.deprecated is not None else None
    return next((condition for condition in older.conditions if condition.type == "Ready"), None) if older is not None else None


def _rank(condition: ApiDeprecatedCondition) -> int:
    if condition.status == FALSE:
        return _SEVERITIES.get(condition.severity, 99)
    return 3 if condition.status == TRUE else 4
