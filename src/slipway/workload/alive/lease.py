"""Who holds the Lease ``kube-system/alive``: a diagnosis for people, and an arbiter between two masters of VRRP.  Pure.

VRRP decides who has the address and needs no API.  Its master writes its name into the Lease.  Two masters that do not hear each other
both answer for the address; the one that does not have the Lease sees the other one renew it, and gives way.  A Lease that nobody
renews is no objection, and neither is an API server that does not answer: the Lease is never a condition for having the address.

Renewals are counted, never dated: the clocks of two hosts differ, and a holder that has just died leaves a Lease that looks alive.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from slipway.workload.alive.values import LEASE, NAMESPACE

if TYPE_CHECKING:
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest

API_VERSION, KIND = "coordination.k8s.io/v1", "Lease"

PERIOD_SECONDS = 2.0
LEASE_SECONDS = 10
FIRST_PATIENCE, LONGEST_PATIENCE = 60.0, 3600.0
# One could have been on its way while its sender lost the address; the second one was sent by somebody who has it still.
_RENEWALS_OF_A_MASTER = 2


class Action(Enum):
    """What is to be done."""

    NOTHING = "nothing"
    HOLD = "write our name into the Lease"
    RELEASE = "take our name out of the Lease"
    GIVE_WAY = "put keepalived into FAULT"
    COME_BACK = "let keepalived out of FAULT"


class Memory(NamedTuple):
    """What was seen so far of a Lease of somebody else."""

    holder: str = ""
    version: str = ""
    renewals: int = 0
    """How often it was renewed while this host was master, or had given way."""
    changed_at: float = 0.0


class Situation(NamedTuple):
    """What is true at present: whether this host has the address, and whether it has given way."""

    me: str
    master: bool
    given_way: bool
    now: float
    patient: bool = True
    """Not where it has been away for so long that the hosts may hear each other again."""


def holder(lease: Manifest | None) -> str:
    return str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")


def is_of_interest(situation: Situation, last: Action) -> bool:
    """Whether the Lease needs to be looked at: a backup has no use for it, but for taking its own name out."""
    return situation.master or situation.given_way or last is Action.HOLD


def decide(memory: Memory, situation: Situation, lease: Manifest | None) -> tuple[Action, Memory]:
    """What comes next, and what to remember."""
    name = holder(lease)
    if name in ("", situation.me):
        if situation.given_way:
            return Action.COME_BACK, Memory()
        if situation.master:
            return Action.HOLD, Memory()
        return (Action.RELEASE if name else Action.NOTHING), Memory()
    seen = _seen(memory, name, _version(lease), situation)
    is_alive = situation.now - seen.changed_at < LEASE_SECONDS
    if situation.given_way:
        return (Action.NOTHING, seen) if is_alive and situation.patient else (Action.COME_BACK, Memory())
    if not situation.master:
        return Action.NOTHING, Memory()
    if seen.renewals >= _RENEWALS_OF_A_MASTER:
        return Action.GIVE_WAY, seen
    return (Action.NOTHING, seen) if is_alive else (Action.HOLD, Memory())


def patience(before: float, back_for: float) -> float:
    """For how many seconds a host stays away that gives way ``back_for`` seconds after it came back: each time for longer.

    Whether it hears the others again it cannot know but by trying, and each try is two masters for some seconds.
    """
    return min(2 * before, LONGEST_PATIENCE) if back_for < before else FIRST_PATIENCE


def held(lease: Manifest | None, me: str, now: datetime) -> Manifest:
    """The Lease with our name in it: a renewal, or a transition."""
    written = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    before = (lease or {}).get("spec") or {}
    is_ours = before.get("holderIdentity") == me
    spec = {
        "holderIdentity": me,
        "leaseDurationSeconds": LEASE_SECONDS,
        "acquireTime": (before.get("acquireTime") if is_ours else "") or written,
        "renewTime": written,
        "leaseTransitions": int(before.get("leaseTransitions") or 0) + (0 if is_ours or lease is None else 1),
    }
    metadata = {"name": LEASE, "namespace": NAMESPACE, "labels": {"app": "alive"}}
    return {**(lease or {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata}), "spec": spec}


def released(lease: Manifest, now: datetime) -> Manifest:
    """The Lease without a holder, as client-go leaves it."""
    return {**lease, "spec": {**lease["spec"], "holderIdentity": "", "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}}


def _seen(memory: Memory, name: str, version: str, situation: Situation) -> Memory:
    if memory.holder != name:
        return Memory(name, version, 0, situation.now)
    if memory.version != version:
        return Memory(name, version, memory.renewals + 1, situation.now)
    return memory


def _version(lease: Manifest | None) -> str:
    return str(((lease or {}).get("metadata") or {}).get("resourceVersion") or "")
