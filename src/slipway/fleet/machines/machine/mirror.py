"""The Ready condition of an object of a provider, as a condition of the Machine.

Providers are at different stages: conditions are in ``status.v1beta2.conditions`` or in ``status.conditions``, and the latter may be in the
form of v1beta1, which has no reason where all is well.  Both forms of a Machine's conditions are made here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.conditions import Condition
from slipway.fleet.contract.status import DeprecatedCondition
from slipway.fleet.machines.machine.values import moment

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.conditions import ConditionStatus
    from slipway.fleet.contract.status import Severity

NO_REASON = "NoReasonReported"
_STATUSES = ("True", "False", "Unknown")
_SEVERITIES = ("Error", "Warning", "Info")


class InvalidConditionError(OperatorError):
    """The conditions of an object of a provider are none."""


def mirrored(source: Manifest, target: str, fallback: Condition) -> Condition:
    """The Ready condition of ``source`` under another name, with the time of its last transition; ``fallback`` where it has none."""
    found = next((condition for condition in _conditions(source) if condition.type == "Ready"), None)
    if found is None:
        return fallback
    found.type = target
    return found


def mirrored_deprecated(source: Manifest, target: str, fallback: DeprecatedCondition) -> DeprecatedCondition:
    """The same in yesterday's form; what cannot be read counts as not there."""
    status = source.get("status") or {}
    older = ((status.get("deprecated") or {}).get("v1beta1") or {}).get("conditions")
    listed = older if isinstance(older, list) else status.get("conditions")
    for condition in listed if isinstance(listed, list) else ():
        if isinstance(condition, dict) and condition.get("type") == "Ready" and condition.get("status") in _STATUSES:
            severity = condition.get("severity") or ""
            return DeprecatedCondition(
                type=target,
                status=cast("ConditionStatus", condition["status"]),
                reason=str(condition.get("reason") or ""),
                severity=cast("Severity", severity if severity in _SEVERITIES else ""),
                message=str(condition.get("message") or ""),
            )
    return fallback


def _conditions(source: Manifest) -> list[Condition]:
    status = source.get("status") or {}
    for path, listed in (
        ("status.v1beta2.conditions", (status.get("v1beta2") or {}).get("conditions")),
        ("status.conditions", status.get("conditions")),
    ):
        if isinstance(listed, list):
            try:
                return [_condition(each) for each in listed if isinstance(each, dict)]
            except InvalidConditionError as error:
                kind = source.get("kind", "")
                raise InvalidConditionError(f"failed to convert {path} from {kind} to []metav1.Condition: {error.message}") from None
    return []


def _condition(given: dict[str, Any]) -> Condition:
    name, status = str(given.get("type") or ""), str(given.get("status") or "")
    if not name:
        raise InvalidConditionError("type must be set for all conditions")
    if not status:
        raise InvalidConditionError(f"status must be set for the {name} condition")
    if status not in _STATUSES:
        raise InvalidConditionError(f"status for the {name} condition must be one of True, False, Unknown")
    when = str(given.get("lastTransitionTime") or "")
    try:
        moment(when)
    except ValueError:
        raise InvalidConditionError(f"failed to unmarshal lastTransitionTime value: {when}") from None
    return Condition(
        type=name,
        status=cast("ConditionStatus", status),
        reason=str(given.get("reason") or NO_REASON),
        message=str(given.get("message") or ""),
        last_transition_time=when,
    )
