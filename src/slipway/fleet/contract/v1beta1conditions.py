"""The conditions of v1beta1, which Cluster API 1.14 still keeps under ``status.deprecated.v1beta1.conditions``.

They have a severity, their transition time moves with every change, and their Ready sums up in another way than that of v1beta2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

import msgspec

from slipway.fleet.contract.conditions import FALSE, TRUE, ConditionStatus
from slipway.runtime.clock import timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest

Severity = Literal["", "Error", "Warning", "Info"]

READY = "Ready"
# As the schemas of Cluster API's kinds have it.
_LONGEST_MESSAGE = 10240
_STATE = ("type", "status", "reason", "severity", "message")
_SEVERITIES: tuple[Severity, ...] = ("Error", "Warning", "Info")


class DeprecatedCondition(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A v1beta1 condition; the severity is that of a False one and empty else."""

    type: str
    status: ConditionStatus
    reason: str = ""
    severity: Severity = ""
    message: str = ""
    last_transition_time: str = ""


def well(condition_type: str) -> DeprecatedCondition:
    """A True condition, which has neither reason nor message."""
    return DeprecatedCondition(type=condition_type, status=TRUE)


def set_deprecated(conditions: Sequence[Manifest], new: DeprecatedCondition, now: datetime) -> list[Manifest]:
    """The list with ``new`` in it, Ready first and the others by their names."""
    encoded = cast("Manifest", msgspec.to_builtins(new))
    encoded["lastTransitionTime"] = new.last_transition_time or timestamp(now)
    if new.message:
        encoded["message"] = new.message[:_LONGEST_MESSAGE]
    result = [condition for condition in conditions if condition.get("type") != new.type]
    current = next((condition for condition in conditions if condition.get("type") == new.type), None)
    result.append(current if current is not None and same_state(current, encoded) else encoded)
    return ordered(result)


def ordered(conditions: Sequence[Manifest]) -> list[Manifest]:
    return sorted(conditions, key=lambda condition: (condition.get("type") != READY, condition.get("type", "")))


def same_state(one: Manifest, other: Manifest) -> bool:
    return all((one.get(field) or "") == (other.get(field) or "") for field in _STATE)


def summary(conditions: Sequence[Manifest], of: Sequence[str]) -> DeprecatedCondition | None:
    """Ready of the conditions ``of``, in the order of their relevance; None where there is none of them.

    The worst decides: False by severity, then True, then Unknown; reason and message are the first such condition's.
    """
    scope = [msgspec.convert(condition, DeprecatedCondition) for name in of for condition in conditions if condition.get("type") == name]
    if not scope:
        return None
    worst = min(scope, key=_rank)
    if worst.status == TRUE:
        return well(READY)
    severity: Severity = worst.severity if worst.status == FALSE else ""
    return DeprecatedCondition(type=READY, status=worst.status, reason=worst.reason, severity=severity, message=worst.message)


def _rank(condition: DeprecatedCondition) -> int:
    if condition.status == FALSE:
        # A False condition without a severity is not in the order of Cluster API, which puts it behind all.
        return _SEVERITIES.index(condition.severity) if condition.severity in _SEVERITIES else 99
    return 3 if condition.status == TRUE else 4
