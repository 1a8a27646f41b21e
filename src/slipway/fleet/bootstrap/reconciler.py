"""The KubeadmConfig controller: gathers what there is, decides, does it, and writes down how it went.

The order of a reconcile is in :mod:`slipway.fleet.bootstrap.decision`.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

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
from slipway.fleet.bootstrap import initlock, upkeep
from slipway.fleet.bootstrap import watches as watching
from slipway.fleet.bootstrap.data.discovery import EndpointUnknownError
from slipway.fleet.bootstrap.decision import Step, decide
from slipway.fleet.bootstrap.maker import InputError, Maker
from slipway.fleet.bootstrap.scope import Scope
from slipway.fleet.bootstrap.status import WAITING_FOR_CONTROL_PLANE, WAITING_FOR_INFRASTRUCTURE
from slipway.fleet.bootstrap.upkeep import Upkeep
from slipway.fleet.bootstrap.version import ControlPlaneVersions, VersionUnreadableError
from slipway.fleet.certificates import CertificateSecrets, CertificatesError
from slipway.fleet.clustercache import WorkloadClusters
from slipway.fleet.contract import paused as pause
from slipway.fleet.contract.conditions import TRUE
from slipway.fleet.contract.facts import cluster_from, owner_from, owner_link
from slipway.kube.errors import ConflictError
from slipway.runtime.objects import DONE, Result
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.fleet.bootstrap.options import BootstrapOptions
    from slipway.fleet.bootstrap.upkeep import Memory
    from slipway.fleet.contract.conditions import Condition
    from slipway.fleet.contract.facts import Owner
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.controller import Reconciler, Watch
    from slipway.runtime.events import EventRecorder
    from slipway.runtime.manager import Manager
    from slipway.runtime.objects import Object, Request

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
    rule(SECRET, "get", "create", "update", "patch"),
    rule(CONFIG_MAP, "get", "create", "delete"),
    rule(CORE_EVENT, "create", "patch"),
)


def controllers(manager: Manager, options: BootstrapOptions) -> list[Reconciler]:
    """What the bootstrap provider consists of."""
    workload = WorkloadClusters(manager.client, on_request=manager.metrics.request("workload-clusters"))
    manager.at_end(workload.close)
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
    watches = watching.WATCHES
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
        versions = ControlPlaneVersions(client, cache, lambda kind: watch(watching.control_planes(kind)))
        self._maker = Maker(client, options, CertificateSecrets(client), versions, workload)
        self._upkeep = Upkeep(client, options, self._maker, versions, workload, events)
        # Clusters whose init lock is known to be gone: nobody takes it once the control plane is there.
        self._unlocked: set[str] = set()

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(KUBEADM_CONFIG, request.name, request.namespace)
        if found is None:
            await self._upkeep.gone(request)
            return DONE
        memory = self._upkeep.recall(request, found.metadata.uid)
        if upkeep.is_behind(found.metadata.resource_version, memory.written, self._upkeep.seconds_since_write(memory)):
            # What we wrote last is on its way to the cache, and its event with it.
            return Result(upkeep.ON_ITS_WAY)
        owner = await self._owner(found)
        cluster = None
        if owner is not None:
            cluster_object = await self._cache.get(CLUSTER, owner.cluster_name, request.namespace) if owner.cluster_name else None
            cluster = cluster_from(cluster_object.content()) if cluster_object is not None else None
        if owner is None or cluster is None:
            step = decide({"metadata": {}}, owner, cluster, paused=False)
            _log.debug(step.value)
            return DONE
        assert cluster_object is not None
        scope = Scope(self._client, found.content(), owner, cluster, self._clock())
        try:
            return await self._proceed(scope, pause.condition(cluster_object.content(), scope.config), memory)
        finally:
            self._upkeep.wrote(memory, scope.resource_version)

    async def _owner(self, found: Object) -> Owner | None:
        link = owner_link(found.metadata.owner_references)
        if link is None:
            return None
        owner = await self._cache.get(link.kind, link.name, found.namespace)
        return owner_from(link.kind, owner.content()) if owner is not None else None

    async def _proceed(self, scope: Scope, paused: Condition, memory: Memory) -> Result:
        config, owner, cluster = scope.config, scope.owner, scope.cluster
        scope.status.paused(paused)
        step = decide(config, owner, cluster, paused=paused.status == TRUE)
        if step is Step.PAUSED:
            await scope.save()
        if step in (Step.PAUSED, Step.IGNORE):
            _log.debug(step.value)
            return DONE
        try:
            lost = await self._upkeep.data_lost(config, owner, memory)
            step = decide(config, owner, cluster, paused=False, data_lost=lost)
            _log.log(logging.DEBUG if step.finished else logging.INFO, step.value)
            result = await self._do(step, scope, memory)
        except EndpointUnknownError as waiting:
            scope.status.data_secret_missing(waiting.message, WAITING_FOR_CONTROL_PLANE, "Info")
            result = Result(ENDPOINT_RETRY)
        except ConflictError:
            # Somebody else was faster.  What they wrote is read at the next try.
            raise
        except Exception as error:
            # A mistake of ours is told as everything else is; where it was made is in the log.
            told = error if isinstance(error, OperatorError) else OperatorError(f"this is a bug in slipway: {_named(error)}")
            self._failed(step, scope, told)
            scope.status.finish(succeeded=False)
            try:
                await scope.save()
            except OperatorError as second:
                raise OperatorError(f"{told.message}; and that could not be written to the status: {second.message}") from error
            raise
        scope.status.finish(succeeded=True)
        await scope.save()
        return result

    async def _do(self, step: Step, scope: Scope, memory: Memory) -> Result:
        status = scope.status
        match step:
            case Step.WAIT_FOR_INFRASTRUCTURE:
                status.data_secret_missing("Waiting for Cluster status.infrastructureReady to be true", WAITING_FOR_INFRASTRUCTURE, "Info")
                return DONE
            case Step.RESTORE_STATUS:
                status.created(scope.owner.data_secret_name)
                status.certificates_available(deprecated=False)
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
        scope.status.data_secret_available()
        scope.status.certificates_available(deprecated=False)
        if scope.owner.control_plane and scope.cluster.control_plane_initialized:
            # A cluster of one machine has no join that would release it.
            await self._unlock(scope)
        if step is Step.REFRESH_TOKEN:
            return await self._upkeep.refresh(scope, memory)
        if step is Step.ROTATE_TOKEN:
            return await self._upkeep.rotate(scope, memory)
        return await self._upkeep.keep(scope, memory)

    def _wait_for_control_plane(self, scope: Scope) -> Result:
        scope.status.data_secret_missing("Waiting for Cluster control plane to be initialized", WAITING_FOR_CONTROL_PLANE, "Info")
        return Result(CONTROL_PLANE_RETRY)

    async def _unlock(self, scope: Scope) -> None:
        if scope.cluster.uid not in self._unlocked:
            await initlock.release(self._client, scope.cluster)
            self._unlocked.add(scope.cluster.uid)

    def _failed(self, step: Step, scope: Scope, error: OperatorError) -> None:
        """Say in the conditions, and in an Event, what went wrong."""
        status = scope.status
        if isinstance(error, VersionUnreadableError):
            if self._options.join_version == "control-plane":
                status.version_unreadable(error.message)
            if not step.finished:
                status.generation_failed(f"Failed to determine the Kubernetes version to join with: {error.message}", error.message)
        elif isinstance(error, CertificatesError):
            status.certificates_failed(error, init=step is Step.INIT)
        elif isinstance(error, InputError):
            status.generation_failed(error.message, error.cause)
        elif not step.finished:
            status.generation_failed(f"Failed to create bootstrap data: {error.message}", error.message)
        self._events.event(scope.config, "Warning", "BootstrapFailed", f"Failed while {step.value}: {error.message}")


def _named(error: Exception) -> str:
    """What kind of mistake it is, on one short line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
