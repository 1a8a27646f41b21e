"""Which machine, and which failure domain: the choices where several would do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from slipway.fleet.controlplane.decisions.machines import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD_MEMBER,
    ETCD_POD,
    LABELS_AND_TAINTS,
    SCHEDULER,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from slipway.fleet.controlplane.decisions.machines import ControlPlane, Machine

    Choose = Callable[[Sequence[str]], str]


def to_scale_down(plane: ControlPlane, choose: Choose) -> Machine:
    """The machine to delete, of at least one: what a person asked for first, then outdated ones, those with a problem before others.

    Of them the oldest, where possible in a failure domain that takes no control planes any more, else in the fullest one.
    """
    eligible = _eligible(plane)
    stranded = [machine for machine in eligible if machine.failure_domain not in plane.failure_domains]
    domain = _oldest(stranded).failure_domain if stranded else _fullest(plane, eligible, choose)
    return _oldest([machine for machine in eligible if machine.failure_domain == domain])


def for_new_machine(plane: ControlPlane, choose: Choose) -> str:
    """The failure domain with the fewest machines that stay, then with the fewest at all; empty where there are no domains."""
    if not plane.failure_domains:
        return ""
    staying = Counter(machine.failure_domain for machine in plane.machines if machine.up_to_date and not machine.deleting)
    every = Counter(machine.failure_domain for machine in plane.machines)
    least = min((staying[domain], every[domain]) for domain in plane.failure_domains)
    return choose([domain for domain in plane.failure_domains if (staying[domain], every[domain]) == least])


def worst(machines: Iterable[Machine], *, manages_etcd: bool) -> Machine:
    """The machine to remediate first: a replacement of any other would have the least chance to join."""
    checks = (*((ETCD_MEMBER, ETCD_POD) if manages_etcd else ()), API_SERVER, CONTROLLER_MANAGER, SCHEDULER, LABELS_AND_TAINTS)

    def rank(machine: Machine) -> tuple[object, ...]:
        well = tuple(machine.is_well(check) for check in checks)
        return not machine.remediate_asked, bool(machine.node), well, machine.created, machine.name

    return min(machines, key=rank)


def new_leaders(plane: ControlPlane, leaving: Machine) -> list[str] | None:
    """The Nodes that etcd's leadership may move to before a machine goes, the most reliable first; None where it need not move."""
    leader = plane.leader
    if not plane.manages_etcd or leader is None or not leaving.node or leader.name != leaving.node:
        return None
    candidates = [machine for machine in plane.machines if machine.node and not machine.deleting and machine.name != leaving.name]
    # The newest first, and then by what counts more: sorting keeps the order of equals.
    candidates.sort(key=lambda machine: machine.created, reverse=True)
    candidates.sort(key=lambda machine: (not machine.is_well(ETCD_MEMBER), not machine.health_checked, not machine.up_to_date))
    return [machine.node for machine in candidates]


def _eligible(plane: ControlPlane) -> list[Machine]:
    outdated = plane.outdated
    for candidates in (
        [machine for machine in outdated if machine.delete_asked],
        [machine for machine in plane.machines if machine.delete_asked],
        [machine for machine in outdated if any(map(machine.is_ill, plane.checks))],
        outdated,
    ):
        if candidates:
            return candidates
    return list(plane.machines)


def _fullest(plane: ControlPlane, eligible: Sequence[Machine], choose: Choose) -> str:
    chosen = Counter(machine.failure_domain for machine in eligible)
    every = Counter(machine.failure_domain for machine in plane.machines)
    most = max((chosen[domain], every[domain]) for domain in chosen)
    return choose([domain for domain in plane.failure_domains if (chosen[domain], every[domain]) == most])


def _oldest(machines: Sequence[Machine]) -> Machine:
    return min(machines, key=lambda machine: (machine.created, machine.name))
