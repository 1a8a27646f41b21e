"""How the static Pod of a control-plane component is, from what its kubelet last said about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN
from slipway.fleet.controlplane.workload.verdicts import INSPECTION_FAILED, Said, older_false, older_true, older_unknown, said

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.machinery.objects import Manifest

RUNNING, PROVISIONING, DOES_NOT_EXIST, FAILED, DELETING = "Running", "Provisioning", "DoesNotExist", "Failed", "Deleting"
_ENDED = "All the containers have been terminated"


def is_unreachable(node: Manifest) -> bool:
    """Whether the node controller gave it up: what its kubelet said about Pods is old."""
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(taint.get("key") == "node.kubernetes.io/unreachable" and taint.get("effect") == "NoExecute" for taint in taints)


def is_ready_unknown(node: Manifest) -> bool:
    return _condition(node, "Ready", missing="") == UNKNOWN


def is_doubtful(node: Manifest, pod: Manifest | None) -> bool:
    """Whether what a Node and one of its Pods say of themselves leaves it open that the Pod works."""
    return pod is None or is_unreachable(node) or _condition(node, "Ready", missing=TRUE) != TRUE or _condition(pod, "Ready") != TRUE


def missing(condition_type: str, pod_name: str) -> Said:
    older = older_false(condition_type, "PodMissing", "Error", f"Pod {pod_name} is missing")
    return said(condition_type, FALSE, DOES_NOT_EXIST, "Pod does not exist", older=older)


def unread(condition_type: str) -> Said:
    return unknown(condition_type, "Please check controller logs for errors", older="Failed to get Pod status")


def unknown(condition_type: str, message: str, *, older: str = "") -> Said:
    return said(
        condition_type, UNKNOWN, INSPECTION_FAILED, message, older=older_unknown(condition_type, "PodInspectionFailed", older or message)
    )


def health(condition_type: str, node: Manifest, pod: Manifest) -> Said:
    """Of a Pod that is there.  One without a phase has not been seen by its kubelet, and nothing is said about it."""
    if is_ready_unknown(node):
        # A kubelet that does not report its Node does not report its Pods either.
        return unknown(condition_type, "Node Ready condition is Unknown, Pod data might be stale")
    match (pod.get("status") or {}).get("phase"):
        case "Pending":
            return _pending(condition_type, pod)
        case "Running":
            return _running(condition_type, pod)
        case "Succeeded" | "Failed":
            return _failed(condition_type, _ENDED)
        case "Unknown":
            return unknown(condition_type, "Pod is reporting Unknown status")
    return Said(None)


def _pending(condition_type: str, pod: Manifest) -> Said:
    if _condition(pod, "PodScheduled") != TRUE:
        return _provisioning(condition_type, "Waiting to be scheduled")
    if _condition(pod, "Initialized") != TRUE:
        return _provisioning(condition_type, "Running init containers")
    return _provisioning(condition_type, "")


def _running(condition_type: str, pod: Manifest) -> Said:
    if _condition(pod, "Ready") == TRUE:
        return said(condition_type, TRUE, RUNNING, older=older_true(condition_type))
    containers = (pod.get("status") or {}).get("containerStatuses") or ()
    if waiting := _reasons(containers, "waiting"):
        # One that has ended with an error is restarted, and waits meanwhile; what cannot be pulled looks as if it were on its way.
        crashed = any(((item.get("lastState") or {}).get("terminated") or {}).get("exitCode") for item in containers)
        return (_failed if crashed else _provisioning)(condition_type, ", ".join(waiting))
    if terminated := _reasons(containers, "terminated"):
        return _failed(condition_type, ", ".join(terminated))
    return _provisioning(condition_type, "Waiting for startup or readiness probes")


def _provisioning(condition_type: str, message: str) -> Said:
    older = older_false(condition_type, "PodProvisioning", "Info", message)
    return said(condition_type, FALSE, PROVISIONING, message, older=older)


def _failed(condition_type: str, message: str) -> Said:
    return said(condition_type, FALSE, FAILED, message, older=older_false(condition_type, "PodFailed", "Error", message))


def _reasons(containers: Iterable[Manifest], state: str) -> list[str]:
    found = [(container.get("state") or {}).get(state) for container in containers]
    return [item.get("reason", "") for item in found if item is not None]


def _condition(manifest: Manifest, condition_type: str, missing: str = UNKNOWN) -> str:
    listed = (manifest.get("status") or {}).get("conditions") or ()
    return next((str(item.get("status")) for item in listed if item.get("type") == condition_type), missing)
