"""From an event to who is concerned: the objects of a Cluster, the Clusters of a control plane, the owner of a Secret.

The ways back from one object to others are indices of the cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster.core import CLUSTER_NAME_LABEL
from slipway.api.cluster.kinds import CLUSTER
from slipway.fleet.contract.facts import cluster_from
from slipway.runtime.objects import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from slipway.api.cluster.kinds import Kind
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object

    When = Callable[[Object | None, Object | None], bool]


def changed(facts: Callable[[Object], Any]) -> When:
    """Counts the changes in which ``facts`` differ, creations, and resyncs: an object changes often, and most of it concerns nobody."""

    def counts(old: Object | None, new: Object | None) -> bool:
        if old is None or new is None or old is new:
            return new is not None
        return bool(facts(old) != facts(new))

    return counts


async def members(cache: Cache, kind: Kind, namespace: str, cluster: str) -> list[Object]:
    """The objects of a kind that belong to a Cluster, by its label."""
    cache.add_index(kind, CLUSTER_NAME_LABEL, _cluster_key)
    return await cache.list(kind, index=(CLUSTER_NAME_LABEL, f"{namespace}/{cluster}"))


async def clusters_of_control_plane(found: Object, cache: Cache) -> list[str]:
    """The names of the Clusters that a control plane is of: by its label, or by who refers to it, as nothing obliges it to have one."""
    name = found.metadata.labels.get(CLUSTER_NAME_LABEL, "")
    if name:
        return [name]
    cache.add_index(CLUSTER, "controlPlaneRef", _control_plane_key)
    key = f"{found.namespace}/{found.kind.group}/{found.kind.kind}/{found.name}"
    return [cluster.name for cluster in await cache.list(CLUSTER, index=("controlPlaneRef", key))]


def controllers(kind: Kind) -> Callable[[Object, Cache], Any]:
    """The mapping from what objects of ``kind`` control to them."""

    async def of_controller(found: Object, cache: Cache) -> Iterable[Request]:
        return [
            Request(found.namespace, owner.name)
            for owner in found.metadata.owner_references
            if owner.controller and owner.kind == kind.kind and owner.api_version.partition("/")[0] == kind.group
        ]

    return of_controller


def _cluster_key(found: Object) -> Iterable[str]:
    name = found.metadata.labels.get(CLUSTER_NAME_LABEL)
    return [f"{found.namespace}/{name}"] if name else []


def _control_plane_key(found: Object) -> Iterable[str]:
    reference = cluster_from(found).control_plane_ref
    return [] if reference is None else [f"{found.namespace}/{reference.api_group}/{reference.kind}/{reference.name}"]
