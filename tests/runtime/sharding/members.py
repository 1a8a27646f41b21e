"""Members of a division on a real API server, in a time that a test moves: it goes on when every request has been answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from runtime.manual_clock import ManualClock, settled

from slipway.api.cluster.kinds import LEASE
from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient
from slipway.kube.aiotransport import Answer
from slipway.runtime.leader import holder
from slipway.runtime.sharding.coordinator import Coordinator, Division

NAMESPACE = "default"
GUARDS = ((NAMESPACE, "machines"), (NAMESPACE, "baremetal"))
NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)


class Counting(AsyncClient):
    """Knows how many of its requests are on their way."""

    on_their_way = 0
    dead = False

    async def _request(self, *given: Any) -> Answer:
        if self.dead:
            # Nothing leaves a process that is dead, or whose network is.
            await asyncio.get_running_loop().create_future()
        self.on_their_way += 1
        try:
            return await super()._request(*given)
        finally:
            self.on_their_way -= 1


class Member:
    """A process with its coordinator; ``working`` are the shards that it has begun to work on and has not ended."""

    def __init__(self, town: Town, who: str, shards: int) -> None:
        self.who = who
        self.town = town
        self.client = Counting(town.server.connection())
        self.working: set[int] = set()
        self.gate: asyncio.Event | None = None
        """While it is there and not set, reconciles of shards that are given up go on."""
        self.coordinator = Coordinator(
            self.client,
            Division(NAMESPACE, "manager", shards),
            GUARDS,
            self,
            who=who,
            clock=town.clock,
            now=lambda: NOW + timedelta(seconds=town.clock.now - 1000),
        )
        self.task = asyncio.create_task(self.coordinator.run())

    async def begin(self, shards: Collection[int]) -> None:
        self.working |= set(shards)

    async def end(self, shard: int) -> None:
        if self.gate is not None:
            await self.gate.wait()
        self.working.discard(shard)

    def may_work_on(self) -> set[int]:
        """What a reconcile would be let through for, at this moment."""
        return {shard for shard in self.working if self.coordinator.leads(shard)}

    def die(self) -> None:
        """From now on it says nothing, and does not know it."""
        self.client.dead = True

    async def stop(self) -> None:
        """As the manager does: the work ends first, then all is given up."""
        self.task.cancel()
        await asyncio.wait({self.task})
        self.working.clear()
        await self.coordinator.leave()


class Town:
    """Everybody has the same time.  At every step no two may work on one shard, nor two who divide the work otherwise at all."""

    def __init__(self, server: EmbeddedServer) -> None:
        self.server = server
        self.clock = ManualClock()
        self.members: list[Member] = []

    def join(self, who: str, shards: int = 2) -> Member:
        made = Member(self, who, shards)
        self.members.append(made)
        return made

    async def quiet(self) -> None:
        """Everything is done that does not wait for time."""
        while True:
            await settled()
            if not any(member.client.on_their_way for member in self.members):
                return
            await asyncio.sleep(0.001)

    async def pass_(self, seconds: float) -> None:
        until = self.clock.now + seconds
        await self.quiet()
        while self.clock.now < until:
            self.clock.advance(min(0.5, until - self.clock.now))
            await self.quiet()
            self._judge()

    async def until(self, condition: Callable[[], object], seconds: float) -> float:
        """Let time pass until something is so; how long it took."""
        began = self.clock.now
        while not condition():
            assert self.clock.now - began < seconds, f"it was not so within {seconds}s: {self}"
            await self.pass_(0.5)
        return self.clock.now - began

    def _judge(self) -> None:
        working = [(member, shard) for member in self.members for shard in member.may_work_on()]
        shards = [shard for _, shard in working]
        assert len(shards) == len(set(shards)), f"two work on one shard: {self}"
        assert len({member.coordinator.division.shards for member, _ in working}) < 2, f"two divide the work differently: {self}"

    async def holder_of(self, lease: str) -> str:
        found = await self.members[0].client.find(LEASE, lease, NAMESPACE)
        return "" if found is None else holder(found)

    def __repr__(self) -> str:
        return ", ".join(f"{member.who} has {sorted(member.may_work_on())}" for member in self.members)


@asynccontextmanager
async def town() -> AsyncIterator[Town]:
    async with EmbeddedServer(tls=False) as server:
        made = Town(server)
        try:
            yield made
        finally:
            for member in made.members:
                member.task.cancel()
            await asyncio.wait({member.task for member in made.members})
            for member in made.members:
                await member.client.close()
