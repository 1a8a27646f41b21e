"""Does the step that the planner has chosen: makes and deletes Machines, moves etcd's leadership, removes members.

Every step can be killed at any line: what it has begun is seen the next time, and what it has left behind is undone or gone on with.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from copy import deepcopy
from typing import TYPE_CHECKING, assert_never

from slipway.api.cluster import names
from slipway.api.cluster.kinds import CLUSTER, KUBEADM_CONFIG, MACHINE
from slipway.api.cluster.meta import ContractVersionedObjectReference as Reference
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract import templates
from slipway.fleet.contract.clones import delete_orphans
from slipway.fleet.contract.ownership import give_up_metadata
from slipway.fleet.contract.scope import Patcher
from slipway.fleet.contract.status import Status
from slipway.fleet.controlplane import desired
from slipway.fleet.controlplane.decisions.preflight import DELETION_RETRY
from slipway.fleet.controlplane.decisions.remediation import CANNOT, Verdict
from slipway.fleet.controlplane.planner import (
    MEMBER_RETRY,
    CreateFirst,
    EndRestore,
    GiveUp,
    Nothing,
    Release,
    Remediate,
    RemoveMember,
    ScaleDown,
    ScaleUp,
    StartAnew,
    Wait,
)
from slipway.fleet.controlplane.status import older
from slipway.fleet.snapshots.request import ANNOTATION as RESTORE_ANNOTATION
from slipway.fleet.snapshots.request import restore_from
from slipway.kube.errors import ConflictError, NotFoundError, UnreachableError
from slipway.runtime.objects import DONE, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.references import References
    from slipway.fleet.controlplane.inspection import Inspection
    from slipway.fleet.controlplane.planner import Step
    from slipway.fleet.controlplane.sync import Syncer
    from slipway.fleet.controlplane.work import Work
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.events import EventRecorder

_log = logging.getLogger("slipway.fleet.controlplane")

_FIELD_MANAGER = names.KUBEADM_CONTROL_PLANE_FIELD_MANAGER


class Operations:
    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        references: References,
        syncer: Syncer,
        inspection: Inspection,
        events: EventRecorder,
    ) -> None:
        self._client = client
        self._cache = cache
        self._references = references
        self._syncer = syncer
        self._inspection = inspection
        self._events = events

    async def do(self, work: Work, step: Step) -> Result:
        match step:
            case Nothing():
                return DONE
            case Wait():
                return self._wait(work, step)
            case RemoveMember(member):
                async with self._inspection.workload(work) as workload:
                    await workload.remove_member(member.id)
                return Result(MEMBER_RETRY)
            case Release(machine, member, leaders):
                if member is not None:
                    await self._move_leadership(work, machine, leaders)
                    async with self._inspection.workload(work) as workload:
                        await workload.remove_member(member.id)
                await self.release(work, machine)
                return Result(DELETION_RETRY)
            case Remediate():
                return await self._remediate(work, step)
            case GiveUp(machines):
                for machine in machines:
                    await self.release(work, machine)
                    await self._delete(work, machine, failing="FailedRestore")
                return Result(MEMBER_RETRY)
            case StartAnew():
                return await self._start_anew(work)
            case EndRestore(node):
                return await self._end_restore(work, node)
            case CreateFirst(domain):
                work_status = Status(work.manifest, work.now)
                work_status.set_deprecated(older.false(older.AVAILABLE, "WaitingForKubeadmInit", "Info"))
                return await self._create(work, domain, join=False, failing="FailedInitialization")
            case ScaleUp(domain):
                return await self._create(work, domain, join=True, failing="FailedScaleUp")
            case ScaleDown(machine, leaders):
                await self._move_leadership(work, machine, leaders)
                await self._delete(work, machine, failing="FailedScaleDown")
                return DONE
        assert_never(step)

    async def tell_verdict(self, work: Work, verdict: Verdict) -> None:
        """Write on a sick Machine what becomes of it."""
        owned = work.machines[verdict.machine]
        after = deepcopy(owned.manifest)
        status = Status(after, work.now)
        status.set(names.OWNER_REMEDIATED_CONDITION, "False", verdict.reason, verdict.message)
        reason = "RemediationInProgress" if verdict.started is not None else "WaitingForRemediation"
        status.set_deprecated(older.false(names.OWNER_REMEDIATED_CONDITION, reason, "Warning", verdict.older))
        await self._patch_machine(work, verdict.machine, after)

    async def clear_verdicts(self, work: Work) -> None:
        """Of Machines that have recovered, before they were remediated."""
        for owned in work.machines.values():
            if owned.deleting:
                continue
            after = deepcopy(owned.manifest)
            status = after.get("status") or {}
            holders = (status, (status.get("deprecated") or {}).get("v1beta1") or {})
            for holder in holders:
                said = {condition["type"]: condition["status"] for condition in holder.get("conditions") or ()}
                if said.get(names.HEALTH_CHECK_SUCCEEDED_CONDITION) == "True" and said.get(names.OWNER_REMEDIATED_CONDITION) == "False":
                    kept = [condition for condition in holder["conditions"] if condition["type"] != names.OWNER_REMEDIATED_CONDITION]
                    holder["conditions"] = kept
            if after != owned.manifest:
                await self._patch_machine(work, owned.name, after)

    async def release(self, work: Work, name: str) -> None:
        """Take away our hook, which keeps a Machine from being taken down."""
        after = deepcopy(work.machines[name].manifest)
        told = after["metadata"].get("annotations") or {}
        if told.pop(names.KUBEADM_CONTROL_PLANE_PRE_TERMINATE_HOOK, None) is not None:
            await self._patch_machine(work, name, after)

    async def delete(self, work: Work, name: str) -> None:
        """Tell a Machine to go; the cache is told, so that nobody decides by what was before."""
        manifest = work.machines[name].manifest
        await self._client.delete(MACHINE, name, work.namespace, uid=manifest["metadata"]["uid"])
        with suppress(NotFoundError):
            self._cache.wrote(MACHINE, await self._client.get(MACHINE, name, work.namespace))

    def _wait(self, work: Work, step: Wait) -> Result:
        work.blocked = step.blocked
        _log.info("Waiting: %s", "; ".join(step.reasons))
        problems = step.blocked.problems or step.blocked.others
        if problems:
            listed = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            message = f"Waiting for control plane to pass preflight checks to continue reconciliation: {listed}"
            self._events.event(work.manifest, "Warning", "ControlPlaneUnhealthy", message)
        return Result(step.seconds)

    async def _remediate(self, work: Work, step: Remediate) -> Result:
        try:
            await self._move_leadership(work, step.machine, step.new_leaders)
        except OperatorError as error:
            await self.tell_verdict(work, Verdict(step.machine, CANNOT, error.message))
            raise
        # Written down first: who is killed after the deletion would not know that there is something to replace.
        work.annotate(names.REMEDIATION_IN_PROGRESS_ANNOTATION, step.started.text())
        await work.save_spec()
        await self._delete(work, step.machine, failing="FailedRemediation")
        return DONE

    async def _start_anew(self, work: Work) -> Result:
        """Forget that the cluster was made: first here, then in the Cluster, so that the next Machine is told to make it."""
        status = Status(work.manifest, work.now)
        status.fields["initialization"] = {"controlPlaneInitialized": False}
        status.set(names.INITIALIZED_CONDITION, "False", names.NOT_INITIALIZED_REASON)
        await work.save()
        found = await self._client.get(CLUSTER, work.cluster.name, work.namespace)
        after = deepcopy(found)
        cluster = Status(after, work.now)
        cluster.fields["initialization"] = {**(cluster.fields.get("initialization") or {}), "controlPlaneInitialized": False}
        cluster.set(names.CONTROL_PLANE_INITIALIZED_CONDITION, "False", names.NOT_INITIALIZED_REASON, "The only Machine was given up")
        owned = (names.CONTROL_PLANE_INITIALIZED_CONDITION,)
        self._cache.wrote(CLUSTER, await Patcher(self._client, CLUSTER, found, owned_conditions=owned).patch(after))
        message = "The control plane is made anew with an empty etcd, since its only Machine was given up"
        if (restore := restore_from(work.annotations)) is not None:
            message = f"The control plane is made anew with the etcd of the snapshot {restore.snapshot}"
        self._events.event(work.manifest, "Warning", "ControlPlaneMadeAnew", message)
        return Result(MEMBER_RETRY)

    async def _end_restore(self, work: Work, node: str) -> Result:
        """The Nodes of control planes that are gone are in the snapshot; etcd has been given one member, the new one."""
        async with self._inspection.workload(work) as workload:
            gone = await workload.delete_control_plane_nodes({owned.node for owned in work.machines.values() if owned.node} | {node})
        restore = restore_from(work.annotations)
        work.annotate(RESTORE_ANNOTATION, None)
        told = f"; deleted the Nodes {', '.join(gone)} that it had before" if gone else ""
        message = f"The control plane runs with the etcd of the snapshot {restore.snapshot if restore is not None else ''}{told}"
        self._events.event(work.manifest, "Normal", "ControlPlaneRestored", message)
        return DONE

    async def _move_leadership(self, work: Work, machine: str, candidates: Sequence[str]) -> None:
        """From a machine that goes to the first of the candidates that takes it."""
        if not candidates:
            return
        node = work.machines[machine].node
        problems = []
        async with self._inspection.workload(work) as workload:
            for candidate in candidates:
                try:
                    await workload.forward_etcd_leadership(node, candidate)
                except OperatorError as error:
                    problems.append(f"{candidate}: {error.message}")
                else:
                    return
        raise OperatorError(f"failed to move etcd leadership away from {node}: {'; '.join(problems)}")

    async def _delete(self, work: Work, name: str, *, failing: str) -> None:
        try:
            await self.delete(work, name)
        except ConflictError:
            raise
        except OperatorError as error:
            message = f"Failed to delete control plane Machine {name} for cluster {work.namespace}/{work.cluster.name}: {error.message}"
            self._events.event(work.manifest, "Warning", failing, message)
            raise
        _log.info("Deleting Machine %s", name)

    async def _create(self, work: Work, failure_domain: str, *, join: bool, failing: str) -> Result:
        name = desired.machine_name(work.plane, work.cluster.name)
        made: list[tuple[Kind, str]] = []
        problem = "InfrastructureTemplateCloningFailed"
        try:
            infrastructure = await self._clone_infrastructure(work, name, made)
            problem = "BootstrapTemplateCloningFailed"
            wanted = desired.config(work.plane, work.cluster.name, name=name, join=join)
            if not join and (restore := restore_from(work.annotations)) is not None:
                wanted["metadata"].setdefault("annotations", {})[names.RESTORE_SECRET_ANNOTATION] = restore.secret
            made.append((KUBEADM_CONFIG, name))
            config = await self._syncer.applier.apply(KUBEADM_CONFIG, wanted)
            await give_up_metadata(self._client, KUBEADM_CONFIG, config, _FIELD_MANAGER)
            problem = "MachineGenerationFailed"
            machine = desired.machine(work.plane, work.cluster.name, name=name, failure_domain=failure_domain)
            machine["spec"]["infrastructureRef"] = infrastructure
            machine["spec"]["bootstrap"] = {"configRef": {"apiGroup": KUBEADM_CONFIG.group, "kind": KUBEADM_CONFIG.kind, "name": name}}
            await self._syncer.applier.apply(MACHINE, machine)
        except OperatorError as error:
            Status(work.manifest, work.now).set_deprecated(older.false(older.MACHINES_CREATED, problem, "Error", error.message))
            message = f"Failed to create control plane Machine for cluster {work.namespace}/{work.cluster.name}: {error.message}"
            self._events.event(work.manifest, "Warning", failing, message)
            # Without an answer the Machine may have been made all the same: the next reconcile sees whether its clones are to go.
            if not isinstance(error, UnreachableError):
                await self._undo(work, made)
            raise
        work.annotate(names.REMEDIATION_IN_PROGRESS_ANNOTATION, None)
        work.made.add(name)
        _log.info("Created Machine %s", name)
        return DONE

    async def _clone_infrastructure(self, work: Work, name: str, made: list[tuple[Kind, str]]) -> Manifest:
        """The InfraMachine of a new Machine; a reference to it."""
        reference = work.plane.spec.machine_template.spec.infrastructure_ref
        template = await self._references.find(reference, work.namespace)
        if template is None:
            raise OperatorError(f"there is no {reference.kind} {work.namespace}/{reference.name} to make a Machine from")
        wanted = desired.infrastructure(work.plane, template, work.cluster.name, name=name)
        link = Reference(api_group=wanted["apiVersion"].rpartition("/")[0], kind=wanted["kind"], name=name)
        kind = await self._references.kind(link)
        made.append((kind, name))
        clone = await self._syncer.applier.apply(kind, wanted)
        await give_up_metadata(self._client, kind, clone, _FIELD_MANAGER)
        return {"apiGroup": link.api_group, "kind": link.kind, "name": name}

    async def _undo(self, work: Work, made: Sequence[tuple[Kind, str]]) -> None:
        for kind, name in made:
            try:
                await self._client.delete(kind, name, work.namespace)
            except OperatorError as error:
                # The next reconcile finds it by its owner reference.
                _log.warning("The %s %s of a Machine that could not be made is left behind: %s", kind.kind, name, error.message)

    async def delete_orphans(self, work: Work) -> bool:
        """Delete clones that the control plane still owns and that no Machine has; whether all its Machines are known."""
        found = [owned.machine.spec for owned in work.machines.values()]
        template = work.plane.spec.machine_template.spec.infrastructure_ref
        kinds = {KUBEADM_CONFIG: {spec.bootstrap.config_ref.name for spec in found}}
        for reference in (
            Reference(api_group=template.api_group, kind=templates.kind_from(template.kind), name=""),
            *(spec.infrastructure_ref for spec in found),
        ):
            with suppress(NotFoundError):
                kinds.setdefault(await self._references.kind(reference), set()).add(reference.name)
        known = True
        for kind, used in kinds.items():
            known &= await delete_orphans(self._client, self._cache, kind, work.manifest["metadata"]["uid"], used)
        return known

    async def _patch_machine(self, work: Work, name: str, after: Manifest) -> None:
        owned = work.machines[name]
        patcher = Patcher(
            self._client,
            MACHINE,
            owned.manifest,
            owned_conditions=(names.OWNER_REMEDIATED_CONDITION,),
            owned_deprecated_conditions=(names.OWNER_REMEDIATED_CONDITION,),
        )
        written = await patcher.patch(after)
        if written["metadata"]["resourceVersion"] != owned.manifest["metadata"]["resourceVersion"]:
            self._cache.wrote(MACHINE, written)
        owned.manifest = written
