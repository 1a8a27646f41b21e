"""The row of a Pod in ``kubectl get pods``: its state is told from the states of its containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest


_NONE = "<none>"


def pod_cells(pod: Manifest, now: datetime, age: Callable[[str | None, datetime], str]) -> list[Any]:
    """Name, Ready, Status, Restarts, Age and the wide columns."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars = {item.get("name") for item in spec.get("initContainers") or [] if item.get("restartPolicy") == "Always"}
    init, initialising = _init_state(status.get("initContainerStatuses") or [], sidecars, len(spec.get("initContainers") or []))
    ready, restarts, last = init["ready"], init["restarts"], init["last"]
    reason = status.get("reason") or status.get("phase") or ""
    if any(item.get("type") == "PodScheduled" and item.get("reason") == "SchedulingGated" for item in status.get("conditions") or []):
        reason = "SchedulingGated"
    reason = init["reason"] or reason
    if not initialising or _is_true(status, "Initialized"):
        running, restarted, last_restart, found = _container_state(status, reason)
        ready, restarts = ready + running, init["sidecar restarts"] + restarted
        last, reason = max(init["sidecar last"], last_restart), found
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            reason = "Terminating"
    total = len(spec.get("containers") or []) + len(sidecars)
    shown = f"{restarts} ({age(last, now)} ago)" if restarts and last else str(restarts)
    addresses = status.get("podIPs") or [{}]
    gates = [item.get("conditionType") for item in spec.get("readinessGates") or []]
    return [
        *(pod["metadata"].get("name", ""), f"{ready}/{total}", reason, shown, age(pod["metadata"].get("creationTimestamp"), now)),
        *(addresses[0].get("ip") or _NONE, spec.get("nodeName") or _NONE, status.get("nominatedNodeName") or _NONE),
        f"{sum(_is_true(status, gate) for gate in gates)}/{len(gates)}" if gates else _NONE,
    ]


def _is_true(status: Manifest, type_: str) -> bool:
    return any(item.get("type") == type_ and item.get("status") == "True" for item in status.get("conditions") or [])


def _last_end(container: Manifest) -> str:
    end: str = ((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or ""
    return end


def _init_state(containers: list[Manifest], sidecars: set[Any], total: int) -> tuple[Manifest, bool]:
    """What init containers have come to, and whether one of them still holds the Pod up."""
    state: Manifest = {"ready": 0, "restarts": 0, "last": "", "sidecar restarts": 0, "sidecar last": "", "reason": ""}
    for index, container in enumerate(containers):
        restarts, last = container.get("restartCount", 0), _last_end(container)
        state["restarts"], state["last"] = state["restarts"] + restarts, max(state["last"], last)
        if container.get("name") in sidecars:
            state["sidecar restarts"] += restarts
            state["sidecar last"] = max(state["sidecar last"], last)
        current = container.get("state") or {}
        ended, waiting = current.get("terminated"), current.get("waiting") or {}
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if container.get("name") in sidecars and container.get("started"):
            state["ready"] += bool(container.get("ready"))
            continue
        if ended is not None:
            state["reason"] = f"Init:{_end_reason(ended)}"
        elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
            state["reason"] = f"Init:{waiting['reason']}"
        else:
            state["reason"] = f"Init:{index}/{total}"
        return state, True
    return state, False


def _end_reason(ended: Manifest) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _container_state(status: Manifest, reason: str) -> tuple[int, int, str, str]:
    """How many run, how often they were restarted, when last, and the reason that the Pod shows."""
    running = restarts = 0
    last = failure = ""
    for container in reversed(status.get("containerStatuses") or []):
        restarts += container.get("restartCount", 0)
        last = max(last, _last_end(container))
        current = container.get("state") or {}
        ended = current.get("terminated")
        if (current.get("waiting") or {}).get("reason"):
            reason = current["waiting"]["reason"]
        elif ended is not None:
            reason = _end_reason(ended)
            failure = reason if ended.get("exitCode", 0) else failure
        elif container.get("ready") and current.get("running") is not None:
            running += 1
    if reason == "Completed":
        reason = "Running" if running and _is_true(status, "Ready") else failure or ("NotReady" if running else reason)
    return running, restarts, last, reason
