"""The KubeadmConfig controller: gathers what there is, decides, does it, and writes down how it went.

The order of a reconcile is in :mod:`slipway.fleet.bootstrap.decision`.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from slipway.api.cluster.kinds import (
    CLUSTER,
    CONFIG_MAP,
    CORE_EVENT,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONFIG,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_POOL,
    SECRET,
)
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.bootstrap import initlock
from slipway.fleet.bootstrap.data.discovery import EndpointUnknownError
from slipway.fleet.bootstrap.decision import Step, decide
from slipway.fleet.bootstrap.maker import Maker
from slipway.fleet.bootstrap.status import FOR_CONTROL_PLANE, FOR_INFRASTRUCTURE, Scope, tell
from slipway.fleet.bootstrap.upkeep import Upkeep
from slipway.fleet.bootstrap.version import WATCHABLE, ControlPlaneVersions
from slipway.fleet.certificates import CertificateSecrets
from slipway.fleet.contract import secrets
from slipway.fleet.contract.facts import cluster_from, owner_from, owner_link, paused_by
from slipway.fleet.contract.references import References, changed, clusters_of_control_plane, controlled_by, members
from slipway.fleet.contract.status import Status
from slipway.kube.errors import ConflictError
from slipway.runtime.cache.cache import ON_ITS_WAY
from slipway.runtime.controller import Watch
from slipway.runtime.objects import DONE, Object, Request, Result
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from slipway.api.cluster.kinds import Kind
    from slipway.fleet.bootstrap.options import BootstrapOptions
    from slipway.fleet.bootstrap.upkeep import Memory
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.fleet.contract.facts import ClusterFacts, Owner
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.controller import Reconciler
    from slipway.runtime.events import EventRecorder
    from slipway.runtime.manager import Manager

_log = logging.getLogger("slipway.fleet.bootstrap")

NAME = "kubeadmconfig"
CONTROL_PLANE_RETRY = 30.0
ENDPOINT_RETRY = 10.0

RULES = (
    rule(KUBEADM_CONFIG, *READ, "patch"),
    rule(KUBEADM_CONFIG, "patch", subresource="status"),
    rule(CLUSTER, "list", "watch"),
    rule(MACHINE, *READ),
    rule(MACHINE_POOL, "list", "watch"),
    rule(KUBEADM_CONTROL_PLANE, *READ),
    rule(CUSTOM_RESOURCE_DEFINITION, "get"),
    rule(SECRET, *READ, "create", "update", "patch"),
    rule(CONFIG_MAP, "get", "create", "delete"),
    rule(CORE_EVENT, "create", "patch"),
)


def config_of(found: Object) -> str:
    """The name of the KubeadmConfig that a Machine or the machines of a MachinePool boot with; empty where it is something else."""
    reference = owner_from(found).config_ref
    if reference is None or (reference.api_group, reference.kind) != (KUBEADM_CONFIG.group, KUBEADM_CONFIG.kind):
        return ""
    return reference.name


def _version(found: Object) -> Any:
    return (found.content().get("spec") or {}).get("version")


owner_changed = changed(owner_from)
cluster_changed = changed(cluster_from)
# One that is made again may have another version; one that was missing was waited for.
control_plane_changed = changed(_version)


async def of_owner(found: Object, cache: Cache) -> Iterable[Request]:
    name = config_of(found)
    return [Request(found.namespace, name)] if name else []


async def of_cluster(found: Object, cache: Cache) -> Iterable[Request]:
    """The KubeadmConfigs of all machines of a Cluster."""
    return await _of_cluster_name(found.namespace, found.name, cache)


async def of_control_plane(found: Object, cache: Cache) -> Iterable[Request]:
    clusters = await clusters_of_control_plane(found, cache)
    return [request for cluster in clusters for request in await _of_cluster_name(found.namespace, cluster, cache)]


async def _of_cluster_name(namespace: str, cluster: str, cache: Cache) -> list[Request]:
    owners = [owner for kind in (MACHINE, MACHINE_POOL) for owner in await members(cache, kind, namespace, cluster)]
    return [Request(namespace, name) for name in map(config_of, owners) if name]


of_secret = controlled_by(KUBEADM_CONFIG)

WATCHES = (
    Watch(KUBEADM_CONFIG),
    Watch(MACHINE, of_owner, owner_changed),
    Watch(MACHINE_POOL, of_owner, owner_changed),
    Watch(CLUSTER, of_cluster, cluster_changed),
    Watch(SECRET, of_secret),
)


def control_planes(kind: Kind) -> Watch:
    """The watch of a kind of control planes, which is known when a Cluster refers to one."""
    return Watch(kind, of_control_plane, control_plane_changed)


def controllers(manager: Manager, options: BootstrapOptions, workload: WorkloadClusters) -> list[Reconciler]:
    """What the bootstrap provider consists of."""
    return [
        KubeadmConfigReconciler(
            manager.client,
            manager.cache,
            options,
            workload=workload,
            events=manager.events,
            watch=lambda watch: manager.watch(NAME, watch),
        )
    ]


class KubeadmConfigReconciler:
    name = NAME
    watches = WATCHES
    rules = RULES

    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        options: BootstrapOptions,
        *,
        workload: WorkloadClusters,
        events: EventRecorder,
        watch: Callable[[Watch], None],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._cache = cache
        self._options = options
        self._events = events
        self._clock = clock
        secrets.restrict(cache)
        references = References(client, cache, watch=lambda kind: watch(control_planes(kind)), watchable=WATCHABLE)
        versions = ControlPlaneVersions(references)
        self._maker = Maker(client, cache, options, CertificateSecrets(client), versions, workload)
        self._upkeep = Upkeep(client, cache, options, self._maker, versions, workload, events)
        # Clusters whose init lock is known to be gone: nobody takes it once the control plane is there.
        self._unlocked: set[str] = set()

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(KUBEADM_CONFIG, request.name, request.namespace)
        if found is None:
            await self._upkeep.gone(request)
            return DONE
        if any(self._cache.is_behind(kind, request.name, request.namespace) for kind in (KUBEADM_CONFIG, SECRET)):
            # What we wrote last is on its way to the cache, and its event with it.
            return Result(ON_ITS_WAY)
        config, owner = found.content(), await self._owner(found)
        cluster = await self._cluster(owner)
        step = decide(config, owner, cluster, data_lost=await self._upkeep.data_lost(config))
        _log.log(logging.DEBUG if step.finished or step.is_idle else logging.INFO, step.value)
        if owner is None or cluster is None or step is Step.IGNORE:
            return DONE
        return await self._proceed(step, Scope(self._client, self._cache, config, owner, cluster, self._clock()))

    async def _owner(self, found: Object) -> Owner | None:
        link = owner_link(found.metadata.owner_references)
        if link is None:
            return None
        owner = await self._cache.get(link.kind, link.name, found.namespace)
        return owner_from(owner) if owner is not None else None

    async def _cluster(self, owner: Owner | None) -> ClusterFacts | None:
        if owner is None or not owner.cluster_name:
            return None
        cluster = await self._cache.get(CLUSTER, owner.cluster_name, owner.namespace)
        return cluster_from(cluster) if cluster is not None else None

    async def _proceed(self, step: Step, scope: Scope) -> Result:
        """Do the step, and write down how it went: here and nowhere else."""
        failure: Exception | None = None
        result = DONE
        try:
            result = await self._do(step, scope)
        except EndpointUnknownError as waiting:
            failure, result = waiting, Result(ENDPOINT_RETRY)
        except ConflictError:
            # Somebody else was faster.  What they wrote is read at the next try.
            raise
        except Exception as error:
            failure = error
            self._events.event(scope.manifest, "Warning", "BootstrapFailed", f"Failed while {step.value}: {_told(error).message}")
        status = Status(scope.manifest, scope.now)
        status.paused(paused_by(scope.cluster, scope.manifest))
        if step is not Step.PAUSED:
            told = None if failure is None else _told(failure)
            tell(status, step, scope.outcome, told, with_version=self._options.join_version == "control-plane")
        try:
            await scope.save()
        except OperatorError as second:
            if failure is None:
                raise
            raise OperatorError(f"{_told(failure).message}; and that could not be written to the status: {second.message}") from failure
        if failure is not None and not isinstance(failure, EndpointUnknownError):
            raise failure
        return result

    async def _do(self, step: Step, scope: Scope) -> Result:
        memory = self._upkeep.recall(Request(scope.namespace, scope.name), scope.holder.uid)
        match step:
            case Step.PAUSED:
                return DONE
            case Step.WAIT_FOR_INFRASTRUCTURE:
                scope.outcome.waiting = FOR_INFRASTRUCTURE
                return DONE
            case Step.RESTORE_STATUS:
                await self._upkeep.adopt(scope)
                scope.outcome.secret = scope.owner.data_secret_name
                return DONE
            case Step.KEEP | Step.REFRESH_TOKEN | Step.ROTATE_TOKEN:
                return await self._look_after(step, scope, memory)
            case Step.WAIT_FOR_CONTROL_PLANE:
                return self._wait_for_control_plane(scope)
            case Step.INIT:
                self._unlocked.discard(scope.cluster.uid)
                made = await self._maker.init(scope)
                return self._upkeep.made(scope, memory, made) if made.stored else self._wait_for_control_plane(scope)
            case Step.JOIN_CONTROL_PLANE:
                await self._unlock(scope)
                return self._upkeep.made(scope, memory, await self._maker.join_control_plane(scope))
            case Step.JOIN_WORKER:
                await self._unlock(scope)
                return self._upkeep.made(scope, memory, await self._maker.join_worker(scope))
        raise AssertionError(f"nothing to do for {step}")

    async def _look_after(self, step: Step, scope: Scope, memory: Memory) -> Result:
        await self._upkeep.adopt(scope)
        if scope.owner.control_plane and scope.cluster.control_plane_initialized:
            # A cluster of one machine has no join that would release it.
            await self._unlock(scope)
        if step is Step.REFRESH_TOKEN:
            return await self._upkeep.refresh(scope, memory)
        if step is Step.ROTATE_TOKEN:
            return await self._upkeep.rotate(scope, memory)
        return await self._upkeep.keep(scope, memory)

    def _wait_for_control_plane(self, scope: Scope) -> Result:
        scope.outcome.waiting = FOR_CONTROL_PLANE
        return Result(CONTROL_PLANE_RETRY)

    async def _unlock(self, scope: Scope) -> None:
        if scope.cluster.uid not in self._unlocked:
            await initlock.release(self._client, scope.cluster)
            self._unlocked.add(scope.cluster.uid)


def _told(error: Exception) -> OperatorError:
    """A mistake of ours is told as everything else is, on one short line; where it was made is in the log."""
    if isinstance(error, OperatorError):
        return error
    text = " ".join(str(error).split())
    return OperatorError(f"this is a bug in slipway: {type(error).__name__}{f': {text[:200]}' if text else ''}")
