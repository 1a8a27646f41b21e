"""Fields that are elsewhere, or of another form, in v1beta1 of several kinds.

``…_down`` takes what v1beta2 has and gives what v1beta1 has in its place; ``…_up`` takes it out of what v1beta1 has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.cluster.versions import at, duration, seconds_of

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest

_TIMEOUTS = {
    "nodeDrainTimeout": "nodeDrainTimeoutSeconds",
    "nodeVolumeDetachTimeout": "nodeVolumeDetachTimeoutSeconds",
    "nodeDeletionTimeout": "nodeDeletionTimeoutSeconds",
}
_CONDITIONS = {"unhealthyConditions": "unhealthyNodeConditions", "unhealthyMachineConditions": "unhealthyMachineConditions"}
# Counters of v1beta2, which mean something else than those of v1beta1 with the same name.
_COUNTERS = ("readyReplicas", "availableReplicas", "upToDateReplicas")


def given(**fields: Any) -> Manifest:
    """What there is of the fields."""
    return {name: value for name, value in fields.items() if value is not None}


def timeouts_down(deletion: Manifest) -> Manifest:
    return {old: duration(deletion[new]) for old, new in _TIMEOUTS.items() if new in deletion}


def timeouts_up(out: Manifest) -> Manifest:
    return {new: seconds_of(out.pop(old)) for old, new in _TIMEOUTS.items() if old in out}


def strategy_down(strategy: Manifest, order: str | None, max_in_flight: Any) -> Manifest | None:
    """How Machines of a MachineDeployment are replaced, deleted and remediated: one object in v1beta1, three places in v1beta2."""
    out: Manifest = {"type": strategy["type"]} if "type" in strategy else {}
    rolling = dict(strategy.get("rollingUpdate") or {}) | given(deletePolicy=order)
    if rolling:
        out["rollingUpdate"] = rolling
    if max_in_flight is not None:
        out["remediation"] = {"maxInFlight": max_in_flight}
    return out or None


def strategy_up(strategy: Manifest) -> tuple[Manifest, str | None, Any]:
    rolling = dict(strategy.get("rollingUpdate") or {})
    order = rolling.pop("deletePolicy", None)
    return given(type=strategy.get("type"), rollingUpdate=rolling), order, (strategy.get("remediation") or {}).get("maxInFlight")


def health_down(checks: Manifest, remediation: Manifest, namespace: str) -> Manifest:
    """What makes a Machine unhealthy, and when it is remediated."""
    trigger, template = remediation.get("triggerIf") or {}, remediation.get("templateRef")
    out: Manifest = {
        old: [
            {key: value for key, value in each.items() if key != "timeoutSeconds"}
            | ({"timeout": duration(each["timeoutSeconds"])} if "timeoutSeconds" in each else {})
            for each in checks[new]
        ]
        for old, new in _CONDITIONS.items()
        if new in checks
    }
    if "nodeStartupTimeoutSeconds" in checks:
        out["nodeStartupTimeout"] = duration(checks["nodeStartupTimeoutSeconds"])
    out |= given(maxUnhealthy=trigger.get("unhealthyLessThanOrEqualTo"), unhealthyRange=trigger.get("unhealthyInRange"))
    if template:
        out["remediationTemplate"] = template | ({"namespace": namespace} if namespace else {})
    return out


def health_up(out: Manifest) -> tuple[Manifest, Manifest]:
    """The checks and the remediation."""
    checks: Manifest = {
        new: [
            {key: value for key, value in each.items() if key != "timeout"} | {"timeoutSeconds": seconds_of(each["timeout"])}
            for each in out.pop(old)
        ]
        for old, new in _CONDITIONS.items()
        if old in out
    }
    if "nodeStartupTimeout" in out:
        checks["nodeStartupTimeoutSeconds"] = seconds_of(out.pop("nodeStartupTimeout"))
    trigger = given(unhealthyLessThanOrEqualTo=out.pop("maxUnhealthy", None), unhealthyInRange=out.pop("unhealthyRange", None))
    template = out.pop("remediationTemplate", None) or {}
    return checks, {"triggerIf": trigger, "templateRef": {key: template[key] for key in ("kind", "name", "apiVersion") if key in template}}


def status_down(status: Manifest, *more: str) -> Manifest:
    """A status with what v1beta1 had where it had it, and with the conditions and counters of v1beta2 apart; so with ``more``."""
    deprecated = at(status, "deprecated", "v1beta1") or {}
    new = {name: status.pop(name) for name in ("conditions", *_COUNTERS, *more) if name in status}
    return status | deprecated | ({"v1beta2": new} if new else {})


def status_up(status: Manifest, *counters: str, more: tuple[str, ...] = ()) -> Manifest:
    """A status with the conditions and counters of v1beta2, and with what v1beta1 had apart; where it had counters, even if it had none."""
    names = ("conditions", "failureReason", "failureMessage", *counters)
    old = {name: status.pop(name) for name in names if name in status}
    new = status.pop("v1beta2", {})
    out = status | {name: new[name] for name in ("conditions", *_COUNTERS, *more) if name in new}
    return out | ({"deprecated": {"v1beta1": old}} if old or counters else {})
