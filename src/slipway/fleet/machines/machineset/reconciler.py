"""The MachineSet controller: as many Machines of one template as are wanted.

In this order: what it belongs to, its templates, its Machines (adopted where they have no owner), remediation of sick ones, changes of the
template that need no new Machine, then the number of Machines.  A step that fails does not keep the next ones from their work, but for
those that need it; the status says what went wrong.
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names
from slipway.api.cluster.core.machinedeployment import MachineDeployment
from slipway.api.cluster.core.machineset import MachineSet
from slipway.api.cluster.kinds import CLUSTER, CORE_EVENT, CUSTOM_RESOURCE_DEFINITION, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, SECRET
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract import selectors
from slipway.fleet.contract.apply import Applier
from slipway.fleet.contract.facts import cluster_from, cluster_reference, paused_by, read
from slipway.fleet.contract.references import ANY, References
from slipway.fleet.contract.scope import Scope
from slipway.fleet.contract.status import DeprecatedCondition, Status, deprecated_summary
from slipway.fleet.machines.expectations import Expectations
from slipway.fleet.machines.limits import refuse_number, scaled
from slipway.fleet.machines.machineset import desired, remediation, status
from slipway.fleet.machines.machineset.checks import Checks
from slipway.fleet.machines.machineset.creation import CreationError, Creator
from slipway.fleet.machines.machineset.deletion import deletion_order
from slipway.fleet.machines.machineset.members import Member, Members
from slipway.fleet.machines.machineset.nodes import node_states
from slipway.fleet.machines.machineset.preflight import RETRY, skip_annotation
from slipway.fleet.machines.machineset.takeover import unfinished
from slipway.fleet.machines.machineset.watches import WATCHES, control_planes, templates
from slipway.fleet.machines.propagation import Propagation
from slipway.fleet.machines.writing import own, write_metadata
from slipway.kube.errors import ConflictError
from slipway.runtime import finalizers, owners
from slipway.runtime.cache.cache import ON_ITS_WAY
from slipway.runtime.controller import RESPITE
from slipway.runtime.objects import DONE, Object, Request, Result
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.controller import Watch
    from slipway.runtime.events import EventRecorder

_log = logging.getLogger("slipway.fleet.machines.machineset")

NAME = "machineset"
# So many Machines are made at a time: most of it is waiting for the API server.
_AT_ONCE = 10
# And so many in one reconcile, or for so many seconds: the rest comes in the next one.
_MOST = 250
_LONGEST = 60.0

RULES = (
    rule(MACHINE_SET, *READ, "patch"),
    rule(MACHINE_SET, "patch", subresource="status"),
    rule(MACHINE_SET, "update", subresource="finalizers"),
    rule(MACHINE, *READ, "create", "patch", "delete"),
    rule(MACHINE, "patch", subresource="status"),
    rule(MACHINE_DEPLOYMENT, *READ),
    rule(CLUSTER, *READ),
    rule(CUSTOM_RESOURCE_DEFINITION, "get"),
    rule(SECRET, "get"),
    rule(CORE_EVENT, "create", "patch"),
)


class Found(NamedTuple):
    """What a step is about."""

    request: Request
    scope: Scope
    cached: Object
    machine_set: MachineSet
    cluster: Object
    deployment: MachineDeployment | None

    @property
    def manifest(self) -> Manifest:
        return self.scope.manifest

    @property
    def is_current(self) -> bool:
        """Whether it is of its MachineDeployment's template of today, or stands alone."""
        if self.deployment is None:
            return True
        annotations = self.deployment.metadata.get("annotations") or {}
        own = self.manifest["metadata"].get("annotations") or {}
        return bool(annotations.get(names.REVISION_ANNOTATION) == own.get(names.REVISION_ANNOTATION))

    @property
    def on_delete(self) -> bool:
        return self.deployment is not None and self.deployment.spec.rollout.strategy.type == "OnDelete"


class _Outcome:
    """What the steps found and what failed."""

    def __init__(self) -> None:
        self.machines: list[Member] | None = None
        self.missing: list[str] = []
        self.blocked: list[str] = []
        self.created: DeprecatedCondition | None = None
        self.errors: list[OperatorError] = []
        self.requeue: list[float] = []


class MachineSetReconciler:
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
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client, self._cache, self._workload = client, cache, workload
        self._events, self._clock = events, clock
        self._references = References(client, cache, watch=lambda kind: watch(templates(kind)), watchable=ANY)
        planes = References(client, cache, watch=lambda kind: watch(control_planes(kind)), watchable=ANY)
        self._checks = Checks(self._references, planes)
        self._expected = Expectations(client, cache)
        machines = Propagation(Applier(client, cache, names.MACHINE_SET_FIELD_MANAGER))
        metadata = Propagation(Applier(client, cache, names.MACHINE_SET_METADATA_FIELD_MANAGER))
        self._creator = Creator(client, self._references, machines, metadata)
        self._members = Members(client, cache, self._references, machines, metadata, self._expected, events, clock)

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(MACHINE_SET, request.name, request.namespace)
        if found is None:
            self._expected.forget(request)
            return DONE
        if self._cache.is_behind(MACHINE_SET, request.name, request.namespace):
            # What we did last is on its way to the cache, and its event with it.
            return Result(ON_ITS_WAY)
        if wait := await self._expected.wait(request):
            return Result(wait)
        machine_set = read(found, MachineSet)
        cluster = await self._cache.get(CLUSTER, machine_set.spec.cluster_name, request.namespace)
        if cluster is None:
            raise OperatorError(f"the Cluster {request.namespace}/{machine_set.spec.cluster_name} of the MachineSet does not exist")
        manifest = found.content()
        if finalizers.add(manifest, names.MACHINE_SET_FINALIZER):
            await write_metadata(self._client, self._cache, MACHINE_SET, manifest, "finalizers")
            return DONE
        facts, now = cluster_from(cluster), self._clock()
        scope = Scope(
            self._client,
            self._cache,
            MACHINE_SET,
            manifest,
            facts,
            now,
            owned_conditions=status.OWNED,
            owned_deprecated_conditions=status.OWNED_DEPRECATED,
        )
        causes = paused_by(facts, manifest)
        was = Status(manifest, now).is_true(names.PAUSED_CONDITION)
        Status(manifest, now).paused(causes)
        if causes or was:
            await scope.save()
            return DONE
        return await self._reconcile(request, scope, found, cluster)

    async def _reconcile(self, request: Request, scope: Scope, cached: Object, cluster: Object) -> Result:
        outcome = _Outcome()
        found = Found(request, scope, cached, read(cached, MachineSet), cluster, await self._deployment(scope.manifest))
        deleting = finalizers.is_deleted(scope.manifest)
        self._belong(found)
        await self._try(outcome, lambda: self._templates(found, outcome))
        await self._try(outcome, lambda: self._gather(found, outcome))
        machines = outcome.machines
        if machines is not None and deleting:
            await self._try(outcome, lambda: self._delete(found, machines))
        elif machines is not None and (begun := unfinished([found.cached, *(member.found for member in machines)])):
            outcome.blocked.append(begun)
            outcome.errors.append(OperatorError(begun))
        elif machines is not None:
            await self._try(outcome, lambda: self._remediate(found, machines, outcome))
            await self._try(outcome, lambda: self._members.propagate(scope.manifest, machines))
            await self._try(outcome, lambda: self._scale(found, machines, outcome))
        await self._tell(found, outcome)
        if outcome.errors:
            raise outcome.errors[0]
        waits = [wait for wait in outcome.requeue if wait > 0]
        return Result(min(waits)) if waits else DONE

    async def _try(self, outcome: _Outcome, step: Callable[[], Awaitable[None]]) -> None:
        """Do a step; what goes wrong is told at the end, and the others have their turn."""
        try:
            await step()
        except ConflictError:
            # Somebody else was faster: everything is read anew.
            raise
        except OperatorError as error:
            outcome.errors.append(error)

    async def _deployment(self, manifest: Manifest) -> MachineDeployment | None:
        metadata = manifest["metadata"]
        name = (metadata.get("labels") or {}).get(names.DEPLOYMENT_NAME_LABEL)
        if not name:
            return None
        found = await self._cache.get(MACHINE_DEPLOYMENT, name, metadata["namespace"])
        if found is None and not finalizers.is_deleted(manifest):
            raise OperatorError(f"the MachineDeployment {metadata['namespace']}/{name} of the MachineSet does not exist")
        return read(found, MachineDeployment) if found is not None else None

    def _belong(self, found: Found) -> None:
        """Labels, and the Cluster as the owner of one that stands alone; after a restore a MachineDeployment may yet adopt its own."""
        manifest, cluster = found.manifest, found.scope.cluster
        metadata, spec = manifest["metadata"], manifest["spec"]
        name = {names.CLUSTER_NAME_LABEL: found.machine_set.spec.cluster_name}
        metadata["labels"] = {**(metadata.get("labels") or {}), **name}
        owned = any(owners.find(manifest, CLUSTER.group, kind) for kind in (CLUSTER.kind, MACHINE_DEPLOYMENT.kind))
        if not owned and names.DEPLOYMENT_NAME_LABEL not in metadata["labels"]:
            metadata["ownerReferences"] = owners.ensure(metadata.get("ownerReferences"), cluster_reference(cluster))
        selector, template = spec.get("selector") or {}, spec["template"]
        spec["selector"] = {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **name}}
        labels = (template.get("metadata") or {}).get("labels") or {}
        spec["template"] = {**template, "metadata": {**(template.get("metadata") or {}), "labels": {**labels, **name}}}

    async def _templates(self, found: Found, outcome: _Outcome) -> None:
        """The templates belong to the Cluster.  One that is missing matters only where Machines may be made of it."""
        spec = found.machine_set.spec.template.spec
        for reference in (spec.bootstrap.config_ref, spec.infrastructure_ref):
            if not reference.name or not reference.kind.endswith(names.TEMPLATE_SUFFIX):
                continue
            try:
                template = await self._references.find(reference, found.request.namespace)
            except OperatorError as error:
                outcome.blocked.append(error.message)
                if found.is_current and not finalizers.is_deleted(found.manifest):
                    outcome.errors.append(error)
                continue
            if template is None:
                outcome.missing.append(reference.kind)
                if found.is_current and not finalizers.is_deleted(found.manifest):
                    where = f"{found.request.namespace}/{reference.name}"
                    outcome.errors.append(OperatorError(f"the {reference.kind} {where} of the MachineSet does not exist"))
                continue
            kind = await self._references.kind(reference)
            await own(self._client, self._cache, kind, template, cluster_reference(found.scope.cluster))

    async def _gather(self, found: Found, outcome: _Outcome) -> None:
        problem = selectors.problem(found.machine_set.spec.selector)
        if problem:
            raise OperatorError(f"the selector of the MachineSet cannot be used: {problem}")
        outcome.machines = await self._members.gather(found.manifest, found.machine_set)

    async def _delete(self, found: Found, machines: Sequence[Member]) -> None:
        if not machines:
            finalizers.remove(found.manifest, names.MACHINE_SET_FINALIZER)
            return
        await self._members.delete(found.request, [member.found for member in machines], "MachineSet deleted")

    async def _remediate(self, found: Found, machines: Sequence[Member], outcome: _Outcome) -> None:
        typed = [member.machine for member in machines]
        limit, shown = None, ""
        if found.deployment is not None and found.deployment.spec.remediation.max_in_flight is not None:
            shown = str(found.deployment.spec.remediation.max_in_flight)
            replicas = 1 if found.deployment.spec.replicas is None else found.deployment.spec.replicas
            limit = scaled(found.deployment.spec.remediation.max_in_flight, replicas, up=True)
        outdated = not found.is_current and not found.on_delete
        decision = remediation.decide(typed, outdated=outdated, max_in_flight=limit, shown=shown)
        if decision.needs_checks:
            failed = await self._failed_checks(found)
            if failed:
                outcome.requeue.append(RETRY)
            decision = remediation.checked(decision, failed)
        by_name = {member.found.name: member for member in machines}
        await self._members.say(by_name, decision)
        sick = [by_name[machine.metadata["name"]].found for machine in decision.delete]
        await self._members.delete(found.request, sick, "remediating unhealthy Machine")

    async def _failed_checks(self, found: Found) -> list[str]:
        return await self._checks.failed(found.cluster, skip_annotation(found.manifest), found.machine_set.spec.template)

    async def _scale(self, found: Found, machines: Sequence[Member], outcome: _Outcome) -> None:
        if not await self._members.delete_orphans(found.manifest, found.machine_set, machines):
            outcome.requeue.append(ON_ITS_WAY)
            return
        replicas = found.machine_set.spec.replicas
        if replicas is None:
            raise OperatorError("the MachineSet does not say how many replicas it has")
        refuse_number("MachineSet", replicas)
        missing = replicas - len(machines)
        annotations = found.manifest["metadata"].get("annotations") or {}
        if missing > 0 and annotations.get(names.DISABLE_MACHINE_CREATE_ANNOTATION) != "true":
            await self._create(found, missing, outcome)
        elif missing < 0:
            order = found.machine_set.spec.deletion.order
            by_name = {member.found.name: member.found for member in machines}
            chosen = deletion_order([member.machine for member in machines], order, self._clock())[:-missing]
            for name in await self._members.delete(found.request, [by_name[one.metadata["name"]] for one in chosen], "scale down"):
                self._events.event(found.manifest, "Normal", "SuccessfulDelete", f'Deleted Machine "{name}"')

    async def _create(self, found: Found, count: int, outcome: _Outcome) -> None:
        try:
            outcome.blocked += await self._failed_checks(found)
        except OperatorError as error:
            outcome.blocked.append(error.message)
            raise
        finally:
            if outcome.blocked:
                outcome.created = _not_created("PreflightCheckFailed", "; ".join(outcome.blocked))
        if outcome.blocked:
            _log.info("Scale up on hold because %s", "; ".join(outcome.blocked))
            outcome.requeue.append(RETRY)
            return
        if not selectors.matches(found.machine_set.spec.selector, desired.machine_labels(found.manifest)):
            # Or it would not see them, and make more for ever.
            chosen = selectors.text(found.machine_set.spec.selector)
            outcome.blocked.append(f'the selector "{chosen}" of the MachineSet does not choose the Machines of its own template')
            outcome.created = _not_created("MachineCreationFailed", outcome.blocked[-1])
            raise OperatorError(outcome.blocked[-1])
        gate, ends = asyncio.Semaphore(_AT_ONCE), time.monotonic() + _LONGEST

        async def one() -> None:
            async with gate:
                if outcome.created is not None or time.monotonic() > ends:
                    # One failed, and so would the others; or the API server is slow, and the next reconcile goes on.
                    return
                try:
                    name = self._creator.name(found.manifest)
                    with self._expected.making(found.request, MACHINE, name):
                        await self._creator.create(found.manifest, found.machine_set, name)
                except CreationError as error:
                    outcome.created = _not_created(error.reason, error.cause)
                    outcome.errors.append(error)
                    return
                self._events.event(found.manifest, "Normal", "SuccessfulCreate", f'Created Machine "{name}"')

        await asyncio.gather(*(one() for _ in range(min(count, _MOST))))

    async def _tell(self, found: Found, outcome: _Outcome) -> None:
        """Write down how it went."""
        now = found.scope.now
        machines = None if outcome.machines is None else [member.machine for member in outcome.machines]
        seen = status.Seen(
            found.machine_set, machines, tuple(outcome.missing), tuple(dict.fromkeys([*outcome.blocked, *_creation_errors(outcome)]))
        )
        told = Status(found.manifest, now)
        told.fields.update(status.counters(seen))
        for condition in status.conditions(seen, now):
            told.say(condition)
        if machines is not None:
            nodes = await node_states(self._workload, found.scope.cluster, seen, now)
            counters = status.deprecated_counters(seen, nodes)
            deprecated = told.fields.setdefault("deprecated", {}).setdefault("v1beta1", {})
            deprecated.update(counters)
            for older in status.deprecated_conditions(seen, counters["readyReplicas"], outcome.created):
                told.set_deprecated(older)
            summary = deprecated_summary(deprecated.get("conditions") or [], status.SUMMED_UP)
            if summary is not None:
                told.set_deprecated(summary)
        if not outcome.errors:
            told.observed()
        if not finalizers.is_deleted(found.manifest):
            outcome.requeue.append(status.requeue(seen, told.fields))
        await found.scope.save()


def _creation_errors(outcome: _Outcome) -> list[str]:
    return [error.message for error in outcome.errors if isinstance(error, CreationError)]


def _not_created(reason: str, message: str) -> DeprecatedCondition:
    return DeprecatedCondition(type=status.MACHINES_CREATED, status="False", reason=reason, severity="Error", message=message)
