"""What is done with each Pod of a Node that is drained.

The filters and their order are Cluster API's, which are kubectl drain's, then the label of the Pod, then the MachineDrainRules.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.names import POD_DRAIN_LABEL
from slipway.fleet.machines.machine.drain import rules as drainrules
from slipway.fleet.machines.machine.values import moment

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.machines.machine.drain.rules import Rule

_MIRROR = "kubernetes.io/config.mirror"
_FINISHED = ("Succeeded", "Failed")


class Behavior(Enum):
    DRAIN = "Drain"
    SKIP = "Skip"
    WAIT = "WaitCompleted"
    HOLD = "Hold"
    """Neither evicted nor skipped, for a reason that somebody must mend."""


class Verdict(NamedTuple):
    behavior: Behavior
    order: int = 0
    warning: str = ""
    problem: str = ""


SKIPPED = Verdict(Behavior.SKIP)


class Node(NamedTuple):
    """What of a Node and of its cluster decides about its Pods."""

    daemon_sets: Collection[tuple[str, str]] = ()
    """Namespaces and names of those that are there."""
    namespaces: Mapping[str, Mapping[str, str]] | None = None
    """The labels of each; None where no rule asks for them."""
    unreachable: bool = False


def verdict(pod: Manifest, rules: Sequence[Rule], node: Node, now: datetime) -> Verdict:
    metadata, finished = pod["metadata"], _is_finished(pod)
    if node.unreachable and _deleted_for(pod, now) > 1:
        # The kubelet that would take it away does not answer.
        return SKIPPED
    warnings = []
    daemon_set = daemon_set_of(pod)
    if daemon_set is not None and not finished:
        if daemon_set in node.daemon_sets:
            return Verdict(Behavior.SKIP, warning="ignoring DaemonSet-managed Pod")
        warnings.append("evicting orphaned DaemonSet-managed Pod")
    if _MIRROR in (metadata.get("annotations") or {}):
        return SKIPPED
    if not finished and any("emptyDir" in volume for volume in (pod.get("spec") or {}).get("volumes") or ()):
        warnings.append("evicting Pod with local storage")
    if not finished and _controller(pod) is None:
        warnings.append("evicting Pod that has no controller")
    label = (metadata.get("labels") or {}).get(POD_DRAIN_LABEL, "").lower()
    if label == "skip":
        return SKIPPED
    if label.replace("-", "", 1) == "waitcompleted":
        return Verdict(Behavior.WAIT)
    return _by_rules(pod, rules, node, ", ".join(warnings))


def daemon_set_of(pod: Manifest) -> tuple[str, str] | None:
    """The DaemonSet that a Pod says it is of."""
    controller = _controller(pod)
    if controller is None or controller.get("kind") != "DaemonSet":
        return None
    return pod["metadata"].get("namespace", ""), controller["name"]


def daemon_sets_of(pods: Iterable[Manifest]) -> set[tuple[str, str]]:
    """Those of which must be known whether they are there."""
    return {found for pod in pods if not _is_finished(pod) for found in (daemon_set_of(pod),) if found is not None}


def _by_rules(pod: Manifest, rules: Sequence[Rule], node: Node, warning: str) -> Verdict:
    metadata = pod["metadata"]
    namespace = metadata.get("namespace", "")
    labels_of_namespace: Mapping[str, str] = {}
    if node.namespaces is not None:
        known = node.namespaces.get(namespace)
        if known is None:
            return Verdict(Behavior.HOLD, problem=f'the Namespace "{namespace}" of the Pod does not exist')
        labels_of_namespace = known
    for rule in rules:
        matches = rule.is_for_pod(metadata.get("labels") or {}, labels_of_namespace)
        if matches is None:
            return Verdict(Behavior.HOLD, problem=rule.problem)
        if not matches:
            continue
        if rule.behavior == drainrules.SKIP:
            return SKIPPED
        if rule.behavior == drainrules.WAIT:
            return Verdict(Behavior.WAIT)
        return Verdict(Behavior.DRAIN, rule.order, warning)
    return Verdict(Behavior.DRAIN, warning=warning)


def _controller(pod: Manifest) -> Manifest | None:
    return next((owner for owner in pod["metadata"].get("ownerReferences") or () if owner.get("controller")), None)


def _is_finished(pod: Manifest) -> bool:
    return (pod.get("status") or {}).get("phase") in _FINISHED


def _deleted_for(pod: Manifest, now: datetime) -> int:
    """For how many whole seconds a Pod should have been gone; the API server counts its grace period in."""
    since = moment(pod["metadata"].get("deletionTimestamp"))
    return 0 if since is None else int((now - since).total_seconds())
