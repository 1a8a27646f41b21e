"""The KubeadmControlPlane controller: gathers what there is, lets the planner decide, does the step, and writes down how it went.

The order of a reconcile is that of Cluster API 1.14: the infrastructure template's owner, certificates, kubeconfig, what changes in place,
a look into the workload cluster, one step of :mod:`slipway.fleet.controlplane.planner`, and where there is none, the add-ons.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from slipway.api.cluster import names
from slipway.api.cluster.bootstrap.config import KubeadmConfig
from slipway.api.cluster.core.cluster import Cluster
from slipway.api.cluster.kinds import (
    CLUSTER,
    CORE_EVENT,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONFIG,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_POOL,
    SECRET,
)
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.certificates import CertificateSecrets
from slipway.fleet.contract import secrets
from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN, find, of
from slipway.fleet.contract.facts import cluster_from, paused_by, read
from slipway.fleet.contract.references import ANY, References, changed, controlled_by
from slipway.fleet.contract.status import Status, well
from slipway.fleet.controlplane import adoption, deletion
from slipway.fleet.controlplane.addons import Addons
from slipway.fleet.controlplane.credentials import Credentials
from slipway.fleet.controlplane.decisions.preflight import Blocked
from slipway.fleet.controlplane.drift import drift
from slipway.fleet.controlplane.inspection import Inspection
from slipway.fleet.controlplane.operations import Operations
from slipway.fleet.controlplane.planner import Nothing, ScaleDown, ScaleUp, needs_no_sight, next_step
from slipway.fleet.controlplane.snapshots import Snapshots
from slipway.fleet.controlplane.status import older
from slipway.fleet.controlplane.sync import Syncer
from slipway.fleet.controlplane.telling import tell
from slipway.fleet.controlplane.work import Owned, Work
from slipway.fleet.snapshots.options import SnapshotOptions
from slipway.kube.aio import PatchType
from slipway.kube.errors import ConflictError
from slipway.runtime import finalizers, owners
from slipway.runtime.cache.cache import ON_ITS_WAY
from slipway.runtime.controller import Watch
from slipway.runtime.objects import DONE, Object, Request, Result
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.fleet.contract.facts import ClusterFacts
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.controller import Reconciler
    from slipway.runtime.events import EventRecorder
    from slipway.runtime.manager import Manager

_log = logging.getLogger("slipway.fleet.controlplane")

NAME = "kubeadmcontrolplane"
NOT_WELL_RETRY = 20.0
# A host that boots tells nobody when it has made the cluster; Cluster API looks every 20 s here too.
BOOTING_RETRY = 5.0
CA_RETRY = 30.0
CONNECTION_RETRY = 10.0
_NO_SNAPSHOTS = SnapshotOptions()

RULES = (
    rule(KUBEADM_CONTROL_PLANE, *READ, "patch"),
    rule(KUBEADM_CONTROL_PLANE, "patch", subresource="status"),
    # Where the API server enforces who may hold up the deletion of an owner.
    rule(KUBEADM_CONTROL_PLANE, "update", subresource="finalizers"),
    rule(MACHINE, *READ, "create", "patch", "delete"),
    rule(MACHINE, "patch", subresource="status"),
    rule(KUBEADM_CONFIG, *READ, "create", "patch", "delete"),
    # The status of a Cluster is changed only where its only control-plane machine was given up.
    rule(CLUSTER, *READ),
    rule(CLUSTER, "patch", subresource="status"),
    rule(MACHINE_POOL, "list", "watch"),
    rule(SECRET, *READ, "create", "update", "patch"),
    rule(CUSTOM_RESOURCE_DEFINITION, "get"),
    rule(CORE_EVENT, "create", "patch"),
)


def _cluster_facts(found: Object) -> tuple[ClusterFacts, object]:
    return cluster_from(found), read(found, Cluster).status.failure_domains


def control_plane_of(found: Object) -> list[Request]:
    """The control plane that a Cluster refers to, where it is one of ours."""
    reference = cluster_from(found).control_plane_ref
    if reference is None or (reference.api_group, reference.kind) != (KUBEADM_CONTROL_PLANE.group, KUBEADM_CONTROL_PLANE.kind):
        return []
    return [Request(found.namespace, reference.name)]


async def of_cluster(found: Object, cache: Cache) -> Iterable[Request]:
    return control_plane_of(found)


WATCHES = (
    Watch(KUBEADM_CONTROL_PLANE),
    Watch(MACHINE, controlled_by(KUBEADM_CONTROL_PLANE)),
    Watch(CLUSTER, of_cluster, changed(_cluster_facts)),
)


def controllers(manager: Manager, workload: WorkloadClusters, snapshots: SnapshotOptions = _NO_SNAPSHOTS) -> list[Reconciler]:
    """What the control-plane provider consists of; a workload cluster that answers, or no longer does, is looked at anew."""

    def probed(namespace: str, name: str) -> None:
        cluster = manager.cache.informer(CLUSTER).store.get(name, namespace)
        for request in control_plane_of(cluster) if cluster is not None else ():
            manager.enqueue(NAME, request)

    workload.on_probe(probed)
    made = KubeadmControlPlaneReconciler(
        manager.client,
        manager.cache,
        workload=workload,
        events=manager.events,
        snapshots=snapshots,
        again=lambda request: manager.enqueue(NAME, request),
    )
    manager.at_end(made.close)
    return [made]


class KubeadmControlPlaneReconciler:
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
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        inspection: type[Inspection] = Inspection,
        snapshots: SnapshotOptions = _NO_SNAPSHOTS,
        again: Callable[[Request], None] = lambda request: None,
    ) -> None:
        self._client = client
        self._cache = cache
        self._events = events
        self._clock = clock
        secrets.restrict(cache)
        # Clones are read from the cache, and nothing is done because they change: their Machines tell.
        self._references = References(client, cache, watch=self._follow, watchable=ANY)
        self._credentials = Credentials(client, cache, clock)
        self._syncer = Syncer(client, cache, self._references)
        self._inspection = inspection(client, cache, workload, CertificateSecrets(client))
        self._operations = Operations(client, cache, self._references, self._syncer, self._inspection, events)
        self._addons = Addons(client, cache, self._inspection)
        self._snapshots = Snapshots(client, self._inspection, events, snapshots, again)
        # Machines that were made and need not be in the cache yet.
        self._made: dict[Request, set[str]] = {}

    async def close(self) -> None:
        await self._snapshots.close()

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(KUBEADM_CONTROL_PLANE, request.name, request.namespace)
        if found is None:
            self._made.pop(request, None)
            self._snapshots.forget(request)
            return DONE
        try:
            return await self._reconcile(request, found)
        except ConflictError:
            # Somebody else was faster.  What they wrote is read at the next try.
            raise
        except OperatorError as error:
            self._events.event(found.content(), "Warning", "ReconcileFailed", error.message)
            raise

    async def _reconcile(self, request: Request, found: Object) -> Result:
        cluster = await self._cluster(found)
        if cluster is None:
            _log.info("Waiting for the Cluster to own the KubeadmControlPlane")
            return DONE
        facts = cluster_from(cluster)
        machines = await adoption.control_plane_machines(self._cache, request.namespace, facts.name)
        if self._is_behind(request, machines):
            return Result(ON_ITS_WAY)
        work = Work(self._client, self._cache, found.content(), facts, read(cluster, Cluster), self._clock())
        if finalizers.add(work.manifest, names.KUBEADM_CONTROL_PLANE_FINALIZER) or self._is_paused(work):
            await work.save()
            return DONE
        if facts.infrastructure_provisioned and facts.endpoint:
            if not work.is_deleted and (orphans := adoption.orphans(machines)):
                await adoption.adopt(self._client, work, orphans, self._events)
                return DONE
            return await self._proceed(work, machines)
        return await self._proceed(work, ())

    def _is_paused(self, work: Work) -> bool:
        """Whether nothing is to be done but to tell that it is paused, or is no longer."""
        causes = paused_by(work.cluster, work.manifest)
        before = find(of(work.manifest), names.PAUSED_CONDITION)
        Status(work.manifest, work.now).paused(causes)
        return bool(causes) or before is None or before.status == TRUE

    async def _proceed(self, work: Work, machines: Sequence[Object]) -> Result:
        """Do what is due, and write down how it went: here and nowhere else."""
        failure: Exception | None = None
        result = DONE
        try:
            await self._gather(work, machines)
            if work.is_deleted:
                await self._look_in_vain(work)
                result = await deletion.delete(work, self._cache, self._operations, self._events)
            else:
                result = await self._normal(work)
        except ConflictError:
            raise
        except Exception as error:
            failure = error
            if isinstance(error, OperatorError) and not work.template_missing:
                # What else is in the way does not matter then.
                work.blocked = Blocked(others=(f"an error to go away: {error.message}",))
        finally:
            self._made.setdefault(Request(work.namespace, work.name), set()).update(work.made)
        made = not work.initialized and not work.is_deleted and self._may_be_made(work) and await self._inspection.is_made(work)
        tell(work, initialized=made, failed=failure is not None)
        try:
            await work.save()
        except OperatorError as second:
            if failure is None:
                raise
            raise OperatorError(f"{failure}; and that could not be written to the status: {second.message}") from failure
        if failure is not None:
            raise failure
        return result if work.is_deleted else _looked_at_again(work, result)

    async def _normal(self, work: Work) -> Result:
        await self._own_template(work)
        if not work.cluster.infrastructure_provisioned:
            return self._blind(work, "Waiting for Cluster status.infrastructureReady to be true")
        await self._certificates(work)
        if not work.cluster.endpoint:
            return self._blind(work, "Waiting for Cluster spec.controlPlaneEndpoint to be set")
        if not await self._credentials.kubeconfig(work.plane, work.cluster):
            return Result(CA_RETRY)
        if not await self._operations.delete_orphans(work):
            return Result(ON_ITS_WAY)
        await self._syncer.sync(work)
        seen = await self._inspection.look(work)
        await self._operations.clear_verdicts(work)
        if work.plane.spec.replicas is None:
            # The webhook sets it; what is wanted without it nobody knows.
            return DONE
        plane = work.planned()
        if plane.in_progress is None and names.REMEDIATION_IN_PROGRESS_ANNOTATION in work.annotations:
            work.annotate(names.REMEDIATION_IN_PROGRESS_ANNOTATION, None)
        plan = next_step(plane)
        if not seen and not needs_no_sight(plane, plan.step):
            return Result(CONNECTION_RETRY)
        if plan.verdict is not None:
            await self._operations.tell_verdict(work, plan.verdict)
        self._snapshots.tell(work, outdated=bool(plane.outdated))
        if plane.outdated and isinstance(plan.step, ScaleUp | ScaleDown):
            held = await self._snapshots.hold(work)
            if held is not None:
                return held
            await self._addons.before_rollout(work)
        result = await self._operations.do(work, plan.step)
        if isinstance(plan.step, Nothing) and work.initialized:
            await self._addons.after_rollout(work, plane)
        return result

    async def _gather(self, work: Work, machines: Sequence[Object]) -> None:
        work.machines = {
            machine.name: Owned(machine.content(), None, None) for machine in machines if adoption.is_owned(machine, work.name)
        }
        if not work.is_deleted:
            adoption.require_all(machines, work.name)
        for owned in work.machines.values():
            reference = owned.machine.spec.bootstrap.config_ref
            if reference.name and reference.kind == KUBEADM_CONFIG.kind:
                config = await self._cache.get(KUBEADM_CONFIG, reference.name, work.namespace)
                owned.config = None if config is None else read(config, KubeadmConfig)
            owned.infrastructure = await self._references.find(owned.machine.spec.infrastructure_ref, work.namespace)
            try:
                owned.drift = drift(work.plane, owned.machine, owned.config, owned.infrastructure, work.now)
            except OperatorError:
                # A spec that cannot be used keeps nothing from being deleted.
                if not work.is_deleted:
                    raise

    async def _own_template(self, work: Work) -> None:
        """Let the Cluster own the infrastructure template, so that it moves and goes with it."""
        reference = work.plane.spec.machine_template.spec.infrastructure_ref
        template = await self._references.find(reference, work.namespace)
        if template is None:
            work.template_missing = True
            raise OperatorError(f"there is no {reference.kind} {work.namespace}/{reference.name} to make Machines from")
        metadata = {"name": work.cluster.name, "uid": work.cluster.uid}
        wanted = owners.reference({"apiVersion": CLUSTER.api_version, "kind": CLUSTER.kind, "metadata": metadata}, controller=False)
        found = template["metadata"]
        if wanted in (found.get("ownerReferences") or ()):
            return
        patch = {"resourceVersion": found["resourceVersion"], "ownerReferences": owners.ensure(found.get("ownerReferences"), wanted)}
        kind = await self._references.kind(reference)
        await self._client.patch(kind, reference.name, work.namespace, {"metadata": patch}, type=PatchType.MERGE)

    async def _certificates(self, work: Work) -> None:
        status = Status(work.manifest, work.now)
        condition = names.CERTIFICATES_AVAILABLE_CONDITION
        reason = "CertificatesGenerationFailed"
        known = find(of(work.manifest), names.INITIALIZED_CONDITION)
        used = known is not None and known.status == TRUE
        try:
            missing = await self._credentials.certificates(work.plane, work.cluster, initialized=used)
        except OperatorError as error:
            status.set_deprecated(older.false(older.CERTIFICATES_AVAILABLE, reason, "Warning", error.message))
            # Cluster API sends people to its logs here.
            status.set(condition, UNKNOWN, names.INTERNAL_ERROR_REASON, error.message)
            raise
        if missing:
            listed = ", ".join(missing)
            subject = f"certificate for {listed} is" if len(missing) == 1 else f"certificates for {listed} are"
            message = f"Cluster {subject} not available, please check cluster certificate secrets"
            status.set_deprecated(older.false(older.CERTIFICATES_AVAILABLE, reason, "Error", message))
            status.set(condition, FALSE, names.NOT_AVAILABLE_REASON, message)
            return
        status.set_deprecated(well(older.CERTIFICATES_AVAILABLE))
        status.set(condition, TRUE, names.AVAILABLE_REASON)

    def _blind(self, work: Work, message: str) -> Result:
        status = Status(work.manifest, work.now)
        for condition in (names.ETCD_CLUSTER_HEALTHY_CONDITION, names.CONTROL_PLANE_COMPONENTS_HEALTHY_CONDITION):
            status.set(condition, UNKNOWN, names.INSPECTION_FAILED_REASON, message)
        return DONE

    async def _look_in_vain(self, work: Work) -> None:
        """What is seen of a cluster that goes is told; that it cannot be seen holds nothing up."""
        if not work.machines:
            return
        try:
            await self._inspection.look(work)
        except ConflictError:
            raise
        except OperatorError as error:
            _log.info("The workload cluster cannot be looked into while it is deleted: %s", error.message)

    def _may_be_made(self, work: Work) -> bool:
        """A machine that goes may just finish what it was given up for; nobody could join it then."""
        found = [owned.planned({}) for owned in work.machines.values()]
        return bool(found) and not (len(found) == 1 and (found[0].deleting or found[0].ours_to_remediate))

    async def _cluster(self, found: Object) -> Object | None:
        name = next(
            (
                owner.name
                for owner in found.metadata.owner_references
                if owner.kind == CLUSTER.kind and owner.api_version.partition("/")[0] == CLUSTER.group
            ),
            "",
        )
        if not name:
            return None
        cluster = await self._cache.get(CLUSTER, name, found.namespace)
        if cluster is None:
            raise OperatorError(f"the Cluster {found.namespace}/{name} that owns the KubeadmControlPlane {found.request} is not there")
        return cluster

    def _is_behind(self, request: Request, machines: Iterable[Object]) -> bool:
        """Whether a write of ours to a Machine is not in the cache yet: a decision without it could be made twice."""
        if self._cache.is_behind(KUBEADM_CONTROL_PLANE, request.name, request.namespace):
            return True
        made = self._made.get(request, set())
        known = {machine.name for machine in machines}
        if any(self._cache.is_behind(MACHINE, name, request.namespace) for name in [*known, *made]):
            return True
        made.clear()
        return False

    def _follow(self, kind: Kind) -> None:
        self._cache.informer(kind)


def _looked_at_again(work: Work, result: Result) -> Result:
    """When to look again at what tells nobody that it has changed: hosts that boot, components, and the time of a rollout."""
    booting = not work.initialized and any(owned.machine.spec.provider_id for owned in work.machines.values())
    if booting:
        return Result(min(result.requeue_after or BOOTING_RETRY, BOOTING_RETRY))
    if result != DONE:
        return result
    components = find(of(work.manifest), names.CONTROL_PLANE_COMPONENTS_HEALTHY_CONDITION)
    if not work.initialized or (components is not None and components.status == FALSE):
        return Result(NOT_WELL_RETRY)
    after = work.plane.spec.rollout.after
    seconds = (datetime.fromisoformat(after) - work.now).total_seconds() if after else 0.0
    return Result(seconds + 1) if seconds > 0 else DONE
