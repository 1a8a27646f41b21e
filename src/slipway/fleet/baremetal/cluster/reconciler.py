"""The BaremetalCluster controller: the endpoint of a control plane on bare metal, which stays as it is once it is known."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.core.cluster import Cluster
from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.infrastructure.cluster import DEFAULT_PORT, BaremetalCluster, BaremetalClusterSpec
from slipway.api.cluster.kinds import BAREMETAL_CLUSTER, BAREMETAL_MACHINE, CLUSTER, CORE_EVENT
from slipway.api.cluster.names import CLUSTER_NAME_LABEL, PAUSED_CONDITION, READY_CONDITION
from slipway.fleet.baremetal.cluster import failuredomains, lookup
from slipway.fleet.baremetal.cluster.lookup import cluster_name, is_ours
from slipway.fleet.contract.conditions import FALSE, TRUE
from slipway.fleet.contract.facts import cluster_from, paused_by, read
from slipway.fleet.contract.references import changed, members
from slipway.fleet.contract.scope import Scope
from slipway.fleet.contract.status import Status
from slipway.kube.aio import PatchType
from slipway.runtime import finalizers
from slipway.runtime.cache.cache import ON_ITS_WAY
from slipway.runtime.controller import Watch
from slipway.runtime.objects import DONE, Object, Request, Result
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.events import EventRecorder

_log = logging.getLogger("slipway.fleet.baremetal.cluster")

NAME = "baremetalcluster"
OWNED = (names.ENDPOINT_READY_CONDITION, READY_CONDITION, PAUSED_CONDITION)
_RETRY = 30.0
_MACHINES_REMAIN = 10.0

RULES = (
    rule(BAREMETAL_CLUSTER, *READ, "patch"),
    rule(BAREMETAL_CLUSTER, "patch", subresource="status"),
    rule(BAREMETAL_MACHINE, "list", "watch"),
    rule(CLUSTER, "list", "watch"),
    rule(CORE_EVENT, "create", "patch"),
    *failuredomains.RULES,
)


async def of_cluster(found: Object, cache: Cache) -> Iterable[Request]:
    reference = read(found, Cluster).spec.infrastructure_ref
    if (reference.api_group, reference.kind) != (BAREMETAL_CLUSTER.group, BAREMETAL_CLUSTER.kind):
        return []
    return [Request(found.namespace, reference.name)]


async def of_machine(found: Object, cache: Cache) -> Iterable[Request]:
    """A Cluster's last machine that goes lets its infrastructure go."""
    name = found.metadata.labels.get(CLUSTER_NAME_LABEL, "")
    cluster = await cache.get(CLUSTER, name, found.namespace) if name else None
    return await of_cluster(cluster, cache) if cluster is not None else []


def _gone(old: Object | None, new: Object | None) -> bool:
    return new is None


WATCHES = (
    Watch(BAREMETAL_CLUSTER),
    Watch(CLUSTER, of_cluster, changed(cluster_from)),
    Watch(BAREMETAL_MACHINE, of_machine, _gone),
    *failuredomains.WATCHES,
)


class Verdict(NamedTuple):
    """What is to be said of an endpoint; ``host`` and ``port`` are filled in where the spec has none yet."""

    reason: str
    message: str = ""
    host: str = ""
    port: int = 0

    @property
    def is_well(self) -> bool:
        return self.reason == names.ENDPOINT_READY_REASON


def judge(spec: BaremetalClusterSpec) -> Verdict:
    """Whether a virtual address can work is another matter, and has the condition VIPReady."""
    endpoint, balancer = spec.control_plane_endpoint, spec.control_plane_load_balancer
    if balancer is None or not balancer.host:
        if endpoint.host:
            return Verdict(names.ENDPOINT_READY_REASON, host=endpoint.host, port=endpoint.port or DEFAULT_PORT)
        return Verdict(names.ENDPOINT_MISSING_REASON, "no endpoint is known: set controlPlaneLoadBalancer, or controlPlaneEndpoint")
    host, port = balancer.host, balancer.port or DEFAULT_PORT
    if endpoint.host and (endpoint.host, endpoint.port or DEFAULT_PORT) != (host, port):
        return Verdict(
            names.ENDPOINT_CONFLICT_REASON,
            f"controlPlaneLoadBalancer is {host}:{port} and controlPlaneEndpoint {endpoint}, which never changes: make the former the same",
        )
    return Verdict(names.ENDPOINT_READY_REASON, host=host, port=port)


class BaremetalClusterReconciler:
    name = NAME
    watches = WATCHES
    rules = RULES

    def __init__(
        self, client: AsyncClient, cache: Cache, *, events: EventRecorder, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._client = client
        self._cache = cache
        self._events = events
        self._clock = clock
        lookup.add_index(cache)

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(BAREMETAL_CLUSTER, request.name, request.namespace)
        if found is None:
            return DONE
        if self._cache.is_behind(BAREMETAL_CLUSTER, request.name, request.namespace):
            return Result(ON_ITS_WAY)
        name = cluster_name(found)
        deleted = found.metadata.deletion_timestamp is not None
        if not is_ours(found) and not deleted:
            return DONE
        owned = any(owner.kind == CLUSTER.kind for owner in found.metadata.owner_references)
        cluster = await self._cache.get(CLUSTER, name, request.namespace) if owned else None
        if cluster is None:
            _log.info("Waiting for a Cluster to own the BaremetalCluster")
            return await self._go(found, name) if deleted else DONE
        facts = cluster_from(cluster)
        manifest = found.content()
        scope = Scope(self._client, self._cache, BAREMETAL_CLUSTER, manifest, facts, self._clock(), owned_conditions=OWNED)
        status = Status(manifest, scope.now)
        status.paused(paused_by(facts, manifest))
        if paused_by(facts, manifest):
            await scope.save()
            return DONE
        if deleted:
            return await self._go(found, name)
        if finalizers.add(manifest, names.BAREMETAL_CLUSTER_FINALIZER):
            await scope.save_spec()
        return await self._endpoint(read(found, BaremetalCluster), scope, status)

    async def _endpoint(self, cluster: BaremetalCluster, scope: Scope, status: Status) -> Result:
        verdict = judge(cluster.spec)
        was_ready = status.is_true(names.ENDPOINT_READY_CONDITION)
        if verdict.is_well:
            if not cluster.spec.control_plane_endpoint.host or not cluster.spec.control_plane_endpoint.port:
                scope.set_section("controlPlaneEndpoint", {"host": verdict.host, "port": verdict.port})
                await scope.save_spec()
            status.fields["ready"] = True
            status.fields["initialization"] = {**(status.fields.get("initialization") or {}), "provisioned": True}
        else:
            status.fields.setdefault("ready", False)
        status.fields["failureDomains"] = await failuredomains.found_domains(self._cache, scope.cluster) or None
        status.set(names.ENDPOINT_READY_CONDITION, TRUE if verdict.is_well else FALSE, verdict.reason, verdict.message)
        status.sum_up(READY_CONDITION, (names.ENDPOINT_READY_CONDITION,))
        status.observed()
        await scope.save()
        if was_ready != verdict.is_well:
            message = verdict.message or f"The endpoint is {verdict.host}:{verdict.port}"
            self._events.event(scope.manifest, "Normal" if verdict.is_well else "Warning", verdict.reason, message)
        return DONE if verdict.is_well else Result(_RETRY)

    async def _go(self, found: Object, cluster: str) -> Result:
        """Let the object go once no machine of the cluster needs it to be cleaned up."""
        manifest = found.content()
        if cluster and await members(self._cache, BAREMETAL_MACHINE, found.namespace, cluster):
            return Result(_MACHINES_REMAIN)
        if finalizers.remove(manifest, names.BAREMETAL_CLUSTER_FINALIZER):
            body = {"metadata": {"resourceVersion": found.metadata.resource_version, "finalizers": manifest["metadata"]["finalizers"]}}
            await self._client.patch(BAREMETAL_CLUSTER, found.name, found.namespace, body, type=PatchType.MERGE)
        return DONE
