"""Whether etcd keeps its quorum, and the cluster one whole API, when a machine goes or comes.

The worst is assumed of what is not known: a new member will not be well, one that has not started is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.fleet.controlplane.decisions.machines import ETCD_MEMBER, ETCD_POD, KUBERNETES_CHECKS

if TYPE_CHECKING:
    from slipway.fleet.controlplane.decisions.machines import ControlPlane, Machine, Member


def quorum(voters: int) -> int:
    return voters // 2 + 1


def etcd_survives(plane: ControlPlane, *, without: str = "", with_new: bool = False) -> bool:
    """Whether etcd has its quorum when the member of this name is removed, or a new one added."""
    rest = [member for member in plane.members if not member.name or member.name != without]
    if any(member.learner or not member.name for member in rest):
        # Whoever starts is waited for.
        return False
    voters = len(rest)
    ill = sum(not _well(member, plane.machines) for member in rest)
    if with_new:
        voters += 1
        # Else nobody would ever come from none to one, and from one to two.
        ill += len(plane.members) > 1
    return voters - ill >= quorum(voters)


def one_api_survives(plane: ControlPlane, *, without: str = "") -> bool:
    """Whether a machine is left on which everything runs: an API server asks the etcd beside it, and is asked by those beside it."""
    checks = (*KUBERNETES_CHECKS, *([ETCD_POD] if plane.manages_etcd else ()))
    return any(all(map(machine.is_well, checks)) for machine in plane.machines if machine.name != without)


def _well(member: Member, machines: tuple[Machine, ...]) -> bool:
    machine = next((machine for machine in machines if machine.node and machine.node == member.name), None)
    # Of a member without a machine nobody says more than etcd itself.
    return not member.alarms if machine is None else machine.is_well(ETCD_MEMBER)
