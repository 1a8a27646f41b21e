"""The MachineInventoryPool controller: hosts are marked with the pool that has them, counted, and checked.

The template has no controller: it never changes, and what owns it is written by whoever uses it.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.infrastructure.machine import BaremetalMachine
from slipway.api.cluster.infrastructure.pool import MachineInventoryPool
from slipway.api.cluster.kinds import BAREMETAL_MACHINE, CLUSTER, CORE_EVENT, MACHINE_INVENTORY, MACHINE_INVENTORY_POOL, NODE, SECRET
from slipway.api.cluster.names import PAUSED_CONDITION, READY_CONDITION
from slipway.api.elemental import names as elemental
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.baremetal.cluster.lookup import pools_of
from slipway.fleet.baremetal.hosts import pool, record
from slipway.fleet.baremetal.hosts.host import QUARANTINE_ANNOTATION, Host, annotations_patch, host_from, hosts_of
from slipway.fleet.baremetal.hosts.pool import OtherPool, member_names
from slipway.fleet.baremetal.plans import plan, planfacts
from slipway.fleet.baremetal.reasons import MEMBERS_INVALID, POOL_EMPTY, POOL_READY
from slipway.fleet.contract import secrets, selectors
from slipway.fleet.contract.conditions import FALSE, TRUE
from slipway.fleet.contract.facts import ClusterFacts, cluster_from, paused_by, read
from slipway.fleet.contract.references import besides_status, changed
from slipway.fleet.contract.scope import Scope
from slipway.fleet.contract.status import Status
from slipway.fleet.liveclusters import PROVIDER_ID, DisconnectedError
from slipway.kube.aio import PatchType
from slipway.kube.errors import ConflictError, NotFoundError
from slipway.runtime.cache.cache import ON_ITS_WAY
from slipway.runtime.controller import RESPITE, Watch
from slipway.runtime.objects import DONE, Object, Request, Result, timestamp
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from slipway.api.cluster.infrastructure.pool import MachineInventoryPoolSpec, PoolMember
    from slipway.fleet.baremetal.options import BaremetalOptions
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.events import EventRecorder

_log = logging.getLogger("slipway.fleet.baremetal.pool")

NAME = "machineinventorypool"
OWNED = (names.MEMBERS_VALID_CONDITION, READY_CONDITION, PAUSED_CONDITION)
MEMBER_INDEX = "machineInventories"
SELECTOR_INDEX = "selector"
MARK_INDEX = "pool"
_LOOK_AT_QUARANTINE = 60.0
_SHOWN = 20

RULES = (
    rule(MACHINE_INVENTORY_POOL, *READ),
    rule(MACHINE_INVENTORY_POOL, "patch", subresource="status"),
    rule(MACHINE_INVENTORY, *READ, "patch"),
    rule(BAREMETAL_MACHINE, *READ),
    rule(CLUSTER, "list", "watch"),
    rule(SECRET, *READ, "patch", "update"),
    rule(CORE_EVENT, "create", "patch"),
)


def member_keys(found: Object) -> Iterable[str]:
    """The index of pools by the inventories that they name."""
    return [f"{found.namespace}/{name}" for name in member_names(read(found, MachineInventoryPool).spec.machine_inventories)]


def selector_key(found: Object) -> Iterable[str]:
    """The index of the pools of a namespace that select hosts."""
    return [found.namespace] if read(found, MachineInventoryPool).spec.selector is not None else []


def mark_key(found: Object) -> Iterable[str]:
    """The index of inventories by the pool that they are marked with."""
    pool = found.metadata.annotations.get(names.POOL_ANNOTATION)
    return [f"{found.namespace}/{pool}"] if pool else []


async def of_machine(found: Object, cache: Cache) -> Iterable[Request]:
    return [Request(found.namespace, read(found, BaremetalMachine).spec.machine_inventory_pool_ref.name)]


async def of_inventory(found: Object, cache: Cache) -> Iterable[Request]:
    """The pools that name a host, those that might select it, and the one that had it."""
    pools = await cache.list(MACHINE_INVENTORY_POOL, index=(MEMBER_INDEX, f"{found.namespace}/{found.name}"))
    pools += await cache.list(MACHINE_INVENTORY_POOL, index=(SELECTOR_INDEX, found.namespace))
    marked = found.metadata.annotations.get(names.POOL_ANNOTATION, "")
    return {*(each.request for each in pools), *([Request(found.namespace, marked)] if marked else [])}


async def of_pool(found: Object, cache: Cache) -> Iterable[Request]:
    """All pools that name a host that this one names or has, or that select hosts, itself included."""
    selecting = await cache.list(MACHINE_INVENTORY_POOL, index=(SELECTOR_INDEX, found.namespace))
    requests = {found.request, *(each.request for each in selecting)}
    marked = await cache.list(MACHINE_INVENTORY, index=(MARK_INDEX, f"{found.namespace}/{found.name}"))
    for key in {*member_keys(found), *(f"{each.namespace}/{each.name}" for each in marked)}:
        requests |= {each.request for each in await cache.list(MACHINE_INVENTORY_POOL, index=(MEMBER_INDEX, key))}
    return requests


async def of_cluster(found: Object, cache: Cache) -> Iterable[Request]:
    return [each.request for each in await pools_of(cache, found.namespace, found.name)]


def _registry(cluster: Object | None) -> str:
    return cluster.metadata.annotations.get(names.REGISTRY_ADDRESS_ANNOTATION, "") if cluster is not None else ""


def _seen(found: Object) -> tuple[Host, dict[str, str]]:
    return host_from(found), found.metadata.labels


WATCHES = (
    Watch(MACHINE_INVENTORY_POOL, when=besides_status),
    # Machines claim hosts by it: what somebody else wrote there is put right at once.
    Watch(MACHINE_INVENTORY_POOL, when=changed(lambda found: read(found, MachineInventoryPool).status.selected)),
    Watch(MACHINE_INVENTORY_POOL, of_pool, changed(lambda found: found.metadata.generation)),
    # A pool that is deleted lets go of hosts that another one names.
    Watch(MACHINE_INVENTORY_POOL, of_pool, lambda old, new: new is None),
    # One that went without giving its host back leaves it without an owner.
    Watch(BAREMETAL_MACHINE, of_machine, lambda old, new: new is None),
    Watch(MACHINE_INVENTORY, of_inventory, lambda old, new: old is None or new is None or old is new or _seen(old) != _seen(new)),
    Watch(CLUSTER, of_cluster, changed(lambda found: (cluster_from(found).paused, _registry(found)))),
)


class MachineInventoryPoolReconciler:
    name = NAME
    watches = WATCHES
    rules = RULES
    # Every change of a host concerns its pool; one look a second is enough for a count.
    interval = 1.0
    respite = RESPITE

    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        options: BaremetalOptions,
        *,
        workload: WorkloadClusters,
        events: EventRecorder,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._cache = cache
        self._options = options
        self._workload = workload
        self._events = events
        self._clock = clock
        secrets.restrict(cache)
        cache.add_index(MACHINE_INVENTORY_POOL, MEMBER_INDEX, member_keys)
        cache.add_index(MACHINE_INVENTORY_POOL, SELECTOR_INDEX, selector_key)
        cache.add_index(MACHINE_INVENTORY, MARK_INDEX, mark_key)

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(MACHINE_INVENTORY_POOL, request.name, request.namespace)
        if found is None:
            return DONE
        if self._cache.is_behind(MACHINE_INVENTORY_POOL, request.name, request.namespace):
            return Result(ON_ITS_WAY)
        spec = read(found, MachineInventoryPool).spec
        selected = await self._selected(found)
        members = spec.members_with(selected)
        if any(self._cache.is_behind(MACHINE_INVENTORY, name, request.namespace) for name in member_names(members)):
            return Result(ON_ITS_WAY)
        manifest = found.content()
        cluster = await self._cache.get(CLUSTER, spec.cluster_name, request.namespace) if spec.cluster_name else None
        facts = cluster_from(cluster) if cluster is not None else ClusterFacts(request.namespace, spec.cluster_name)
        scope = Scope(self._client, self._cache, MACHINE_INVENTORY_POOL, manifest, facts, self._clock(), owned_conditions=OWNED)
        status = Status(manifest, scope.now)
        status.paused(paused_by(facts, manifest))
        status.fields["selected"] = selected or None
        hosts = await hosts_of(self._cache, request.namespace, member_names(members))
        result = DONE
        if not paused_by(facts, manifest):
            hosts |= await self._mark(found, members, hosts)
            hosts, quarantined = await self._free_quarantined(found, facts, hosts)
            beside: dict[str, str | None] = {elemental.REGISTRY_ADDRESS_ANNOTATION: registry} if (registry := _registry(cluster)) else {}
            # What another pool asked its hosts for.
            beside |= {elemental.STAGE_IMAGE_ANNOTATION: None} if spec.image_staging != names.AHEAD else {}
            await self._annotate_plans(request.namespace, [name for name, host in hosts.items() if host.pool == found.name], beside)
            result = Result(_LOOK_AT_QUARANTINE) if quarantined else DONE
        orphans = await self._orphans(request.namespace, hosts)
        self._tell(scope, status, spec, members, hosts, orphans)
        await scope.save()
        return result

    async def _orphans(self, namespace: str, hosts: dict[str, Host]) -> set[str]:
        """The hosts of machines that are not there.  What the cache does not have is asked of the API server: it may be behind."""
        found = set()
        for name, host in hosts.items():
            machine = host.owner.baremetal_machine if host.owner is not None else ""
            if machine and await self._cache.get(BAREMETAL_MACHINE, machine, namespace) is None:
                found |= {name} if await self._client.find(BAREMETAL_MACHINE, machine, namespace) is None else set()
        return found

    async def _selected(self, found: Object) -> list[str]:
        """The hosts that the pool's selector brings in."""
        mine = _other(found)
        if mine.selector is None or not mine.selects:
            return []
        others = [_other(each) for each in await self._cache.list(MACHINE_INVENTORY_POOL, found.namespace) if each.name != found.name]
        hosts = {}
        for each in await self._cache.list(MACHINE_INVENTORY, found.namespace):
            metadata = each.metadata
            # The hosts of others are many, and reading one takes its time.
            if metadata.annotations.get(names.POOL_ANNOTATION) == found.name or selectors.matches(mine.selector, metadata.labels):
                hosts[each.name] = host_from(each), metadata.labels
        return pool.selected(hosts, mine, others)

    def _tell(
        self,
        scope: Scope,
        status: Status,
        spec: MachineInventoryPoolSpec,
        members: list[PoolMember],
        hosts: dict[str, Host],
        orphans: set[str],
    ) -> None:
        status.fields.update(pool.counters(members, hosts, scope.name))
        problems = pool.selector_problems(spec.selector) + pool.problems(members, hosts, scope.name, orphans)
        if problems:
            lines = [problem.message for problem in problems]
            shown = lines[:_SHOWN] + ([f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else [])
            if status.is_true(names.MEMBERS_VALID_CONDITION):
                self._events.event(scope.manifest, "Warning", problems[0].reason, "; ".join(shown))
            status.set(names.MEMBERS_VALID_CONDITION, FALSE, problems[0].reason, "; ".join(shown))
            status.set(READY_CONDITION, FALSE, MEMBERS_INVALID, "; ".join(shown))
        else:
            status.set(names.MEMBERS_VALID_CONDITION, TRUE, names.MEMBERS_VALID_REASON)
            nothing = "" if members else "it names no host, and selects none"
            status.set(READY_CONDITION, TRUE if members else FALSE, POOL_READY if members else POOL_EMPTY, nothing)
        status.observed()

    async def _mark(self, found: Object, members: list[PoolMember], hosts: dict[str, Host]) -> dict[str, Host]:
        """Mark the hosts that the pool has, and take the mark from those that it does not name any more; those that were marked."""
        mine = _other(found)
        mine = mine._replace(members=frozenset(member_names(members)))
        changed_hosts = {}
        for name, host in hosts.items():
            rivals = await self._cache.list(MACHINE_INVENTORY_POOL, index=(MEMBER_INDEX, f"{found.namespace}/{name}"))
            if pool.adopted(name, host, mine, map(_other, rivals)) and not await self._is_kept(found, host):
                changes: dict[str, str | None] = {names.POOL_ANNOTATION: found.name}
                if not host.state:
                    changes[names.ALLOCATION_STATE_ANNOTATION] = names.AVAILABLE
                if await self._annotate(found.namespace, name, host, changes):
                    changed_hosts[name] = host._replace(pool=found.name, state=host.state or names.AVAILABLE)
        for each in await self._cache.list(MACHINE_INVENTORY, index=(MARK_INDEX, f"{found.namespace}/{found.name}")):
            if each.name not in mine.members and host_from(each).owner is None and not host_from(each).quarantined_by:
                await self._annotate(found.namespace, each.name, host_from(each), {names.POOL_ANNOTATION: None})
                await self._annotate_plans(found.namespace, [each.name], {elemental.STAGE_IMAGE_ANNOTATION: None})
        return changed_hosts

    async def _is_kept(self, found: Object, host: Host) -> bool:
        """Whether another pool does not let go of a host that was given up there: it alone knows in which cluster that may be a Node."""
        if not host.quarantined_by or not host.pool:
            return False
        return await self._cache.get(MACHINE_INVENTORY_POOL, host.pool, found.namespace) is not None

    async def _free_quarantined(self, found: Object, cluster: ClusterFacts, hosts: dict[str, Host]) -> tuple[dict[str, Host], bool]:
        """Let hosts that were given up come back once they have been cleaned after all; whether some have not.

        One that the pool does not name any more, as a dead host that another one replaces, is let go of then.
        """
        namespace, remaining = cluster.namespace, False
        marked = await self._cache.list(MACHINE_INVENTORY, index=(MARK_INDEX, f"{found.namespace}/{found.name}"))
        left = {each.name: host_from(each) for each in marked if each.name not in hosts}
        freed: dict[str, Host] = {}
        for name, host in {**hosts, **left}.items():
            if not host.quarantined_by or host.owner is not None or host.pool != found.name:
                continue
            changes = {QUARANTINE_ANNOTATION: None, names.ALLOCATION_STATE_ANNOTATION: names.AVAILABLE}
            changes |= {names.POOL_ANNOTATION: None} if name in left else {}
            clean = await self._is_clean(namespace, name, host) and await self._forget_nodes(cluster, name)
            if clean and await self._annotate(namespace, name, host, changes, cleaned=self._clock()):
                freed |= {name: host._replace(quarantined_by="", state=names.AVAILABLE)} if name in hosts else {}
            else:
                remaining = True
        return {**hosts, **freed}, remaining

    async def _forget_nodes(self, cluster: ClusterFacts, host: str) -> bool:
        """Delete the Nodes of a clean host of nobody: its kubelet made one anew when the host came back, before its agent cleaned it.

        Whether that is settled.  Where the cluster does not answer they stay: the next machine on this host waits for them, or takes them
        over.  One that was not asked yet, as by a manager that has just started, is waited for, and one that fails now and then.
        """
        if not cluster.control_plane_initialized:
            return True
        try:
            known = await self._workload.nodes(cluster.namespace, cluster.name)
            found = await known.list(NODE, index=(PROVIDER_ID, names.provider_id(host)))
            async with self._workload.client(cluster.namespace, cluster.name) as client:
                for node in found:
                    await client.delete(NODE, node.name)
        except DisconnectedError as error:
            _log.info("whether %s left a Node behind is not known: %s", host, error.message)
            return self._workload.probe(cluster.namespace, cluster.name).failed_in_a_row > 0
        except OperatorError as error:
            _log.info("whether %s left a Node behind is not known yet: %s", host, error.message)
            return False
        return True

    async def _is_clean(self, namespace: str, name: str, host: Host) -> bool:
        """Whether a host has applied the clean plan of who gave it up; one that has no such plan, as it had no Secret then, gets it."""
        secret = await self._client.find(SECRET, name, namespace)
        if secret is None:
            return False
        found = planfacts.plan_facts(secret)
        if (found.type, found.owner) == (names.PLAN_CLEAN, host.quarantined_by):
            return found.outcome == "applied" and not found.is_dirty
        if not found.in_flight:
            now = self._clock()
            wanted = plan.clean(f"{host.quarantined_by}/{timestamp(now)}")
            with suppress(ConflictError, NotFoundError):
                marks = planfacts.Marks(names.PLAN_CLEAN, host.quarantined_by)
                await planfacts.write(self._client, self._cache, secret, wanted, marks, self._options.max_failures, now)
        return False

    async def _annotate_plans(self, namespace: str, hosts: Iterable[str], wanted: Mapping[str, str | None]) -> None:
        """Tell hosts, beside their plans, which registry to try and to report on, and that they need no image ahead."""
        known = self._cache.informer(SECRET, labels=f"{elemental.MANAGED_LABEL}={elemental.MANAGED}").store
        for name in hosts:
            seen = known.get(name, namespace)
            if seen is not None and any(seen.metadata.annotations.get(key) != value for key, value in wanted.items()):
                await planfacts.annotate(self._client, name, namespace, wanted)

    async def _annotate(
        self, namespace: str, name: str, host: Host, changes: dict[str, str | None], *, cleaned: datetime | None = None
    ) -> bool:
        """Write annotations where the host is still as it was decided for; whether that was so."""
        known = await self._client.find(MACHINE_INVENTORY, name, namespace)
        if known is None:
            return False
        annotations = known["metadata"].get("annotations") or {}
        seen = (annotations.get(names.POOL_ANNOTATION, ""), annotations.get(names.ALLOCATION_STATE_ANNOTATION, ""))
        if seen != (host.pool, host.state) or any(annotations.get(owner) for owner in names.OWNER_ANNOTATIONS) != (host.owner is not None):
            return False
        noted = record.noted_cleaned(known, cleaned) if cleaned is not None else {}
        patch = annotations_patch(known["metadata"]["resourceVersion"], {**changes, **noted})
        try:
            written = await self._client.patch(MACHINE_INVENTORY, name, namespace, patch, type=PatchType.MERGE)
        except (ConflictError, NotFoundError):
            # Its event brings us back.
            return False
        self._cache.wrote(MACHINE_INVENTORY, written)
        return True


def _other(found: Object) -> OtherPool:
    """By what its spec names: what others select follows from that."""
    return found.known(_pool_from)


def _pool_from(found: Object) -> OtherPool:
    spec = read(found, MachineInventoryPool).spec
    members = frozenset(member_names(spec.machine_inventories))
    return OtherPool(found.name, members, (found.metadata.creation_timestamp or "", found.name), spec.selector)
