"""Which BaremetalCluster a change concerns, and which Cluster it is of: for all controllers that tell something on one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.infrastructure.pool import MachineInventoryPool
from slipway.api.cluster.kinds import BAREMETAL_CLUSTER, CLUSTER, MACHINE_INVENTORY_POOL
from slipway.api.cluster.names import CLUSTER_NAME_LABEL, MANAGED_BY_ANNOTATION
from slipway.fleet.contract.facts import cluster_from, paused_by, read
from slipway.runtime.cache.cache import ON_ITS_WAY
from slipway.runtime.objects import DONE, Request, Result

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.facts import ClusterFacts
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object


CLUSTER_INDEX = "cluster"


def cluster_name(found: Object) -> str:
    """The Cluster that a BaremetalCluster is of: its owner, or the one of its label."""
    owners = [owner.name for owner in found.metadata.owner_references if owner.kind == CLUSTER.kind]
    return owners[0] if owners else found.metadata.labels.get(CLUSTER_NAME_LABEL, "")


def _cluster_key(found: Object) -> Iterable[str]:
    name = cluster_name(found)
    return [f"{found.namespace}/{name}"] if name else []


def add_index(cache: Cache) -> None:
    """Let BaremetalClusters be found by their Clusters: every machine that comes, goes or changes asks for its own."""
    cache.add_index(BAREMETAL_CLUSTER, CLUSTER_INDEX, _cluster_key)


def is_ours(found: Object) -> bool:
    """Whether this provider takes care of it, and nobody else does."""
    return MANAGED_BY_ANNOTATION not in found.metadata.annotations


class Live(NamedTuple):
    """A BaremetalCluster that something may be told on."""

    found: Object
    manifest: Manifest
    cluster: ClusterFacts


async def live(cache: Cache, request: Request) -> Live | Result:
    """The BaremetalCluster with its Cluster; where nothing is to be told on it now, when to look again."""
    found = await cache.get(BAREMETAL_CLUSTER, request.name, request.namespace)
    if found is None or found.metadata.deletion_timestamp is not None or not is_ours(found):
        return DONE
    if cache.is_behind(BAREMETAL_CLUSTER, request.name, request.namespace):
        return Result(ON_ITS_WAY)
    name = cluster_name(found)
    owner = await cache.get(CLUSTER, name, request.namespace) if name else None
    if owner is None:
        return DONE  # the Cluster's controller makes itself the owner, which is an event
    cluster, manifest = cluster_from(owner), found.content()
    return DONE if paused_by(cluster, manifest) else Live(found, manifest, cluster)


def _pool_key(found: Object) -> Iterable[str]:
    return [f"{found.namespace}/{read(found, MachineInventoryPool).spec.cluster_name}"]


async def pools_of(cache: Cache, namespace: str, cluster: str) -> list[Object]:
    """The pools that are for a Cluster."""
    cache.add_index(MACHINE_INVENTORY_POOL, CLUSTER_INDEX, _pool_key)
    return await cache.list(MACHINE_INVENTORY_POOL, index=(CLUSTER_INDEX, f"{namespace}/{cluster}"))


async def of_cluster(found: Object, cache: Cache) -> Iterable[Request]:
    return await of_cluster_name(found.namespace, found.name, cache)


async def of_machine(found: Object, cache: Cache) -> Iterable[Request]:
    return await of_cluster_name(found.namespace, found.metadata.labels.get(CLUSTER_NAME_LABEL, ""), cache)


async def of_pool(found: Object, cache: Cache) -> Iterable[Request]:
    return await of_cluster_name(found.namespace, read(found, MachineInventoryPool).spec.cluster_name, cache)


async def of_inventory(found: Object, cache: Cache) -> Iterable[Request]:
    """The cluster of the pool that a host is in."""
    name = found.metadata.annotations.get(names.POOL_ANNOTATION, "")
    pool = await cache.get(MACHINE_INVENTORY_POOL, name, found.namespace) if name else None
    return await of_pool(pool, cache) if pool is not None else []


async def of_cluster_name(namespace: str, cluster: str, cache: Cache) -> list[Request]:
    if not cluster:
        return []
    return [found.request for found in await cache.list(BAREMETAL_CLUSTER, index=(CLUSTER_INDEX, f"{namespace}/{cluster}"))]
