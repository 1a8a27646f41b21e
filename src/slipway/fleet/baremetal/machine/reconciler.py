"""The BaremetalMachine controller: gathers what there is, decides, does it, and writes down how it went.

The order of a machine's life is in :mod:`slipway.fleet.baremetal.machine.decision`.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from slipway.api.cluster.core.cluster import Cluster
from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.infrastructure.cluster import BaremetalCluster
from slipway.api.cluster.infrastructure.pool import MachineInventoryPool
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CLUSTER,
    CONFIG_MAP,
    CORE_EVENT,
    MACHINE,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    SECRET,
)
from slipway.api.cluster.names import CLUSTER_NAME_LABEL, READY_CONDITION
from slipway.fleet.baremetal.hosts import claim
from slipway.fleet.baremetal.hosts.host import OWNER_INDEX, host_from, owner_key
from slipway.fleet.baremetal.machine import watches
from slipway.fleet.baremetal.machine.allocation import POOL_INDEX, Allocation, pool_key
from slipway.fleet.baremetal.machine.decision import Step, next_step
from slipway.fleet.baremetal.machine.node import Nodes, addresses
from slipway.fleet.baremetal.machine.provisioning import Provisioning
from slipway.fleet.baremetal.machine.removal import Removal
from slipway.fleet.baremetal.machine.run import SUMMED_UP, Run
from slipway.fleet.baremetal.plans import planfacts
from slipway.fleet.baremetal.reasons import HOST_BUSY, HOST_SILENT, PLAN_EDITED
from slipway.fleet.contract import secrets
from slipway.fleet.contract.conditions import FALSE, TRUE
from slipway.fleet.contract.facts import ClusterFacts, cluster_from, owner_from, owner_link, paused_by, read
from slipway.runtime import finalizers
from slipway.runtime.cache.cache import ON_ITS_WAY
from slipway.runtime.objects import DONE, Object, Request, Result, timestamp
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.baremetal.hosts.host import Host
    from slipway.fleet.baremetal.options import BaremetalOptions
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.fleet.contract.facts import Owner
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.events import EventRecorder

_log = logging.getLogger("slipway.fleet.baremetal.machine")

NAME = "baremetalmachine"
_RETRY = 30.0
# From no host to a written plan, and a look at that.
_STEPS = 4

RULES = (
    rule(BAREMETAL_MACHINE, *READ, "patch"),
    rule(BAREMETAL_MACHINE, "patch", subresource="status"),
    rule(BAREMETAL_CLUSTER, "list", "watch"),
    rule(MACHINE_INVENTORY_POOL, "list", "watch"),
    # What a host says of itself is in its status, which is the inventory's controller's.
    rule(MACHINE_INVENTORY, *READ, "patch"),
    rule(CLUSTER, "list", "watch"),
    rule(MACHINE, "list", "watch"),
    rule(SECRET, *READ, "patch", "update"),
    rule(CONFIG_MAP, *READ),
    rule(CORE_EVENT, "create", "patch"),
)


class BaremetalMachineReconciler:
    name = NAME
    watches = watches.WATCHES
    rules = RULES
    # Its host, the plan of the host, the Machine and the Node each tell of one step, within a moment.
    interval = 0.5

    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        options: BaremetalOptions,
        *,
        workload: WorkloadClusters,
        events: EventRecorder,
        enqueue: Callable[[Request], None],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._cache = cache
        self._options = options
        self._events = events
        self._clock = clock
        secrets.restrict(cache)
        cache.restrict(CONFIG_MAP, metadata_only=True)
        cache.add_index(MACHINE_INVENTORY, OWNER_INDEX, owner_key)
        cache.add_index(BAREMETAL_MACHINE, POOL_INDEX, pool_key)
        watches.follow(workload, cache, enqueue)
        self._allocation = Allocation(client, cache, options)
        self._nodes = Nodes(client, cache, options, workload)
        self._provisioning = Provisioning(client, cache, options, workload, self._nodes)
        self._removal = Removal(client, cache, options, events)

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(BAREMETAL_MACHINE, request.name, request.namespace)
        if found is None:
            return DONE
        if self._cache.is_behind(BAREMETAL_MACHINE, request.name, request.namespace):
            # What we wrote last is on its way to the cache, and its event with it.
            return Result(ON_ITS_WAY)
        manifest = found.content()
        owner = await self._owner(found)
        name = owner.cluster_name if owner is not None else found.metadata.labels.get(CLUSTER_NAME_LABEL, "")
        cluster = await self._cache.get(CLUSTER, name, request.namespace) if name else None
        facts = cluster_from(cluster) if cluster is not None else ClusterFacts(request.namespace, name)
        run = Run(self._client, self._cache, found, manifest, owner, facts, self._clock())
        if cluster is not None:
            await self._read_cluster(run, cluster)
        pool = await self._cache.get(MACHINE_INVENTORY_POOL, run.pool_name, run.namespace) if run.pool_name else None
        run.pool = read(pool, MachineInventoryPool) if pool is not None else None
        if not await self._read_host(run):
            return Result(ON_ITS_WAY)
        return await self._proceed(run, has_cluster=cluster is not None)

    async def _owner(self, found: Object) -> Owner | None:
        link = owner_link(found.metadata.owner_references)
        if link is None or link.kind != MACHINE:
            return None
        owner = await self._cache.get(MACHINE, link.name, found.namespace)
        return owner_from(owner) if owner is not None else None

    async def _read_cluster(self, run: Run, cluster: Object) -> None:
        run.registry = cluster.metadata.annotations.get(names.REGISTRY_ADDRESS_ANNOTATION, "")
        reference = read(cluster, Cluster).spec.infrastructure_ref
        if (reference.api_group, reference.kind) == (BAREMETAL_CLUSTER.group, BAREMETAL_CLUSTER.kind):
            infrastructure = await self._cache.get(BAREMETAL_CLUSTER, reference.name, run.namespace)
            run.infrastructure = read(infrastructure, BaremetalCluster) if infrastructure is not None else None

    async def _read_host(self, run: Run) -> bool:
        """Find the host that is ours, by the status or, where that was lost, by the inventory; whether it could be read."""
        if run.intent and self._cache.is_behind(MACHINE_INVENTORY, run.intent, run.namespace):
            return False
        meant = await self._cache.get(MACHINE_INVENTORY, run.intent, run.namespace) if run.intent else None
        owned = [meant] if meant is not None and claim.is_of(host_from(meant), run.claimant) else []
        owned = owned or await self._cache.list(MACHINE_INVENTORY, index=(OWNER_INDEX, f"{run.namespace}/{run.name}"))
        if owned and run.claimant.owner.baremetal_machine:
            await self._adopt(run, host_from(owned[0]))
        return True

    async def _adopt(self, run: Run, host: Host) -> None:
        run.host = host
        run.mean(host.name)
        if not run.provisioned or finalizers.is_deleted(run.manifest):
            run.secret = await planfacts.read(self._cache, host.name, run.namespace)
            run.plan = planfacts.plan_facts(run.secret) if run.secret is not None else None

    async def _proceed(self, run: Run, *, has_cluster: bool) -> Result:
        """Do one step after the other, and write down how it went: here and nowhere else."""
        step = next_step(run.observed(has_cluster=has_cluster), run.now)
        if step in (Step.IGNORE, Step.WAIT_FOR_OWNER, Step.WAIT_FOR_CLUSTER):
            _log.debug(step.value)
            return DONE
        run.status.paused(paused_by(run.cluster, run.manifest))
        if step is Step.PAUSED:
            await run.save()
            return DONE
        if finalizers.add(run.manifest, names.BAREMETAL_MACHINE_FINALIZER):
            # A write of its own, before anything is done that a deletion would have to undo.
            await run.save_spec()
        for _ in range(_STEPS):
            _log.log(logging.DEBUG if step.is_idle else logging.INFO, step.value)
            before = step
            await self._do(step, run)
            step = next_step(run.observed(has_cluster=has_cluster), run.now)
            if step is before or finalizers.is_deleted(run.manifest):
                break
        self._tell(run)
        await run.save()
        self._announce(run)
        return Result(run.wait)

    async def _do(self, step: Step, run: Run) -> None:
        if finalizers.is_deleted(run.manifest):
            await self._removal.proceed(step, run)
            return
        match step:
            case Step.WAIT_FOR_INFRASTRUCTURE:
                run.phase = names.PENDING_PHASE
                run.tell(
                    names.INVENTORY_ALLOCATED_CONDITION,
                    FALSE,
                    names.WAITING_FOR_CLUSTER_INFRASTRUCTURE_REASON,
                    "waiting for the infrastructure of the Cluster to be provisioned",
                )
            case Step.ALLOCATE:
                if await self._allocation.allocate(run):
                    await self._adopt(run, run.claimed)
            case Step.LOST:
                self._lost(run)
            case Step.WAIT_FOR_SECRET | Step.WAIT_FOR_HOST:
                self._wait_for_host(step, run)
            case Step.WAIT_FOR_BOOTSTRAP:
                await self._provisioning.wait_for_bootstrap(run)
            case Step.PROVISION:
                await self._provisioning.provision(run)
            case Step.WAIT_FOR_PLAN:
                self._wait_for_plan(run)
            case Step.PLAN_FAILED:
                await self._plan_failed(run)
            case Step.WAIT_FOR_NODE:
                self._applied(run)
                await self._nodes.look(run)
            case _:
                raise AssertionError(f"nothing to do for {step}")

    def _lost(self, run: Run) -> None:
        run.phase = names.FAILED_PHASE
        run.tell(
            names.INVENTORY_ALLOCATED_CONDITION,
            FALSE,
            names.INVENTORY_LOST_REASON,
            f"the MachineInventory {run.before.machine_inventory_ref.name if run.before.machine_inventory_ref else ''} is gone or somebody "
            "else's: delete the Machine, its replacement gets another host",
        )
        run.look_again(_RETRY)

    def _wait_for_host(self, step: Step, run: Run) -> None:
        run.phase = names.ALLOCATED_PHASE
        secret = f"{run.namespace}/{run.claimed.name}"
        reason, message = HOST_BUSY, f"the host {run.claimed.name} works on another plan: waiting for it to end"
        if step is Step.WAIT_FOR_SECRET:
            reason = names.PLAN_SECRET_MISSING_REASON
            message = f"the plan Secret {secret} is missing: waiting for the inventory's controller to make it"
        elif self._is_silent(run):
            reason, message = HOST_SILENT, self._silence(run)
        elif run.plan is not None and run.plan.edited:
            reason = PLAN_EDITED
            message = f"somebody changed the plan in the Secret {secret}: it is written again when the host has ended what is there now"
        run.tell(names.PLAN_APPLIED_CONDITION, FALSE, reason, message)
        run.look_again(_RETRY)

    def _wait_for_plan(self, run: Run) -> None:
        assert run.plan is not None
        run.phase = names.REPROVISIONING_PHASE
        run.look_again(_RETRY)
        plan = run.plan
        if self._is_silent(run):
            reason, message = HOST_SILENT, self._silence(run)
        elif plan.outcome == "in-progress":
            again = f", after {plan.failures} failed attempts: {plan.printed}" if plan.failures else ""
            reason, message = names.PLAN_RUNNING_REASON, f"the host works on the plan{again}"
        else:
            reason, message = names.PLAN_PENDING_REASON, "the plan is written: waiting for the host to begin with it"
        run.tell(names.PLAN_APPLIED_CONDITION, FALSE, reason, message)

    def _is_silent(self, run: Run) -> bool:
        since = run.plan.written if run.plan is not None else None
        return since is not None and run.now - since > self._options.host_deadline

    def _silence(self, run: Run) -> str:
        since = run.plan.written if run.plan is not None else None
        return (
            f"the host has its plan since {timestamp(since or run.now)} and has not ended it: look whether it has power, whether its agent "
            "runs, and at its console; to try another host, delete the Machine"
        )

    async def _plan_failed(self, run: Run) -> None:
        assert run.plan is not None
        await claim.set_state(self._client, self._cache, run.claimed.name, run.claimant, names.UNAVAILABLE, run.life())
        run.phase = names.FAILED_PHASE
        message = (
            f"the host could not apply the reprovision plan, after {run.plan.failures} attempts: {run.plan.printed or 'it printed nothing'}"
        )
        run.tell(names.PLAN_APPLIED_CONDITION, FALSE, names.PLAN_FAILED_REASON, f"{message}\nDelete the Machine: its host is cleaned")
        run.status.fields["failureReason"] = names.PLAN_FAILED_REASON
        run.status.fields["failureMessage"] = message

    def _applied(self, run: Run) -> None:
        if not run.provisioned:
            run.status.fields["failureReason"] = run.status.fields["failureMessage"] = None
            run.tell(names.PLAN_APPLIED_CONDITION, TRUE, names.PLAN_APPLIED_REASON)
            run.status.fields["planAppliedTime"] = run.status.fields.get("planAppliedTime") or timestamp(run.now)

    def _tell(self, run: Run) -> None:
        """What follows from all the steps."""
        fields = run.status.fields
        fields["phase"] = run.phase
        fields.setdefault("ready", False)
        if run.host is not None:
            run.tell(names.INVENTORY_ALLOCATED_CONDITION, TRUE, names.ALLOCATED_REASON, f"host {run.host.name}")
            if run.plan is not None and run.plan.owner == run.name and not fields.get("hostname"):
                fields["hostname"] = (run.member.hostname if run.member is not None else "") or run.host.name
            fields["addresses"] = addresses(run) or None
            fields["failureDomain"] = run.host.failure_domain or None
        plan = run.plan
        if plan is not None and plan.owner == run.name:
            if fields.get("lastAppliedPlanChecksum") != plan.checksum:
                fields["planAppliedTime"] = timestamp(run.now) if plan.outcome == "applied" else None
            fields["lastAppliedPlanChecksum"] = plan.checksum
            fields["planWrittenTime"] = timestamp(plan.written) if plan.written is not None else None
            if plan.type == names.PLAN_REPROVISION:
                fields["lastAppliedBootstrapHash"], fields["image"] = plan.bootstrap_hash or None, plan.image or None
                fields["bootsBefore"] = plan.boot_before
        if plan is not None and (plan.owner, plan.type) == (run.name, names.PLAN_REPROVISION) and not finalizers.is_deleted(run.manifest):
            # Whoever wrote the plan had both, and may have died before it could say so.
            run.tell(names.BOOTSTRAP_READY_CONDITION, TRUE, names.BOOTSTRAP_READY_REASON)
            run.tell(names.IMAGE_RESOLVED_CONDITION, TRUE, names.IMAGE_RESOLVED_REASON, plan.image)
        run.status.sum_up(READY_CONDITION, SUMMED_UP)
        run.status.observed()

    def _announce(self, run: Run) -> None:
        if run.phase == run.before.phase:
            return
        failed = run.phase == names.FAILED_PHASE
        told = f": {_worst(run.manifest)}" if failed else ""
        self._events.event(run.manifest, "Warning" if failed else "Normal", run.phase, f"{run.before.phase or 'New'} to {run.phase}{told}")


def _worst(manifest: Manifest) -> str:
    """The message of the first condition that is not well."""
    conditions = (manifest.get("status") or {}).get("conditions") or []
    wanted = (*SUMMED_UP, names.HOST_CLEANED_CONDITION)
    found = [each for name in wanted for each in conditions if each["type"] == name and each["status"] == FALSE]
    return str(found[-1].get("message") or found[-1].get("reason")) if found else ""
