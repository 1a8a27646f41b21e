"""The controller that says on a BaremetalCluster what speaks against its next rollout: the condition RolloutGuarded.

The same objections are warnings to who writes an object, and rows of ``fleet preflight``; the checks are in
:mod:`slipway.fleet.baremetal.rollouts.guards`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.infrastructure.pool import MachineInventoryPool
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    CLUSTER,
    CONFIG_MAP,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY_POOL,
)
from slipway.fleet.baremetal.cluster import lookup
from slipway.fleet.baremetal.cluster.lookup import live, of_cluster, of_machine, of_pool
from slipway.fleet.baremetal.plans.catalogs import Catalogs
from slipway.fleet.baremetal.rollouts import guards
from slipway.fleet.baremetal.rollouts.known import Cached, NotKnownYetError
from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN
from slipway.fleet.contract.facts import cluster_from, read
from slipway.fleet.contract.references import changed
from slipway.fleet.contract.scope import Scope
from slipway.fleet.contract.status import Status
from slipway.runtime.controller import Watch
from slipway.runtime.objects import Request, Result
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from slipway.fleet.baremetal.rollouts.guards import Rollout
    from slipway.fleet.contract.conditions import ConditionStatus
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object

T = TypeVar("T")
NAME = "baremetalcluster-guards"
# Control planes may be of a kind that is not served here, so nobody waits for theirs; what they change is seen at the next look.
LOOK = 60.0
# Until the kinds that are looked at have been read.
_SOON = 5.0

RULES = (
    rule(BAREMETAL_CLUSTER, *READ),
    rule(BAREMETAL_CLUSTER, "patch", subresource="status"),
    *(
        rule(kind, "list", "watch")
        for kind in (
            BAREMETAL_MACHINE,
            BAREMETAL_MACHINE_TEMPLATE,
            CLUSTER,
            KUBEADM_CONTROL_PLANE,
            MACHINE_DEPLOYMENT,
            MACHINE_INVENTORY_POOL,
        )
    ),
    rule(CONFIG_MAP, *READ),
)


async def of_catalog(found: Object, cache: Cache) -> Iterable[Request]:
    """Whose catalog it is, only the options know; there are few."""
    return [each.request for each in await cache.list(BAREMETAL_CLUSTER)] if found.name == names.CATALOG_NAME else []


def _come_or_gone(old: Object | None, new: Object | None) -> bool:
    return old is None or new is None


def _members(found: Object) -> object:
    pool = read(found, MachineInventoryPool)
    return pool.spec, pool.status.selected, pool.status.unavailable


WATCHES = (
    Watch(BAREMETAL_CLUSTER),
    Watch(CLUSTER, of_cluster, changed(cluster_from)),
    Watch(BAREMETAL_MACHINE, of_machine, _come_or_gone),
    Watch(MACHINE_INVENTORY_POOL, of_pool, changed(_members)),
    Watch(CONFIG_MAP, of_catalog),
)


def _rollout(found: Object) -> guards.Rollout | None:
    return guards.rollout(found.content())


def _size(found: Object) -> dict[str, guards.Pool]:
    return guards.pool_sizes([found.content()])


def _pool(found: Object) -> dict[str, str]:
    return guards.template_pools([found.content()])


def _together(parts: Iterable[dict[str, T]]) -> dict[str, T]:
    return {name: value for part in parts for name, value in part.items()}


def judged(cluster: str, around: guards.Surroundings) -> tuple[ConditionStatus, str, str]:
    """What is said of a cluster: status, reason and message."""
    own = [each for each in around.rollouts or () if each.cluster == cluster]
    found = [objection for each in own for objection in guards.objections(each, around)]
    found += guards.entry_objections(around.catalog or {}, around.catalog_place)
    if found:
        return FALSE, names.ROLLOUT_OBJECTION_REASON, guards.summary(found)
    return TRUE, names.NO_OBJECTION_REASON, ""


def rollouts(known: Cached, namespace: str) -> list[Rollout]:
    """The control planes and MachineDeployments of a namespace whose machines are ours."""
    found = [each for kind in (KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT) for each in known.facts(kind, namespace, _rollout)]
    return [each for each in found if each is not None]


class RolloutGuardReconciler:
    name = NAME
    watches = WATCHES
    rules = RULES

    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        catalog_namespace: str = "",
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._cache = cache
        self._known = Cached(cache)
        lookup.add_index(cache)
        self._catalog_namespace = catalog_namespace
        self._clock = clock
        self._catalogs = Catalogs(client, cache)

    async def reconcile(self, request: Request) -> Result:
        looked = await live(self._cache, request)
        if isinstance(looked, Result):
            return looked
        _, manifest, facts = looked
        scope = Scope(
            self._client,
            self._cache,
            BAREMETAL_CLUSTER,
            manifest,
            facts,
            self._clock(),
            owned_conditions=(names.ROLLOUT_GUARDED_CONDITION,),
        )
        status = Status(manifest, scope.now)
        try:
            said, result = judged(facts.name, await self._around(request.namespace)), Result(LOOK)
        except NotKnownYetError:
            said, result = (UNKNOWN, names.NOT_LOOKED_YET_REASON, "What is rolled has not been read yet"), Result(_SOON)
        status.set(names.ROLLOUT_GUARDED_CONDITION, *said)
        await scope.save()
        return result

    async def _around(self, namespace: str) -> guards.Surroundings:
        place = self._catalog_namespace or namespace
        return guards.Surroundings(
            catalog=await self._catalogs.entries(place) or {},
            catalog_place=f"{place}/{names.CATALOG_NAME}",
            pools=_together(self._known.facts(MACHINE_INVENTORY_POOL, namespace, _size)),
            templates=_together(self._known.facts(BAREMETAL_MACHINE_TEMPLATE, namespace, _pool)),
            rollouts=rollouts(self._known, namespace),
        )
