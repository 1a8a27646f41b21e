"""A condition in the two forms in which Cluster API objects have it: today's, and v1beta1's with a severity."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN, Condition
from slipway.fleet.contract.status import DeprecatedCondition

if TYPE_CHECKING:
    from slipway.fleet.contract.conditions import ConditionStatus
    from slipway.fleet.contract.status import Severity

INSPECTION_FAILED, CONNECTION_DOWN = "InspectionFailed", "ConnectionDown"


class Said(NamedTuple):
    """Either may be None: then what is there stays as it is."""

    condition: Condition | None
    deprecated: DeprecatedCondition | None = None


def said(condition_type: str, status: ConditionStatus, reason: str, message: str = "", *, older: DeprecatedCondition | None = None) -> Said:
    return Said(Condition(type=condition_type, status=status, reason=reason, message=message), older)


def older_true(condition_type: str) -> DeprecatedCondition:
    return DeprecatedCondition(type=condition_type, status=TRUE)


def older_false(condition_type: str, reason: str, severity: Severity, message: str = "") -> DeprecatedCondition:
    return DeprecatedCondition(type=condition_type, status=FALSE, reason=reason, severity=severity, message=message)


def older_unknown(condition_type: str, reason: str, message: str = "") -> DeprecatedCondition:
    return DeprecatedCondition(type=condition_type, status=UNKNOWN, reason=reason, message=message)
