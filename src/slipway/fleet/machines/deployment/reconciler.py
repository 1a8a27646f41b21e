"""The MachineDeployment controller: finds its MachineSets, lets the planner decide on the next step of a rollout, and does it.

The decision is in :mod:`slipway.fleet.machines.deployment.planner`; what a rollout waits for is in
:mod:`slipway.fleet.machines.deployment.order`, and in the condition RollingOut.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.cluster import names
from slipway.api.cluster.core.machinedeployment import MachineDeployment
from slipway.api.cluster.core.machineset import MachineSet
from slipway.api.cluster.kinds import CLUSTER, CORE_EVENT, CUSTOM_RESOURCE_DEFINITION, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract import naming
from slipway.fleet.contract.facts import cluster_from, cluster_reference, paused_by, read
from slipway.fleet.contract.references import ANY, References
from slipway.fleet.contract.scope import Scope
from slipway.fleet.contract.status import Status, deprecated_summary
from slipway.fleet.machines import decoded
from slipway.fleet.machines.deployment import desired, status
from slipway.fleet.machines.deployment.gate import RETRY, Gate, Wait, has_machines
from slipway.fleet.machines.deployment.input import defaulted, refuse
from slipway.fleet.machines.deployment.matching import Found, find
from slipway.fleet.machines.deployment.planner import Goal, Sized, Step, next_step
from slipway.fleet.machines.deployment.sets import MachineSets
from slipway.fleet.machines.deployment.watches import WATCHES, control_planes, templates
from slipway.fleet.machines.expectations import Expectations
from slipway.fleet.machines.machineset.checks import Checks
from slipway.fleet.machines.machineset.takeover import unfinished
from slipway.fleet.machines.machineset.watches import controlled
from slipway.fleet.machines.writing import own, write_metadata
from slipway.kube.errors import ConflictError
from slipway.runtime import finalizers, owners
from slipway.runtime.cache.cache import ON_ITS_WAY
from slipway.runtime.controller import RESPITE
from slipway.runtime.logs import fields
from slipway.runtime.objects import DONE, Object, Request, Result
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.controller import Watch
    from slipway.runtime.events import EventRecorder

_log = logging.getLogger("slipway.fleet.machines.machinedeployment")

NAME = "machinedeployment"

RULES = (
    rule(MACHINE_DEPLOYMENT, *READ, "patch"),
    rule(MACHINE_DEPLOYMENT, "patch", subresource="status"),
    rule(MACHINE_DEPLOYMENT, "update", subresource="finalizers"),
    rule(MACHINE_SET, *READ, "create", "patch", "delete"),
    rule(MACHINE, *READ),
    rule(CLUSTER, *READ),
    rule(CUSTOM_RESOURCE_DEFINITION, "get"),
    rule(CORE_EVENT, "create", "patch"),
)


class Subject(NamedTuple):
    """What a reconcile is about."""

    request: Request
    scope: Scope
    deployment: MachineDeployment
    cluster: Object

    @property
    def manifest(self) -> Manifest:
        return self.scope.manifest

    @property
    def deleting(self) -> bool:
        return finalizers.is_deleted(self.manifest)


class _Outcome:
    """What was found and what failed."""

    def __init__(self) -> None:
        self.sets: list[Object] | None = None
        self.after: dict[str, MachineSet] = {}
        self.new: str = ""
        self.missing: list[str] = []
        self.template_problem = ""
        self.wait = Wait()
        self.error: OperatorError | None = None


class MachineDeploymentReconciler:
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
        events: EventRecorder,
        watch: Callable[[Watch], None],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client, self._cache, self._events, self._clock = client, cache, events, clock
        self._references = References(client, cache, watch=lambda kind: watch(templates(kind)), watchable=ANY)
        planes = References(client, cache, watch=lambda kind: watch(control_planes(kind)), watchable=ANY)
        self._gate = Gate(cache, Checks(self._references, planes))
        self._expected = Expectations(client, cache)
        self._decoded = decoded.machines(cache)
        self._sets = MachineSets(client, cache, self._expected, events)

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(MACHINE_DEPLOYMENT, request.name, request.namespace)
        if found is None:
            self._expected.forget(request)
            return DONE
        if self._cache.is_behind(MACHINE_DEPLOYMENT, request.name, request.namespace):
            # What we did last is on its way to the cache, and its event with it.
            return Result(ON_ITS_WAY)
        if wait := await self._expected.wait(request):
            return Result(wait)
        name = read(found, MachineDeployment).spec.cluster_name
        cluster = await self._cache.get(CLUSTER, name, request.namespace)
        if cluster is None:
            raise OperatorError(f"the Cluster {request.namespace}/{name} of the MachineDeployment does not exist")
        manifest = found.content()
        if finalizers.add(manifest, names.MACHINE_DEPLOYMENT_FINALIZER):
            await write_metadata(self._client, self._cache, MACHINE_DEPLOYMENT, manifest, "finalizers")
            return DONE
        facts, now = cluster_from(cluster), self._clock()
        scope = Scope(
            self._client,
            self._cache,
            MACHINE_DEPLOYMENT,
            manifest,
            facts,
            now,
            owned_conditions=status.OWNED,
            owned_deprecated_conditions=status.OWNED_DEPRECATED,
        )
        causes, told = paused_by(facts, manifest), Status(manifest, now)
        was = told.is_true(names.PAUSED_CONDITION)
        told.paused(causes)
        if causes or was:
            await scope.save()
            return DONE
        return await self._proceed(Subject(request, scope, read(found, MachineDeployment), cluster))

    async def _proceed(self, subject: Subject) -> Result:
        """Do what is to be done, and write down how it went: here and nowhere else."""
        outcome = _Outcome()
        try:
            await self._do(subject, outcome)
        except ConflictError:
            # Somebody else was faster: everything is read anew.
            raise
        except OperatorError as error:
            outcome.error = error
        await self._tell(subject, outcome)
        if outcome.error is not None:
            raise outcome.error
        return Result(RETRY) if outcome.wait.closed or outcome.wait.held else DONE

    async def _do(self, subject: Subject, outcome: _Outcome) -> None:
        if subject.deleting:
            outcome.sets = await self._sets.gather(subject.manifest, subject.deployment)
            await self._delete(subject, outcome.sets)
            return
        metadata, cluster = subject.manifest["metadata"], subject.scope.cluster
        metadata["labels"] = {**(metadata.get("labels") or {}), names.CLUSTER_NAME_LABEL: subject.deployment.spec.cluster_name}
        metadata["ownerReferences"] = owners.ensure(metadata.get("ownerReferences"), cluster_reference(cluster))
        await self._templates(subject, outcome)
        outcome.sets = await self._sets.gather(subject.manifest, subject.deployment)
        refuse(subject.deployment)
        begun = unfinished([*outcome.sets, *await self._machines(outcome)])
        if begun:
            raise OperatorError(begun)
        await self._roll_out(subject, outcome)

    async def _templates(self, subject: Subject, outcome: _Outcome) -> None:
        """The templates belong to the Cluster; without them there is no new MachineSet."""
        spec, namespace = subject.deployment.spec.template.spec, subject.request.namespace
        for reference in (spec.bootstrap.config_ref, spec.infrastructure_ref):
            if not reference.name or not reference.kind.endswith(names.TEMPLATE_SUFFIX):
                continue
            try:
                template = await self._references.find(reference, namespace)
            except OperatorError as error:
                outcome.template_problem = outcome.template_problem or error.message
                continue
            if template is None:
                outcome.missing.append(reference.kind)
                continue
            kind = await self._references.kind(reference)
            await own(self._client, self._cache, kind, template, cluster_reference(subject.scope.cluster))

    async def _delete(self, subject: Subject, sets: Sequence[Object]) -> None:
        if not sets:
            finalizers.remove(subject.manifest, names.MACHINE_DEPLOYMENT_FINALIZER)
        for one in sets:
            if one.metadata.deletion_timestamp is None:
                await self._client.delete(MACHINE_SET, one.name, one.namespace, uid=one.metadata.uid)
                _log.info("Deleting MachineSet (MachineDeployment deleted)", extra=fields(machineSet=one.name))

    async def _roll_out(self, subject: Subject, outcome: _Outcome) -> None:
        assert outcome.sets is not None
        deployment, spec = subject.deployment, subject.deployment.spec
        paused = spec.paused is True
        found = find(spec.template, spec.rollout.after, [read(one, MachineSet) for one in outcome.sets], subject.scope.now)
        rolling = status.is_rolling(deployment)
        if rolling and not paused and has_machines(found.old):
            outcome.wait = await self._gate.wait(subject.manifest, deployment, subject.cluster, subject.scope.now)
        goal, found = _goal(subject, outcome.wait, rolling=rolling), _standing_in(found, outcome.wait)
        wanted = defaulted(subject.manifest)
        current, suffix = found.new, ""
        if current is None and not paused:
            if outcome.missing or outcome.template_problem:
                raise OperatorError(
                    outcome.template_problem or f"the {' and '.join(outcome.missing)} of the MachineDeployment does not exist"
                )
            suffix = naming.suffix()
        sized = _sized(current) if current is not None else Sized(_NEW) if suffix else None
        step = next_step(goal, sized, [_sized(one) for one in found.old])
        by_name = {one.name: one.content() for one in outcome.sets}
        old = [by_name[one.metadata["name"]] for one in found.old]
        if current is not None or suffix:
            await self._write_current(subject, outcome, step, wanted, by_name, old, current, suffix, found.reason)
        for one in old:
            await self._write(wanted, one, step, desired.kept_revision(one), outcome)
        for name in step.delete:
            await self._sets.delete(subject.manifest, by_name[name])

    async def _write_current(
        self,
        subject: Subject,
        outcome: _Outcome,
        step: Step,
        wanted: Manifest,
        by_name: dict[str, Manifest],
        old: Sequence[Manifest],
        current: MachineSet | None,
        suffix: str,
        reason: str,
    ) -> None:
        if current is not None:
            outcome.new = current.metadata["name"]
            manifest = by_name[outcome.new]
            if outcome.wait.closed:
                # It stands in for one that is yet to be made, or rests: what it was, it stays.
                await self._write(wanted, manifest, step, desired.kept_revision(manifest), outcome)
                return
            revision = desired.next_revision(manifest, old)
            await self._write(wanted, manifest, step, revision.annotations, outcome)
        else:
            revision = desired.next_revision(None, old)
            size = step.sizes[_NEW]
            made = desired.machine_set(wanted, None, size.replicas, {**revision.annotations, **size.annotations}, suffix=suffix)
            written = await self._sets.create(subject.manifest, made)
            outcome.new = written["metadata"]["name"]
            outcome.after[outcome.new] = msgspec.convert(written, MachineSet)
            _log.info("MachineSet created", extra=fields(machineSet=outcome.new, replicas=size.replicas, because=reason))
        metadata = subject.manifest["metadata"]
        metadata["annotations"] = {**(metadata.get("annotations") or {}), names.REVISION_ANNOTATION: revision.number}

    async def _write(self, wanted: Manifest, current: Manifest, step: Step, revision: Mapping[str, str], outcome: _Outcome) -> None:
        """Bring a MachineSet to its size, and to what it follows of the MachineDeployment."""
        name = current["metadata"]["name"]
        size = step.sizes[name]
        intent = desired.machine_set(wanted, current, size.replicas, {**revision, **size.annotations})
        written = await self._sets.write(wanted, intent, current, size.reason)
        if written is not None:
            outcome.after[name] = msgspec.convert(written, MachineSet)

    async def _tell(self, subject: Subject, outcome: _Outcome) -> None:
        now, told = subject.scope.now, Status(subject.manifest, subject.scope.now)
        sets = None if outcome.sets is None else [outcome.after.get(one.name) or read(one, MachineSet) for one in outcome.sets]
        problem = outcome.error.message if outcome.error is not None else outcome.template_problem
        waiting = (*outcome.wait.closed, *outcome.wait.held)
        seen = status.Seen(
            subject.deployment,
            sets,
            [self._decoded(one) for one in await self._machines(outcome)],
            tuple(outcome.missing),
            waiting,
            problem,
        )
        told.fields.update(status.counters(seen))
        for condition in status.conditions(seen, told.fields.get("availableReplicas"), now):
            told.say(condition)
        if sets is not None and not subject.deleting and subject.deployment.spec.replicas is not None:
            new = outcome.after.get(outcome.new)
            counters = status.deprecated_counters(seen, new)
            deprecated = told.fields.setdefault("deprecated", {}).setdefault("v1beta1", {})
            deprecated.update(counters)
            for older in status.deprecated_conditions(seen, new, counters["availableReplicas"], told.fields.get("availableReplicas") or 0):
                told.set_deprecated(older)
            summary = deprecated_summary(deprecated["conditions"], (names.AVAILABLE_CONDITION,))
            if summary is not None:
                told.set_deprecated(summary)
        if outcome.error is None:
            told.observed()
        await subject.scope.save()

    async def _machines(self, outcome: _Outcome) -> list[Object]:
        return [one for each in outcome.sets or () for one in await controlled(self._cache, MACHINE, each.metadata.uid)]


# Stands for the MachineSet that is yet to be named.
_NEW = ""


def _goal(subject: Subject, wait: Wait, *, rolling: bool) -> Goal:
    deployment, metadata = subject.deployment, subject.manifest["metadata"]
    limits = status.limits_of(deployment)
    return Goal(
        deployment.spec.replicas or 0,
        # Who waits spends nothing.
        surge=0 if wait.closed else limits.surge,
        unavailable=limits.unavailable,
        on_delete=not rolling,
        paused=deployment.spec.paused is True,
        held=bool(wait.closed or wait.held),
        observed=deployment.status.observed_generation >= metadata.get("generation", 0),
    )


def _standing_in(found: Found, wait: Wait) -> Found:
    """Until the rollout may begin, the MachineSet of the highest revision stays the current one."""
    if not wait.closed or found.new is not None or not found.old:
        return found
    latest = max(found.old, key=lambda one: (desired.revision_of({"metadata": one.metadata}), one.metadata.get("creationTimestamp") or ""))
    return Found(latest, [one for one in found.old if one is not latest], found.reason)


def _sized(one: MachineSet) -> Sized:
    annotations = one.metadata.get("annotations") or {}
    return Sized(
        one.metadata["name"],
        one.metadata.get("creationTimestamp") or "",
        one.spec.replicas or 0,
        one.status.replicas or 0,
        one.status.available_replicas or 0,
        one.status.up_to_date_replicas or 0,
        desired_replicas=_integer(annotations.get(names.DESIRED_REPLICAS_ANNOTATION)),
        max_replicas=_integer(annotations.get(names.MAX_REPLICAS_ANNOTATION)),
        observed=one.status.observed_generation >= one.metadata.get("generation", 0),
        deleting=bool(one.metadata.get("deletionTimestamp")),
    )


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdecimal() else None
