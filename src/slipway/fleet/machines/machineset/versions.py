"""The versions of Kubernetes that machines have, counted, and compared with their builds, as Cluster API does."""

from __future__ import annotations

from collections import Counter
from functools import cmp_to_key
from typing import TYPE_CHECKING

from slipway.api.machinery.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.cluster.core.machine import Machine
    from slipway.api.cluster.core.machineset import MachineSet
    from slipway.api.machinery.objects import Manifest

DIFFERENT = 2
"""Two versions differ, and nobody can say which is newer: their builds are names."""


def compare(one: Version, other: Version) -> int:
    """-1, 0, 1, or DIFFERENT."""
    if one != other:
        return 1 if one > other else -1
    ours, theirs = ([part for part in each.build.split(".") if part] for each in (one, other))
    for mine, yours in zip(ours, theirs, strict=False):
        if mine.isdecimal() != yours.isdecimal():
            return -1 if mine.isdecimal() else 1
        if mine.isdecimal():
            if int(mine) != int(yours):
                return 1 if int(mine) > int(yours) else -1
        elif mine != yours:
            return DIFFERENT
    return (len(ours) > len(theirs)) - (len(ours) < len(theirs))


def is_newer(one: Version, other: Version) -> bool:
    """Whether a control plane that wants one and has the other is on its way."""
    return compare(one, other) >= 1


def of_machines(machines: Iterable[Machine]) -> list[Manifest]:
    """What their kubelets report, and what they are to be where none does; the oldest Machine first where versions cannot be ordered."""
    by_age = sorted(machines, key=lambda machine: (machine.metadata.get("creationTimestamp") or "", machine.metadata["name"]))
    found = (machine.status.node_info.kubelet_version if machine.status.node_info is not None else "" for machine in by_age)
    return _ordered((kubelet or machine.spec.version, 1) for kubelet, machine in zip(found, by_age, strict=True))


def of_sets(sets: Iterable[MachineSet]) -> list[Manifest]:
    return _ordered((one.version, one.replicas) for each in sets for one in each.status.versions)


def _ordered(counted: Iterable[tuple[str, int]]) -> list[Manifest]:
    counts = Counter[str]()
    for version, count in counted:
        if version:
            counts[version] += count
    return [{"version": version, "replicas": counts[version]} for version in sorted(counts, key=cmp_to_key(_precedes))]


def _precedes(one: str, other: str) -> int:
    ours, theirs = _parsed(one), _parsed(other)
    if ours is None or theirs is None:
        # What is no version comes last.
        compared = (ours is None) - (theirs is None)
    else:
        compared = compare(ours, theirs)
        if compared == DIFFERENT:
            return 0
    return compared or (one > other) - (one < other)


def _parsed(text: str) -> Version | None:
    try:
        return Version.tolerant(text)
    except ValueError:
        return None
