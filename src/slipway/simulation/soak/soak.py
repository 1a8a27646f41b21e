"""The run, top to bottom: hosts register, clusters are made, and round after round they are rolled while things go wrong.

Each round ends with everything mended and at rest, in clusters of the same size: then nothing may be left over, and the manager's memory is
measured.  In the first rounds the manager is killed again and again; the one that is there after them lives to the end.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from slipway.api.cluster.infrastructure import names as words
from slipway.api.cluster.kinds import (
    BAREMETAL_MACHINE,
    CONFIG_MAP,
    KUBEADM_CONTROL_PLANE,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    MACHINE_REGISTRATION,
    MACHINE_SET,
)
from slipway.fleet.overview.stages import host_of
from slipway.simulation.managers import usage
from slipway.simulation.soak import objects
from slipway.simulation.soak.faults import FAULTS, MANAGER_KILLED, draws
from slipway.simulation.soak.ground import Ground
from slipway.simulation.soak.judging import rest
from slipway.simulation.soak.judging.invariants import Broken
from slipway.simulation.soak.judging.snapshot import cluster_of, is_control_plane, owner_of, state_of
from slipway.simulation.soak.operator import ClusterOperator, Hand, Repairer, StalledError, is_free
from slipway.simulation.soak.options import PLANES, VERSIONS, WORKER_HOSTS
from slipway.simulation.soak.record import ENDED, LIMIT, PROGRESS, STARTED, Event, Record, Sample, growth

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from slipway.simulation.boot import Life
    from slipway.simulation.soak.faults import Draw
    from slipway.simulation.soak.options import Options

# Seconds between two looks at the memory, and between two lines that say how far it is.
_SAMPLE, _PROGRESS = 2.0, 5.0
# At rest nothing is written for so long; where it has not come after so long it does not come.
_SETTLED, _RESTLESS = 2.0, 900.0
_MAKING = 6
"""So many clusters are made at once."""
# The manager is killed after so many writes at most, for each cluster more; or, where there are none, after so much of its processor time,
# so that one on a slow machine has come as far.  Most of the time it has started before: that takes so much.
_WRITES, _WRITES_MORE, _KILL_CPU, _STARTED, _MOSTLY = 30, 10, (1.5, 5.0), 1.0, 0.8


class Switch:
    """Something that only one fault at a time may do."""

    def __init__(self) -> None:
        self._taken = False

    def acquire(self) -> bool:
        taken, self._taken = self._taken, True
        return not taken

    def release(self) -> None:
        self._taken = False


class Soak:
    def __init__(self, options: Options, record: Record, folder: Path) -> None:
        self.options, self.record = options, record
        self.ground = Ground(folder, record, seed=options.seed, deadline=timedelta(seconds=options.deadline), stalled=options.stalled)
        self.hand: Hand
        self.operators: list[ClusterOperator] = []
        self.standby: list[str] = []
        """Hosts in no pool."""
        self.returning: list[str] = []
        """Hosts that will stand by once they are nobody's."""
        self.dead: set[str] = set()
        self.api = Switch()
        self.kills = 0
        self.rounds = 0
        self.cpu = 0.0
        self._held: set[str] = set()
        self._over, self._calm = asyncio.Event(), asyncio.Event()
        self._draws = draws(options.seed, options.clusters, options.only)
        self._killing = random.Random(f"{options.seed}/kills")
        self._being_killed = False
        self._made = 0.0

    async def run(self) -> None:
        options = self.options
        self.record.note(Event(event=STARTED, text=f"seed {options.seed}", numbers={"clusters": options.clusters, "hosts": options.hosts}))
        async with self.ground:
            self.hand = Hand(self.ground, self.record)
            beside = [asyncio.create_task(self._sample(), name="samples"), asyncio.create_task(self._progress(), name="progress")]
            try:
                await self.hand.create(MACHINE_REGISTRATION, objects.registration())
                await self.hand.create(CONFIG_MAP, objects.catalog(VERSIONS))
                await self._make(await self.ground.register(options.hosts))
                beside.append(asyncio.create_task(Repairer(self.ground, self.record, self.operators, self.dead).run(), name="repairer"))
                await self._rest()
                self._made = self.record.now
                while self._rolled < options.seconds and not all(each.stalled for each in self.operators):
                    await self._round(beside)
                self._judge_all()
            finally:
                for task in beside:
                    task.cancel()
                await asyncio.gather(*beside, return_exceptions=True)
                self.cpu = self.ground.manager.use().cpu
        self.record.note(Event(event=ENDED, text="violated" if self.record.violations else "everything held"))

    @property
    def _rolled(self) -> float:
        """Seconds since the clusters were made."""
        return self.record.now - self._made

    # The parts of a run.

    async def _make(self, hosts: list[str]) -> None:
        each = PLANES + WORKER_HOSTS
        for number in range(self.options.clusters):
            cluster = f"soak-{number + 1:02}"
            own = hosts[number * each : (number + 1) * each]
            place = objects.Place(self.ground.place(cluster, number), number + 1, own[:PLANES], own[PLANES:])
            self.operators.append(ClusterOperator(self.ground, self.record, cluster, place, self.options.seed))
        self.standby = hosts[self.options.clusters * each :]
        gate = asyncio.Semaphore(_MAKING)

        async def make(operator: ClusterOperator) -> None:
            async with gate:
                await operator.make()

        async with asyncio.TaskGroup() as group:
            for operator in self.operators:
                group.create_task(make(operator))

    async def _round(self, beside: list[asyncio.Task[None]]) -> None:
        self.rounds += 1
        self._over.clear()
        length = min(self.options.round, max(self.options.seconds - self._rolled, 1.0))
        mortal = self._is_mortal()
        self._calm.clear()
        async with asyncio.TaskGroup() as group:
            rolling = [group.create_task(operator.roll(self._over, self._exchange)) for operator in self.operators]
            group.create_task(self._let_fail(group))
            if mortal:
                group.create_task(self._kill())
            await self._watch_over(rolling, beside, length)
            # What is under way is brought to its end, and things go on going wrong meanwhile.
            self._over.set()
            await self._watch_over(rolling, beside, length)
            self._calm.set()
        await self._rest()

    async def _watch_over(self, rolling: list[asyncio.Task[None]], beside: list[asyncio.Task[None]], seconds: float) -> None:
        """For so long, or until nothing is rolled any more; what ended that must not end is raised."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not all(task.done() for task in rolling):
            await asyncio.sleep(min(1.0, max(end - time.monotonic(), 0.01)))
            for task in beside:
                if task.done():
                    task.result()

    def _is_mortal(self) -> bool:
        if self.options.only and MANAGER_KILLED not in self.options.only:
            return False
        return self.kills < self.options.kills if self.options.kills else self._rolled < self.options.mortal

    async def _let_fail(self, group: asyncio.TaskGroup) -> None:
        while not self._calm.is_set():
            draw = next(self._draws, None)
            if draw is None:
                return
            await self.pause(draw.after)
            if not self._calm.is_set():
                group.create_task(self._occur(draw), name=draw.kind)

    async def _occur(self, draw: Draw) -> None:
        try:
            if not await FAULTS[draw.kind].occur(self, draw):
                self.record.without_target(draw.kind)
        except StalledError as stalled:
            self.record.violation("goes-on", Broken((), f"{draw.kind} could not be mended: {stalled}"))

    async def _kill(self) -> None:
        """Again and again, each time after some write of anybody that the manager never hears of."""
        manager, fuse, chance = self.ground.manager, self.ground.fuse, self._killing
        most = _WRITES + _WRITES_MORE * self.options.clusters
        while not self._calm.is_set() and (not self.options.kills or self.kills < self.options.kills):
            after, cpu, late = chance.randint(1, most), chance.uniform(*_KILL_CPU), chance.random() < _MOSTLY
            if late and not await self.until_calm(lambda: usage(manager.pid).cpu > _STARTED):
                return
            fuse.set(manager, after)
            self._being_killed = True
            await self.until_calm(lambda: fuse.blown.is_set() or usage(manager.pid).cpu > cpu)  # noqa: B023 - called at once
            fuse.blow()
            self.kills += 1
            self.record.fault(MANAGER_KILLED, (), f"the manager is killed, for the {self.kills}. time")
            await manager.gone()
            await self._start_manager()

    async def _start_manager(self) -> None:
        await self.ground.start_manager()
        self._being_killed = False

    async def _rest(self) -> None:
        """Until everything stands and nothing moves; what does not is told."""
        began = time.monotonic()
        broken: list[tuple[str, Broken]] = []
        while time.monotonic() - began < _RESTLESS:
            self.ground.check()
            self._take_back()
            broken = self._broken()
            if not broken and self.ground.watcher.quiet() > _SETTLED:
                break
            if broken and self.ground.watcher.quiet() > self.options.stalled_at_rest:
                break
            await self.ground.watcher.changed(1.0)
        for check in rest.AT_REST:
            self.record.checks[check.name] += 1
        for name, each in broken:
            self.record.violation(name, each)
        self.ground.watcher.edited_by_hand.clear()
        census = rest.census(self.ground.watcher.now)
        if self.record.rests:
            self.record.checks["no-growth"] += 1
            allowed = {MACHINE_SET.kind: self.options.clusters}
            for each in rest.grown(self.record.rests[0], census, allowed) if not broken else ():
                self.record.violation("no-growth", each)
        self.record.rested(census, self._sampled(at_rest=True), well=not broken)

    def _broken(self) -> list[tuple[str, Broken]]:
        wanted = {operator.cluster: operator.wanted for operator in self.operators}
        return rest.broken_at_rest(rest.Rest(self.ground.watcher.now, self.ground.truth(whole=True), wanted))

    def _judge_all(self) -> None:
        """What can be said only in the end."""
        self.record.checks["kills"] += bool(self.options.kills)
        if self.kills < self.options.kills:
            text = f"the manager was killed {self.kills} times, and was to be killed {self.options.kills} times: give it more --minutes"
            self.record.violation("kills", Broken((), text))
        grown = growth(self.record.samples)
        if grown is not None:
            self.record.checks["memory"] += 1
            if grown.share > LIMIT:
                text = f"the manager grew by {grown.share:.1%}, from {grown.first >> 20} to {grown.last >> 20} MiB between two rests"
                self.record.violation("memory", Broken((), text))

    # What faults ask for.

    def hosts_in_use(self, *, control_plane: bool = False) -> list[Life]:
        """Of machines of clusters that have a control plane, in the order of their names."""
        now = self.ground.watcher.now
        initialised = {
            cluster_of(each)
            for each in now.of(KUBEADM_CONTROL_PLANE).values()
            if ((each.get("status") or {}).get("initialization") or {}).get("controlPlaneInitialized")
        }
        names = {
            host_of(each)
            for each in now.of(BAREMETAL_MACHINE).values()
            if cluster_of(each) in initialised and (is_control_plane(each) or not control_plane)
        }
        return [self.ground.host(name) for name in sorted(names) if name in self.ground.world.hosts and name not in self.dead]

    def may_die(self, host: Life) -> bool:
        """A control plane's host dies for good only while the others stand and nothing rolls: two gone at once are a lost cluster."""
        name = host.machine.hardware.name
        operator = next((each for each in self.operators if name in (*each.place.planes, *each.place.workers)), None)
        if operator is None or operator.doing in ("remake", "make"):
            return False
        if name in operator.place.workers:
            return True
        truth = self.ground.truth().clusters.get(operator.cluster)
        whole = truth is not None and truth.etcd.voters == truth.etcd.running == PLANES
        return whole and operator.doing in ("scale", "templates", "pool")

    @asynccontextmanager
    async def hold(self, host: str) -> AsyncIterator[bool]:
        """One host of a cluster at a time: whether this is the one."""
        inventory = self.ground.watcher.now.get(MACHINE_INVENTORY, host) or {"metadata": {}}
        cluster = (inventory["metadata"].get("annotations") or {}).get(words.OWNER_CLUSTER_ANNOTATION) or host
        if cluster in self._held:
            yield False
            return
        self._held.add(cluster)
        try:
            yield True
        finally:
            self._held.discard(cluster)

    async def pause(self, seconds: float) -> None:
        """For so long, or until everything is to be mended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._calm.wait()

    async def until_calm(self, holds: Callable[[], bool]) -> bool:
        """Whether something came to hold before everything is to be mended."""
        while not holds() and not self._calm.is_set():
            await self.pause(0.2)
        return holds()

    # Hosts that stand by.

    async def replace(self, old: str, new: str) -> None:
        """Put a host into a pool in place of another."""
        for operator in self.operators:
            for role, hosts in (("planes", operator.place.planes), ("workers", operator.place.workers)):
                if old in hosts:
                    operator.exchange_host(role, old, new)
                    if operator.doing != "remake":
                        await operator.write_pools()
                    return

    async def _exchange(self, operator: ClusterOperator) -> None:
        now = self.ground.watcher.now
        free = [
            each
            for each in operator.place.workers
            if (inventory := now.get(MACHINE_INVENTORY, each)) is not None and is_free(inventory) and state_of(inventory) == words.AVAILABLE
        ]
        if not free or not self.standby:
            return
        new = self.standby.pop(0)
        await self.replace(free[0], new)
        self.returning.append(free[0])

    def _take_back(self) -> None:
        now = self.ground.watcher.now
        pooled = {
            str(member.get("name"))
            for pool in now.of(MACHINE_INVENTORY_POOL).values()
            for member in (pool.get("spec") or {}).get("machineInventories") or ()
        }
        for name in list(self.returning):
            inventory = now.get(MACHINE_INVENTORY, name)
            # One in quarantine stands by as well: the next pool that has it lets it out, once it is clean.
            if name not in pooled and inventory is not None and not owner_of(inventory):
                self.returning.remove(name)
                self.standby.append(name)

    # Beside it.

    def _sampled(self, *, at_rest: bool = False) -> Sample:
        return Sample(round(self.record.now, 1), self.ground.manager.use().resident, self.ground.manager.lives, at_rest)

    async def _sample(self) -> None:
        while True:
            await asyncio.sleep(_SAMPLE)
            self.record.checks["manager-lives"] += 1
            if not self.ground.manager.is_alive() and not self._being_killed:
                self.record.violation("manager-lives", Broken((), f"the manager ended by itself after {self.record.now:.0f} s"))
                await self._start_manager()
            sample = self._sampled()
            if sample.resident:
                self.record.samples.append(sample)

    async def _progress(self) -> None:
        while True:
            await asyncio.sleep(_PROGRESS)
            self._take_back()
            watcher, sample = self.ground.watcher, self._sampled()
            doing = sorted(f"{each.cluster} {each.doing}" for each in self.operators if each.doing)
            numbers = {
                "round": float(self.rounds),
                "operations": float(sum(self.record.operations.values())),
                "faults": float(sum(each.occurred for each in self.record.faults.values())),
                "kills": float(self.kills),
                "writes": float(watcher.writes),
                "violations": float(len(self.record.violations)),
                "resident": float(sample.resident),
            }
            self.record.note(Event(event=PROGRESS, text=", ".join(doing) or "at rest", numbers=numbers))
