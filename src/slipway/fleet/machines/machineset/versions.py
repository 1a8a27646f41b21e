"""The versions of Kubernetes that machines have, and whether a control plane has yet to reach its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.fleet.contract.versions import StatusVersion, added_up, compared_builds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.cluster.core.machine import Machine
    from slipway.api.cluster.core.machineset import MachineSet
    from slipway.api.machinery.objects import Manifest
    from slipway.api.machinery.version import Version


def is_newer(one: Version, other: Version) -> bool:
    """Whether who wants one and has the other is on its way; builds that cannot be ordered are taken for that, as Cluster API does."""
    if one != other:
        return one > other
    builds = compared_builds(one.build, other.build)
    return builds is None or builds > 0


def of_machines(machines: Iterable[Machine]) -> list[Manifest]:
    """What their kubelets report, and what they are to be where none does; the oldest Machine first where versions cannot be ordered."""
    by_age = sorted(machines, key=lambda machine: (machine.metadata.get("creationTimestamp") or "", machine.metadata["name"]))
    return added_up(StatusVersion(_kubelet_version(machine) or machine.spec.version, 1) for machine in by_age)


def of_sets(sets: Iterable[MachineSet]) -> list[Manifest]:
    return added_up(StatusVersion(one.version, one.replicas) for each in sets for one in each.status.versions)


def _kubelet_version(machine: Machine) -> str:
    return machine.status.node_info.kubelet_version if machine.status.node_info is not None else ""
