"""A condition of one object, shown on another: what a provider says of its InfraMachine is what the Machine says of its infrastructure.

Providers write conditions in three forms: today's, today's beside yesterday's (``status.v1beta2.conditions``), and yesterday's, which have
no reason when all is well.  Where there are none, the caller says what the rest of the object means (Cluster API's NewMirrorCondition).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.conditions import FALSE, NOT_YET_REPORTED, TRUE, UNKNOWN, Condition, ConditionStatus, moment

if TYPE_CHECKING:
    from collections.abc import Mapping

# Conditions of v1beta1 that are True have no reason, and a metav1.Condition must have one.
NO_REASON_REPORTED = "NoReasonReported"

_STATUSES = (TRUE, FALSE, UNKNOWN)


class InvalidConditionError(OperatorError):
    """An object has conditions that are none.  The message is made to be shown in a condition with the reason InvalidConditionReported."""


class Fallback(NamedTuple):
    """What is shown where the object does not have the condition."""

    status: ConditionStatus
    reason: str
    message: str = ""


def mirror(
    source: Mapping[str, Any] | None,
    source_type: str,
    *,
    target_type: str = "",
    fallback: Fallback | None = None,
    reason_if_true: str = "",
) -> Condition:
    """The condition ``source_type`` of ``source``, as ``target_type`` (else under its own name), since when it was so there.

    ``reason_if_true`` stands for the reason that a True condition of yesterday's form does not have.  Without the condition and without a
    ``fallback`` nothing is known.  Raises InvalidConditionError.
    """
    target_type = target_type or source_type
    found = next((one for one in reported(source or {}) if one.type == source_type), None)
    if found is not None:
        reason = reason_if_true if reason_if_true and (found.reason, found.status) == (NO_REASON_REPORTED, TRUE) else found.reason
        return Condition(
            type=target_type,
            status=found.status,
            reason=reason,
            message=found.message,
            last_transition_time=found.last_transition_time,
        )
    if fallback is not None:
        return Condition(type=target_type, status=fallback.status, reason=fallback.reason, message=fallback.message)
    return Condition(type=target_type, status=UNKNOWN, reason=NOT_YET_REPORTED, message=f"Condition {source_type} not yet reported")


def reported(source: Mapping[str, Any]) -> list[Condition]:
    """The conditions of an object of any provider; raises InvalidConditionError."""
    status = source.get("status")
    if not isinstance(status, dict):
        return []
    for path, holder in (("status.v1beta2.conditions", status.get("v1beta2")), ("status.conditions", status)):
        listed = holder.get("conditions") if isinstance(holder, dict) else None
        if isinstance(listed, list):
            try:
                return [_condition(one) for one in listed if isinstance(one, dict)]
            except InvalidConditionError as error:
                kind = source.get("kind") or "object"
                raise InvalidConditionError(f"failed to convert {path} from {kind} to []metav1.Condition: {error.message}") from None
    return []


def _condition(found: Mapping[str, Any]) -> Condition:
    name, status = _text(found, "type"), _text(found, "status")
    if not name:
        raise InvalidConditionError("type must be set for all conditions")
    if not status:
        raise InvalidConditionError(f"status must be set for the {name} condition")
    if status not in _STATUSES:
        raise InvalidConditionError(f"status for the {name} condition must be one of {', '.join(_STATUSES)}")
    since = _text(found, "lastTransitionTime")
    if since and moment(since) is None:
        raise InvalidConditionError(f"failed to unmarshal lastTransitionTime value: {since}")
    return Condition(
        type=name,
        status=status,
        reason=_text(found, "reason") or NO_REASON_REPORTED,
        message=_text(found, "message"),
        last_transition_time=since,
    )


def _text(found: Mapping[str, Any], field: str) -> str:
    value = found.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidConditionError(f"{field} of a condition must be a string, and is {value!r}")
    return value
