"""The MachineHealthCheck controller: looks at the Machines that a selector chooses, and has those remediated that are not well.

It remediates nothing itself: the owner of a Machine does, or whoever takes requests that are made from a template.  While too many are not
well, nobody does.

Beyond upstream: a selector that chooses nothing, a spec that means nothing and a Cluster that is missing or cannot be reached are told by
the condition RemediationAllowed; a Machine whose request cannot be made holds up no other.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.core.machinehealthcheck import MachineHealthCheck
from slipway.api.cluster.kinds import CLUSTER, CORE_EVENT, MACHINE, MACHINE_HEALTH_CHECK, NODE, SECRET
from slipway.api.cluster.names import (
    CLUSTER_NAME_LABEL,
    CONNECTION_DOWN_REASON,
    CONTROL_PLANE_INITIALIZED_CONDITION,
    INTERNAL_ERROR_REASON,
    PAUSED_CONDITION,
    REMEDIATION_ALLOWED_CONDITION,
)
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract import conditions, selectors
from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN
from slipway.fleet.contract.facts import ClusterFacts, cluster_from, cluster_reference, paused_by, read
from slipway.fleet.contract.references import members
from slipway.fleet.contract.scope import Scope
from slipway.fleet.contract.status import DeprecatedCondition, Status, well
from slipway.fleet.machines.healthcheck import marks, observed
from slipway.fleet.machines.healthcheck.judgement import ALL, allowed, judge
from slipway.fleet.machines.healthcheck.requests import RequestError, Requests, TemplateMissingError
from slipway.fleet.machines.healthcheck.watches import WATCHES, add_indices, external, on_node, on_probe
from slipway.kube.errors import ConflictError, NotFoundError
from slipway.runtime import owners
from slipway.runtime.cache.cache import ON_ITS_WAY
from slipway.runtime.objects import DONE, Request, Result
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.fleet.machines.healthcheck.judgement import Verdict
    from slipway.fleet.machines.healthcheck.marks import Marks
    from slipway.fleet.machines.healthcheck.observed import Machine, Seen
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.controller import Watch
    from slipway.runtime.events import EventRecorder
    from slipway.runtime.objects import Object

NAME = "machinehealthcheck"
RECONNECT_RETRY = 30.0
TOO_MANY = "TooManyUnhealthy"
TEMPLATE_AVAILABLE = "ExternalRemediationTemplateAvailable"
REQUEST_AVAILABLE = "ExternalRemediationRequestAvailable"
OWNED = (PAUSED_CONDITION, REMEDIATION_ALLOWED_CONDITION)
OWNED_DEPRECATED = (REMEDIATION_ALLOWED_CONDITION, TEMPLATE_AVAILABLE, REQUEST_AVAILABLE)
# So many probes of a workload cluster must fail before anybody is told that it cannot be reached.
_FAILURES = 5

# Kinds of remediation requests and of their templates are for those who bring them to allow.
RULES = (
    rule(MACHINE_HEALTH_CHECK, *READ, "patch"),
    rule(MACHINE_HEALTH_CHECK, "patch", subresource="status"),
    rule(MACHINE, *READ),
    rule(MACHINE, "patch", subresource="status"),
    rule(CLUSTER, "list", "watch"),
    # The kubeconfig of the workload cluster.
    rule(SECRET, "get"),
    rule(CORE_EVENT, "create", "patch"),
)


class _Judged(NamedTuple):
    machine: Machine
    verdict: Verdict


class _Run(NamedTuple):
    """One reconcile."""

    scope: Scope
    check: MachineHealthCheck
    status: Status
    problems: list[OperatorError]

    @property
    def remediation(self) -> str:
        """What RemediationAllowed said last."""
        found = conditions.find(conditions.of(self.scope.manifest), REMEDIATION_ALLOWED_CONDITION)
        return found.message if found is not None else ""


class MachineHealthCheckReconciler:
    name = NAME
    watches = WATCHES
    rules = RULES
    # Machines and Nodes change all the time, and most of that changes no verdict.
    interval = 15.0

    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        *,
        workload: WorkloadClusters,
        events: EventRecorder,
        enqueue: Callable[[Request], None],
        watch: Callable[[Watch], None],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._cache = cache
        self._workload = workload
        self._events = events
        self._clock = clock
        self._watch = watch
        self._followed: set[Kind] = set()
        add_indices(cache)
        workload.on_node(on_node(cache, enqueue))
        workload.on_probe(on_probe(cache, enqueue))

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(MACHINE_HEALTH_CHECK, request.name, request.namespace)
        if found is None:
            return DONE
        if self._cache.is_behind(MACHINE_HEALTH_CHECK, request.name, request.namespace):
            return Result(ON_ITS_WAY)
        check = read(found, MachineHealthCheck)
        cluster = await self._cache.get(CLUSTER, check.spec.cluster_name, request.namespace)
        run = self._begin(found, check, cluster_from(cluster) if cluster is not None else None)
        if cluster is None:
            message = f'The Cluster "{check.spec.cluster_name}" that spec.clusterName names does not exist'
            run.status.set(REMEDIATION_ALLOWED_CONDITION, UNKNOWN, INTERNAL_ERROR_REASON, message)
            await run.scope.save()
            return DONE
        causes = paused_by(run.scope.cluster, run.scope.manifest)
        before = conditions.find(conditions.of(run.scope.manifest), PAUSED_CONDITION)
        run.status.paused(causes)
        if causes or before is None or before.status != FALSE:
            await run.scope.save()
            return DONE
        return await self._proceed(run, cluster)

    def _begin(self, found: Object, check: MachineHealthCheck, cluster: ClusterFacts | None) -> _Run:
        manifest, now = found.content(), self._clock()
        facts = cluster or ClusterFacts(found.namespace, check.spec.cluster_name)
        scope = Scope(
            self._client,
            self._cache,
            MACHINE_HEALTH_CHECK,
            manifest,
            facts,
            now,
            owned_conditions=OWNED,
            owned_deprecated_conditions=OWNED_DEPRECATED,
        )
        return _Run(scope, check, Status(manifest, now), [])

    async def _proceed(self, run: _Run, cluster: Object) -> Result:
        """Look, judge and mark, and write down how it went: here and nowhere else."""
        metadata = run.scope.manifest["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), CLUSTER_NAME_LABEL: run.check.spec.cluster_name}
        metadata["ownerReferences"] = owners.ensure(metadata.get("ownerReferences"), cluster_reference(run.scope.cluster))
        result = DONE
        try:
            result = await self._check(run, observed.conditions_of(cluster))
        except ConflictError:
            raise
        except OperatorError as error:
            run.problems.append(error)
            run.status.set(REMEDIATION_ALLOWED_CONDITION, UNKNOWN, INTERNAL_ERROR_REASON, error.message)
        if not run.problems:
            run.status.observed()
        await run.scope.save()
        if run.problems:
            raise OperatorError("; ".join(problem.message for problem in run.problems)) from run.problems[0]
        return result

    async def _check(self, run: _Run, cluster: Sequence[Seen]) -> Result:
        problem = selectors.problem(run.check.spec.selector)
        if problem:
            raise OperatorError(f"spec.selector chooses nothing: {problem}")
        nodes: Cache | None = None
        if any(one.type == CONTROL_PLANE_INITIALIZED_CONDITION and one.status == TRUE for one in cluster):
            try:
                nodes = await self._workload.nodes(run.scope.namespace, run.scope.cluster.name)
            except OperatorError as error:
                return self._unreachable(run, error)
        chosen = await self._chosen(run)
        targets = [machine for machine in chosen if not machine.skipped]
        judged = [await self._judge(run, machine, cluster, nodes) for machine in targets]
        return await self._act(run, len(chosen), judged)

    def _unreachable(self, run: _Run, error: OperatorError) -> Result:
        """Without the Nodes nothing is judged.  A connection that is being made is no news."""
        probe = self._workload.probe(run.scope.namespace, run.scope.cluster.name)
        if probe.failed_in_a_row >= _FAILURES or not run.remediation:
            message = f"Machines are not judged while their Nodes cannot be read: {error.message}"
            run.status.set(REMEDIATION_ALLOWED_CONDITION, UNKNOWN, CONNECTION_DOWN_REASON, message)
        return Result(RECONNECT_RETRY)

    async def _chosen(self, run: _Run) -> list[Machine]:
        """The Machines of the Cluster that the selector chooses, by name; one that cannot be read is told, and not among them."""
        found = await members(self._cache, MACHINE, run.scope.namespace, run.scope.cluster.name)
        chosen: list[Machine] = []
        for one in sorted(found, key=lambda one: one.name):
            if selectors.matches(run.check.spec.selector, one.metadata.labels):
                try:
                    chosen.append(observed.machine(one))
                except OperatorError as error:
                    run.problems.append(error)
        return chosen

    async def _judge(self, run: _Run, machine: Machine, cluster: Sequence[Seen], nodes: Cache | None) -> _Judged:
        name = machine.node_name
        node = await nodes.get(NODE, name) if nodes is not None and name else None
        target = observed.target(machine, cluster, node, looked=nodes is not None)
        return _Judged(machine, judge(target, observed.checks(run.check), run.scope.now))

    async def _act(self, run: _Run, chosen: int, judged: Sequence[_Judged]) -> Result:
        healthy = [one for one in judged if one.verdict.healthy]
        unhealthy = [one for one in judged if one.verdict.unhealthy]
        trigger = run.check.spec.remediation.trigger_if
        found = allowed(len(judged), len(healthy), trigger.unhealthy_less_than_or_equal_to, trigger.unhealthy_in_range)
        status = run.status.fields
        status["expectedMachines"], status["currentHealthy"] = len(judged), len(healthy)
        status["targets"] = [one.machine.metadata.name for one in judged]
        status["remediationsAllowed"] = found.more if found.allowed else 0
        if found.allowed:
            empty = "" if chosen else f"The selector matches no Machine of the Cluster {run.scope.cluster.name}"
            run.status.set(REMEDIATION_ALLOWED_CONDITION, TRUE, "RemediationAllowed", empty)
            run.status.set_deprecated(well(REMEDIATION_ALLOWED_CONDITION))
        else:
            self._restricted(run, len(judged), len(unhealthy))
        by_others = bool(run.check.spec.remediation.template_ref.name)
        requests = Requests(self._client, run.check, run.scope.namespace, self._follow) if by_others else None
        for one in unhealthy:
            await self._mark(run, one, await self._remediation(run, one, requests) if found.allowed else None)
        for one in healthy:
            if requests is not None and found.allowed:
                await self._withdraw(run, one, requests)
            await self._mark(run, one, None)
        soon = min((one.verdict.next_check for one in judged if one.verdict.next_check), default=0.0)
        return Result(soon) if soon else DONE

    def _follow(self, kind: Kind) -> None:
        if kind not in self._followed:
            self._followed.add(kind)
            self._watch(external(kind))

    def _restricted(self, run: _Run, total: int, unhealthy: int) -> None:
        trigger = run.check.spec.remediation.trigger_if
        if trigger.unhealthy_in_range:
            limit = f"does not fall within the range (total: {total}, unhealthy: {unhealthy}, unhealthyRange: {trigger.unhealthy_in_range})"
        else:
            most = ALL if trigger.unhealthy_less_than_or_equal_to is None else trigger.unhealthy_less_than_or_equal_to
            limit = f"exceeds maxUnhealthy (total: {total}, unhealthy: {unhealthy}, maxUnhealthy: {most})"
        message = f"Remediation is not allowed, the number of not started or unhealthy machines {limit}"
        if unhealthy and message != run.remediation:
            self._events.event(run.scope.manifest, "Warning", "RemediationRestricted", message)
        run.status.set(REMEDIATION_ALLOWED_CONDITION, FALSE, TOO_MANY, message)
        run.status.set_deprecated(
            DeprecatedCondition(type=REMEDIATION_ALLOWED_CONDITION, status=FALSE, reason=TOO_MANY, severity="Warning", message=message)
        )

    async def _remediation(self, run: _Run, one: _Judged, requests: Requests | None) -> Marks | None:
        """Have the Machine remediated, and say by whom."""
        if requests is None:
            return marks.for_owner(one.machine)
        template = run.check.spec.remediation.template_ref
        try:
            made = await requests.ensure(one.machine)
            # What is under way is told by whoever has taken the request.
            return marks.for_request() if made or marks.request_untold(one.machine) else None
        except TemplateMissingError as error:
            run.problems.append(error)
            self._older_failure(run, TEMPLATE_AVAILABLE, "ExternalRemediationTemplateNotFound", error)
            told = f"Error retrieving remediation template {template.kind} {run.scope.namespace}/{template.name}"
            return marks.for_request(marks.TEMPLATE_NOT_FOUND, told)
        except RequestError as error:
            run.problems.append(error)
            self._older_failure(run, REQUEST_AVAILABLE, "ExternalRemediationRequestCreationFailed", error)
            return marks.for_request(marks.REQUEST_FAILED, error.message)
        except OperatorError as error:
            run.problems.append(error)
            return None

    def _older_failure(self, run: _Run, name: str, reason: str, error: OperatorError) -> None:
        run.status.set_deprecated(DeprecatedCondition(type=name, status=FALSE, reason=reason, severity="Error", message=error.message))

    async def _withdraw(self, run: _Run, one: _Judged, requests: Requests) -> None:
        try:
            await requests.withdraw(one.machine)
        except OperatorError as error:
            run.problems.append(error)

    async def _mark(self, run: _Run, one: _Judged, remediation: Marks | None) -> None:
        """Write the verdict onto the Machine, and what is done about it; nothing where it says so already."""
        wanted = marks.of_verdict(one.verdict)
        if remediation is not None:
            wanted = marks.Marks([*wanted.conditions, *remediation.conditions], [*wanted.deprecated, *remediation.deprecated])
        if not wanted.differ_from(one.machine):
            return
        manifest = one.machine.found.content()
        scope = Scope(
            self._client,
            self._cache,
            MACHINE,
            manifest,
            run.scope.cluster,
            run.scope.now,
            # The other two are mostly their owners'.
            owned_conditions=(marks.SUCCEEDED,),
            owned_deprecated_conditions=(marks.SUCCEEDED,),
        )
        status = Status(manifest, run.scope.now)
        for condition in wanted.conditions:
            status.say(condition)
        for older in wanted.deprecated:
            status.set_deprecated(older)
        try:
            await scope.save()
        except NotFoundError:
            return
        except OperatorError as error:
            run.problems.append(OperatorError(f"the Machine {scope.namespace}/{scope.name} could not be marked: {error.message}"))
            return
        if one.verdict.unhealthy:
            by = f"{run.scope.namespace}/{run.scope.name}"
            message = f"Machine {scope.namespace}/{scope.name} has been marked as unhealthy by {by}"
            self._events.event(manifest, "Normal", "MachineMarkedUnhealthy", message)
