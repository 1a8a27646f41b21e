"""What a reconcile of a BaremetalMachine does next: its whole life as one function of what was observed.

Nothing here remembers: whether a host is ours stands in its inventory, whether it has our plan stands in its plan Secret.  So whoever comes
after a manager that was killed at any line goes on where that one was.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.infrastructure.names import PLAN_CLEAN, PLAN_REPROVISION

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from slipway.fleet.baremetal.plans.planfacts import PlanFacts

# A host that has not begun with a plan after so long will not be disturbed by another one; an older agent does not tell that it began.
UNTOUCHED = timedelta(minutes=2)
BOOTS = ","
"""What stands between the boots before a plan, where there are several."""


class Step(Enum):
    """One thing to do; the value says it in a log line."""

    IGNORE = "the BaremetalMachine is gone but for finalizers of others"
    WAIT_FOR_OWNER = "waiting for a Machine to own the BaremetalMachine"
    WAIT_FOR_CLUSTER = "waiting for the Cluster to be created"
    PAUSED = "reconciliation is paused"
    WAIT_FOR_INFRASTRUCTURE = "waiting for the infrastructure of the Cluster"
    ALLOCATE = "looking for a host"
    LOST = "the host is not ours any more"
    WAIT_FOR_SECRET = "waiting for the plan Secret of the host"
    WAIT_FOR_HOST = "waiting for the host to end another plan"
    WAIT_FOR_BOOTSTRAP = "waiting for the bootstrap data"
    PROVISION = "writing the reprovision plan"
    WAIT_FOR_PLAN = "waiting for the host to apply the reprovision plan"
    PLAN_FAILED = "the reprovision plan failed"
    WAIT_FOR_NODE = "looking for the Node"
    CLEAN = "writing the clean plan"
    WAIT_FOR_CLEAN = "waiting for the host to apply the clean plan"
    CLEAN_FAILED = "the clean plan failed"
    GIVE_UP = "giving the host up without its being clean"
    RELEASE = "giving the host back to its pool"
    FORGET = "there is no host to give back"

    @property
    def is_idle(self) -> bool:
        return self in (Step.IGNORE, Step.WAIT_FOR_OWNER, Step.WAIT_FOR_CLUSTER, Step.PAUSED, Step.WAIT_FOR_NODE)


class Observed(NamedTuple):
    """What there is."""

    name: str
    deleting: bool = False
    finalizer: bool = True
    paused: bool = False
    has_owner: bool = True
    has_cluster: bool = True
    infrastructure: bool = True
    """The Cluster's infrastructure is there."""
    claimed: bool = False
    """There is a host, and it is ours."""
    provisioned: bool = False
    """The machine has been a Node before."""
    written: bool = False
    """A plan has been written for this machine before, or was about to be: as its status says, or its provider ID, which outlives that."""
    plan: PlanFacts | None = None
    """The plan of the host that is ours; None where it has no plan Secret."""
    bootstrap: bool = False
    """The Machine names its bootstrap data."""
    retry: bool = False
    force: bool = False


def next_step(observed: Observed, now: datetime) -> Step:
    if observed.deleting and not observed.finalizer:
        return Step.IGNORE
    if not observed.deleting and not observed.has_owner:
        return Step.WAIT_FOR_OWNER
    if not observed.deleting and not observed.has_cluster:
        return Step.WAIT_FOR_CLUSTER
    if observed.paused:
        return Step.PAUSED
    return _deletion(observed, now) if observed.deleting else _life(observed)


def _life(observed: Observed) -> Step:
    if not observed.infrastructure and not observed.provisioned:
        return Step.WAIT_FOR_INFRASTRUCTURE
    if not observed.claimed:
        # One that has been made a node, or is about to be, does not get another host: its Node would be somebody else.
        return Step.LOST if observed.provisioned or observed.written else Step.ALLOCATE
    plan = observed.plan
    if plan is not None and plan.owner == observed.name and plan.type == PLAN_REPROVISION:
        if plan.outcome == "failed" and not observed.provisioned:
            return Step.PLAN_FAILED
        return Step.WAIT_FOR_PLAN if plan.in_flight and not observed.provisioned else Step.WAIT_FOR_NODE
    if observed.provisioned:
        return Step.WAIT_FOR_NODE
    if plan is None:
        return Step.WAIT_FOR_SECRET
    if plan.in_flight:
        return Step.WAIT_FOR_HOST
    return Step.PROVISION if observed.bootstrap else Step.WAIT_FOR_BOOTSTRAP


def _deletion(observed: Observed, now: datetime) -> Step:
    if not observed.claimed:
        return Step.FORGET
    plan = observed.plan
    if plan is not None and plan.owner != observed.name and not observed.provisioned and not observed.written:
        # It was claimed and nothing was done to it.
        return Step.RELEASE
    if observed.force:
        return Step.GIVE_UP
    if plan is None:
        return Step.WAIT_FOR_SECRET
    if plan.owner == observed.name and plan.type == PLAN_CLEAN:
        if plan.outcome == "applied" and not plan.is_dirty:
            return Step.RELEASE
        if plan.outcome in ("applied", "failed"):
            return Step.CLEAN if observed.retry else Step.CLEAN_FAILED
        return Step.WAIT_FOR_CLEAN
    # A manager whose clock was ahead by a day is not waited for until that day is over.
    if plan.outcome == "in-progress" or (plan.outcome == "pending" and plan.written is not None and abs(now - plan.written) < UNTOUCHED):
        return Step.WAIT_FOR_HOST
    return Step.CLEAN


class NodeFacts(NamedTuple):
    """The Node that has the provider ID of a host."""

    name: str
    version: str
    boot_id: str
    ready: bool = False
    machine: str = ""
    """The Machine whose Node it is, as Cluster API notes it there."""


class Joined(Enum):
    YES = "the Node is there"
    NO = "there is no Node with the provider ID yet"
    OTHER_VERSION = "the Node has another version than the Machine"


def made_by_plan(nodes: Iterable[NodeFacts], boots_before: str) -> NodeFacts | None:
    """Of the Nodes with the provider ID of a host the one that its plan made: not one of the boots before, which machines left behind."""
    before = frozenset(filter(None, boots_before.split(BOOTS)))
    return next((node for node in nodes if node.boot_id not in before), None)


def joined(node: NodeFacts | None, *, fits: bool) -> Joined:
    """One that has not told its version yet is not there yet: it is neither right nor wrong."""
    if node is None or not node.version:
        return Joined.NO
    return Joined.YES if fits else Joined.OTHER_VERSION
