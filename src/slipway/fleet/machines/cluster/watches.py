"""What a Cluster is reconciled for: its own changes, those of what it refers to, and those of its members that its status tells of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster.core.cluster import Cluster
from slipway.api.cluster.kinds import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_POOL, MACHINE_SET
from slipway.api.cluster.names import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from slipway.fleet.contract.facts import read
from slipway.runtime.controller import Watch
from slipway.runtime.objects import Request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.cluster.kinds import Kind
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object

_REFERRED = "referred"


async def of_member(found: Object, cache: Cache) -> Iterable[Request]:
    name = found.metadata.labels.get(CLUSTER_NAME_LABEL)
    return [Request(found.namespace, name)] if name else []


async def of_external(found: Object, cache: Cache) -> Iterable[Request]:
    """The Clusters that refer to the object, whether it has an owner yet or not."""
    cache.add_index(CLUSTER, _REFERRED, _referred)
    key = f"{found.namespace}/{found.kind.group}/{found.kind.kind}/{found.name}"
    return [cluster.request for cluster in await cache.list(CLUSTER, index=(_REFERRED, key))]


def own(old: Object | None, new: Object | None) -> bool:
    """Counts what is the Cluster's own: what a MachineSet or MachineDeployment owns is told of by that one."""
    found = new or old
    return found is not None and any(one.kind == CLUSTER.kind for one in found.metadata.owner_references)


def own_or_control_plane(old: Object | None, new: Object | None) -> bool:
    found = new or old
    return found is not None and (CONTROL_PLANE_LABEL in found.metadata.labels or own(old, new))


def external_watch(kind: Kind) -> Watch:
    """The watch of a kind that some Cluster refers to."""
    return Watch(kind, of_external)


def _referred(found: Object) -> Iterable[str]:
    spec = read(found, Cluster).spec
    references = (spec.infrastructure_ref, spec.control_plane_ref)
    return [f"{found.namespace}/{one.api_group}/{one.kind}/{one.name}" for one in references if one.name]


WATCHES = (
    Watch(CLUSTER),
    Watch(MACHINE_DEPLOYMENT, of_member),
    Watch(MACHINE_SET, of_member, own),
    Watch(MACHINE_POOL, of_member),
    Watch(MACHINE, of_member, own_or_control_plane),
)
