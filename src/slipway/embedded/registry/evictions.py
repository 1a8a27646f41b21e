"""Evictions: a Pod is deleted where the budget that covers it allows a disruption, by the rules of kube-apiserver 1.35."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.embedded import errors
from slipway.embedded.errors import StatusError
from slipway.embedded.registry import delete
from slipway.embedded.registry.metadata import timestamp
from slipway.embedded.storage import selectors

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.call import Call
    from slipway.embedded.registry.write import Registry
    from slipway.embedded.storage.store import Stored

_BUDGETS = "poddisruptionbudgets.policy"
# Nothing is disrupted by what does not run yet, or no more.
_UNGUARDED = ("Pending", "Succeeded", "Failed")
_MOST_DISRUPTED = 2000
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


async def evict(registry: Registry, call: Call, stored: Stored, eviction: Manifest) -> None:
    if (eviction.get("metadata") or {}).get("name") != call.name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    options = delete.options_of(eviction.get("deleteOptions") or {}, {})
    pod = stored.manifest()
    if not _is_unguarded(pod):
        covering = _covering(registry, call.namespace, stored)
        if len(covering) > 1:
            raise StatusError(500, "", _SEVERAL)
        for budget in covering:
            if _is_ready(pod) or not _spares_unready(budget.manifest()):
                _disrupt(registry, budget, call.name, dry_run=options.dry_run)
    if not options.dry_run:
        registry.store.put(call.resource.bucket, _marked(pod, timestamp(registry.clock())), stored.version)
    await delete.delete(registry, call, options)


def _is_unguarded(pod: Manifest) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp")) or (pod.get("status") or {}).get("phase") in _UNGUARDED


def _is_ready(pod: Manifest) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)


def _covering(registry: Registry, namespace: str, pod: Stored) -> list[Stored]:
    found = []
    for budget in registry.store.bucket(_BUDGETS).within(namespace):
        spec = budget.manifest().get("spec") or {}
        if "selector" in spec and selectors.match_labels(selectors.from_label_selector(spec["selector"]), pod.labels):
            found.append(budget)
    return found


def _spares_unready(budget: Manifest) -> bool:
    """Whether a Pod that is not ready may go without being counted."""
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    wanted = status.get("desiredHealthy") or 0
    return 0 < wanted <= (status.get("currentHealthy") or 0)


def _disrupt(registry: Registry, budget: Stored, pod: str, *, dry_run: bool) -> None:
    """Use up one of the disruptions that a budget allows."""
    content = budget.manifest()
    status = content.get("status") or {}
    allowed, disrupted = status.get("disruptionsAllowed") or 0, status.get("disruptedPods") or {}
    if (status.get("observedGeneration") or 0) < (content["metadata"].get("generation") or 0):
        raise _refused(f"The disruption budget {budget.name} is still being processed by the server.", retry=10)
    if allowed < 0:
        raise errors.forbidden("policy", "poddisruptionbudget", budget.name, "pdb disruptions allowed is negative")
    if len(disrupted) > _MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise errors.forbidden("policy", "poddisruptionbudget", budget.name, why)
    if not allowed:
        raise _refused(_why(budget.name, status))
    if not dry_run:
        now = timestamp(registry.clock())
        status = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": {**disrupted, pod: now}}
        if allowed == 1:
            others = [each for each in status.get("conditions") or () if each.get("type") != "DisruptionAllowed"]
            used_up = {"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": ""}
            status["conditions"] = [*others, {**used_up, "observedGeneration": status["observedGeneration"], "lastTransitionTime": now}]
        registry.store.put(_BUDGETS, {**content, "status": status}, budget.version)


def _why(name: str, status: Manifest) -> str:
    conditions = [each for each in status.get("conditions") or () if each.get("type") == "DisruptionAllowed"]
    condition = next((each for each in conditions if each.get("status") == "False" and each.get("message")), None)
    needed, healthy = status.get("desiredHealthy") or 0, status.get("currentHealthy") or 0
    not_now = f"The disruption budget {name} does not allow evicting pods currently"
    if condition is not None and condition.get("reason") == "SyncFailed":
        return f"{not_now} because it failed sync: {condition['message']}"
    if healthy <= needed:
        return f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"
    return not_now if condition is None else f"{not_now} ({condition.get('reason', '')}): {condition['message']}"


def _refused(why: str, *, retry: int = 0) -> StatusError:
    details: Manifest = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if retry:
        details["retryAfterSeconds"] = retry
    return errors.too_many_requests("Cannot evict pod as it would violate the pod's disruption budget.", details=details)


def _marked(pod: Manifest, now: str) -> Manifest:
    """The Pod with the condition by which its end is known to be no failure of its own."""
    status = pod.get("status") or {}
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    others = [each for each in status.get("conditions") or () if each.get("type") != "DisruptionTarget"]
    return {**pod, "status": {**status, "conditions": [*others, condition]}}
