"""The Cluster controller: takes care of what a Cluster refers to, tells how it is, and sees to the order in which it goes.

It creates nothing but the kubeconfig of a Cluster without a control plane object.  What it needs of others it reads; what they need of it,
that the infrastructure is provisioned and the control plane initialised, is in the status.  A Cluster with a topology is upstream's.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.core.cluster import Cluster
from slipway.api.cluster.kinds import (
    CLUSTER,
    CORE_EVENT,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_POOL,
    MACHINE_SET,
    SECRET,
)
from slipway.api.cluster.names import CLUSTER_FINALIZER, CLUSTER_NAME_LABEL, PAUSED_CONDITION, TOPOLOGY_RECONCILED_CONDITION
from slipway.api.machinery.errors import OperatorError
from slipway.fleet import certificates, kubeconfig
from slipway.fleet.clustercache import secret_name
from slipway.fleet.contract import conditions
from slipway.fleet.contract.conditions import FALSE
from slipway.fleet.contract.facts import cluster_from, cluster_reference, paused_by, read
from slipway.fleet.contract.references import ANY, References, members
from slipway.fleet.contract.scope import Scope
from slipway.fleet.contract.status import Status
from slipway.fleet.liveclusters import Probe
from slipway.fleet.machines.cluster import deletion, deprecated, fields, observed, status
from slipway.fleet.machines.cluster.initialization import PROVISIONED, is_set, take_over
from slipway.fleet.machines.cluster.observed import Descendants, External, Observed
from slipway.fleet.machines.cluster.watches import WATCHES, external_watch
from slipway.kube.aio import PatchType
from slipway.kube.errors import AlreadyExistsError, ConflictError, NotFoundError
from slipway.runtime import finalizers, owners
from slipway.runtime.cache.cache import ON_ITS_WAY
from slipway.runtime.controller import RESPITE
from slipway.runtime.objects import DONE, Request, Result
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.cluster.kinds import Kind
    from slipway.api.cluster.meta import ContractVersionedObjectReference as Reference
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.fleet.machines.cluster.status import Deletion
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.controller import Watch
    from slipway.runtime.events import EventRecorder
    from slipway.runtime.objects import Object

NAME = "cluster"
# Cluster API's externalReadyWait and deleteRequeueAfter.
MISSING_RETRY = 30.0
DELETE_RETRY = 5.0
# A Cluster of thousands of Machines, some of which change all the time, is not looked at every second: a second for each thousand.
_A_MACHINE, _LONGEST_PAUSE = 0.001, 10.0

# What other kinds a Cluster refers to is for their providers to allow: their roles are aggregated.
RULES = (
    rule(CLUSTER, *READ, "patch"),
    rule(CLUSTER, "patch", subresource="status"),
    rule(KUBEADM_CONTROL_PLANE, *READ, "patch", "delete"),
    *(rule(kind, "list", "watch", "delete") for kind in (MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE, MACHINE_POOL)),
    rule(CUSTOM_RESOURCE_DEFINITION, "get"),
    rule(SECRET, "get", "create"),
    rule(CORE_EVENT, "create", "patch"),
)

UNSUPPORTED = "NotSupported"
_UNSUPPORTED_MESSAGE = (
    "spec.topology is set: a Cluster that a ClusterClass makes is left alone, since managed topologies are Cluster API's own core "
    "manager's. Let that manager run, or remove spec.topology"
)


class _Run(NamedTuple):
    """One reconcile: the Cluster as a manifest that is changed and as it was read, and what went wrong on the way."""

    scope: Scope
    cluster: Cluster
    status: Status
    problems: list[OperatorError]

    @property
    def deleting(self) -> bool:
        return finalizers.is_deleted(self.scope.manifest)


class ClusterReconciler:
    name = NAME
    watches = WATCHES
    rules = RULES
    interval = 1.0
    respite = RESPITE

    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        *,
        workload: WorkloadClusters,
        events: EventRecorder,
        watch: Callable[[Watch], None],
        enqueue: Callable[[Request], None],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._cache = cache
        self._workload = workload
        self._events = events
        self._clock = clock
        self._references = References(client, cache, watch=lambda kind: watch(external_watch(kind)), watchable=ANY)
        workload.on_probe(lambda namespace, name: enqueue(Request(namespace, name)))

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(CLUSTER, request.name, request.namespace)
        if found is None:
            return DONE
        if self._cache.is_behind(CLUSTER, request.name, request.namespace):
            return Result(ON_ITS_WAY)
        run = self._begin(found)
        if run.cluster.spec.topology:
            return await self._leave_alone(run)
        if finalizers.add(run.scope.manifest, CLUSTER_FINALIZER):
            # By itself and first of all, so that no deletion slips through in between.
            await run.scope.save()
            return DONE
        causes = paused_by(run.scope.cluster, run.scope.manifest)
        before = conditions.find(conditions.of(run.scope.manifest), PAUSED_CONDITION)
        run.status.paused(causes)
        if causes or before is None or before.status != FALSE:
            await run.scope.save()
            return DONE
        return await self._proceed(run)

    def _begin(self, found: Object) -> _Run:
        manifest, now = found.content(), self._clock()
        scope = Scope(
            self._client,
            self._cache,
            CLUSTER,
            manifest,
            cluster_from(found),
            now,
            owned_conditions=status.OWNED,
            owned_deprecated_conditions=deprecated.OWNED,
        )
        return _Run(scope, read(found, Cluster), Status(manifest, now), [])

    async def _leave_alone(self, run: _Run) -> Result:
        # Upstream's manager has the last word on this condition: it is not ours to insist.
        if conditions.find(conditions.of(run.scope.manifest), TOPOLOGY_RECONCILED_CONDITION) is None:
            run.status.set(TOPOLOGY_RECONCILED_CONDITION, FALSE, UNSUPPORTED, _UNSUPPORTED_MESSAGE)
            await run.scope.save()
        return DONE

    async def _proceed(self, run: _Run) -> Result:
        """See to everything, and write down how it went: here and nowhere else.  What fails holds up nothing that does not need it."""
        scope, phase = run.scope, run.scope.manifest.get("status", {}).get("phase")
        infrastructure = await self._external(run, run.cluster.spec.infrastructure_ref)
        control_plane = await self._external(run, run.cluster.spec.control_plane_ref)
        self._take_over(run, infrastructure, control_plane)
        descendants, unlisted = await self._descendants(run)
        seen = Observed(scope.manifest, infrastructure, control_plane, descendants, self._probe(run), unlisted)
        result, going = DONE, None
        if run.deleting:
            result, going = await self._delete(run, seen)
        else:
            result = _sooner(result, await self._kubeconfig(run))
            if infrastructure.missing or control_plane.missing:
                result = _sooner(result, Result(MISSING_RETRY))
        status.fill(run.status, seen, scope.now, going)
        deprecated.fill(run.status, seen)
        if not run.problems:
            run.status.observed()
        await scope.save()
        self._tell_phase(scope.manifest, phase)
        if run.problems:
            raise OperatorError("; ".join(problem.message for problem in run.problems)) from run.problems[0]
        result = _sooner(result, _until_probe_counts(seen.probe, scope.now))
        return result._replace(pause=min(len(descendants.machines) * _A_MACHINE, _LONGEST_PAUSE)) if descendants is not None else result

    # What the Cluster refers to.

    async def _external(self, run: _Run, reference: Reference) -> External:
        """The object that is referred to, which belongs to the Cluster from now on."""
        if not reference.name:
            return External()
        try:
            found = await self._references.find(reference, run.scope.namespace)
            if found is None:
                return External(missing=True)
            contract = await self._references.contract(reference)
            return External(await self._adopt(run, await self._references.kind(reference), found), contract=contract)
        except ConflictError:
            # Somebody else was faster.  What they wrote is read at the next try.
            raise
        except OperatorError as error:
            run.problems.append(error)
            return External(problem=error.message)

    async def _adopt(self, run: _Run, kind: Kind, found: Manifest) -> Manifest:
        """Make the object the Cluster's: by an owner that is no controller, so that another tool may manage it, and by its label."""
        metadata, owner = found["metadata"], cluster_reference(run.scope.cluster)
        held = metadata.get("ownerReferences") or []
        named = (metadata.get("labels") or {}).get(CLUSTER_NAME_LABEL) == run.scope.name
        if (named and owner in held) or self._cache.is_behind(kind, metadata["name"], run.scope.namespace):
            return found
        changed = {
            "resourceVersion": metadata["resourceVersion"],
            "labels": {CLUSTER_NAME_LABEL: run.scope.name},
            "ownerReferences": owners.ensure(held, owner),
        }
        try:
            written = await self._client.patch(kind, metadata["name"], run.scope.namespace, {"metadata": changed}, type=PatchType.MERGE)
        except NotFoundError:
            raise ConflictError(f"the {kind.kind} {metadata['name']} went in the meantime", code=409, reason="Conflict") from None
        self._cache.wrote(kind, written)
        return written

    def _take_over(self, run: _Run, infrastructure: External, control_plane: External) -> None:
        manifest, name = run.scope.manifest, run.scope.name
        taken = take_over(manifest, infrastructure, control_plane)
        if taken.provisioned and infrastructure.manifest is not None:
            self._events.event(manifest, "Normal", "InfrastructureReady", f"Cluster {name} InfrastructureProvisioned is now True")
        if taken.initialized:
            self._events.event(manifest, "Normal", "ControlPlaneInitialized", f"Cluster {name} ControlPlaneInitialized is now True")
        run.problems.extend(taken.problems)

    # What belongs to the Cluster.

    async def _descendants(self, run: _Run) -> tuple[Descendants | None, str]:
        """What belongs to the Cluster, or why that is not known."""
        try:
            found = Descendants(
                [observed.group(found) for found in await self._members(run, MACHINE_DEPLOYMENT)],
                [observed.group(found) for found in await self._members(run, MACHINE_SET)],
                [observed.group(found) for found in await self._members(run, MACHINE_POOL)],
                # Of thousands, few are in another state than at the last look.
                [found.known(observed.machine) for found in await self._members(run, MACHINE)],
            )
        except OperatorError as error:
            run.problems.append(error)
            return None, error.message
        return found, ""

    async def _members(self, run: _Run, kind: Kind) -> list[Object]:
        return sorted(await members(self._cache, kind, run.scope.namespace, run.scope.name), key=lambda found: found.metadata.name)

    def _probe(self, run: _Run) -> Probe:
        """A workload cluster without infrastructure has nothing that could answer."""
        if not is_set(run.scope.manifest, PROVISIONED):
            return Probe()
        return self._workload.probe(run.scope.namespace, run.scope.name)

    async def _kubeconfig(self, run: _Run) -> Result:
        """Make the kubeconfig where no control plane does; without the CA, which the first machine's bootstrap data makes, look again."""
        cluster, endpoint = run.scope.cluster, run.scope.section("controlPlaneEndpoint")
        if run.cluster.spec.control_plane_ref.name or not fields.is_endpoint(endpoint):
            return DONE
        try:
            if await self._client.find(SECRET, secret_name(cluster.name), cluster.namespace) is not None:
                return DONE
            authority = await self._client.find(SECRET, certificates.secret_name(cluster.name, certificates.CA), cluster.namespace)
            if authority is None:
                return Result(MISSING_RETRY)
            server = f"https://{_address(endpoint)}"
            made = await asyncio.to_thread(kubeconfig.content, cluster.name, server, certificates.pair_from(authority), run.scope.now)
            await self._client.create(SECRET, kubeconfig.secret(cluster, made, cluster_reference(cluster)))
        except AlreadyExistsError:
            return DONE
        except OperatorError as error:
            run.problems.append(error)
        return DONE

    # How it goes.

    async def _delete(self, run: _Run, seen: Observed) -> tuple[Result, Deletion]:
        step = deletion.next_step(seen)
        failed = len(run.problems)
        for kind, metadata in step.descendants:
            await self._delete_one(run, kind, metadata.name, metadata.uid)
        for wanted, external, reference in (
            (step.control_plane, seen.control_plane, run.cluster.spec.control_plane_ref),
            (step.infrastructure, seen.infrastructure, run.cluster.spec.infrastructure_ref),
        ):
            if wanted and external.manifest is not None:
                await self._delete_one(run, await self._references.kind(reference), reference.name, external.manifest["metadata"]["uid"])
        if step.done:
            finalizers.remove(run.scope.manifest, CLUSTER_FINALIZER)
            self._events.event(run.scope.manifest, "Normal", "Deleted", f"Cluster {run.scope.name} has been deleted")
        going = step.deletion
        if len(run.problems) > failed:
            going = status.Deletion(status.INTERNAL_ERROR, "; ".join(problem.message for problem in run.problems[failed:]))
        waits_for_workers = step.deletion.reason == "WaitingForWorkersDeletion"
        return Result(DELETE_RETRY) if waits_for_workers else DONE, going

    async def _delete_one(self, run: _Run, kind: Kind, name: str, uid: str) -> None:
        try:
            await self._client.delete(kind, name, run.scope.namespace, uid=uid)
        except ConflictError:
            # Another one has come in its place since: it is seen at the next look.
            return
        except OperatorError as error:
            where = f"{kind.kind} {run.scope.namespace}/{name}"
            run.problems.append(OperatorError(f"the {where} of the Cluster could not be deleted: {error.message}"))

    def _tell_phase(self, cluster: Manifest, before: str | None) -> None:
        phase = cluster["status"]["phase"]
        if phase != before:
            self._events.event(cluster, "Normal", phase, f"Cluster {cluster['metadata']['name']} is {phase}")


def _until_probe_counts(probe: Probe, now: datetime) -> Result:
    """Look again when a connection that is lost has been lost for so long that it is told."""
    if not probe.failed_in_a_row or probe.succeeded_at is None:
        return DONE
    left = (probe.succeeded_at + status.PROBE_GRACE - now).total_seconds()
    return Result(left + 1.0) if left >= 0 else DONE


def _sooner(one: Result, other: Result) -> Result:
    return min((result for result in (one, other) if result.requeue_after), key=lambda result: result.requeue_after, default=DONE)


def _address(endpoint: Manifest) -> str:
    host = endpoint["host"]
    return f"[{host}]:{endpoint['port']}" if ":" in host else f"{host}:{endpoint['port']}"
