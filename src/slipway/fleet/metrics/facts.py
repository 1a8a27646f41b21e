"""What single objects contribute to the metrics of a fleet, and what a change of one says: pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.cluster.infrastructure.names import ALLOCATION_STATES, PHASES, PLAN_CLEAN, PLAN_REPROVISION
from slipway.api.cluster.infrastructure.pool import MachineInventoryPool
from slipway.api.cluster.names import CLUSTER_NAME_LABEL, READY_CONDITION, ROLLING_OUT_CONDITION
from slipway.api.elemental.inventory import MachineInventory
from slipway.api.elemental.names import PLAN_APPLIED, PLAN_BOOTSTRAP, PLAN_EMPTY, PLAN_FAILED, PLAN_RESET
from slipway.fleet.baremetal.hosts.host import host_from
from slipway.fleet.baremetal.hosts.pool import state_of
from slipway.fleet.baremetal.reasons import REASONS
from slipway.fleet.contract.conditions import moment
from slipway.fleet.contract.facts import read
from slipway.fleet.metrics.catalogue import IN_NO_POOL, OTHER

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from slipway.api.elemental.cycles import Cycle
    from slipway.runtime.objects import Object

_PLAN_TYPES = frozenset((PLAN_REPROVISION, PLAN_CLEAN, PLAN_RESET, PLAN_BOOTSTRAP, PLAN_EMPTY))
_OUTCOMES = (PLAN_APPLIED, PLAN_FAILED)
# A condition that does not hold is a wait where the reference has a row for it; what sums up others is none of its own.
_WAITS = frozenset((row.kind, row.condition, row.reason) for row in REASONS if row.status != "True" and row.condition != READY_CONDITION)
_WAITING = frozenset((kind, condition) for kind, condition, _ in _WAITS)
# The parts of a life, each by the times that it lies between.
_STAGES = (
    ("prepare", "claimed", "planned"),
    ("reprovision", "planned", "applied"),
    ("boot", "applied", "joined"),
    ("ready", "joined", "running"),
    ("drain", "draining", "drained"),
    ("clean", "drained", "cleaned"),
)
STAGES = tuple(stage for stage, _, _ in _STAGES)


class HostFacts(NamedTuple):
    namespace: str
    state: str
    quarantined: bool
    plan_type: str
    """Empty where it never had one."""
    plan_state: str
    """Applied or Failed; empty while it is under way."""
    plan_checksum: str


class PoolFacts(NamedTuple):
    namespace: str
    name: str
    hosts: dict[str, int]
    """How many there are, by state."""


class MachineFacts(NamedTuple):
    namespace: str
    cluster: str
    phase: str


class GroupFacts(NamedTuple):
    """A control plane or a MachineDeployment."""

    namespace: str
    cluster: str
    kind: str
    rolling_since: datetime | None
    """When its rollout began; None where there is none."""
    machines: int
    up_to_date: int


class Wait(NamedTuple):
    """A condition that does not hold."""

    kind: str
    condition: str
    reason: str
    since: datetime | None


class Finished(NamedTuple):
    """A part of a life that is over."""

    stage: str
    seconds: float


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: str = ""


class _Status(msgspec.Struct, rename="camel"):
    conditions: list[_Condition] = []
    phase: str = ""
    replicas: int | None = None
    up_to_date_replicas: int | None = None


class _Observed(msgspec.Struct):
    """Any object, as far as its status is looked at."""

    status: _Status = msgspec.field(default_factory=_Status)


def host(found: Object) -> HostFacts:
    seen = host_from(found)
    plan = read(found, MachineInventory).status.plan
    return HostFacts(
        namespace=found.namespace,
        state=state_of(seen, seen.pool) if seen.pool else IN_NO_POOL,
        quarantined=bool(seen.quarantined_by),
        plan_type=plan.type if plan.type in _PLAN_TYPES or not plan.checksum else OTHER,
        plan_state=plan.state,
        plan_checksum=plan.checksum,
    )


def pool(found: Object) -> PoolFacts:
    status = read(found, MachineInventoryPool).status
    return PoolFacts(found.namespace, found.name, {state: getattr(status, state.lower()) for state in ALLOCATION_STATES})


def machine(found: Object) -> MachineFacts:
    phase = found.decode(_Observed).status.phase
    return MachineFacts(found.namespace, found.metadata.labels.get(CLUSTER_NAME_LABEL, ""), phase if phase in PHASES else OTHER)


def group(found: Object) -> GroupFacts:
    status = found.decode(_Observed).status
    rolling = next((each for each in status.conditions if (each.type, each.status) == (ROLLING_OUT_CONDITION, "True")), None)
    return GroupFacts(
        namespace=found.namespace,
        cluster=found.metadata.labels.get(CLUSTER_NAME_LABEL, ""),
        kind=found.kind.kind,
        rolling_since=moment(rolling.last_transition_time) if rolling is not None else None,
        machines=status.replicas or 0,
        up_to_date=status.up_to_date_replicas or 0,
    )


def is_ready(found: Object) -> bool:
    return any((each.type, each.status) == (READY_CONDITION, "True") for each in found.decode(_Observed).status.conditions)


def waits(found: Object) -> tuple[Wait, ...]:
    """The conditions that do not hold, as far as the reference has them: a reason that it does not have is not a label of its own."""
    kind = found.kind.kind
    return tuple(
        Wait(kind, each.type, each.reason if (kind, each.type, each.reason) in _WAITS else OTHER, moment(each.last_transition_time))
        for each in found.decode(_Observed).status.conditions
        if each.status != "True" and (kind, each.type) in _WAITING
    )


def ended_plan(before: HostFacts, after: HostFacts) -> bool:
    """Whether the host has ended a plan since."""
    plan = after.plan_checksum, after.plan_state
    return after.plan_state in _OUTCOMES and plan != (before.plan_checksum, before.plan_state)


def finished(before: Sequence[Cycle], after: Sequence[Cycle]) -> list[Finished]:
    """The parts of the last life that are over since."""
    if not after:
        return []
    last = after[-1]
    known = next((each for each in reversed(before) if (each.machine, each.claimed) == (last.machine, last.claimed)), None)
    found = []
    for stage, begin, end in _STAGES:
        began, ended = getattr(last, begin), getattr(last, end)
        if began is not None and ended is not None and (known is None or getattr(known, end) is None):
            found.append(Finished(stage, _seconds(began, ended)))
    return found


def node_out(before: Sequence[Cycle], after: Sequence[Cycle]) -> float | None:
    """How long the host was no Node, where it has become one again since: from the end of one life and to the running of the next."""
    if len(after) < 2 or after[-1].running is None:
        return None
    last, old = after[-1], after[-2]
    known = next((each for each in reversed(before) if (each.machine, each.claimed) == (last.machine, last.claimed)), None)
    went = old.draining or old.drained
    if (known is not None and known.running is not None) or went is None or old.released is None or last.claimed is None:
        return None
    # One that was given up is free when it has been cleaned after all.
    free = max(old.released, old.cleaned or old.released)
    return _seconds(went, free) + _seconds(last.claimed, after[-1].running)


def _seconds(begin: datetime, end: datetime) -> float:
    """Some of the times are the API server's, and some the manager's: clocks that differ a little make no negative time."""
    return max(0.0, (end - begin).total_seconds())
