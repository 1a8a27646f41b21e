"""The Machine controller: makes the objects of its providers the Machine's own, finds its Node, and takes all of it down again.

The phases of a reconcile run one after another, and none holds up the next: a bootstrap config that cannot be read does not keep a Node
from being seen, nor a Machine from being deleted.  What each saw becomes the status, once, at the end.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from slipway.api.cluster import names
from slipway.api.cluster.core.machinedeployment import MachineDeployment
from slipway.api.cluster.core.machineset import MachineSet
from slipway.api.cluster.kinds import (
    CLUSTER,
    CORE_EVENT,
    CORE_GROUP,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONFIG,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_DRAIN_RULE,
    MACHINE_SET,
    SECRET,
)
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.facts import cluster_reference, paused_by, read
from slipway.fleet.contract.references import ANY, References
from slipway.fleet.machines.machine import intake, status, watches
from slipway.fleet.machines.machine.conditions import Templates
from slipway.fleet.machines.machine.noderef import Nodes
from slipway.fleet.machines.machine.providers import Providers
from slipway.fleet.machines.machine.removal import Removal
from slipway.fleet.machines.machine.scope import Scope
from slipway.fleet.machines.options import NOTHING_MORE
from slipway.kube.aio import PatchType
from slipway.kube.errors import ConflictError
from slipway.runtime import finalizers, owners
from slipway.runtime.cache.cache import ON_ITS_WAY
from slipway.runtime.logs import fields
from slipway.runtime.objects import DONE, Request, Result
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.fleet.machines.options import MachinesOptions
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.controller import Watch
    from slipway.runtime.events import EventRecorder
    from slipway.runtime.objects import Object

_log = logging.getLogger("slipway.fleet.machines.machine")

NAME = "machine"
WATCHES = watches.WATCHES
RULES = (
    rule(MACHINE, *READ, "patch"),
    rule(MACHINE, "patch", subresource="status"),
    # Where the API server enforces who may hold up the deletion of an owner.
    rule(MACHINE, "update", subresource="finalizers"),
    rule(CLUSTER, "list", "watch"),
    rule(MACHINE_SET, "list", "watch"),
    rule(MACHINE_DEPLOYMENT, "list", "watch"),
    rule(MACHINE_DRAIN_RULE, "list", "watch"),
    rule(KUBEADM_CONFIG, *READ, "patch", "delete"),
    rule(KUBEADM_CONTROL_PLANE, *READ),
    rule(CUSTOM_RESOURCE_DEFINITION, "get"),
    rule(SECRET, "get"),
    rule(CORE_EVENT, "create", "patch"),
)
"""What it needs of kinds that are known; roles of infrastructure providers are aggregated to ours."""


class MachineReconciler:
    name = NAME
    watches = WATCHES
    rules = RULES
    interval = 1.0

    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        *,
        workload: WorkloadClusters,
        events: EventRecorder,
        watch: Callable[[Watch], None],
        enqueue: Callable[[Request], None],
        options: MachinesOptions = NOTHING_MORE,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._cache = cache
        self._clock = clock
        watches.add_index(cache)
        watches.follow(workload, cache, enqueue)
        references = References(client, cache, watch=lambda kind: watch(watches.external(kind)), watchable=ANY)
        planes = References(client, cache, watch=lambda kind: watch(watches.control_planes(kind)), watchable=ANY)
        self._providers = Providers(client, cache, references)
        self._nodes = Nodes(workload, events, options)
        self._removal = Removal(
            cache, workload, planes, self._providers, self._nodes, events, _log, clock=lambda: self._clock().timestamp()
        )

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(MACHINE, request.name, request.namespace)
        if found is None:
            return DONE
        if self._cache.is_behind(MACHINE, request.name, request.namespace):
            # What we wrote last is on its way to the cache, and its event with it.
            return Result(ON_ITS_WAY)
        manifest = found.content()
        name = (manifest.get("spec") or {}).get("clusterName") or ""
        cluster = await self._cache.get(CLUSTER, name, request.namespace) if name else None
        if cluster is None:
            _log.info("Waiting for the Cluster to be created", extra=fields(cluster=name))
            return DONE
        if finalizers.add(manifest, names.MACHINE_FINALIZER):
            await self._write_finalizer(manifest)
            return DONE
        scope = Scope(self._client, self._cache, manifest, cluster, self._clock())
        return await self._proceed(scope)

    async def _write_finalizer(self, manifest: Manifest) -> None:
        """A write of its own, before anything is made that a deletion would have to take down."""
        metadata = manifest["metadata"]
        body = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": metadata["finalizers"]}}
        written = await self._client.patch(MACHINE, metadata["name"], metadata["namespace"], body, type=PatchType.MERGE)
        self._cache.wrote(MACHINE, written)

    async def _proceed(self, scope: Scope) -> Result:
        """Run the phases, and write down how they went: here and nowhere else."""
        causes = paused_by(scope.cluster, scope.manifest)
        scope.status.paused(causes)
        if causes:
            await scope.save()
            return DONE
        await self._read_owners(scope)
        for phase in (
            self._own,
            self._providers.bootstrap,
            self._providers.infrastructure,
            self._nodes.reconcile,
            self._expiry,
            *((self._removal.proceed,) if scope.is_deleting else ()),
        ):
            await self._run(phase, scope)
        self._tell(scope)
        try:
            await scope.save()
        except OperatorError as second:
            if not scope.failures:
                raise
            told = "; ".join(map(_text, scope.failures))
            raise OperatorError(f"{told}; and that could not be written to the status: {second.message}") from scope.failures[0]
        if scope.failures:
            raise scope.failures[0]
        return Result(scope.requeue_after)

    async def _run(self, phase: Callable[[Scope], Awaitable[None]], scope: Scope) -> None:
        try:
            await phase(scope)
        except ConflictError as error:
            # Somebody else was faster; what they wrote is read at the next try.
            scope.failures.append(error)
        except Exception as error:
            scope.failures.append(error)
            _log.warning("A phase failed", extra=fields(phase=getattr(phase, "__qualname__", ""), error=_text(error)))

    def _tell(self, scope: Scope) -> None:
        scope.observed.templates = _templates(scope)
        scope.again(status.tell(scope.manifest, scope.observed, scope.now))
        if not scope.failures:
            # The generation counts as observed only when everything went well.
            scope.status.observed()

    async def _read_owners(self, scope: Scope) -> None:
        """The MachineSet that made the Machine, and the MachineDeployment behind it; one that is gone is as good as none."""
        owner = owners.find(scope.manifest, CORE_GROUP, MACHINE_SET.kind)
        if owner is None:
            return
        scope.machine_set = await self._cache.get(MACHINE_SET, owner["name"], scope.namespace)
        name = "" if scope.machine_set is None else scope.machine_set.metadata.labels.get(names.DEPLOYMENT_NAME_LABEL, "")
        if name:
            scope.deployment = await self._cache.get(MACHINE_DEPLOYMENT, name, scope.namespace)

    async def _own(self, scope: Scope) -> None:
        """A Machine that nobody made belongs to its Cluster; every Machine has its label."""
        metadata = scope.manifest["metadata"]
        if is_standalone(scope.manifest):
            metadata["ownerReferences"] = owners.ensure(metadata.get("ownerReferences"), cluster_reference(scope.cluster))
        metadata["labels"] = {**(metadata.get("labels") or {}), names.CLUSTER_NAME_LABEL: scope.machine.spec.cluster_name}

    async def _expiry(self, scope: Scope) -> None:
        intake.take_expiry(scope.status, scope.manifest, scope.observed.config.manifest)


def is_standalone(machine: Manifest) -> bool:
    """Whether no MachineSet, pool or control plane made the Machine; after a restore, these take back what is theirs by the labels."""
    labels = machine["metadata"].get("labels") or {}
    made = (names.SET_NAME_LABEL, names.POOL_NAME_LABEL, names.CONTROL_PLANE_NAME_LABEL)
    return owners.controller_of(machine) is None and not any(label in labels for label in made)


def _machine_set(found: Object) -> MachineSet:
    return read(found, MachineSet)


def _deployment(found: Object) -> MachineDeployment:
    return read(found, MachineDeployment)


def _templates(scope: Scope) -> Templates | None:
    if scope.machine_set is None or scope.deployment is None:
        return None
    made_from, wanted = scope.machine_set.known(_machine_set), scope.deployment.known(_deployment)
    created = scope.machine_set.metadata.creation_timestamp or ""
    return Templates(made_from.spec.template.spec, wanted.spec.template.spec, created, wanted.spec.rollout.after)


def _text(error: Exception) -> str:
    """A mistake of ours is told as everything else is, on one short line; where it was made is in the log."""
    if isinstance(error, OperatorError):
        return error.message
    text = " ".join(str(error).split())
    return f"this is a bug in slipway: {type(error).__name__}{f': {text[:200]}' if text else ''}"
