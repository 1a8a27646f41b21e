"""Whoever runs the clusters: asks for changes and waits for them, and does what conditions say is to be done.

Writes are tried again while the API server or the manager's webhooks are away, and while a guard refuses them.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from slipway.api.cluster.infrastructure import names as words
from slipway.api.cluster.kinds import (
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    CLUSTER,
    KUBEADM_CONFIG_TEMPLATE,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY_POOL,
)
from slipway.api.cluster.names import READY_CONDITION
from slipway.fleet.baremetal.hosts.host import QUARANTINE_ANNOTATION
from slipway.fleet.baremetal.machine.run import FORCE_ANNOTATION, RETRY_ANNOTATION
from slipway.fleet.baremetal.reasons import HOST_SILENT, NODE_GONE
from slipway.fleet.contract.conditions import moment
from slipway.fleet.controlplane.decisions.machines import LABELS_AND_TAINTS
from slipway.fleet.overview.stages import condition, host_of, machine_of
from slipway.kube.aio import PatchType
from slipway.kube.errors import AlreadyExistsError, ApiError, NotFoundError, UnreachableError
from slipway.simulation import manifests
from slipway.simulation.soak import objects, operations
from slipway.simulation.soak.judging.invariants import Broken
from slipway.simulation.soak.judging.rest import Wanted
from slipway.simulation.soak.judging.snapshot import annotations_of, is_control_plane, is_going, is_true, name_of, owner_of, state_of
from slipway.simulation.soak.options import NAMESPACE, PLANES, WORKERS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.simulation.soak.ground import Ground
    from slipway.simulation.soak.operations import Operation
    from slipway.simulation.soak.record import Record

_AGAIN = 0.5
# Reasons after which a Machine is deleted, as the reference of conditions says.
_GIVEN_UP = frozenset(
    (
        words.PLAN_FAILED_REASON,
        words.JOIN_DEADLINE_EXCEEDED_REASON,
        words.INVENTORY_LOST_REASON,
        words.NODE_VERSION_DIFFERS_REASON,
        NODE_GONE,
    )
)
# An operator does not act at the very moment.
_REACTION = timedelta(seconds=3)


class StalledError(Exception):
    """Nothing has happened for longer than anything takes."""


class Hand:
    """Writes what an operator writes."""

    def __init__(self, ground: Ground, record: Record) -> None:
        self._client, self._record, self._ground = ground.plane.client, record, ground

    async def create(self, kind: Kind, manifest: Manifest, cluster: str = "") -> None:
        async def write() -> None:
            try:
                await self._client.create(kind, manifest)
            except AlreadyExistsError:
                # The answer to an earlier attempt was lost.
                return

        await self._again(write, cluster, f"create {kind.kind} {manifest['metadata']['name']}")

    async def patch(self, kind: Kind, name: str, body: Manifest, cluster: str = "") -> None:
        await self._again(
            lambda: self._client.patch(kind, name, NAMESPACE, body, type=PatchType.MERGE), cluster, f"patch {kind.kind} {name}"
        )

    async def annotate(self, kind: Kind, name: str, annotation: str, value: str) -> None:
        """Where it is there still: what was seen may be gone by now."""

        async def write() -> None:
            try:
                await self._client.patch(kind, name, NAMESPACE, {"metadata": {"annotations": {annotation: value}}}, type=PatchType.MERGE)
            except NotFoundError:
                return

        await self._again(write, "", f"annotate {kind.kind} {name}")

    async def delete(self, kind: Kind, name: str, cluster: str = "") -> None:
        async def write() -> None:
            try:
                await self._client.delete(kind, name, NAMESPACE)
            except NotFoundError:
                return

        await self._again(write, cluster, f"delete {kind.kind} {name}")

    async def _again(self, write: Callable[[], Awaitable[object]], cluster: str, what: str) -> None:
        """Until it is done; whatever says no may say yes later."""
        end = time.monotonic() + self._ground.stalled
        told = ""
        while True:
            try:
                await write()
            except (ApiError, UnreachableError) as error:
                refused = isinstance(error, ApiError) and error.code < 500 and error.code not in (409, 429)
                if refused and error.message != told:
                    told = error.message
                    self._record.refused(cluster, what, error.message)
                if time.monotonic() > end:
                    raise StalledError(f"{what} is refused for {self._ground.stalled:.0f} s: {error.message}") from error
            else:
                return
            await asyncio.sleep(_AGAIN)


class ClusterOperator:
    """One cluster, from its making on; what it does follows from the seed and its name alone."""

    def __init__(self, ground: Ground, record: Record, cluster: str, place: objects.Place, seed: int) -> None:
        self._ground, self._record, self.names = ground, record, manifests.Names(cluster, NAMESPACE)
        self.place = place
        self._hand = Hand(ground, record)
        self._chance = random.Random(f"{seed}/{cluster}")
        self.shape = operations.Shape()
        self._workers_version = self.shape.version
        self.doing = ""
        self.stalled = False

    @property
    def cluster(self) -> str:
        return self.names.cluster

    @property
    def wanted(self) -> Wanted:
        return Wanted(PLANES, self.shape.workers, self.shape.version, self._workers_version)

    async def make(self) -> None:
        await self._do(operations.Operation(operations.MAKE, self.shape), _no_exchange)

    async def roll(self, over: asyncio.Event, exchange: Callable[[ClusterOperator], Awaitable[None]]) -> None:
        """One operation after the other until it is over; at rest then, and of the size that it had.  ``exchange`` changes a pool."""
        while not over.is_set() and not self.stalled:
            await self._do(operations.chosen(self._chance, self.shape), exchange)
        if self.shape.workers != WORKERS and not self.stalled:
            await self._do(operations.Operation(operations.SCALE, self.shape._replace(workers=WORKERS)), exchange)

    async def _do(self, operation: Operation, exchange: Callable[[ClusterOperator], Awaitable[None]]) -> None:
        began, before = time.monotonic(), self.shape
        self.doing = operation.name
        self._ground.watcher.touch(self.cluster)
        try:
            if operation.name == operations.POOL:
                await exchange(self)
            else:
                await getattr(self, f"_{operation.name}")(operation.after)
                await self._stands()
        except StalledError as stalled:
            self.stalled = True
            self._record.violation("goes-on", Broken((self.cluster,), f"{self.cluster} does not go on with {operation.name}: {stalled}"))
            return
        finally:
            self.doing = ""
        self._record.operation(self.cluster, operation.name, _told(operation.name, before, self.shape), time.monotonic() - began)

    async def _make(self, after: operations.Shape) -> None:
        for kind, manifest in objects.cluster(self.names, self.place, after.version):
            await self._hand.create(kind, manifest, self.cluster)

    async def _upgrade(self, after: operations.Shape) -> None:
        self.shape = after
        await self._hand.patch(KUBEADM_CONTROL_PLANE, self.names.plane, manifests.control_plane_edit(after.version), self.cluster)
        await self._stands()
        self._workers_version = after.version
        await self._hand.patch(MACHINE_DEPLOYMENT, self.names.workers, manifests.workers_patch(after.version), self.cluster)

    async def _scale(self, after: operations.Shape) -> None:
        self.shape = after
        await self._hand.patch(MACHINE_DEPLOYMENT, self.names.workers, {"spec": {"replicas": after.workers}}, self.cluster)

    async def _templates(self, after: operations.Shape) -> None:
        before, self.shape = self.shape, after
        for kind, manifest in objects.templates(self.names, after.generation):
            await self._hand.create(kind, manifest, self.cluster)
        machine = manifests.template_references(objects.template(self.names, after.generation))
        await self._hand.patch(MACHINE_DEPLOYMENT, self.names.workers, {"spec": {"template": {"spec": machine}}}, self.cluster)
        await self._stands()
        for kind in (BAREMETAL_MACHINE_TEMPLATE, KUBEADM_CONFIG_TEMPLATE):
            await self._hand.delete(kind, objects.template(self.names, before.generation), self.cluster)

    async def _roll(self, after: operations.Shape) -> None:
        old = {name_of(each) for each in self._machines() if is_control_plane(each)}
        moment_ = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        await self._hand.patch(KUBEADM_CONTROL_PLANE, self.names.plane, {"spec": {"rollout": {"after": moment_}}}, self.cluster)
        await self._until(lambda: not old & {name_of(each) for each in self._machines()}, "the old control planes do not go")

    async def _remake(self, after: operations.Shape) -> None:
        generation = self.shape.generation
        await self._hand.delete(CLUSTER, self.cluster, self.cluster)
        await self._gone(CLUSTER, self.cluster)
        for kind, name in (
            (MACHINE_INVENTORY_POOL, self.names.plane_pool),
            (MACHINE_INVENTORY_POOL, self.names.worker_pool),
            (BAREMETAL_MACHINE_TEMPLATE, self.names.plane),
            (BAREMETAL_MACHINE_TEMPLATE, objects.template(self.names, generation)),
            (KUBEADM_CONFIG_TEMPLATE, objects.template(self.names, generation)),
        ):
            await self._hand.delete(kind, name, self.cluster)
            await self._gone(kind, name)
        await self._ground.forget(self.cluster)
        self.shape, self._workers_version = after, after.version
        await self._make(after)

    def exchange_host(self, role: str, old: str, new: str) -> None:
        """A host of a pool is another one from now on."""
        if role == "planes":
            self.place = self.place._replace(planes=[new if each == old else each for each in self.place.planes])
        else:
            self.place = self.place._replace(workers=[new if each == old else each for each in self.place.workers])

    async def write_pools(self) -> None:
        for pool, hosts in ((self.names.plane_pool, self.place.planes), (self.names.worker_pool, self.place.workers)):
            await self._hand.patch(MACHINE_INVENTORY_POOL, pool, {"spec": {"machineInventories": manifests.members(hosts)}}, self.cluster)

    # Waiting.

    def _machines(self) -> list[Manifest]:
        return self._ground.watcher.now.in_cluster(MACHINE, self.cluster)

    def stands(self) -> bool:
        """Whether every Machine is there, in its version, and well, and none is going."""
        wanted = Counter({(True, self.shape.version): PLANES})
        wanted[False, self._workers_version] += self.shape.workers
        found = Counter(
            (is_control_plane(each), str(each["spec"].get("version")) if is_true(each, READY_CONDITION) and not is_going(each) else "")
            for each in self._machines()
        )
        return found == +wanted and self._is_rolled()

    def _is_rolled(self) -> bool:
        """Whether the controllers have seen what was asked for last, and have nothing left to do."""
        now = self._ground.watcher.now
        for kind, name in ((KUBEADM_CONTROL_PLANE, self.names.plane), (MACHINE_DEPLOYMENT, self.names.workers)):
            found = now.get(kind, name)
            if found is None:
                return False
            status, replicas = found.get("status") or {}, found["spec"].get("replicas")
            if status.get("observedGeneration") != found["metadata"].get("generation"):
                return False
            if any(status.get(each) != replicas for each in ("replicas", "upToDateReplicas", "readyReplicas")):
                return False
        return True

    async def _stands(self) -> None:
        await self._until(self.stands, "its Machines are not what was asked for")

    async def _gone(self, kind: Kind, name: str) -> None:
        await self._until(lambda: self._ground.watcher.now.get(kind, name) is None, f"{kind.kind} {name} does not go")

    async def _until(self, holds: Callable[[], bool], problem: str) -> None:
        watcher, stalled = self._ground.watcher, self._ground.stalled
        while not holds():
            self._ground.check()
            if watcher.quiet(self.cluster) > stalled:
                raise StalledError(f"{problem}, and nothing was written for {stalled:.0f} s")
            await watcher.changed(1.0)


class Repairer:
    """Does what conditions ask of an operator, and nothing else."""

    def __init__(self, ground: Ground, record: Record, operators: Sequence[ClusterOperator], dead: set[str]) -> None:
        self._ground, self._record, self._operators, self._dead = ground, record, operators, dead
        self._hand = Hand(ground, record)
        self._done: set[tuple[str, str]] = set()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            for machine in list(self._ground.watcher.now.of(BAREMETAL_MACHINE).values()):
                try:
                    await self._look_at(machine)
                except StalledError as stalled:
                    self._record.violation("goes-on", Broken((name_of(machine),), str(stalled)))

    async def _look_at(self, machine: Manifest) -> None:
        name, host = name_of(machine), host_of(machine)
        if is_going(machine):
            cleaned = condition(machine, words.HOST_CLEANED_CONDITION).get("reason")
            if cleaned == words.CLEAN_FAILED_REASON:
                await self._annotate(machine, RETRY_ANNOTATION, f"{name}: {words.CLEAN_FAILED_REASON}")
            elif host in self._dead and cleaned == words.CLEAN_DEADLINE_EXCEEDED_REASON:
                await self._annotate(machine, FORCE_ANNOTATION, f"{name}: {words.CLEAN_DEADLINE_EXCEEDED_REASON}, and {host} is dead")
            return
        reasons = [
            str(each.get("reason"))
            for each in (machine.get("status") or {}).get("conditions") or ()
            if each.get("status") == "False" and _is_old(each)
        ]
        given_up = next((each for each in reasons if each in _GIVEN_UP or (each == HOST_SILENT and host in self._dead)), "")
        if not given_up and host and host in self._dead:
            given_up = "the host is dead"
        if not given_up and self._joined_in_part(machine):
            given_up = LABELS_AND_TAINTS
        if given_up:
            await self._delete_machine(machine, given_up)

    def _joined_in_part(self, machine: Manifest) -> bool:
        """Whether a control plane has a Node, and its join did not come to its end: that of a host whose clock was ahead, for one."""
        found = self._ground.watcher.now.get(MACHINE, machine_of(machine))
        marked = condition(found, LABELS_AND_TAINTS) if found is not None else {}
        return marked.get("status") == "False" and _is_old(marked, self._ground.deadline)

    async def _delete_machine(self, machine: Manifest, reason: str) -> None:
        owner = machine_of(machine)
        if not owner or (owner, "deleted") in self._done:
            return
        self._done.add((owner, "deleted"))
        self._ground.watcher.deleted_by_hand.add(owner)
        cluster = str((machine["metadata"].get("labels") or {}).get("cluster.x-k8s.io/cluster-name", ""))
        self._record.act("delete-machine", (owner, host_of(machine)), f"{owner} is deleted: {reason}", cluster)
        await self._hand.delete(MACHINE, owner, cluster)

    async def _annotate(self, machine: Manifest, annotation: str, text: str) -> None:
        name = name_of(machine)
        if annotation in annotations_of(machine):
            return
        self._record.act(annotation.rpartition("/")[2], (name, host_of(machine)), text)
        await self._hand.annotate(BAREMETAL_MACHINE, name, annotation, "soak")


def is_free(inventory: Manifest | None) -> bool:
    """Whether a host is registered, nobody's, and clean."""
    if inventory is None or owner_of(inventory) or QUARANTINE_ANNOTATION in annotations_of(inventory):
        return False
    return state_of(inventory) in ("", words.AVAILABLE) and is_true(inventory, READY_CONDITION)


def _is_old(found: Manifest, least: timedelta = _REACTION) -> bool:
    since = moment(found.get("lastTransitionTime"))
    return since is not None and datetime.now(UTC) - since > least


async def _no_exchange(operator: ClusterOperator) -> None:
    """What is made has no pool to change."""


def _told(name: str, before: operations.Shape, after: operations.Shape) -> str:
    if name == operations.MAKE:
        return after.version
    if name == operations.UPGRADE:
        return f"{before.version} → {after.version}"
    if name == operations.REMAKE:
        return f"{before.version} → gone → {after.version}"
    if name == operations.SCALE:
        return f"{before.workers} → {after.workers} workers"
    return operations.MEANINGS[name]
