"""What concerns a BaremetalMachine: its Machine, Cluster, pool and host, the host's plan, the image catalog, and the Node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.cluster.core.machine import Machine
from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.infrastructure.machine import BaremetalMachine
from slipway.api.cluster.infrastructure.pool import MachineInventoryPool
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CLUSTER,
    CONFIG_MAP,
    MACHINE,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    SECRET,
)
from slipway.api.cluster.names import CLUSTER_NAME_LABEL
from slipway.api.elemental import names as elemental
from slipway.fleet.baremetal.hosts.host import host_from
from slipway.fleet.baremetal.machine.allocation import POOL_INDEX
from slipway.fleet.baremetal.machine.node import node_facts
from slipway.fleet.contract.facts import cluster_from, owner_from, read
from slipway.fleet.contract.references import changed, members, members_seen
from slipway.fleet.liveclusters import provider_id
from slipway.runtime.controller import Watch
from slipway.runtime.objects import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object


def _cluster_facts(found: Object) -> Any:
    return cluster_from(found), found.metadata.annotations.get(names.REGISTRY_ADDRESS_ANNOTATION)


async def of_machine(found: Object, cache: Cache) -> Iterable[Request]:
    reference = read(found, Machine).spec.infrastructure_ref
    if (reference.api_group, reference.kind) != (BAREMETAL_MACHINE.group, BAREMETAL_MACHINE.kind):
        return []
    return [Request(found.namespace, reference.name)]


async def of_cluster(found: Object, cache: Cache) -> Iterable[Request]:
    return [each.request for each in await members(cache, BAREMETAL_MACHINE, found.namespace, found.name)]


async def of_infrastructure(found: Object, cache: Cache) -> Iterable[Request]:
    name = found.metadata.labels.get(CLUSTER_NAME_LABEL, "")
    return [each.request for each in await members(cache, BAREMETAL_MACHINE, found.namespace, name)] if name else []


async def of_pool(found: Object, cache: Cache) -> Iterable[Request]:
    return [each.request for each in await cache.list(BAREMETAL_MACHINE, index=(POOL_INDEX, f"{found.namespace}/{found.name}"))]


async def of_inventory(found: Object, cache: Cache) -> Iterable[Request]:
    """Who has the host; where nobody does, all who wait for one of its pool."""
    host = host_from(found)
    if host.owner is not None:
        return [Request(found.namespace, host.owner.baremetal_machine)] if host.owner.baremetal_machine else []
    if not host.pool:
        return []
    of_pool = await cache.list(BAREMETAL_MACHINE, index=(POOL_INDEX, f"{found.namespace}/{host.pool}"))
    return [each.request for each in of_pool if not _is_provisioned(each)]


async def of_plan(found: Object, cache: Cache) -> Iterable[Request]:
    """A plan Secret has the name of its inventory."""
    inventory = await cache.get(MACHINE_INVENTORY, found.name, found.namespace)
    owner = host_from(inventory).owner if inventory is not None else None
    return [Request(found.namespace, owner.baremetal_machine)] if owner is not None and owner.baremetal_machine else []


async def of_catalog(found: Object, cache: Cache) -> Iterable[Request]:
    """All who have no plan yet: the catalog may be for one namespace, or for all."""
    if found.name != names.CATALOG_NAME:
        return []
    return [each.request for each in await cache.list(BAREMETAL_MACHINE) if not _is_provisioned(each)]


def _is_provisioned(found: Object) -> bool:
    return read(found, BaremetalMachine).status.initialization.provisioned is True


def is_catalog(old: Object | None, new: Object | None) -> bool:
    found = new if new is not None else old
    return found is not None and found.name == names.CATALOG_NAME


def _members(found: Object) -> Any:
    pool = read(found, MachineInventoryPool)
    return pool.spec, pool.status.selected


WATCHES = (
    Watch(BAREMETAL_MACHINE),
    Watch(MACHINE, of_machine, changed(owner_from)),
    Watch(CLUSTER, of_cluster, changed(_cluster_facts)),
    # Conditions on it, which others tell, concern no machine.
    Watch(BAREMETAL_CLUSTER, of_infrastructure, changed(lambda found: found.metadata.generation)),
    Watch(MACHINE_INVENTORY_POOL, of_pool, changed(_members)),
    Watch(MACHINE_INVENTORY, of_inventory, changed(host_from)),
    Watch(SECRET, of_plan, labels=f"{elemental.MANAGED_LABEL}={elemental.MANAGED}"),
    Watch(CONFIG_MAP, of_catalog, is_catalog),
)


def _known(node: Object) -> Any:
    return node_facts(node), list(provider_id(node))


def follow(workload: WorkloadClusters, cache: Cache, enqueue: Callable[[Request], None]) -> None:
    """Hear of Nodes that come with the provider ID of a host, and of clusters that answer again."""

    def on_node(namespace: str, cluster: str, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and _known(old) == _known(new):
            # A heartbeat, mostly.
            return
        ids = {id_ for node in (old, new) if node is not None for id_ in provider_id(node)}
        for name in filter(None, map(names.inventory_of, ids)):
            inventory = cache.informer(MACHINE_INVENTORY).store.get(name, namespace)
            owner = host_from(inventory).owner if inventory is not None else None
            if owner is not None and owner.baremetal_machine:
                enqueue(Request(namespace, owner.baremetal_machine))

    def on_probe(namespace: str, cluster: str) -> None:
        for found in members_seen(cache, BAREMETAL_MACHINE, namespace, cluster):
            enqueue(found.request)

    workload.on_node(on_node)
    workload.on_probe(on_probe)
