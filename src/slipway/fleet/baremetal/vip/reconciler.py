"""The controller of the virtual address: tells a BaremetalCluster whether it can work, and its hosts by a ConfigMap who shares it.

Hosts get their first peers with their user-data; from the moment that there is an API, ``kube-system/alive`` in the workload cluster
brings them changes.  The rules are in :mod:`slipway.fleet.baremetal.vip.vip`.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.infrastructure.cluster import BaremetalCluster
from slipway.api.cluster.infrastructure.machine import BaremetalMachine
from slipway.api.cluster.infrastructure.pool import MachineInventoryPool
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CLUSTER,
    CONFIG_MAP,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    SECRET,
)
from slipway.api.cluster.names import CONTROL_PLANE_LABEL
from slipway.api.elemental.inventory import MachineInventory
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.baremetal.cluster import lookup
from slipway.fleet.baremetal.cluster.lookup import live, of_cluster, of_inventory, of_machine, of_pool
from slipway.fleet.baremetal.vip import vip
from slipway.fleet.baremetal.vip.vip import VIPError
from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN
from slipway.fleet.contract.facts import cluster_from, read
from slipway.fleet.contract.references import changed, control_plane_members
from slipway.fleet.contract.scope import Scope
from slipway.fleet.contract.status import Status
from slipway.kube.errors import ConflictError
from slipway.runtime.controller import Watch
from slipway.runtime.objects import DONE, Request, Result
from slipway.runtime.rbac import READ, rule
from slipway.workload import alive

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.fleet.contract.conditions import ConditionStatus
    from slipway.fleet.contract.facts import ClusterFacts
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object

_log = logging.getLogger("slipway.fleet.baremetal")

NAME = "baremetalcluster-alive"
# The workload cluster is asked again, should somebody have changed the ConfigMap there.
KEPT = 300.0
RETRY = 20.0

RULES = (
    rule(BAREMETAL_CLUSTER, *READ),
    rule(BAREMETAL_CLUSTER, "patch", subresource="status"),
    rule(BAREMETAL_MACHINE, "list", "watch"),
    rule(MACHINE_INVENTORY_POOL, "list", "watch"),
    rule(MACHINE_INVENTORY, "list", "watch"),
    rule(CLUSTER, "list", "watch"),
    rule(SECRET, "get"),
)


def _network(found: Object) -> Any:
    return found.metadata.annotations.get(names.POOL_ANNOTATION), read(found, MachineInventory).spec.observed_network


def _share(found: Object) -> Any:
    """What of a machine decides who shares the address."""
    machine = read(found, BaremetalMachine)
    return (
        machine.spec.machine_inventory_pool_ref.name,
        machine.status.machine_inventory_ref,
        machine.status.ready,
        found.metadata.deletion_timestamp,
    )


def _of_control_planes(when: Callable[[Object | None, Object | None], bool]) -> Callable[[Object | None, Object | None], bool]:
    """Workers never hold the address, and are most of the machines."""
    return lambda old, new: any(each is not None and CONTROL_PLANE_LABEL in each.metadata.labels for each in (old, new)) and when(old, new)


def _changed_or_gone(facts: Callable[[Object], Any]) -> Callable[[Object | None, Object | None], bool]:
    """With a machine or a pool its hosts go from the list."""
    when = changed(facts)
    return lambda old, new: new is None or when(old, new)


WATCHES = (
    Watch(BAREMETAL_CLUSTER),
    Watch(CLUSTER, of_cluster, changed(cluster_from)),
    Watch(BAREMETAL_MACHINE, of_machine, _of_control_planes(_changed_or_gone(_share))),
    Watch(MACHINE_INVENTORY_POOL, of_pool, _changed_or_gone(lambda found: read(found, MachineInventoryPool).members)),
    Watch(MACHINE_INVENTORY, of_inventory, changed(_network)),
)


async def control_plane_machines(cache: Cache, namespace: str, cluster: str) -> list[BaremetalMachine]:
    found = await control_plane_members(cache, BAREMETAL_MACHINE, namespace, cluster)
    return [read(each, BaremetalMachine) for each in found]


async def known_peers(cache: Cache, baremetal: BaremetalCluster, machines: list[BaremetalMachine], namespace: str) -> vip.Peers:
    """The hosts that share the address, from what the manager has cached."""
    pools = [found for name in vip.pool_names(machines) if (found := await cache.get(MACHINE_INVENTORY_POOL, name, namespace)) is not None]
    read_pools = [read(found, MachineInventoryPool) for found in pools]
    wanted = {member.name for pool in read_pools for member in pool.members}
    wanted |= {machine.status.machine_inventory_ref.name for machine in machines if machine.status.machine_inventory_ref is not None}
    inventories = {name: found for name in sorted(wanted) if (found := await cache.get(MACHINE_INVENTORY, name, namespace)) is not None}
    return vip.peers(baremetal, read_pools, machines, {name: read(found, MachineInventory) for name, found in inventories.items()})


def _cluster(found: Object) -> BaremetalCluster:
    return read(found, BaremetalCluster)


async def all_clusters(cache: Cache) -> list[BaremetalCluster]:
    return await cache.facts(BAREMETAL_CLUSTER, _cluster)


async def publish(client: AsyncClient, wanted: Manifest) -> bool:
    """Have the ConfigMap in the workload cluster say this; whether anything changed.  What others put into it stays."""
    found = await client.find(CONFIG_MAP, alive.CONFIG_MAP, alive.NAMESPACE)
    if found is None:
        await client.create(CONFIG_MAP, wanted)
        return True
    data = found.get("data") or {}
    if all(data.get(key) == value for key, value in wanted["data"].items()):
        return False
    await client.update(CONFIG_MAP, {**found, "data": {**data, **wanted["data"]}})
    return True


async def announce(
    workload: WorkloadClusters, cluster: ClusterFacts, baremetal: BaremetalCluster, known: vip.Peers, machines: list[BaremetalMachine]
) -> bool:
    """Tell all hosts of each other; whether that was news.  OperatorError where the workload cluster does not answer.

    Also to be called before a plan makes a control plane of a host: one that the others do not list would become a second master.  Before
    the first init there is nobody to tell.
    """
    if not cluster.control_plane_initialized:
        return False
    async with workload.client(cluster.namespace, cluster.name) as client:
        return await publish(client, vip.config_map_for(baremetal, known, machines))


class AliveReconciler:
    name = NAME
    watches = WATCHES
    rules = RULES

    def __init__(
        self, client: AsyncClient, cache: Cache, workload: WorkloadClusters, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._client = client
        self._cache = cache
        self._workload = workload
        self._clock = clock
        lookup.add_index(cache)

    async def reconcile(self, request: Request) -> Result:
        looked = await live(self._cache, request)
        if isinstance(looked, Result):
            return looked
        found, manifest, cluster = looked
        scope = Scope(
            self._client, self._cache, BAREMETAL_CLUSTER, manifest, cluster, self._clock(), owned_conditions=(names.VIP_READY_CONDITION,)
        )
        status = Status(manifest, scope.now)
        baremetal = read(found, BaremetalCluster)
        if vip.internal(baremetal) is None:
            status.remove(names.VIP_READY_CONDITION)
            await scope.save()
            return DONE
        state, reason, message, result = await self._proceed(baremetal, cluster)
        status.set(names.VIP_READY_CONDITION, state, reason, message)
        await scope.save()
        return result

    async def _proceed(self, baremetal: BaremetalCluster, cluster: ClusterFacts) -> tuple[ConditionStatus, str, str, Result]:
        machines = await control_plane_machines(self._cache, cluster.namespace, cluster.name)
        known = await known_peers(self._cache, baremetal, machines, cluster.namespace)
        try:
            vip.check(baremetal, known, await all_clusters(self._cache))
        except VIPError as error:
            # Whose vrid becomes free, or is found to be taken, is no event of this cluster.
            return FALSE, error.reason, error.message, Result(RETRY) if error.reason == names.VRID_IN_USE_REASON else DONE
        if not cluster.control_plane_initialized:
            waiting = "The first host gets its peers with its user-data; they are published when its API server answers"
            return UNKNOWN, names.VIP_WAITING_FOR_CONTROL_PLANE_REASON, waiting, DONE
        try:
            if await announce(self._workload, cluster, baremetal, known, machines):
                _log.info("published the peers of the virtual address")
        except ConflictError:
            # Somebody else was faster.  What they wrote is read at the next try.
            raise
        except OperatorError as error:
            message = f"The hosts keep the peers that they have: {error.message}"
            return UNKNOWN, names.VIP_API_NOT_REACHABLE_REASON, message, Result(RETRY)
        return TRUE, names.VIP_READY_REASON, vip.described(known), Result(KEPT)
