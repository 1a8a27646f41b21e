"""Conditions of Cluster API objects: setting, finding, ordering, and the three-way merge of two writers.

A condition is a ``metav1.Condition``; a list of them is the plain value of ``status.conditions``, and every function returns a new list.
Several conditions become one by the rules of Cluster API's ``Ready`` and ``Available``: issues come before what is unknown, and that before
what is well; the message names every condition that is not well.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, cast

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.runtime.objects import timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from slipway.api.machinery.objects import Manifest

ConditionStatus = Literal["True", "False", "Unknown"]

TRUE: ConditionStatus = "True"
FALSE: ConditionStatus = "False"
UNKNOWN: ConditionStatus = "Unknown"

# What a reader of `kubectl get` wants to see first; a type that is not here stands where the empty one is, by its name.
# Cluster API 1.14 has this order.
_ORDER = (
    "Available",
    "Ready",
    "UpToDate",
    "RemoteConnectionProbe",
    "BootstrapConfigReady",
    "InfrastructureReady",
    "ControlPlaneInitialized",
    "ControlPlaneAvailable",
    "WorkersAvailable",
    "CertificatesAvailable",
    "Initialized",
    "EtcdClusterHealthy",
    "ControlPlaneComponentsHealthy",
    "NodeHealthy",
    "NodeReady",
    "NodeKubeadmLabelsAndTaintsSet",
    "EtcdPodHealthy",
    "EtcdMemberHealthy",
    "APIServerPodHealthy",
    "ControllerManagerPodHealthy",
    "SchedulerPodHealthy",
    "HealthCheckSucceeded",
    "OwnerRemediated",
    "TopologyReconciled",
    "Updating",
    "RollingOut",
    "Remediating",
    "ScalingDown",
    "ScalingUp",
    "MachinesReady",
    "ControlPlaneMachinesReady",
    "WorkerMachinesReady",
    "MachinesUpToDate",
    "ControlPlaneMachinesUpToDate",
    "WorkerMachinesUpToDate",
    "",
    "Paused",
    "Deleting",
)
_RANKS = {name: rank for rank, name in enumerate(_ORDER)}
_OTHER = _RANKS[""]

# metav1.Condition takes no longer one: an error that is longer had better be told in part than not at all.
_LONGEST_MESSAGE = 32768

# What says the same; the time of the last transition does not count.
_STATE = ("type", "status", "reason", "message", "observedGeneration")

# What a condition is to somebody who sums up; the lowest one decides.
ISSUE, UNSURE, INFO = 0, 1, 2
NOT_YET_REPORTED = "NotYetReported"
_BULLET = re.compile(r"\s*\*\s+", re.ASCII)


class Condition(msgspec.Struct, kw_only=True, rename="camel"):
    """One observation about an object.  ``last_transition_time`` is RFC 3339; empty means "when it is set"."""

    type: str
    status: ConditionStatus
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""


class Reported(Protocol):
    """A condition of whoever: one of these, or one of the API types."""

    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def last_transition_time(self) -> str: ...


class Reasons(NamedTuple):
    """The reason of a summary, by the worst that it sums up.  These defaults are Cluster API's."""

    issue: str = "IssuesReported"
    unknown: str = "UnknownReported"
    info: str = "InfoReported"


class ConditionConflictError(OperatorError):
    """Two writers want different things of one condition, and it belongs to neither."""


def set_condition(conditions: Sequence[Manifest], new: Condition, now: datetime) -> list[Manifest]:
    """The list with ``new`` in it; lastTransitionTime changes with the status alone."""
    changed, found = _placed(conditions, _manifest(new, now))
    return ordered(found) if changed else found


def remove(conditions: Sequence[Manifest], condition_type: str) -> list[Manifest]:
    return [condition for condition in conditions if condition.get("type") != condition_type]


def find(conditions: Sequence[Manifest], condition_type: str) -> Condition | None:
    found = _find(conditions, condition_type)
    return None if found is None else msgspec.convert(found, Condition, strict=False)


def is_true(conditions: Sequence[Manifest], condition_type: str) -> bool:
    found = _find(conditions, condition_type)
    return found is not None and found.get("status") == TRUE


def ordered(conditions: Sequence[Manifest]) -> list[Manifest]:
    """The order of Cluster API: Available and Ready first, Paused and Deleting last."""
    return sorted(conditions, key=lambda condition: (_RANKS.get(condition.get("type", ""), _OTHER), condition.get("type", "")))


def moment(text: str | None) -> datetime | None:
    """A time as the API has it; None where there is none or it is no time."""
    try:
        parsed = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None else None


def of(manifest: Mapping[str, Any]) -> list[Manifest]:
    """The conditions of an object, empty where it has none."""
    return list((manifest.get("status") or {}).get("conditions") or ())


def merge_changes(
    before: Sequence[Manifest],
    after: Sequence[Manifest],
    latest: Sequence[Manifest],
    *,
    owned: Collection[str],
    same: Callable[[Manifest, Manifest], bool] | None = None,
    order: Callable[[Sequence[Manifest]], list[Manifest]] | None = None,
) -> list[Manifest]:
    """What changed from ``before`` to ``after``, done to ``latest``, which somebody else may have written in between.

    A condition that is ``owned`` becomes what ``after`` says; of any other, a change that both made differently is a conflict.
    ``same`` and ``order`` are those of another kind of condition, where these are no metav1.Conditions.
    """
    same, order = same or same_state, order or ordered
    result = list(latest)
    if before == after:
        return result
    for wanted in after:
        name = wanted["type"]
        base, current = _find(before, name), _find(result, name)
        if base == wanted:
            continue
        if name not in owned and _disputed(base, wanted, current, same):
            raise ConditionConflictError(
                f'the condition "{name}" was changed by somebody else in the meantime: '
                f"it is {_shown(current)}, was {_shown(base)} and was to be {_shown(wanted)}"
            )
        if name not in owned and current is not None and same(current, wanted):
            continue
        # The time of the condition that was there is kept when it says the same.
        _, result = _placed(result, wanted)
    for base in before:
        name = base["type"]
        if _find(after, name) is not None:
            continue
        current = _find(result, name)
        if name not in owned and current is not None and not same(current, base):
            raise ConditionConflictError(
                f'the condition "{name}" was to be removed, and somebody else changed it in the meantime to {_shown(current)}'
            )
        result = remove(result, name)
    return order(result)


def summary(
    conditions: Sequence[Manifest],
    condition_type: str,
    of: Sequence[str],
    reasons: Reasons = Reasons(),  # noqa: B008 - immutable
    *,
    negative: Collection[str] = (),
    ignored_if_missing: Collection[str] = (),
    harmless: Callable[[Condition], bool] | None = None,
    reworded: Callable[[list[str]], list[str]] | None = None,
) -> Condition:
    """The condition ``condition_type`` of the conditions ``of``, whose order is that of their relevance.

    Those in ``negative`` are well when they are False.  One that is missing counts as unknown, unless it may be missing.  One that is
    ``harmless`` counts as well, whatever it says.  ``reworded`` may shorten the lines of the message, of which there is one a condition.
    """
    if not of or condition_type in of:
        raise OperatorError(f'the condition "{condition_type}" needs other conditions that it sums up, and has {list(of)}')
    found = [(name, find(conditions, name)) for name in of if name not in ignored_if_missing or find(conditions, name)]
    scope = [condition or _missing(name) for name, condition in found]
    if not scope:
        raise OperatorError(f'the condition "{condition_type}" has nothing to sum up: none of {list(of)} is there')
    ranks = [
        INFO if harmless is not None and harmless(condition) else rank(condition, negative=condition.type in negative)
        for condition in scope
    ]
    worst = min(ranks)
    status: ConditionStatus = (FALSE, UNKNOWN, TRUE)[worst]
    shown = [one for one, its in zip(scope, ranks, strict=True) if its < INFO or (worst == INFO and one.message)]
    lines = [_line(condition) for condition in shown]
    return Condition(type=condition_type, status=status, reason=reasons[worst], message="\n".join(reworded(lines) if reworded else lines))


def same_state(one: Manifest, other: Manifest) -> bool:
    return all((one.get(field) or None) == (other.get(field) or None) for field in _STATE)


def _disputed(base: Manifest | None, wanted: Manifest, current: Manifest | None, same: Callable[[Manifest, Manifest], bool]) -> bool:
    if base is None:
        return current is not None and not same(current, wanted)
    if current is None:
        return True
    return current != base and not same(current, wanted)


def _placed(conditions: Sequence[Manifest], new: Manifest) -> tuple[bool, list[Manifest]]:
    """Whether anything changed, and the list with ``new`` in the place of the condition of its type."""
    current = _find(conditions, new["type"])
    if current is None:
        return True, [*conditions, new]
    if current.get("status") == new["status"]:
        new = {**new, "lastTransitionTime": current.get("lastTransitionTime") or new["lastTransitionTime"]}
    if current == new:
        return False, list(conditions)
    return True, [new if condition is current else condition for condition in conditions]


def _manifest(condition: Condition, now: datetime) -> Manifest:
    encoded = cast("Manifest", msgspec.to_builtins(condition))
    encoded["lastTransitionTime"] = condition.last_transition_time or timestamp(now)
    encoded["message"] = condition.message[:_LONGEST_MESSAGE]
    if not condition.observed_generation:
        # Go leaves it out.
        del encoded["observedGeneration"]
    return encoded


def _find(conditions: Sequence[Manifest], condition_type: str) -> Manifest | None:
    return next((condition for condition in conditions if condition.get("type") == condition_type), None)


def _shown(condition: Manifest | None) -> str:
    if condition is None:
        return "absent"
    reason = condition.get("reason") or "no reason"
    message = condition.get("message")
    return f"{condition.get('status')} ({reason}{f': {message}' if message else ''})"


def rank(condition: Reported, *, negative: bool = False) -> int:
    """What a condition is to somebody who sums up: an issue, something unknown, or well."""
    if condition.status == (TRUE if negative else FALSE):
        return ISSUE
    return INFO if condition.status == (FALSE if negative else TRUE) else UNSURE


def _missing(condition_type: str) -> Condition:
    return Condition(type=condition_type, status=UNKNOWN, reason=NOT_YET_REPORTED, message="Condition not yet reported")


def _line(condition: Condition) -> str:
    return f"* {condition.type}:{indented(condition.message) if condition.message else f' {condition.reason}'}"


def indented(message: str) -> str:
    """A message behind its colon: one line stays on its line; several, or a list, are nested a level deeper, each with a bullet."""
    lines = message.split("\n")
    if len(lines) == 1 and not _BULLET.search(message):
        return f" {message}"
    listed = [bool(_BULLET.search(line)) for line in lines]
    # A list stays one; beside lines of text, its lines belong to the text above.
    prefixes = ["  "] * len(lines) if all(listed) else ["    " if bullet else "  * " for bullet in listed]
    return "\n" + "\n".join(prefix + line for prefix, line in zip(prefixes, lines, strict=True))
