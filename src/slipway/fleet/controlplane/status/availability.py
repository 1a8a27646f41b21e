"""Whether a control plane works: its certificates are there, etcd has its quorum, and one machine has everything that runs on it well.

What is wrong with some machines is told beside that, once it has lasted for ten seconds.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names
from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN, Condition, moment
from slipway.fleet.controlplane.decisions.machines import ETCD_CHECKS, ETCD_MEMBER, KUBERNETES_CHECKS
from slipway.fleet.controlplane.decisions.quorum import quorum
from slipway.fleet.controlplane.status.conditions import condition_of, says

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slipway.api.cluster.core.machine import Machine
    from slipway.fleet.controlplane.decisions.machines import Member

_NOTICED_AFTER = timedelta(seconds=10)
# A control plane that was just made has time to tell its members.
_MEMBERS_KNOWN_AFTER = timedelta(minutes=2)


class Seen(NamedTuple):
    """``members`` is None where etcd is managed and could not be asked."""

    machines: Sequence[Machine]
    now: datetime
    initialized_at: datetime | None
    manages_etcd: bool = True
    members: Sequence[Member] | None = None
    members_match: bool = True
    certificates: bool = True
    deleting: bool = False


class Tally(NamedTuple):
    """How many are well, how many are not, and how many are not for so short a time that nobody need know."""

    well: int = 0
    ill: int = 0
    just_ill: int = 0


def available(seen: Seen) -> Condition:
    if seen.initialized_at is None:
        return _not_available("Control plane not yet initialized")
    if seen.manages_etcd and seen.members is None:
        if seen.now - seen.initialized_at < _MEMBERS_KNOWN_AFTER:
            return _not_available("Waiting for etcd to report the list of members")
        return Condition(
            type=names.AVAILABLE_CONDITION, status=UNKNOWN, reason=names.INSPECTION_FAILED_REASON, message="Failed to get etcd members"
        )
    if seen.manages_etcd and not seen.members_match:
        return _not_available("The list of etcd members does not match the list of Machines and Nodes")
    machines, members = _machines(seen), _members(seen)
    known = seen.members or ()
    learners = sum(member.learner or not member.name for member in known)
    needed = quorum(len(known) - learners)
    learning = f" {learners} learner etcd member," if learners else ""
    required = f"{learning} at least {needed} healthy member required for etcd quorum"
    enough = not seen.manages_etcd or members.well >= needed
    if enough and machines.well and seen.certificates and not seen.deleting:
        told = []
        if seen.manages_etcd and members.ill:
            told.append(
                f"* {_count(members.well + members.just_ill, len(known), 'etcd members is healthy', 'etcd members are healthy')},{required}"
            )
        if machines.ill:
            part = _count(
                machines.well + machines.just_ill,
                len(seen.machines),
                "Machines has healthy control plane components",
                "Machines have healthy control plane components",
            )
            told.append(f"* {part}, at least 1 required")
        return Condition(type=names.AVAILABLE_CONDITION, status=TRUE, reason=names.AVAILABLE_REASON, message="\n".join(told))
    told = []
    if seen.deleting:
        told.append("* Control plane metadata.deletionTimestamp is set")
    if not seen.certificates:
        told.append("* Control plane certificates are not available")
    if not enough:
        some = _count(members.well, len(known), "etcd members is healthy", "etcd members are healthy")
        told.append(f"* {some if members.well else 'There are no healthy etcd member'},{required}")
    if not machines.well:
        told.append("* There are no Machines with healthy control plane components, at least 1 required")
    return _not_available("\n".join(told))


def _machines(seen: Seen) -> Tally:
    checks = (*KUBERNETES_CHECKS, *(ETCD_CHECKS if seen.manages_etcd else ()))
    # Before there is a host, nothing can be ill on it.
    return _tally((machine for machine in seen.machines if machine.spec.provider_id), checks, seen.now)


def _members(seen: Seen) -> Tally:
    if not seen.manages_etcd:
        return Tally()
    nodes = {machine.status.node_ref.name: machine for machine in seen.machines if machine.status.node_ref.name}
    provisioning = [machine for machine in seen.machines if not machine.status.node_ref.name]
    well = ill = 0
    machines = []
    for member in seen.members or ():
        if not member.name:
            # It is about to start.
            well += 1
        elif member.name in nodes:
            machines.append(nodes[member.name])
        elif len(provisioning) == 1:
            # One machine is made at a time, so it is that one's.
            machines.append(provisioning.pop())
        else:
            ill += 1
    found = _tally(machines, (ETCD_MEMBER,), seen.now)
    return Tally(found.well + well, found.ill + ill, found.just_ill)


def _tally(machines: Iterable[Machine], checks: Sequence[str], now: datetime) -> Tally:
    well = ill = just_ill = 0
    for machine in machines:
        if all(says(machine, check, TRUE) for check in checks):
            well += 1
        elif _for_long(machine, checks, now):
            ill += 1
        else:
            just_ill += 1
    return Tally(well, ill, just_ill)


def _for_long(machine: Machine, checks: Sequence[str], now: datetime) -> bool:
    found = (condition_of(machine, check) for check in checks)
    since = [moment(condition.last_transition_time) for condition in found if condition is not None and condition.status != TRUE]
    return any(time is not None and now - time > _NOTICED_AFTER for time in since)


def _count(part: int, whole: int, one: str, many: str) -> str:
    return f"{part} of {whole} {one if part == 1 else many}"


def _not_available(message: str) -> Condition:
    return Condition(type=names.AVAILABLE_CONDITION, status=FALSE, reason=names.NOT_AVAILABLE_REASON, message=message)
