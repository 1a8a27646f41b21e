"""The status of any object of a provider: conditions in today's and in yesterday's form, changed in place.

What the conditions of a kind are and mean is the provider's; this is how they are set, summed up and dated.  Those of v1beta1 stand
under ``status.deprecated.v1beta1.conditions`` in Cluster API 1.14: they have a severity, their transition time moves with every change, and
their Ready sums up in another way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

import msgspec

from slipway.api.cluster.names import PAUSED_CONDITION
from slipway.fleet.contract import conditions
from slipway.fleet.contract.conditions import FALSE, TRUE, Condition, ConditionStatus, Reasons
from slipway.runtime.objects import timestamp

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

READY_REASONS = Reasons("NotReady", "ReadyUnknown", "Ready")


class DeprecatedCondition(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A v1beta1 condition; the severity is that of a False one and empty else."""

    type: str
    status: ConditionStatus
    reason: str = ""
    severity: Severity = ""
    message: str = ""
    last_transition_time: str = ""


class Status:
    """Changes the status of one object in place."""

    def __init__(self, manifest: Manifest, now: datetime) -> None:
        self._manifest = manifest
        self._now = now
        # A reconcile sets a dozen conditions, all at the same time.
        self._stamp = timestamp(now)
        self._said: dict[str, Condition] = {}

    @property
    def fields(self) -> Manifest:
        """The status itself."""
        status: Manifest = self._manifest.setdefault("status", {})
        return status

    def is_true(self, condition_type: str) -> bool:
        return conditions.is_true(conditions.of(self._manifest), condition_type)

    def set(self, condition_type: str, status: ConditionStatus, reason: str, message: str = "") -> None:
        self.say(Condition(type=condition_type, status=status, reason=reason, message=message))

    def say(self, condition: Condition) -> None:
        self._said[condition.type] = condition
        self._put(condition)

    def paused(self, causes: Sequence[str]) -> None:
        """The Paused condition, in the words of Cluster API's providers."""
        self.set(PAUSED_CONDITION, TRUE if causes else FALSE, "Paused" if causes else "NotPaused", ", ".join(causes))

    def remove(self, condition_type: str) -> None:
        found = conditions.of(self._manifest)
        self._said.pop(condition_type, None)
        if conditions.find(found, condition_type) is not None:
            self.fields["conditions"] = conditions.remove(found, condition_type)

    def set_deprecated(self, condition: DeprecatedCondition) -> None:
        condition.last_transition_time = self._stamp
        deprecated = self.fields.setdefault("deprecated", {}).setdefault("v1beta1", {})
        deprecated["conditions"] = set_deprecated(self._deprecated, condition, self._now)

    def sum_up(self, condition_type: str, of: Sequence[str], reasons: Reasons = READY_REASONS) -> None:
        """One condition of the others, in both forms."""
        for condition in self._said.values():
            # A reconcile may bring about a new generation, and has observed that one as well.
            self._put(condition)
        self._put(conditions.summary(conditions.of(self._manifest), condition_type, of, reasons))
        older = deprecated_summary(self._deprecated, of)
        if older is not None:
            self.set_deprecated(older)

    def observed(self) -> None:
        """All of the generation that is there has been acted on."""
        self.fields["observedGeneration"] = self._manifest["metadata"].get("generation", 0)

    @property
    def _deprecated(self) -> list[Manifest]:
        older = (self.fields.get("deprecated") or {}).get("v1beta1") or {}
        return older.get("conditions") or []

    def _put(self, condition: Condition) -> None:
        condition.observed_generation = self._manifest["metadata"].get("generation", 0)
        # That of a mirrored condition is when it changed where it came from.
        condition.last_transition_time = condition.last_transition_time or self._stamp
        self.fields["conditions"] = conditions.set_condition(conditions.of(self._manifest), condition, self._now)


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
    result.append(current if current is not None and same_deprecated(current, encoded) else encoded)
    return ordered_deprecated(result)


def ordered_deprecated(conditions: Sequence[Manifest]) -> list[Manifest]:
    return sorted(conditions, key=lambda condition: (condition.get("type") != READY, condition.get("type", "")))


def same_deprecated(one: Manifest, other: Manifest) -> bool:
    return all((one.get(field) or "") == (other.get(field) or "") for field in _STATE)


def deprecated_summary(conditions: Sequence[Manifest], of: Sequence[str]) -> DeprecatedCondition | None:
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
