"""Which changes of an etcd cluster leave it with a quorum, and which members may go: decisions on values, nothing is asked or done here.

A cluster of n voters works while ⌊n/2⌋ + 1 of them do.  Taking one out lowers n: with three voters that leaves two, of which none may be
sick; with five four, of which one may be.  A change is judged by the members themselves, so that it is right also while Machines, Nodes and
members do not match.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.controlplane.workload.view import EtcdMember, MachineFacts

STARTUP_GRACE = timedelta(seconds=20)
"""How long after its Node a member may still be without its name."""


class Judgement(NamedTuple):
    allowed: bool
    why_not: str = ""

    def __bool__(self) -> bool:
        return self.allowed


class Candidate(NamedTuple):
    """A Machine that etcd's leadership may move to."""

    machine: str
    node_name: str
    created: datetime
    member_healthy: bool = False
    health_check_succeeded: bool = False
    up_to_date: bool = False
    deleting: bool = False


class Removal(NamedTuple):
    """What is to become of members that no Machine has: one that is removed, or why none is."""

    member: EtcdMember | None = None
    waits_for: str = ""
    problem: str = ""


def can_remove(members: Sequence[EtcdMember], name: str, healthy: Mapping[str, bool]) -> Judgement:
    """Whether the cluster works on without the member of that name.

    ``healthy`` says of the members that have a Machine, by their name, whether that is EtcdMemberHealthy; the others count as healthy
    unless they raise an alarm.
    """
    return _judged(members, healthy, without=name, adds=False)


def can_add(members: Sequence[EtcdMember], healthy: Mapping[str, bool]) -> Judgement:
    """Whether the cluster works on with one more member, which is taken to be sick; a cluster of one could not grow then, and is let."""
    return _judged(members, healthy, without="", adds=True)


def _judged(members: Sequence[EtcdMember], healthy: Mapping[str, bool], *, without: str, adds: bool) -> Judgement:
    # One that has no name is starting up, whatever was to be removed by its name.
    target = [member for member in members if not member.name or member.name != without]
    learners = [member for member in target if member.learner or not member.name]
    if learners:
        listed = ", ".join(member.name or f"{member.id} (Name not yet assigned)" for member in learners)
        return Judgement(False, f"waiting for the etcd members that are learners to be promoted: {listed}")
    sick = [member.name for member in target if not _is_healthy(member, healthy)]
    if adds and len(members) > 1:
        sick.append("the new one, in the worst case")
    voters = len(target) + adds
    quorum = voters // 2 + 1
    if voters - len(sick) >= quorum:
        return Judgement(True)
    listed = f" (not healthy: {', '.join(sick)})" if sick else ""
    return Judgement(False, f"etcd would have {voters - len(sick)} healthy of {voters} members{listed}, and needs {quorum}")


def _is_healthy(member: EtcdMember, healthy: Mapping[str, bool]) -> bool:
    # One that was asked itself and did not answer is sick, whatever its condition says: it is older than that.
    return member.healthy is not False and healthy.get(member.name, not member.alarms)


def unknown_member(
    members: Sequence[EtcdMember],
    machines: Sequence[MachineFacts],
    nodes: Mapping[str, Manifest],
    healthy: Mapping[str, bool],
    now: datetime,
) -> Removal:
    """The member without a Machine that is to be removed now, one at a time.

    While a Machine has no Node yet, a member that nobody knows may be its; one that has no name may also belong to a Node that has just
    registered.  A member without a name never started and never will: whether there is a quorum without it is no question.
    """
    expected = {machine.node_name for machine in machines if machine.node_name}
    unknown = sorted((member for member in members if member.name not in expected), key=lambda member: member.name)
    if not unknown or not machines:
        return Removal()
    listed = ", ".join(sorted(member.name or "(Name not yet assigned)" for member in unknown))
    if provisioning := [machine.name for machine in machines if not machine.node_name]:
        return Removal(waits_for=f"etcd members {listed} have no Machine, and may be those of {', '.join(sorted(provisioning))}")
    if not unknown[0].name and (new := _newly_registered(machines, nodes, now)):
        return Removal(waits_for=f"etcd members {listed} have no Machine, and may be those of {', '.join(new)}, whose Nodes are new")
    chosen = unknown[0]
    if chosen.name and not (judgement := can_remove(members, chosen.name, healthy)):
        return Removal(
            problem=f"etcd member {chosen.name} has no Machine, and cannot be removed: {judgement.why_not}; check the state of etcd"
        )
    return Removal(chosen)


def _newly_registered(machines: Sequence[MachineFacts], nodes: Mapping[str, Manifest], now: datetime) -> list[str]:
    def is_new(node: Manifest | None) -> bool:
        return node is not None and now - datetime.fromisoformat(node["metadata"]["creationTimestamp"]) < STARTUP_GRACE

    return sorted(machine.name for machine in machines if not machine.deleting and is_new(nodes.get(machine.node_name)))


def leadership_candidates(machines: Sequence[Candidate], leaving: str) -> list[Candidate]:
    """To whom the leadership may move when the Machine ``leaving`` goes, best first.

    A sick member may fail to take it, a Machine that its health check gave up will be remediated, an outdated one replaced; the newest
    will stay for longest.
    """
    fit = [machine for machine in machines if machine.node_name and not machine.deleting and machine.machine != leaving]
    return sorted(
        fit,
        key=lambda machine: (
            not machine.member_healthy,
            not machine.health_check_succeeded,
            not machine.up_to_date,
            -machine.created.timestamp(),
            machine.machine,
        ),
    )


def has_operational_machine(machines: Mapping[str, Collection[bool]], without: str) -> bool:
    """Whether one Machine stays whose components are all healthy: the API server of each uses the etcd next to it."""
    return any(all(components) for name, components in machines.items() if name != without)
