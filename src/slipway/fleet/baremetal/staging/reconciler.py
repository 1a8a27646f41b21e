"""The controller that has the hosts of a pool fetch their next image ahead, where the pool says so: ``imageStaging: Ahead``.

A host is asked by an annotation of its plan Secret, which is written only while no plan is in flight.  What a host has fetched it tells
with its facts, which the inventory's status has.  Nothing is remembered here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.infrastructure.machine import BaremetalMachine
from slipway.api.cluster.infrastructure.pool import MachineInventoryPool
from slipway.api.cluster.kinds import (
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    CLUSTER,
    CONFIG_MAP,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    SECRET,
)
from slipway.api.elemental import names as elemental
from slipway.api.elemental import staging as asked
from slipway.api.elemental.inventory import MachineInventory
from slipway.api.elemental.staging import Wanted
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.baremetal.hosts.host import host_from
from slipway.fleet.baremetal.hosts.pool import member_names
from slipway.fleet.baremetal.plans import catalog, planfacts
from slipway.fleet.baremetal.plans.catalogs import Catalogs
from slipway.fleet.baremetal.rollouts import guards
from slipway.fleet.baremetal.rollouts.known import Cached, NotKnownYetError
from slipway.fleet.baremetal.rollouts.reconciler import rollouts
from slipway.fleet.baremetal.staging import decision
from slipway.fleet.baremetal.staging.decision import Member, Rolled
from slipway.fleet.contract import secrets
from slipway.fleet.contract.facts import ClusterFacts, cluster_from, owner_from, paused_by, read
from slipway.fleet.contract.references import changed
from slipway.fleet.contract.scope import Scope
from slipway.fleet.contract.status import Status
from slipway.runtime.cache.cache import ON_ITS_WAY
from slipway.runtime.controller import RESPITE, Watch
from slipway.runtime.objects import DONE, Request, Result, timestamp
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from slipway.api.cluster.infrastructure.pool import MachineInventoryPoolSpec
    from slipway.fleet.baremetal.hosts.host import HostOwner
    from slipway.fleet.baremetal.options import BaremetalOptions
    from slipway.fleet.contract.facts import Owner
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object

NAME = "machineinventorypool-staging"
AHEAD_INDEX = "staging"
# For what no watch tells: control planes of a kind that is not served here yet, and a host that does not answer.
_LOOK = 60.0
# Until the kinds that are looked at have been read.
_SOON = 2.0

RULES = (
    rule(MACHINE_INVENTORY_POOL, *READ),
    rule(MACHINE_INVENTORY_POOL, "patch", subresource="status"),
    *(
        rule(kind, "list", "watch")
        for kind in (
            *(BAREMETAL_MACHINE, BAREMETAL_MACHINE_TEMPLATE, CLUSTER, KUBEADM_CONTROL_PLANE),
            *(MACHINE, MACHINE_DEPLOYMENT, MACHINE_INVENTORY),
        )
    ),
    rule(SECRET, *READ, "patch"),
    rule(CONFIG_MAP, *READ),
)


def ahead_key(found: Object) -> Iterable[str]:
    """The index of the pools that concern us: those whose images are staged ahead, and those that were until just now."""
    pool = read(found, MachineInventoryPool)
    concerned = pool.spec.image_staging == names.AHEAD or bool(pool.status.images)
    return [f"{found.namespace}/{found.name}", found.namespace, "*"] if concerned else []


async def of_inventory(found: Object, cache: Cache) -> Iterable[Request]:
    """The pool that a host is marked with."""
    pool = found.metadata.annotations.get(names.POOL_ANNOTATION, "")
    return await _concerned(cache, f"{found.namespace}/{pool}") if pool else []


async def of_cluster(found: Object, cache: Cache) -> Iterable[Request]:
    return await _concerned(cache, found.namespace)


async def of_catalog(found: Object, cache: Cache) -> Iterable[Request]:
    """The catalog may be for one namespace, or for all."""
    return await _concerned(cache, "*") if found.name == names.CATALOG_NAME else []


async def _concerned(cache: Cache, key: str) -> list[Request]:
    return [each.request for each in await cache.list(MACHINE_INVENTORY_POOL, index=(AHEAD_INDEX, key))]


def _cluster_facts(found: Object) -> object:
    return cluster_from(found).paused, found.metadata.annotations.get(names.REGISTRY_ADDRESS_ANNOTATION)


WATCHES = (
    Watch(MACHINE_INVENTORY_POOL),
    Watch(MACHINE_INVENTORY, of_inventory),
    Watch(CLUSTER, of_cluster, changed(_cluster_facts)),
    Watch(CONFIG_MAP, of_catalog),
)


class StagingReconciler:
    name = NAME
    watches = WATCHES
    rules = RULES
    # Every change of a host concerns its pool.
    interval = 2.0
    respite = RESPITE

    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        options: BaremetalOptions,
        *,
        enqueue: Callable[[Request], None] = lambda request: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._cache = cache
        self._options = options
        self._enqueue = enqueue
        self._clock = clock
        self._known = Cached(cache)
        self._catalogs = Catalogs(client, cache)
        self._follows = False
        secrets.restrict(cache)
        cache.restrict(CONFIG_MAP, metadata_only=True)
        cache.add_index(MACHINE_INVENTORY_POOL, AHEAD_INDEX, ahead_key)

    async def reconcile(self, request: Request) -> Result:
        # Most pools are none of ours, and a large one takes its time to be read.
        if not await self._cache.list(MACHINE_INVENTORY_POOL, index=(AHEAD_INDEX, f"{request.namespace}/{request.name}")):
            return DONE
        if self._cache.is_behind(MACHINE_INVENTORY_POOL, request.name, request.namespace):
            return Result(ON_ITS_WAY)
        found = await self._cache.get(MACHINE_INVENTORY_POOL, request.name, request.namespace)
        if found is None:
            return DONE
        pool, manifest = read(found, MachineInventoryPool), found.content()
        cluster = await self._cache.get(CLUSTER, pool.spec.cluster_name, request.namespace)
        facts = cluster_from(cluster) if cluster is not None else ClusterFacts(request.namespace, pool.spec.cluster_name)
        if paused_by(facts, manifest) or found.metadata.deletion_timestamp is not None:
            return DONE
        self._follow()
        members = await self._members(request, member_names(pool.members))
        try:
            wanted, unknown = await self._wanted(request, pool.spec, cluster, members)
        except NotKnownYetError:
            return Result(_SOON)
        now = self._clock()
        changes = decision.questions(members, wanted, self._options.staging_hosts, self._options.host_deadline, now)
        for name, meant in changes.items():
            value = asked.encode(Wanted(meant.image, meant.version, timestamp(now))) if meant is not None else None
            await planfacts.annotate(self._client, name, request.namespace, {elemental.STAGE_IMAGE_ANNOTATION: value})
        scope = Scope(
            self._client, self._cache, MACHINE_INVENTORY_POOL, manifest, facts, now, owned_conditions=(names.IMAGES_STAGED_CONDITION,)
        )
        status = Status(manifest, now)
        if pool.spec.image_staging == names.AHEAD:
            status.fields["images"] = decision.images(members, wanted) or None
            status.set(names.IMAGES_STAGED_CONDITION, *decision.condition(members, wanted, unknown))
        elif not any(member.asked is not None for member in members):
            # Until then the pool stays among those that concern us.
            status.fields["images"] = None
            status.remove(names.IMAGES_STAGED_CONDITION)
        await scope.save()
        return Result(_LOOK)

    def _follow(self) -> None:
        """Hear of versions that are asked for; of kinds that may not be served here, which is why nobody waits for them."""
        if self._follows:
            return
        self._follows = True

        def on_change(old: Object | None, new: Object | None) -> None:
            seen = new or old
            if seen is None or (old is not None and new is not None and old.metadata.generation == new.metadata.generation):
                return
            for each in self._cache.informer(MACHINE_INVENTORY_POOL).store.indexed(AHEAD_INDEX, seen.namespace):
                self._enqueue(each.request)

        for kind in (KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT):
            self._cache.informer(kind).add_handler(on_change)

    async def _members(self, request: Request, wanted: Iterable[str]) -> list[Member]:
        """The hosts of the pool, those that are another pool's left out."""
        secrets_known = self._cache.informer(SECRET, labels=f"{elemental.MANAGED_LABEL}={elemental.MANAGED}").store
        members = []
        for name in wanted:
            found = await self._cache.get(MACHINE_INVENTORY, name, request.namespace)
            host = host_from(found) if found is not None else None
            if found is None or host is None or host.pool != request.name or host.deleting:
                continue
            owner, serves = await self._owner(host.owner, request.namespace) if host.owner is not None else (None, False)
            secret, facts = secrets_known.get(name, request.namespace), read(found, MachineInventory).status.host_facts
            question = secret.metadata.annotations.get(elemental.STAGE_IMAGE_ANNOTATION, "") if secret is not None else ""
            members.append(
                Member(
                    name=name,
                    state=host.state or names.AVAILABLE,
                    version=catalog.key(owner.version) if owner is not None and owner.version else "",
                    group=owner.group if owner is not None else "",
                    serves=serves,
                    asked=asked.decode(question),
                    told=facts.staging if facts is not None else None,
                )
            )
        return members

    async def _owner(self, of: HostOwner, namespace: str) -> tuple[Owner | None, bool]:
        """The Machine that has a host, and whether it is a Node."""
        machine = await self._cache.get(MACHINE, of.machine, namespace) if of.machine else None
        bare = await self._cache.get(BAREMETAL_MACHINE, of.baremetal_machine, namespace) if of.baremetal_machine else None
        serves = bare is not None and read(bare, BaremetalMachine).status.initialization.provisioned is True
        return (owner_from(machine) if machine is not None else None), serves

    async def _wanted(
        self, request: Request, spec: MachineInventoryPoolSpec, cluster: Object | None, members: list[Member]
    ) -> tuple[dict[str, Wanted], list[str]]:
        """The image that each host is to have, and why one is not known."""
        if spec.image_staging != names.AHEAD or cluster is None:
            return {}, []
        place = self._options.catalog_namespace or request.namespace
        entries = await self._catalogs.entries(place)
        rolled = self._rolled(request, spec.cluster_name)
        next_ = decision.next_version(rolled, entries or (), catalog.key(spec.next_version) if spec.next_version else "")
        versions = decision.wanted_versions(members, rolled, next_)
        images, unknown = await self._images(place, entries, set(versions.values()), cluster)
        return {name: images[version] for name, version in versions.items() if version in images}, unknown

    def _rolled(self, request: Request, cluster: str) -> Rolled:
        templates = guards.template_pools(self._known.list(BAREMETAL_MACHINE_TEMPLATE, request.namespace))
        own = [each for each in rollouts(self._known, request.namespace) if each.cluster == cluster and each.version]
        here = [each for each in own if templates.get(each.template) == request.name]
        return Rolled(
            targets={each.name: catalog.key(each.version) for each in here},
            replicas={each.name: each.replicas for each in here},
            plane=next((catalog.key(each.version) for each in own if each.is_control_plane), ""),
            is_plane=any(each.is_control_plane for each in here),
        )

    async def _images(
        self, place: str, entries: Mapping[str, str] | None, versions: set[str], cluster: Object
    ) -> tuple[dict[str, Wanted], list[str]]:
        if not versions:
            return {}, []
        registry = cluster.metadata.annotations.get(names.REGISTRY_ADDRESS_ANNOTATION, "")
        registry = registry or catalog.platform_registry(await self._client.find(SECRET, self._options.registry_secret, place))
        found, unknown = {}, []
        for version in sorted(versions):
            try:
                image = catalog.image(entries, f"{place}/{names.CATALOG_NAME}", version, registry, str(cluster.request))
            except OperatorError as error:
                unknown.append(error.message)
            else:
                found[version] = Wanted(image, version)
        return found, unknown
