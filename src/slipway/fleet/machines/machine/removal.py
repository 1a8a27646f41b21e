"""Carries out the deletion of a Machine, a step at a time, in the order of :mod:`slipway.fleet.machines.machine.deletion`.

A step that is over is followed by the next in the same reconcile; one that is not ends it, and says what it waits for.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names
from slipway.api.cluster.core.machinedrainrule import MachineDrainRule
from slipway.api.cluster.kinds import MACHINE, MACHINE_DRAIN_RULE, NODE
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.conditions import TRUE, find, of
from slipway.fleet.contract.facts import read
from slipway.fleet.contract.references import control_plane_members
from slipway.fleet.contract.status import well
from slipway.fleet.machines.machine import conditions, deletion, deprecated, externals, words
from slipway.fleet.machines.machine.deletion import ControlPlane, Keep, Step
from slipway.fleet.machines.machine.drain import evictions, rules, volumes
from slipway.fleet.machines.machine.drain.drainer import Drainer, Host
from slipway.fleet.machines.machine.node import belongs
from slipway.fleet.machines.machine.status import STARTED
from slipway.fleet.machines.machine.values import Said
from slipway.kube.errors import UnreachableError
from slipway.runtime import finalizers
from slipway.runtime.logs import fields
from slipway.runtime.objects import timestamp

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.fleet.contract.references import References
    from slipway.fleet.machines.machine.drain.rules import Rule
    from slipway.fleet.machines.machine.noderef import Nodes
    from slipway.fleet.machines.machine.providers import Providers
    from slipway.fleet.machines.machine.scope import Scope
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.events import EventRecorder
    from slipway.runtime.objects import Object

# Drains and detaching take their time: they are looked at so often, however often the Machine changes.
RETRY = 20.0
NODE_RETRY = 2.0
# More Machines than are drained at a time.
_REMEMBERED = 10_000


class Waiting(NamedTuple):
    """What a step waits for; for at least ``seconds``, or (0) until something happens."""

    said: Said
    seconds: float = 0.0


class Removal:
    def __init__(
        self,
        cache: Cache,
        workload: WorkloadClusters,
        control_planes: References,
        providers: Providers,
        nodes: Nodes,
        events: EventRecorder,
        log: logging.Logger,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cache = cache
        self._workload = workload
        self._control_planes = control_planes
        self._providers = providers
        self._nodes = nodes
        self._events = events
        self._log = log
        self._clock = clock
        # When a step of a Machine, by its uid, is to be looked at next.
        self._next: dict[tuple[str, Step], float] = {}

    async def proceed(self, scope: Scope) -> None:
        """Go on with the deletion as far as it goes; what stops it is told."""
        try:
            await self._proceed(scope)
        except OperatorError as error:
            if scope.observed.deletion == STARTED:
                scope.observed.deletion = Said(names.INTERNAL_ERROR_REASON, error.message)
            raise

    async def _proceed(self, scope: Scope) -> None:
        keep = await self._keep_node(scope)
        if keep is not None:
            self._log.debug("The Node is left alone", extra=fields(why=keep.value))
        done: set[Step] = set()
        while True:
            observed = scope.observed
            step = deletion.next_step(
                scope.machine, keep=keep, infrastructure=observed.infrastructure, config=observed.config, done=done, now=scope.now
            )
            self._mark_hooks(scope, step, keep)
            waiting = await self._take(step, scope)
            if waiting is not None:
                observed.deletion = waiting.said
                scope.again(waiting.seconds)
                return
            if step is Step.FINISHED:
                observed.deletion = Said(names.DELETION_COMPLETED_REASON, "Deletion completed")
                finalizers.remove(scope.manifest, names.MACHINE_FINALIZER)
                return
            done.add(step)

    async def _take(self, step: Step, scope: Scope) -> Waiting | None:
        """Take a step; None where it is over."""
        machine = scope.machine
        match step:
            case Step.PRE_DRAIN_HOOKS:
                return self._wait_for_hooks(scope, names.PRE_DRAIN_HOOK_PREFIX, "pre-drain", "waitForPreDrainHookStartTime")
            case Step.DRAIN:
                return await self._drain(scope)
            case Step.VOLUMES:
                return await self._wait_for_volumes(scope)
            case Step.PRE_TERMINATE_HOOKS:
                return self._wait_for_hooks(scope, names.PRE_TERMINATE_HOOK_PREFIX, "pre-terminate", "waitForPreTerminateHookStartTime")
            case Step.INFRASTRUCTURE:
                reference, observed = machine.spec.infrastructure_ref, scope.observed
                if observed.infrastructure.is_unread:
                    text = f"It is not known whether the {reference.kind} is still there: {observed.infrastructure_problem}"
                    return Waiting(Said(names.INTERNAL_ERROR_REASON, text))
                await self._providers.delete(scope, reference, observed.infrastructure)
                return Waiting(Said(names.WAITING_FOR_INFRASTRUCTURE_DELETION_REASON, f"Waiting for {reference.kind} to be deleted"))
            case Step.BOOTSTRAP:
                reference = machine.spec.bootstrap.config_ref
                await self._providers.delete(scope, reference, scope.observed.config)
                return Waiting(Said(words.WAITING_FOR_BOOTSTRAP_DELETION, f"Waiting for {reference.kind} to be deleted"))
            case Step.NODE:
                return await self._delete_node(scope)
            case Step.FINISHED:
                self._forget(scope)
                return None

    async def _keep_node(self, scope: Scope) -> Keep | None:
        if not scope.node_name and not scope.cluster.deleting:
            await self._look_for_node(scope)
        plane = None
        reference = scope.cluster.control_plane_ref
        if reference is not None and not scope.cluster.deleting:
            found = await self._control_planes.find(reference, scope.namespace)
            if found is not None:
                external = (found.get("status") or {}).get("externalManagedControlPlane") is True
                plane = ControlPlane(bool(found["metadata"].get("deletionTimestamp")), external)
        machines = await control_plane_members(self._cache, MACHINE, scope.namespace, scope.cluster.name)
        active = sum(not each.metadata.deletion_timestamp for each in machines)
        return deletion.keep_node(
            cluster_deleting=scope.cluster.deleting,
            node_name=scope.node_name,
            control_plane=plane,
            active_control_plane_machines=active,
        )

    async def _look_for_node(self, scope: Scope) -> None:
        """Once more, since the Node may have come after the deletion: a Machine whose cluster does not answer goes all the same."""
        infrastructure = scope.observed.infrastructure.manifest
        provider_id = scope.machine.spec.provider_id or ("" if infrastructure is None else externals.provider_id(infrastructure))
        if not provider_id:
            return
        try:
            found = await self._nodes.find(scope, provider_id)
        except OperatorError as error:
            self._log.warning("It is not known whether there is a Node", extra=fields(why=error.message))
            return
        if found is not None:
            scope.status.fields["nodeRef"] = {"name": found["metadata"]["name"]}

    def _mark_hooks(self, scope: Scope, step: Step, keep: Keep | None) -> None:
        """Yesterday's conditions tell of the hooks that nothing waits for."""
        if keep is None and step is not Step.PRE_DRAIN_HOOKS:
            scope.status.set_deprecated(well(words.PRE_DRAIN_HOOK_SUCCEEDED))
        if step in (Step.INFRASTRUCTURE, Step.BOOTSTRAP, Step.NODE, Step.FINISHED) and not scope.observed.infrastructure.is_unread:
            scope.status.set_deprecated(well(words.PRE_TERMINATE_HOOK_SUCCEEDED))
        if step in (Step.BOOTSTRAP, Step.NODE, Step.FINISHED):
            scope.status.set_deprecated(deprecated.not_well(names.INFRASTRUCTURE_READY_CONDITION, "Deleted"))
        if step in (Step.NODE, Step.FINISHED) and scope.machine.spec.bootstrap.config_ref.name:
            scope.status.set_deprecated(deprecated.not_well(words.BOOTSTRAP_READY, "Deleted"))

    def _wait_for_hooks(self, scope: Scope, prefix: str, name: str, started: str) -> Waiting:
        hooks = deletion.hooks(scope.machine, prefix)
        self._began(scope, started)
        pre_drain = prefix == names.PRE_DRAIN_HOOK_PREFIX
        condition = words.PRE_DRAIN_HOOK_SUCCEEDED if pre_drain else words.PRE_TERMINATE_HOOK_SUCCEEDED
        scope.status.set_deprecated(deprecated.not_well(condition, "WaitingExternalHook"))
        reason = words.WAITING_FOR_PRE_DRAIN_HOOK if pre_drain else words.WAITING_FOR_PRE_TERMINATE_HOOK
        return Waiting(Said(reason, f"Waiting for {name} hooks to succeed (hooks: {','.join(hooks)})"))

    async def _drain(self, scope: Scope) -> Waiting | None:
        is_new = not (scope.status.fields.get("deletion") or {}).get("nodeDrainStartTime")
        condition, started = words.DRAINING_SUCCEEDED, self._began(scope, "nodeDrainStartTime")
        if (waiting := self._not_yet(scope, Step.DRAIN, words.DRAINING_NODE)) is not None:
            return waiting
        if not any(each.get("type") == condition for each in deprecated.of(scope.manifest)):
            scope.status.set_deprecated(deprecated.not_well(condition, "Draining", "Info", "Draining the node before deletion"))
        if is_new:
            # Evictions take a while: what happens is told before, and its time counts from now, whoever goes on with it.
            begun = Said(words.DRAINING_NODE, f"Drain not completed yet (started at {started}):")
            scope.status.say(conditions.deleting(scope.machine, begun))
            await scope.save()
        try:
            message = await self._drained(scope, started)
        except OperatorError as error:
            scope.observed.deletion = Said(words.DRAINING_NODE, f"Error draining Node: {error.message}")
            scope.status.set_deprecated(deprecated.not_well(condition, "DrainingFailed", "Warning", error.message))
            text = f'error draining Machine\'s node "{scope.node_name}": {error.message}'
            self._events.event(scope.manifest, "Warning", "FailedDrainNode", text)
            raise
        if message:
            self._later(scope, Step.DRAIN)
            scope.status.set_deprecated(deprecated.not_well(condition, "Draining", "Info", message))
            return Waiting(Said(words.DRAINING_NODE, message), RETRY)
        self._succeeded(scope, condition, "SuccessfulDrainNode", f'success draining Machine\'s node "{scope.node_name}"')
        return None

    async def _drained(self, scope: Scope, started: str) -> str:
        """Drain; what is left to be done, or nothing."""
        async with self._workload.client(scope.namespace, scope.cluster.name) as client:
            drainer = await self._drainer(scope, client)
            return "" if drainer is None else evictions.message(await drainer.drain(), started)

    async def _wait_for_volumes(self, scope: Scope) -> Waiting | None:
        condition, started = words.VOLUME_DETACH_SUCCEEDED, self._began(scope, "waitForNodeVolumeDetachStartTime")
        if (waiting := self._not_yet(scope, Step.VOLUMES, words.WAITING_FOR_VOLUME_DETACH)) is not None:
            return waiting
        if not any(each.get("type") == condition for each in deprecated.of(scope.manifest)):
            text = "Waiting for node volumes to be detached"
            scope.status.set_deprecated(deprecated.not_well(condition, words.WAITING_FOR_VOLUME_DETACH, "Info", text))
        try:
            async with self._workload.client(scope.namespace, scope.cluster.name) as client:
                drainer = await self._drainer(scope, client)
                message = "" if drainer is None else volumes.message(await drainer.blocking_volumes(), started)
        except OperatorError as error:
            text = f"Error waiting for volumes to be detached from Node: {error.message}"
            scope.observed.deletion = Said(words.WAITING_FOR_VOLUME_DETACH, text)
            self._events.event(scope.manifest, "Warning", "FailedWaitForVolumeDetach", text)
            raise
        if message:
            self._later(scope, Step.VOLUMES)
            return Waiting(Said(words.WAITING_FOR_VOLUME_DETACH, message), RETRY)
        text = f'success waiting for node volumes detaching Machine\'s node "{scope.node_name}"'
        self._succeeded(scope, condition, "NodeVolumesDetached", text)
        return None

    async def _drainer(self, scope: Scope, client: AsyncClient) -> Drainer | None:
        """None where somebody has deleted the Node: there is nothing left to wait for."""
        node = await self._nodes.get(scope, client, scope.node_name)
        if node is None:
            return None
        return Drainer(client, Host(node, self._is_off(scope, node)), await self._rules(scope), scope.now)

    def _is_off(self, scope: Scope, node: Manifest) -> bool:
        """A provider that says so is believed as long as the kubelet does not say otherwise."""
        ready: Manifest = next((each for each in (node.get("status") or {}).get("conditions") or () if each.get("type") == "Ready"), {})
        return ready.get("status") != TRUE and deletion.is_powered_off(scope.observed.infrastructure.manifest)

    async def _rules(self, scope: Scope) -> list[Rule]:
        found = [_rule(each) for each in await self._cache.list(MACHINE_DRAIN_RULE, scope.namespace)]
        return rules.for_machine(found, scope.labels, scope.cluster_labels)

    async def _delete_node(self, scope: Scope) -> Waiting | None:
        """Try until the time is over that the spec gives, from the first try on."""
        try:
            async with self._workload.client(scope.namespace, scope.cluster.name) as client:
                node = await self._nodes.get(scope, client, scope.node_name)
                if node is not None and belongs(node, scope.manifest):
                    await client.delete(NODE, scope.node_name, uid=node["metadata"]["uid"])
        except OperatorError as error:
            scope.status.set_deprecated(deprecated.not_well(names.NODE_HEALTHY_CONDITION, "DeletionFailed", "Warning"))
            self._events.event(scope.manifest, "Warning", "FailedDeleteNode", f"error deleting Machine's Node: {error.message}")
            # One request that is lost on the way to a cluster that answers others is no reason to leave the Node behind.
            lost = isinstance(error, UnreachableError) and self._workload.probe(scope.namespace, scope.cluster.name).connected
            if deletion.gives_up_node(scope.machine, scope.now) and not lost:
                self._log.warning("The Node is left behind: its time is over", extra=fields(node=scope.node_name, why=error.message))
                return None
            if words.NODE_DELETION_STARTED not in (scope.manifest["metadata"].get("annotations") or {}):
                scope.annotate(words.NODE_DELETION_STARTED, timestamp(scope.now))
            return Waiting(Said(words.DELETING_NODE, f"Error deleting Node: {error.message}"), NODE_RETRY)
        return None

    def _succeeded(self, scope: Scope, condition: str, event: str, text: str) -> None:
        """Said once, however often the deletion comes by here."""
        if not any(each.get("type") == condition and each.get("status") == TRUE for each in deprecated.of(scope.manifest)):
            self._events.event(scope.manifest, "Normal", event, text)
        scope.status.set_deprecated(well(condition))

    def _began(self, scope: Scope, field: str) -> str:
        """When a step began, which is now where it had not."""
        known: dict[str, str] = scope.status.fields.get("deletion") or {}
        if not known.get(field):
            scope.status.fields["deletion"] = known = {**known, field: timestamp(scope.now)}
        return known[field]

    def _not_yet(self, scope: Scope, step: Step, reason: str) -> Waiting | None:
        """What was said last, where it is too early to look again."""
        left = self._next.get((scope.uid, step), 0.0) - self._clock()
        said = find(of(scope.manifest), names.DELETING_CONDITION)
        if left <= 0 or said is None or said.reason != reason:
            return None
        return Waiting(Said(reason, said.message), left / self._workload.pace)

    def _later(self, scope: Scope, step: Step) -> None:
        if len(self._next) >= _REMEMBERED:
            now = self._clock()
            self._next = {place: at for place, at in self._next.items() if at > now}
        self._next[scope.uid, step] = self._clock() + RETRY * self._workload.pace

    def _forget(self, scope: Scope) -> None:
        for step in (Step.DRAIN, Step.VOLUMES):
            self._next.pop((scope.uid, step), None)


def _rule(found: Object) -> Rule:
    try:
        return rules.parse(read(found, MachineDrainRule))
    except OperatorError as error:
        return rules.unreadable(found.name, error.message)
