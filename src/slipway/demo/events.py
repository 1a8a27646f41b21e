"""What is told of a run: watch events of objects become events of a timeline, by pure functions.

An object's state before and after a change says what happened.  Nothing here knows how events are shown, nor that hosts are simulated:
the objects of a real management cluster tell the same.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import BAREMETAL_CLUSTER, BAREMETAL_MACHINE, MACHINE, MACHINE_INVENTORY, MACHINE_INVENTORY_POOL
from slipway.fleet.overview.problems import LASTING, problems_of, to_do
from slipway.fleet.overview.stages import (
    ALLOCATED,
    BOOTING,
    CLEANING,
    FAILED,
    FREE,
    MEMBER,
    REGISTERED,
    REPROVISIONING,
    UNAVAILABLE,
    conditions,
    host_of,
    machine_of,
    stage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest

# Kinds of events.
STEP, DONE, PATCH, HOST, PLAN, MACHINE_EVENT, CONDITION, EXPLAINED, FAULT, REFUSED, NOTE, PROBLEM, KEPT, DASHBOARD, REPORT, VERIFIED = (
    "step", "done", "patch", "host", "plan", "machine", "condition", "explained", "fault", "refused", "note", "problem", "kept",
    "dashboard", "report", "verified",
)  # fmt: skip


class Check(msgspec.Struct, frozen=True):
    """Something that must hold in the end, and what was seen of it."""

    name: str
    ok: bool
    seen: str


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """``at``: seconds since the run began."""

    event: str
    at: float = 0.0
    text: str = ""
    host: str = ""
    stage: str = ""
    """Of the host, from now on."""
    version: str = ""
    """The Kubernetes of the machine."""
    kind: str = ""
    name: str = ""
    """The object that it is about."""
    condition: str = ""
    reason: str = ""
    to_do: str = ""
    lasting: bool = False
    """Whether a condition stays until somebody does something."""
    seconds: float = 0.0
    """How long what is done now has taken."""
    command: str = ""
    """What an operator would type."""
    ok: bool | None = None
    checks: tuple[Check, ...] = ()


def changes(kind: Kind, before: Manifest | None, after: Manifest | None, versions: Callable[[str], str]) -> list[Event]:
    """What happened, if an object was ``before`` and is ``after``; None where there is none.

    ``versions`` says which Kubernetes the Machine of a name is to have: what else there is about a machine says it by that name.
    """
    current = after if after is not None else before
    if current is None:
        return []
    name = str(current["metadata"]["name"])
    if kind == MACHINE_INVENTORY:
        return _inventory(name, before, after)
    if kind == MACHINE:
        return _machine(name, before, after)
    if kind == BAREMETAL_MACHINE:
        version = versions(machine_of(current))
        return [*_stage_of(name, version, before, after), *_conditions(kind, name, before, after)]
    if kind in (BAREMETAL_CLUSTER, MACHINE_INVENTORY_POOL):
        return _conditions(kind, name, before, after)
    return []


def waits(manifests: Iterable[tuple[Kind, Manifest]]) -> list[Event]:
    """Everything that is not well now, for who wants to know why a run does not go on; control planes and workers say so, too."""
    now = datetime.now(UTC)
    return [
        Event(
            CONDITION,
            kind=kind.kind,
            name=found.object.name,
            condition=found.condition,
            reason=found.reason,
            text=found.message,
            to_do=found.to_do,
        )
        for kind, manifest in manifests
        for found in problems_of(kind.kind, manifest, now)
    ]


def _inventory(name: str, before: Manifest | None, after: Manifest | None) -> list[Event]:
    if after is None:
        return [Event(HOST, host=name, text="is deleted")]
    found = []
    if before is None:
        address = next(iter(_addresses(after)), "")
        found.append(Event(HOST, host=name, stage=REGISTERED, text="has registered" + (f" from {address}" if address else "")))
    plan = _plan(after)
    if plan and plan != _plan(before):
        found.append(Event(PLAN, host=name, text=plan))
    state, was = _allocation(after), _allocation(before)
    if state == was:
        return found
    if state == names.AVAILABLE:
        pool = (after["metadata"].get("annotations") or {}).get(names.POOL_ANNOTATION, "")
        back = "is clean, and back in" if was else "is free in"
        found.append(Event(HOST, host=name, stage=FREE, text=f"{back} {pool}"))
    elif state == names.UNAVAILABLE:
        found.append(Event(HOST, host=name, stage=UNAVAILABLE, text="cannot be used"))
    return found


def _plan(inventory: Manifest | None) -> str:
    """Which plan a host has, and what became of it."""
    plan = ((inventory or {}).get("status") or {}).get("plan") or {}
    return f"{plan['type']}: {plan.get('state') or 'under way'}" if plan.get("type") in (names.PLAN_CLEAN, names.PLAN_REPROVISION) else ""


def _addresses(inventory: Manifest) -> list[str]:
    network = (inventory.get("spec") or {}).get("observedNetwork") or {}
    found = [address for each in network.get("interfaces") or () if each.get("name") != "lo" for address in each.get("addresses") or ()]
    return [str(each).partition("/")[0] for each in found]


def _allocation(inventory: Manifest | None) -> str:
    if inventory is None:
        return ""
    return str((inventory["metadata"].get("annotations") or {}).get(names.ALLOCATION_STATE_ANNOTATION) or "")


def _machine(name: str, before: Manifest | None, after: Manifest | None) -> list[Event]:
    known: dict[str, Any] = {"kind": MACHINE.kind, "name": name}
    if after is None:
        return [Event(MACHINE_EVENT, text="is gone", **known)]
    version = str((after.get("spec") or {}).get("version") or "")
    if before is None:
        return [Event(MACHINE_EVENT, text=f"is made, for Kubernetes {version}", version=version, **known)]
    if after["metadata"].get("deletionTimestamp") and not before["metadata"].get("deletionTimestamp"):
        return [Event(MACHINE_EVENT, text="is deleted", version=version, **known)]
    return []


_TOLD = {
    ALLOCATED: "is taken for {machine}",
    REPROVISIONING: "has a reprovision plan: {image}",
    BOOTING: "has applied its plan and boots {version}",
    MEMBER: "is a Node of Kubernetes {version}",
    CLEANING: "leaves the cluster, and is cleaned",
    FAILED: "does not go on",
}


def _stage_of(name: str, version: str, before: Manifest | None, after: Manifest | None) -> list[Event]:
    if after is None:
        return []
    now, was = stage(after), stage(before) if before is not None else ""
    if not now or now == was:
        return []
    image = str((after.get("status") or {}).get("image") or "the image of its version")
    text = _TOLD[now].format(machine=name, image=image, version=version)
    return [Event(HOST, host=host_of(after), stage=now, version=version, kind=BAREMETAL_MACHINE.kind, name=name, text=text)]


def _conditions(kind: Kind, name: str, before: Manifest | None, after: Manifest | None) -> list[Event]:
    if after is None:
        return []
    known = {each["type"]: each for each in conditions(before)} if before is not None else {}
    found = []
    for each in conditions(after):
        type_, reason = str(each["type"]), str(each.get("reason") or "")
        way = to_do(kind.kind, type_, reason)
        was = known.get(type_) or {}
        if each.get("status") == "True" or not way or (was.get("status"), was.get("reason")) == (each.get("status"), reason):
            continue
        found.append(
            Event(
                CONDITION,
                kind=kind.kind,
                name=name,
                host=host_of(after) if kind == BAREMETAL_MACHINE else "",
                condition=type_,
                reason=reason,
                text=str(each.get("message") or ""),
                to_do=way,
                lasting=reason in LASTING,
            )
        )
    return found
