"""The conditions of a Machine in the form of v1beta1, which stand under ``status.deprecated``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.cluster import names
from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN
from slipway.fleet.contract.status import DeprecatedCondition, deprecated_summary, well
from slipway.fleet.machines.machine import words
from slipway.fleet.machines.machine.mirror import mirrored_deprecated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.status import Severity

_SUMMED_UP = (
    names.INFRASTRUCTURE_READY_CONDITION,
    words.BOOTSTRAP_READY,
    names.HEALTH_CHECK_SUCCEEDED_CONDITION,
    names.OWNER_REMEDIATED_CONDITION,
    words.DRAINING_SUCCEEDED,
)
# While there is nothing else, the summary counts the steps.
_STEPS = (words.BOOTSTRAP_READY, names.INFRASTRUCTURE_READY_CONDITION)
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")
_ALL = 4


def not_well(name: str, reason: str, severity: Severity = "Info", message: str = "") -> DeprecatedCondition:
    return DeprecatedCondition(type=name, status=FALSE, reason=reason, severity=severity, message=message)


def bootstrap_ready(config: Manifest, created: bool, *, deleting: bool) -> DeprecatedCondition:
    return _mirror(config, words.BOOTSTRAP_READY, created, "Deleting" if deleting else "WaitingForDataSecret")


def infrastructure_ready(infrastructure: Manifest, provisioned: bool, *, deleting: bool) -> DeprecatedCondition:
    return _mirror(
        infrastructure, names.INFRASTRUCTURE_READY_CONDITION, provisioned, "Deleting" if deleting else "WaitingForInfrastructure"
    )


def node_healthy(node: Manifest) -> DeprecatedCondition:
    """True unless a condition of the Node is bad, or all are unknown."""
    issues, unknown, texts = 0, 0, []
    for condition in (node.get("status") or {}).get("conditions") or ():
        kind, status = condition.get("type"), condition.get("status")
        if kind not in (*_PRESSURES, "Ready") or status == (FALSE if kind in _PRESSURES else TRUE):
            continue
        texts.append(f"Node condition {kind} is {status}")
        if status == UNKNOWN:
            unknown += 1
        else:
            issues += 1
    message, name, reason = ". ".join(texts), names.NODE_HEALTHY_CONDITION, "NodeConditionsFailed"
    if issues:
        return not_well(name, reason, "Warning", message)
    if unknown < _ALL:
        return well(name)
    return DeprecatedCondition(type=name, status=UNKNOWN, reason=reason, message=message)


def ready(conditions: Sequence[Manifest], *, starting: bool) -> DeprecatedCondition | None:
    """The summary; None where there is nothing to sum up.  ``starting``: there is no host yet, and nobody deletes the Machine."""
    found = deprecated_summary(conditions, _SUMMED_UP)
    if found is None or found.status == TRUE:
        return found
    scope = [condition for condition in conditions if condition.get("type") in _SUMMED_UP]
    if starting and all(condition.get("type") in _STEPS for condition in scope):
        found.message = f"{sum(condition.get('status') == TRUE for condition in scope)} of {len(_STEPS)} completed"
    return found


def of(manifest: Manifest) -> list[dict[str, Any]]:
    older = ((manifest.get("status") or {}).get("deprecated") or {}).get("v1beta1") or {}
    return older.get("conditions") or []


def _mirror(source: Manifest, name: str, is_well: bool, reason: str) -> DeprecatedCondition:
    return mirrored_deprecated(source, name, well(name) if is_well else not_well(name, reason))
