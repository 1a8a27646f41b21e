"""Hosts and their pools, as they stand."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads it
from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import MACHINE_INVENTORY, MACHINE_INVENTORY_POOL
from slipway.api.elemental import plan as plans
from slipway.api.elemental.names import PLAN_APPLIED, PLAN_EMPTY, PLAN_FAILED, READY_CONDITION
from slipway.fleet.baremetal.hosts.host import QUARANTINE_ANNOTATION
from slipway.fleet.baremetal.plans.planfacts import IMAGE_ANNOTATION, WRITTEN_ANNOTATION
from slipway.fleet.contract.conditions import moment
from slipway.fleet.overview.problems import Problem, Ref, problems_of
from slipway.fleet.overview.stages import (
    ALLOCATED,
    CLEANING,
    FREE,
    REGISTERED,
    REPROVISIONING,
    UNAVAILABLE,
    condition,
)

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.overview.machines import MachineView

# Of a plan.
PENDING, RUNNING, APPLIED, FAILED = "pending", "running", "applied", "failed"
_STAGES = {
    names.AVAILABLE: FREE,
    names.ALLOCATED: ALLOCATED,
    names.PREPARING: CLEANING,
    names.REPROVISIONING: REPROVISIONING,
    names.UNAVAILABLE: UNAVAILABLE,
}


class PlanView(msgspec.Struct, frozen=True, rename="camel"):
    """The plan that a host has."""

    type: str
    state: str
    """pending, running, applied or failed."""
    instruction: str = ""
    """What the host is doing at the moment, where that is known."""
    since: datetime | None = None
    """When the plan was written, or the instruction was begun."""
    step: int = 0
    steps: int = 0
    failures: int = 0
    message: str = ""
    """What the host printed when it failed."""


class HostView(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str
    name: str
    pool: str
    state: str
    """Available, Allocated, Preparing, Reprovisioning or Unavailable; empty for a host that no pool has."""
    stage: str
    since: datetime | None
    machine: str
    cluster: str
    image: str
    """What it boots, or has booted."""
    version: str
    """The Kubernetes of what it runs, as it says itself; else of its machine."""
    plan: PlanView | None
    quarantined: bool
    last_heard: datetime | None
    problem: Problem | None = None
    labels: dict[str, str] = {}


class PoolView(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str
    name: str
    cluster: str
    total: int
    available: int
    allocated: int
    preparing: int
    reprovisioning: int
    unavailable: int
    problems: tuple[Problem, ...] = ()


def pool_view(pool: Manifest, now: datetime) -> PoolView:
    status = pool.get("status") or {}
    return PoolView(
        namespace=str(pool["metadata"].get("namespace") or ""),
        name=str(pool["metadata"]["name"]),
        cluster=str((pool.get("spec") or {}).get("clusterName") or ""),
        **{each: int(status.get(each) or 0) for each in ("total", *(state.lower() for state in names.ALLOCATION_STATES))},
        problems=tuple(problems_of(MACHINE_INVENTORY_POOL.kind, pool, now)),
    )


def host_view(inventory: Manifest, secret: Manifest | None, machine: MachineView | None) -> HostView:
    """``machine`` is the one that has the host; ``secret`` its plan Secret, as far as it may be seen."""
    metadata, status = inventory["metadata"], inventory.get("status") or {}
    annotations = metadata.get("annotations") or {}
    facts = status.get("hostFacts") or {}
    image = facts.get("image") or {}
    state = str(annotations.get(names.ALLOCATION_STATE_ANNOTATION) or "")
    quarantined = bool(annotations.get(QUARANTINE_ANNOTATION))
    stage, since = _stage(inventory, state, machine)
    return HostView(
        namespace=str(metadata.get("namespace") or ""),
        name=str(metadata["name"]),
        pool=str(annotations.get(names.POOL_ANNOTATION) or ""),
        state=state,
        stage=stage,
        since=since,
        machine=str(annotations.get(names.OWNER_MACHINE_ANNOTATION) or ""),
        cluster=str(annotations.get(names.OWNER_CLUSTER_ANNOTATION) or ""),
        image=str(image.get("reference") or _annotation(secret, IMAGE_ANNOTATION)),
        version=str(image.get("version") or (machine.version if machine is not None else "")),
        plan=plan_view(inventory, secret),
        quarantined=quarantined,
        last_heard=moment(facts.get("observedAt")),
        problem=_problem(inventory, state, machine, quarantined=quarantined),
        labels={str(key): str(value) for key, value in (metadata.get("labels") or {}).items()},
    )


def plan_view(inventory: Manifest, secret: Manifest | None) -> PlanView | None:
    """None where the host never had one of ours."""
    plan = (inventory.get("status") or {}).get("plan") or {}
    type_ = str(plan.get("type") or _annotation(secret, names.PLAN_TYPE_ANNOTATION))
    if type_ in ("", PLAN_EMPTY):
        return None
    written = moment(_annotation(secret, WRITTEN_ANNOTATION))
    progress = plans.progress((secret or {}).get("data"))
    state = {PLAN_APPLIED: APPLIED, PLAN_FAILED: FAILED}.get(str(plan.get("state") or ""), "")
    if state or progress is None:
        return PlanView(
            type_,
            state or _unfinished(secret),
            since=written,
            failures=int(plan.get("failures") or 0),
            message=str(plan.get("message") or ""),
        )
    return PlanView(
        type_,
        RUNNING,
        instruction=progress.instruction,
        since=moment(progress.started) or written,
        step=progress.index,
        steps=progress.of,
        failures=int(plan.get("failures") or 0),
        message=str(plan.get("message") or ""),
    )


def _unfinished(secret: Manifest | None) -> str:
    data = (secret or {}).get("data")
    return RUNNING if data and plans.read(data).outcome == "in-progress" else PENDING


def _stage(inventory: Manifest, state: str, machine: MachineView | None) -> tuple[str, datetime | None]:
    if machine is not None:
        return machine.stage, machine.since
    made = moment(inventory["metadata"].get("creationTimestamp"))
    # An inventory does not say since when it is in its state; its last plan's outcome is the nearest that it says.
    changed = moment(condition(inventory, READY_CONDITION).get("lastTransitionTime"))
    return _STAGES.get(state, REGISTERED), changed or made


def _problem(inventory: Manifest, state: str, machine: MachineView | None, *, quarantined: bool) -> Problem | None:
    if machine is not None and machine.problem is not None:
        return machine.problem
    metadata = inventory["metadata"]
    ref = Ref(MACHINE_INVENTORY.kind, str(metadata.get("namespace") or ""), str(metadata["name"]))
    ready = condition(inventory, READY_CONDITION)
    since, reason = moment(ready.get("lastTransitionTime")), str(ready.get("reason") or "")
    message = str(ready.get("message") or "")
    if quarantined:
        text = "it was given up without having been cleaned, and is not used until it has been"
        return Problem(
            ref, READY_CONDITION, "Quarantined", text, since, "Switch the host on: its agent cleans it, and it comes back.", True
        )
    if state == names.UNAVAILABLE:
        way = "Mend the host; then delete its Machine, or set the annotation slipway.io/retry-clean on its BaremetalMachine."
        return Problem(ref, READY_CONDITION, reason or names.UNAVAILABLE, message or "it cannot be used", since, way, True)
    if ready.get("status") == "False" and state in ("", names.AVAILABLE):
        way = "Look at the host's power, network and agent: it has to take a plan before it can be used."
        return Problem(ref, READY_CONDITION, reason, message, since, way, reason == "PlanFailure")
    return None


def _annotation(secret: Manifest | None, name: str) -> str:
    return str(((secret or {}).get("metadata", {}).get("annotations") or {}).get(name) or "")
