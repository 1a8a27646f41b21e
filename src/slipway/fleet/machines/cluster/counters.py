"""How many machines a Cluster has, wants, and has in which version: ``status.controlPlane`` and ``status.workers``.

A number that nobody reports is left out: it is not zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.fleet.contract.versions import StatusVersion, added_up
from slipway.fleet.machines.cluster import fields
from slipway.fleet.machines.cluster.observed import owned

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.machines.cluster.observed import Descendants, External, Machine

_COUNTED = {"readyReplicas": "Ready", "availableReplicas": "Available", "upToDateReplicas": "UpToDate"}


def control_plane_from(external: External, before: Manifest) -> Manifest:
    """The counters that a control plane reports; one that it does not report stays as it was ``before``."""
    found = external.manifest
    if found is None:
        return {}
    old = external.contract == fields.V1BETA1
    desired = fields.number(found, "spec.replicas")
    counted = {
        "desiredReplicas": desired,
        "replicas": fields.number(found, "status.replicas"),
        "readyReplicas": fields.number(found, "status.readyReplicas"),
        "availableReplicas": _available_of_old(found, desired) if old else fields.number(found, "status.availableReplicas"),
        "upToDateReplicas": fields.number(found, "status.updatedReplicas" if old else "status.upToDateReplicas"),
    }
    merged = {name: before.get(name) if value is None else value for name, value in counted.items()}
    return _without_nothing({**merged, "versions": fields.versions(found)})


def control_plane_machines(machines: Sequence[Machine]) -> Manifest:
    """The counters of a control plane of single Machines: each that is there is wanted."""
    counted = _machines(machines)
    return _without_nothing({**counted, "versions": added_up(_versions_of(machines)) or None})


def workers(cluster: str, descendants: Descendants, machines: Sequence[Machine]) -> Manifest:
    """The counters of all workers: those of pools, deployments and sets as they report them, and single Machines."""
    groups = [*descendants.machine_pools, *descendants.machine_deployments]
    groups += [one for one in descendants.machine_sets if owned(one.metadata, cluster)]
    single = [machine for machine in machines if machine.owner == cluster]
    alone = _machines(single)
    counted = {
        "desiredReplicas": _sum([*(one.spec.replicas for one in groups), alone["desiredReplicas"]]),
        "replicas": _sum([*(one.status.replicas for one in groups), alone["replicas"]]),
        "readyReplicas": _sum([*(one.status.ready_replicas for one in groups), alone["readyReplicas"]]),
        "availableReplicas": _sum([*(one.status.available_replicas for one in groups), alone["availableReplicas"]]),
        "upToDateReplicas": _sum([*(one.status.up_to_date_replicas for one in groups), alone["upToDateReplicas"]]),
    }
    found = [version for one in groups for version in one.status.versions]
    return _without_nothing({**counted, "versions": added_up([*found, *_versions_of(single)]) or None})


def _available_of_old(found: Manifest, desired: int | None) -> int | None:
    unavailable = fields.number(found, "status.unavailableReplicas")
    return None if unavailable is None or desired is None else max(desired - unavailable, 0)


def _machines(machines: Sequence[Machine]) -> dict[str, int | None]:
    counted: dict[str, int | None] = {"desiredReplicas": len(machines) or None, "replicas": len(machines) or None}
    for field, condition in _COUNTED.items():
        counted[field] = sum(machine.is_true(condition) for machine in machines) or None
    return counted


def _versions_of(machines: Iterable[Machine]) -> list[StatusVersion]:
    by_age = sorted(machines, key=lambda machine: (machine.metadata.creation_timestamp or "", machine.metadata.name))
    return [StatusVersion(machine.version, 1) for machine in by_age]


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _without_nothing(counted: Manifest) -> Manifest:
    return {name: value for name, value in counted.items() if value is not None}
