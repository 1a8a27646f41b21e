"""What can be made to go wrong in a demonstration: how it comes about, what tells it, and what mends it.

Each is a row of the upgrade guide's *Troubleshooting* table, or a part of the system that fails.  What is mended is mended as an operator
would, with what the conditions and the reference of them say.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY_POOL,
)
from slipway.api.machinery.errors import UsageError
from slipway.demo import events, manifests
from slipway.demo.events import Event
from slipway.demo.options import CLUSTER as NAME
from slipway.demo.options import PLANE, WORKERS, WORKERS_POOL
from slipway.fleet.baremetal.rollouts.guards import SKIP_ANNOTATION
from slipway.fleet.overview import stages
from slipway.fleet.overview.problems import LASTING, to_do
from slipway.fleet.overview.stages import condition, host_of, machine_of, stage
from slipway.kube.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.demo.options import Options
    from slipway.demo.story import Story
    from slipway.simulation.boot import Life

# How long the manager or the API server is away.
_AWAY = 2.0


class Fault:
    """One thing that goes wrong, once, during the upgrade."""

    text = ""
    """What goes wrong, in a sentence."""
    spares = 0
    """How many hosts it needs that are in no pool."""
    workers = 0
    """How many workers it needs."""
    restarts = False
    """Whether the API server is stopped and started again, and so has to keep its objects."""
    misses_deadline = False
    """Whether a host is waited for until its time to join is over."""

    def check(self, options: Options, name: str) -> None:
        if options.spare < self.spares:
            raise UsageError(
                f"--fault {name} needs {self.spares} host more than the cluster has: say --hosts {options.needed + self.spares}"
            )
        if options.workers < self.workers:
            raise UsageError(f"--fault {name} needs {self.workers} worker: raise --workers")

    def left_out(self, options: Options) -> Sequence[str]:
        """Versions that the catalog does not have."""
        return ()

    async def prepare(self, story: Story) -> None:
        """Before the upgrade begins."""

    async def occur(self, story: Story) -> None:
        """While it goes on; it ends when what went wrong is mended."""


class CatalogMiss(Fault):
    text = "the image catalog has no image of the target version"

    def left_out(self, options: Options) -> Sequence[str]:
        return [options.steps[0]]

    async def prepare(self, story: Story) -> None:
        version = story.options.steps[0]
        await _refused(story, KUBEADM_CONTROL_PLANE, PLANE, manifests.control_plane_edit(version))
        await _skip_guard(story, KUBEADM_CONTROL_PLANE, PLANE, "ImageCatalog")

    async def occur(self, story: Story) -> None:
        await _told(story, names.IMAGE_RESOLVED_CONDITION, names.IMAGE_CATALOG_MISS_REASON)
        story.note("The version is added to the catalog; nothing needs to be restarted.")
        await story.patch_catalog(story.options.steps[0])


class RegistryMissing(Fault):
    text = f"the Cluster lacks the annotation {names.REGISTRY_ADDRESS_ANNOTATION}"

    async def prepare(self, story: Story) -> None:
        await story.patch(CLUSTER, NAME, {"metadata": {"annotations": {names.REGISTRY_ADDRESS_ANNOTATION: None}}})

    async def occur(self, story: Story) -> None:
        await _told(story, names.IMAGE_RESOLVED_CONDITION, names.IMAGE_REGISTRY_MISSING_REASON)
        story.note("The Cluster is told its registry again.")
        await story.patch(CLUSTER, NAME, {"metadata": {"annotations": {names.REGISTRY_ADDRESS_ANNOTATION: manifests.REGISTRY}}})


class RegistryUnreachable(Fault):
    text = "hosts do not reach the registry of their images"

    async def prepare(self, story: Story) -> None:
        story.world.registry.reachable = False

    async def occur(self, story: Story) -> None:
        failed = await _told(story, names.PLAN_APPLIED_CONDITION, names.PLAN_FAILED_REASON)
        story.note("The registry answers again. A plan that failed is not tried again by itself: the Machine is deleted.")
        story.world.registry.reachable = True
        await story.delete(MACHINE, machine_of(failed))


class PlanFailed(Fault):
    text = "elemental upgrade fails on a worker's host"
    workers = 1

    async def prepare(self, story: Story) -> None:
        for host in story.worker_hosts():
            host.machine.faults.cannot_upgrade = 33

    async def occur(self, story: Story) -> None:
        failed = await _told(story, names.PLAN_APPLIED_CONDITION, names.PLAN_FAILED_REASON)
        story.note("The hosts are mended. A plan that failed is not tried again by itself: the Machine is deleted.")
        for host in story.worker_hosts():
            host.machine.faults.cannot_upgrade = 0
        await story.delete(MACHINE, machine_of(failed))


class JoinFailed(Fault):
    text = "kubeadm join fails on every host"
    misses_deadline = True

    async def prepare(self, story: Story) -> None:
        for host in story.hosts:
            host.machine.faults.fails = {"kubeadm": 1}

    async def occur(self, story: Story) -> None:
        failed = await _told(story, names.NODE_JOINED_CONDITION, names.JOIN_DEADLINE_EXCEEDED_REASON)
        story.note("What kept hosts from joining is mended, and the Machine is deleted.")
        for host in story.hosts:
            host.machine.faults.fails = {}
        await story.delete(MACHINE, machine_of(failed))


class MaxSurge(Fault):
    text = "the workers have maxSurge 1, and their pool has no host for one more"
    workers = 1

    async def prepare(self, story: Story) -> None:
        surge = {"spec": {"rollout": {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}}}
        await _refused(story, MACHINE_DEPLOYMENT, WORKERS, surge)
        await _skip_guard(story, MACHINE_DEPLOYMENT, WORKERS, "MaxSurge")
        await story.patch(MACHINE_DEPLOYMENT, WORKERS, surge)

    async def occur(self, story: Story) -> None:
        await _told(story, names.INVENTORY_ALLOCATED_CONDITION, names.POOL_EXHAUSTED_REASON)
        story.note("maxSurge becomes 0: a node goes before another one comes.")
        budget = {"maxSurge": 0, "maxUnavailable": 1}
        await story.patch(MACHINE_DEPLOYMENT, WORKERS, {"spec": {"rollout": {"strategy": {"rollingUpdate": budget}}}})


class PoolExhausted(Fault):
    text = "a worker's host is taken out of its pool for repair, and the pool is too small"
    workers = 1
    spares = 1

    async def prepare(self, story: Story) -> None:
        await story.patch(MACHINE_INVENTORY_POOL, WORKERS_POOL, {"spec": {"machineInventories": _members(story.worker_hosts()[:-1])}})

    async def occur(self, story: Story) -> None:
        await _told(story, names.INVENTORY_ALLOCATED_CONDITION, names.POOL_EXHAUSTED_REASON)
        story.note("A spare host is added to the pool.")
        hosts = [*story.worker_hosts()[:-1], story.spare_hosts()[0]]
        await story.patch(MACHINE_INVENTORY_POOL, WORKERS_POOL, {"spec": {"machineInventories": _members(hosts)}})


class HostDead(Fault):
    text = "a host dies while it boots"
    misses_deadline = True

    async def occur(self, story: Story) -> None:
        host = await _booting(story)
        story.record.tell(Event(events.FAULT, host=host.machine.hardware.name, text=f"{host.machine.hardware.name} loses its power"))
        host.machine.faults.dead = True
        host.power_off()
        await _told(story, names.NODE_JOINED_CONDITION, names.JOIN_DEADLINE_EXCEEDED_REASON)
        story.note(f"{host.machine.hardware.name} is mended and switched on: it goes on where it was.")
        host.machine.faults.dead = False
        await host.power_on()


class VipLost(Fault):
    text = "keepalived fails on the control planes, and nobody holds the virtual address"

    async def occur(self, story: Story) -> None:
        await _booting(story)
        _keepalived(story, fails=True)
        story.record.tell(Event(events.FAULT, text=f"{story.vip} is on no host: the API server of the cluster does not answer"))
        kind, told, reason = BAREMETAL_CLUSTER, names.VIP_READY_CONDITION, names.VIP_API_NOT_REACHABLE_REASON
        found = await _told(story, told, reason, kind)
        # It ends by itself where the address comes back, so the timeline does not show it.
        story.note(f"{kind.kind} {NAME}: {told}: {reason}: {condition(found, told).get('message')} → {to_do(kind.kind, told, reason)}")
        story.note("keepalived runs again, and one of the hosts takes the address. Hosts that wait to join do so by themselves.")
        _keepalived(story, fails=False)


def _keepalived(story: Story, *, fails: bool) -> None:
    for host in story.plane_hosts():
        host.machine.faults.keepalived_fails = fails
        host.machine.changed()


class ManagerKilled(Fault):
    text = "the manager is killed in the middle of the rollout"

    async def occur(self, story: Story) -> None:
        await _booting(story)
        await story.plane.kill_manager()
        story.record.tell(Event(events.FAULT, text="the manager is dead; hosts go on with what they were told"))
        await asyncio.sleep(_AWAY)
        story.note("Another manager starts. Nothing was remembered but what stands in the objects.")
        story.plane.start_manager()


class ApiDown(Fault):
    text = "the API server of the management cluster is away for a while"
    restarts = True

    async def occur(self, story: Story) -> None:
        await _booting(story)
        await story.plane.server.stop()
        story.record.tell(Event(events.FAULT, text="the API server does not answer"))
        await asyncio.sleep(_AWAY)
        await story.plane.server.start()
        story.note("The API server answers again; manager and hosts find it by themselves.")


FAULTS: dict[str, Callable[[], Fault]] = {
    "api-down": ApiDown,
    "catalog-miss": CatalogMiss,
    "host-dead": HostDead,
    "join-failed": JoinFailed,
    "manager-killed": ManagerKilled,
    "max-surge": MaxSurge,
    "plan-failed": PlanFailed,
    "pool-exhausted": PoolExhausted,
    "registry-missing": RegistryMissing,
    "registry-unreachable": RegistryUnreachable,
    "vip-lost": VipLost,
}


def made(options: Options) -> Fault | None:
    """The fault that is asked for; a sentence where there is none such, or not in such a cluster."""
    if not options.fault:
        return None
    if options.fault not in FAULTS:
        raise UsageError(f'"{options.fault}" is not a value of --fault: use {", ".join(FAULTS)}')
    if not options.upgrade:
        raise UsageError("--fault is about an upgrade: it does not go with --no-upgrade")
    found = FAULTS[options.fault]()
    found.check(options, options.fault)
    return found


async def _told(story: Story, condition_type: str, reason: str, kind: Kind = BAREMETAL_MACHINE) -> Manifest:
    """Wait until a BaremetalMachine, or another object, says so; it.  What the whole cluster then waits for is explained."""

    def saying() -> list[Manifest]:
        return [each for each in story.scene.all(kind) if condition(each, condition_type).get("reason") == reason]

    await story.until(lambda: bool(saying()))
    found = saying()[0]
    await story.explain(lasting=reason in LASTING)
    return found


async def _booting(story: Story) -> Life:
    """Wait until a host boots; it."""

    def booting() -> list[str]:
        return [host_of(each) for each in story.scene.all(BAREMETAL_MACHINE) if stage(each) == stages.BOOTING]

    await story.until(lambda: bool(booting()))
    return story.world.hosts[booting()[0]]


async def _refused(story: Story, kind: Kind, name: str, body: Manifest) -> None:
    """Try what the guards are to refuse."""
    try:
        await story.patch(kind, name, body)
    except ApiError as error:
        story.record.tell(Event(events.REFUSED, kind=kind.kind, name=name, text=error.message))
    else:
        story.note("No guard has refused that.")


async def _skip_guard(story: Story, kind: Kind, name: str, guard: str) -> None:
    story.note("Here the guard is told to let it pass, to see what would happen.")
    await story.patch(kind, name, {"metadata": {"annotations": {SKIP_ANNOTATION: guard}}})


def _members(hosts: Sequence[Life]) -> list[Manifest]:
    return [{"name": host.machine.hardware.name} for host in hosts]
