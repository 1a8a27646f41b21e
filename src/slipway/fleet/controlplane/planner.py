"""What a control plane does next: one step, from what there is and what is wanted.

The order is that of Cluster API 1.14: members of etcd that nobody knows go first; then a machine that is being deleted is seen off; then a
sick one is given up; then outdated ones are rolled; then the number of machines is brought to what is wanted.  There is at most one
operation at a time: each step but the first two needs a control plane that is well, and nobody on the way in or out.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.version import Version
from slipway.fleet.controlplane.decisions import choice, remediation
from slipway.fleet.controlplane.decisions.preflight import DELETION_RETRY, RETRY, Blocked, preflight
from slipway.fleet.controlplane.decisions.quorum import etcd_survives, one_api_survives

if TYPE_CHECKING:
    from slipway.fleet.controlplane.decisions.choice import Choose
    from slipway.fleet.controlplane.decisions.machines import ControlPlane, Member, Remediation
    from slipway.fleet.controlplane.decisions.remediation import Verdict

MEMBER_RETRY = 1.0
"""The seconds after which a control plane is looked at again when a member of its etcd was removed."""


class Nothing(NamedTuple):
    """Everything is as it is wanted."""


class Wait(NamedTuple):
    """Nothing can be done before something else has happened; look again in so many seconds."""

    reasons: tuple[str, ...]
    seconds: float = RETRY
    blocked: Blocked = Blocked()


class RemoveMember(NamedTuple):
    """A member of etcd has no machine: it is removed, so that it does not count."""

    member: Member


class Release(NamedTuple):
    """A machine is drained and may be taken down, after its etcd member is removed, which first gives up the leadership."""

    machine: str
    member: Member | None = None
    new_leaders: tuple[str, ...] = ()


class Remediate(NamedTuple):
    """A sick machine is deleted; what the deletion starts is remembered until it is replaced."""

    machine: str
    started: Remediation
    new_leaders: tuple[str, ...] = ()


class StartAnew(NamedTuple):
    """The only machine was given up, as a person wanted: the cluster is to be made once more, with an etcd that is empty."""


class GiveUp(NamedTuple):
    """Machines that are lost go, all at once and without a word to etcd, as the control plane is to be restored from a snapshot."""

    machines: tuple[str, ...]


class EndRestore(NamedTuple):
    """The control plane runs with the data of the snapshot; what that knows of machines that are gone is tidied up."""

    node: str
    """Of the first new machine."""


class CreateFirst(NamedTuple):
    """The first machine, which makes the cluster."""

    failure_domain: str


class ScaleUp(NamedTuple):
    failure_domain: str


class ScaleDown(NamedTuple):
    machine: str
    new_leaders: tuple[str, ...] = ()


Step = Nothing | Wait | RemoveMember | Release | Remediate | GiveUp | StartAnew | EndRestore | CreateFirst | ScaleUp | ScaleDown


class Plan(NamedTuple):
    """The step, and what is to be told on a sick machine, whatever the step is about."""

    step: Step
    verdict: Verdict | None = None


def next_step(plane: ControlPlane, choose: Choose = random.choice) -> Plan:
    """The next step; ``choose`` takes one of several failure domains that are equally good."""
    if any(machine.updating_in_place for machine in plane.machines):
        return Plan(_ours("an in-place update of a Machine, which another manager has begun and must end"))
    restored = _restored(plane, choose)
    # A step without anything in it is false.
    step = restored if restored is not None else _stray_member(plane) or _see_off(plane)
    if step is not None:
        return Plan(step)
    verdict = remediation.judge(plane)
    if verdict is not None and verdict.started is not None:
        leaders = choice.new_leaders(plane, plane.machine(verdict.machine))
        return Plan(Remediate(verdict.machine, verdict.started, tuple(leaders or ())), verdict)
    return Plan(_towards_replicas(plane, choose), verdict)


def needs_no_sight(plane: ControlPlane, step: Step) -> bool:
    """Whether a step is right though the cluster cannot be looked into: with no machine, or one that is to be given up, nobody can."""
    if plane.restore is not None:
        return isinstance(step, GiveUp | StartAnew | CreateFirst | Wait)
    if len(plane.machines) > 1:
        return False
    return not plane.machines or (plane.remediate_single and isinstance(step, Remediate | Release))


def _restored(plane: ControlPlane, choose: Choose) -> Step | None:
    """What is due where the control plane is to be restored; None where nobody wants that, or the new one just comes up.

    The machines that there were when it was asked for are given up, all at once: nobody is left to move the leadership to.  Then the
    control plane forgets that it was made, and its first new machine starts with the data of the snapshot.
    """
    if plane.restore is None:
        return None
    going = [machine for machine in plane.machines if plane.restore.gives_up(machine.created)]
    if leaving := tuple(machine.name for machine in going if not machine.deleting or machine.has_hook):
        return GiveUp(leaving)
    if going:
        names = ", ".join(machine.name for machine in going)
        return _ours(f"the lost Machines {names} to be gone before it is restored; that of a dead host needs slipway.io/force-release")
    if not plane.machines:
        if plane.initialized or plane.cluster_initialized:
            return StartAnew()
        return CreateFirst(choice.for_new_machine(plane, choose))
    first = next((machine for machine in plane.machines if machine.node), None)
    return EndRestore(first.node) if plane.initialized and plane.cluster_initialized and first is not None else None


def _towards_replicas(plane: ControlPlane, choose: Choose) -> Step:
    count, outdated = len(plane.machines), plane.outdated
    if not count:
        return _first(plane, choose) if plane.replicas else Nothing()
    if count < plane.most:
        blocked = preflight(plane)
        return ScaleUp(choice.for_new_machine(plane, choose)) if blocked is None else _wait(blocked)
    if count == plane.replicas and not outdated:
        return Nothing()
    leaving = choice.to_scale_down(plane, choose)
    blocked = preflight(plane, leaving=leaving)
    if blocked is not None:
        return _wait(blocked)
    if count == 1:
        # Cluster API stops here too, as it finds nobody to lead etcd.
        return _ours("a second Machine: the last one of a control plane is not deleted")
    return ScaleDown(leaving.name, tuple(choice.new_leaders(plane, leaving) or ()))


def _first(plane: ControlPlane, choose: Choose) -> Step:
    if not plane.initialized and not plane.cluster_initialized:
        return CreateFirst(choice.for_new_machine(plane, choose))
    if plane.remediate_single:
        return StartAnew()
    return _ours(f"a person: it has no Machine left that others could join; {remediation.SINGLE_ANNOTATION} starts it anew, with no data")


def _see_off(plane: ControlPlane) -> Step | None:
    """What is due for the machine that was told to go first; None where none goes."""
    if not plane.deleting:
        return None
    if any(not machine.has_hook for machine in plane.deleting):
        return Wait(("a Machine that is released to be gone",), DELETION_RETRY)
    machine = min(plane.deleting, key=lambda machine: (machine.deleted, machine.name))
    # From 1.31 on the kubelet talks to its own API server, which ends with the member: others may still need it.
    if machine.other_hooks and _minor(plane.version) >= (1, 31):
        return Wait((f"other pre-terminate hooks of the Machine {machine.name}",), DELETION_RETRY)
    if not machine.waits_for_hook:
        return Wait((f"the Machine {machine.name} to be drained",), DELETION_RETRY)
    if len(plane.machines) == 1:
        return Release(machine.name)
    if not one_api_survives(plane, without=machine.name):
        return Wait((f"another Machine than {machine.name} with all control plane components healthy",), DELETION_RETRY)
    if not plane.manages_etcd:
        return Release(machine.name)
    if not plane.members or not plane.nodes_known:
        return Wait((f"etcd to tell its members, before the one of the Machine {machine.name} is removed",), RETRY)
    if not machine.etcd_name:
        return Release(machine.name)
    if not etcd_survives(plane, without=machine.etcd_name):
        return Wait((f"more healthy etcd members: without that of the Machine {machine.name} the quorum would be lost",), DELETION_RETRY)
    member = next((member for member in plane.members if member.name == machine.etcd_name), None)
    leaders = choice.new_leaders(plane, machine)
    if plane.leader is None or leaders == []:
        return Wait((f"etcd to have a leader other than the member of the Machine {machine.name}",), RETRY)
    return Release(machine.name, member, tuple(leaders or ()))


def _stray_member(plane: ControlPlane) -> Step | None:
    """What is due for an etcd member that belongs to no machine; None where there is none, or it may be one that is just coming."""
    if not plane.manages_etcd or not plane.machines or plane.members_healthy or not plane.nodes_known:
        return None
    expected = {machine.node for machine in plane.machines if machine.node}
    stray = sorted((member for member in plane.members if member.name not in expected), key=lambda member: (member.name, member.id))
    coming = any(not machine.node for machine in plane.machines)
    young = any(machine.node in plane.young_nodes and not machine.deleting for machine in plane.machines)
    if not stray or coming or (young and any(not member.name for member in stray)):
        return None
    if stray[0].name and not etcd_survives(plane, without=stray[0].name):
        return Wait((f"more healthy etcd members: {stray[0].name} has no Machine, and without it the quorum would be lost",))
    return RemoveMember(stray[0])


def _minor(version: str) -> tuple[int, int]:
    parsed = Version.tolerant(version)
    return parsed.major, parsed.minor


def _ours(reason: str) -> Wait:
    """What nobody else waits for is told in the conditions."""
    return Wait((reason,), DELETION_RETRY, Blocked(others=(reason,)))


def _wait(blocked: Blocked) -> Wait:
    return Wait(blocked.problems or tuple(blocked.messages), blocked.retry, blocked)
