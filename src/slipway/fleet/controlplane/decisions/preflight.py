"""What must be well before a machine is added or removed, so that there is one operation at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.fleet.controlplane.decisions.machines import ETCD_MEMBER
from slipway.fleet.controlplane.decisions.quorum import etcd_survives, one_api_survives

if TYPE_CHECKING:
    from slipway.fleet.controlplane.decisions.machines import ControlPlane, Machine

RETRY = 15.0
DELETION_RETRY = 30.0


class Blocked(NamedTuple):
    """Why an operation waits: in classes, for the conditions, and in sentences, for an Event."""

    deleting: bool = False
    certificates: bool = False
    components: bool = False
    etcd: bool = False
    problems: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """What Cluster API does not wait for."""

    @property
    def messages(self) -> list[str]:
        """As the conditions ScalingUp and ScalingDown have them."""
        known = {
            "waiting for a control plane Machine to complete deletion": self.deleting,
            "cluster certificates are missing or unknown": self.certificates,
            "waiting for control plane components to become healthy": self.components,
            "waiting for etcd cluster to become healthy": self.etcd,
        }
        return [*(message for message, holds in known.items() if holds), *(f"waiting for {other}" for other in self.others)]

    @property
    def retry(self) -> float:
        return DELETION_RETRY if self.deleting else RETRY


def preflight(plane: ControlPlane, *, leaving: Machine | None = None) -> Blocked | None:
    """What keeps a machine from being added, or from ``leaving``; None where nothing does."""
    growing = leaving is None
    if not plane.machines:
        return None
    if growing and not plane.certificates:
        return Blocked(certificates=True)
    if plane.deleting:
        return Blocked(deleting=True)
    blocked = _all_well(plane, leaving)
    if blocked is not None and growing and plane.in_progress is not None:
        # With two dead of five, the replacement of the first must not wait for the second.
        return _good_enough(plane)
    return blocked


def _all_well(plane: ControlPlane, leaving: Machine | None) -> Blocked | None:
    components = etcd = False
    problems = []
    for machine in plane.machines:
        if leaving is not None and machine.name == leaving.name:
            continue
        if not machine.node:
            components, etcd = True, etcd or plane.manages_etcd
            problems.append(f"Machine {machine.name} does not have a corresponding Node yet (Machine.status.nodeRef not set)")
            continue
        for check in plane.checks:
            problem = _problem(machine, check)
            if problem:
                problems.append(problem)
                etcd, components = etcd or check == ETCD_MEMBER, components or check != ETCD_MEMBER
    return Blocked(components=components, etcd=etcd, problems=tuple(problems)) if problems else None


def _problem(machine: Machine, check: str) -> str:
    found = machine.checks.get(check)
    if found is None:
        return f"Machine {machine.name} does not have {check} condition"
    if found.status == "True":
        return ""
    return f"Machine {machine.name} reports {check} condition is {found.status.lower()} ({found.message})"


def _good_enough(plane: ControlPlane) -> Blocked | None:
    """What a replacement needs: one API to join, and an etcd that bears one member more."""
    components = not one_api_survives(plane)
    problems = ["no Machine has all its control plane components in a healthy state, and one is needed to join"] if components else []
    etcd = False
    if plane.manages_etcd and not plane.members:
        problems.append("the etcd members could not be listed, so it is not known whether etcd bears one more")
    elif plane.manages_etcd and not etcd_survives(plane, with_new=True):
        etcd = True
        problems.append("a new control plane Machine can lead to etcd quorum loss; please check the etcd status")
    return Blocked(components=components, etcd=etcd, problems=tuple(problems)) if problems else None
