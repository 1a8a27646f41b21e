"""What goes wrong in a soak: drawn from the seed before anything is known, and brought about to whatever is there then.

Everything is mended after its time, or when the round is over: by the one who unplugged it, or as an operator would mend it.
"""

from __future__ import annotations

import random
from base64 import b64encode
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from slipway.api.cluster.infrastructure import names as words
from slipway.api.cluster.kinds import CONFIG_MAP, MACHINE_INVENTORY, SECRET
from slipway.api.elemental import plan as plans
from slipway.embedded.errors import StatusError
from slipway.fleet.baremetal.plans.planfacts import plan_facts
from slipway.kube.aio import PatchType
from slipway.kube.errors import ApiError, UnreachableError
from slipway.simulation.host.faults import Interruption
from slipway.simulation.soak import objects
from slipway.simulation.soak.options import NAMESPACE, VERSIONS
from slipway.simulation.workload.controllers import BUDGET

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.simulation.soak.soak import Soak

INSTRUCTIONS = {words.PLAN_CLEAN: 4, words.PLAN_REPROVISION: 8}
# Seconds: between two faults of all clusters, and of one of them.
_BETWEEN = 5.0
_SHORT, _LONG = (1.0, 8.0), (4.0, 25.0)
_DAY = 86_400.0
_BUDGET = "soak-blocks"
Picked = TypeVar("Picked")


class Draw(NamedTuple):
    """One fault to be; what it happens to is the share ``pick`` of what there is."""

    kind: str
    after: float
    """Seconds after the one before."""
    pick: float
    lasts: float
    place: float
    """Where in a plan, or which of several ways."""


class Fault(NamedTuple):
    text: str
    weight: int
    occur: Callable[[Soak, Draw], Awaitable[bool]]
    """Whether there was something that it could happen to."""
    lasts: tuple[float, float] = _SHORT


def draws(seed: int, clusters: int, only: Sequence[str] = ()) -> Iterator[Draw]:
    """For ever: the same for the same seed."""
    chance = random.Random(f"{seed}/faults")
    kinds = [kind for kind in FAULTS if not only or kind in only]
    weights = [FAULTS[kind].weight for kind in kinds]
    while kinds:
        kind = chance.choices(kinds, weights=weights)[0]
        after = chance.expovariate(1.0 / max(_BETWEEN / max(clusters / 4, 1.0), 1.0))
        yield Draw(kind, after, chance.random(), chance.uniform(*FAULTS[kind].lasts), chance.random())


# The management plane.


async def api_away(soak: Soak, draw: Draw) -> bool:
    if not soak.api.acquire():
        return False
    try:
        soak.record.fault("api-away", (), f"the API server is away for {draw.lasts:.1f} s")
        await soak.ground.api_down()
        await soak.pause(draw.lasts)
        await soak.ground.api_up()
    finally:
        soak.api.release()
    return True


async def registry_away(soak: Soak, draw: Draw) -> bool:
    registry = soak.ground.world.registry
    if not registry.reachable:
        return False
    soak.record.fault("registry-away", (), f"hosts do not reach the registry for {draw.lasts:.1f} s")
    registry.reachable = False
    await soak.pause(draw.lasts)
    registry.reachable = True
    return True


async def registry_breaks(soak: Soak, draw: Draw) -> bool:
    number = 1 + int(draw.place * 3)
    soak.record.fault("registry-breaks", (), f"the next {number} pulls end in the middle of a layer")
    soak.ground.world.registry.broken += number
    await soak.pause(draw.lasts)
    soak.ground.world.registry.broken = 0
    return True


async def registry_slow(soak: Soak, draw: Draw) -> bool:
    registry = soak.ground.world.registry
    if not registry.flows.is_set():
        return False
    soak.record.fault("registry-slow", (), f"no layer gets on for {draw.lasts:.1f} s")
    registry.flows.clear()
    await soak.pause(draw.lasts)
    registry.flows.set()
    return True


async def catalog_key_removed(soak: Soak, draw: Draw) -> bool:
    version = VERSIONS[int(draw.pick * len(VERSIONS))]
    soak.record.fault("catalog-key-removed", (version,), f"the catalog has no {version} for {draw.lasts:.1f} s")
    await soak.hand.patch(CONFIG_MAP, words.CATALOG_NAME, {"data": {version: None}})
    await soak.pause(draw.lasts)
    await soak.hand.patch(CONFIG_MAP, words.CATALOG_NAME, {"data": {version: objects.image(version)}})
    return True


# Hosts.


async def agent_killed(soak: Soak, draw: Draw) -> bool:
    host = _picked(soak.hosts_in_use(), draw.pick)
    if host is None or not host.machine.ready:
        return False
    soak.record.fault("agent-killed", (host.machine.hardware.name,), f"the agent of {host.machine.hardware.name} dies")
    host.kill_agent()
    return True


async def agent_killed_in_plan(soak: Soak, draw: Draw) -> bool:
    return await _interrupted(soak, draw, "agent")


async def power_cut_in_plan(soak: Soak, draw: Draw) -> bool:
    return await _interrupted(soak, draw, "power")


async def _interrupted(soak: Soak, draw: Draw, what: str) -> bool:
    """In some instruction of the next plan of a host; one that loses its power is switched on again after a while."""
    found = [host for host in soak.hosts_in_use() if not host.machine.faults.interruptions]
    host = _picked(found, draw.pick)
    if host is None:
        return False
    name, machine = host.machine.hardware.name, host.machine
    number, done = 1 + int(draw.place * INSTRUCTIONS[words.PLAN_REPROVISION]), int(draw.place * 1000) % 2 == 1
    async with soak.hold(name) as held:
        if not held:
            return False
        machine.faults.interruptions = due = [Interruption("power" if what == "power" else "agent", number, done)]
        # From the very moment on, and not only when that is noticed here.
        with soak.ground.cut(name, due) if what == "power" else nullcontext():
            if not await soak.until_calm(lambda: not due):
                machine.faults.interruptions = []
                return False
            when = "after" if done else "before"
            soak.record.fault(f"{what}-gone-in-plan", (name,), f"{name} loses its {what} {when} instruction {number} of a plan")
            if what == "power":
                await soak.pause(draw.lasts)
                await host.power_on()
    return True


async def power_cut(soak: Soak, draw: Draw) -> bool:
    host = _picked(soak.hosts_in_use(), draw.pick)
    if host is None:
        return False
    name = host.machine.hardware.name
    async with soak.hold(name) as held:
        if not held:
            return False
        soak.record.fault("power-cut", (name,), f"{name} has no power for {draw.lasts:.1f} s")
        with soak.ground.cut(name):
            host.power_off()
            await soak.pause(draw.lasts)
            await host.power_on()
    return True


async def host_dead(soak: Soak, draw: Draw) -> bool:
    """For good: another one takes its place in the pool.  At the end of the round somebody has repaired it."""
    host = _picked([each for each in soak.hosts_in_use() if soak.may_die(each)], draw.pick)
    spare = soak.standby.pop() if soak.standby else None
    if host is None or spare is None:
        if spare is not None:
            soak.standby.append(spare)
        return False
    name = host.machine.hardware.name
    async with soak.hold(name) as held:
        if not held:
            soak.standby.append(spare)
            return False
        soak.record.fault("host-dead", (name,), f"{name} dies; {spare} takes its place in the pool")
        with soak.ground.cut(name):
            soak.dead.add(name)
            host.machine.faults.dead = True
            host.power_off()
            await soak.replace(name, spare)
            await soak.until_calm(lambda: False)
            host.machine.faults.dead = False
            await host.power_on()
        soak.dead.discard(name)
        soak.returning.append(name)
    return True


async def link_flaps(soak: Soak, draw: Draw) -> bool:
    """A host reaches nobody of its cluster, and nobody reaches it: once for long, or again and again."""
    host = _picked(soak.hosts_in_use(), draw.pick)
    if host is None:
        return False
    name, times = host.machine.hardware.name, 1 + int(draw.place * 4)
    async with soak.hold(name) as held:
        if not held:
            return False
        soak.record.fault("link-flaps", (name,), f"{name} is cut off from its cluster, {times} times in {draw.lasts:.1f} s")
        with soak.ground.cut(name):
            for _ in range(times):
                for cut_off in (True, False):
                    host.machine.faults.cut_off = cut_off
                    host.machine.changed()
                    await soak.pause(draw.lasts / times / 2)
    return True


async def clock_wrong(soak: Soak, draw: Draw) -> bool:
    host = _picked(soak.hosts_in_use(), draw.pick)
    if host is None or host.machine.faults.clock:
        return False
    name, by = host.machine.hardware.name, _DAY if draw.place < 0.5 else -_DAY
    soak.record.fault("clock-wrong", (name,), f"the clock of {name} is {'ahead' if by > 0 else 'behind'} by a day for {draw.lasts:.1f} s")
    host.machine.faults.clock = by
    await soak.pause(draw.lasts)
    host.machine.faults.clock = 0.0
    return True


async def disk_full(soak: Soak, draw: Draw) -> bool:
    host = _picked(soak.hosts_in_use(), draw.pick)
    if host is None or host.machine.faults.disk_full:
        return False
    name = host.machine.hardware.name
    soak.record.fault("disk-full", (name,), f"the disk of {name} is full for {draw.lasts:.1f} s")
    host.machine.faults.disk_full = True
    await soak.pause(draw.lasts)
    host.machine.faults.disk_full = False
    return True


async def upgrade_fails(soak: Soak, draw: Draw) -> bool:
    host = _picked(soak.hosts_in_use(), draw.pick)
    if host is None or host.machine.faults.cannot_upgrade:
        return False
    name = host.machine.hardware.name
    soak.record.fault("upgrade-fails", (name,), f"elemental upgrade fails on {name} for {draw.lasts:.1f} s")
    host.machine.faults.cannot_upgrade = 33
    await soak.pause(draw.lasts)
    host.machine.faults.cannot_upgrade = 0
    return True


async def keepalived_fails(soak: Soak, draw: Draw) -> bool:
    host = _picked(soak.hosts_in_use(control_plane=True), draw.pick)
    if host is None or host.machine.faults.keepalived_fails:
        return False
    name = host.machine.hardware.name
    soak.record.fault("keepalived-fails", (name,), f"keepalived of {name} fails for {draw.lasts:.1f} s")
    host.machine.faults.keepalived_fails = True
    host.machine.changed()
    await soak.pause(draw.lasts)
    host.machine.faults.keepalived_fails = False
    host.machine.changed()
    return True


# Plans.


async def plan_secret_deleted(soak: Soak, draw: Draw) -> bool:
    found = _picked(sorted(soak.ground.watcher.now.of(MACHINE_INVENTORY)), draw.pick)
    if found is None:
        return False
    soak.record.fault("plan-secret-deleted", (found,), f"the plan Secret of {found} is deleted by hand")
    soak.ground.watcher.edited_by_hand.add(found)
    await soak.hand.delete(SECRET, found)
    return True


async def plan_secret_edited(soak: Soak, draw: Draw) -> bool:
    """Of a host that is at nothing: its plan is another one, which nobody has asked for."""
    now = soak.ground.watcher.now
    found = _picked([name for name in sorted(now.of(MACHINE_INVENTORY)) if _is_idle(now.get(SECRET, name))], draw.pick)
    if found is None:
        return False
    text = b'{"instructions":[{"name":"by-hand-%d","command":"true"}]}' % int(draw.place * 1_000_000)
    soak.record.fault("plan-secret-edited", (found,), f"the plan of {found} is edited by hand")
    soak.ground.watcher.edited_by_hand.add(found)
    try:
        await soak.ground.plane.client.patch(
            SECRET, found, NAMESPACE, {"data": {plans.PLAN: b64encode(text).decode()}}, type=PatchType.MERGE
        )
    except (ApiError, UnreachableError):
        # Whoever edits by hand while the API server is away tries it no second time.
        return False
    return True


# Workload clusters.


async def eviction_blocked(soak: Soak, draw: Draw) -> bool:
    """A budget that lets none of the DNS Pods go: whoever drains their Nodes waits."""
    cluster = _picked(sorted(soak.ground.vips), draw.pick)
    found = soak.ground.workload(cluster) if cluster is not None else None
    if found is None or cluster is None or found.client.find(BUDGET, _BUDGET, "kube-system") is not None:
        return False
    budget = {"maxUnavailable": 0, "selector": {"matchLabels": {"k8s-app": "kube-dns"}}}
    soak.record.fault("eviction-blocked", (), f"a budget of {cluster} lets no DNS Pod go for {draw.lasts:.1f} s", cluster)
    try:
        await found.client.create(BUDGET, {"metadata": {"name": _BUDGET, "namespace": "kube-system"}, "spec": budget})
        await soak.pause(draw.lasts)
        await found.client.delete(BUDGET, _BUDGET, "kube-system")
    except StatusError:
        # The cluster was deleted meanwhile, with all that was in it.
        return True
    return True


FAULTS: dict[str, Fault] = {
    "agent-killed": Fault("the agent of a host dies, and systemd starts it again", 3, agent_killed),
    "agent-gone-in-plan": Fault("the agent dies before or after an instruction of a plan", 3, agent_killed_in_plan),
    "power-cut": Fault("a host loses its power and gets it back", 4, power_cut),
    "power-gone-in-plan": Fault("the power goes before or after an instruction of a plan", 3, power_cut_in_plan),
    "host-dead": Fault("a host dies for good; another one is put into its pool", 2, host_dead),
    "upgrade-fails": Fault("elemental upgrade fails on a host", 2, upgrade_fails, _LONG),
    "keepalived-fails": Fault("keepalived of a control plane fails: the address goes to another", 2, keepalived_fails),
    "link-flaps": Fault("a host is cut off from its cluster, once or again and again", 3, link_flaps, _LONG),
    "clock-wrong": Fault("the clock of a host is wrong by a day", 1, clock_wrong, _LONG),
    "disk-full": Fault("nothing can be written to the disk of a host", 1, disk_full),
    "registry-breaks": Fault("pulls end in the middle of a layer", 1, registry_breaks, _LONG),
    "registry-slow": Fault("no layer that is pulled gets on", 1, registry_slow),
    "registry-away": Fault("no host reaches the registry", 1, registry_away),
    "catalog-key-removed": Fault("a version is taken out of the catalog and put back", 2, catalog_key_removed, _LONG),
    "plan-secret-deleted": Fault("a plan Secret is deleted by hand", 1, plan_secret_deleted),
    "plan-secret-edited": Fault("the plan of a host that is at nothing is edited by hand", 1, plan_secret_edited),
    "eviction-blocked": Fault("a PodDisruptionBudget lets no Pod of DNS go", 2, eviction_blocked, _LONG),
    "api-away": Fault("the API server of the management cluster is stopped and started again", 1, api_away),
}
MANAGER_KILLED = "manager-killed"
KINDS = (*FAULTS, MANAGER_KILLED)


def _picked(found: Sequence[Picked], pick: float) -> Picked | None:
    return found[int(pick * len(found))] if found else None


def _is_idle(secret: Manifest | None) -> bool:
    return secret is not None and not plan_facts(secret).in_flight
