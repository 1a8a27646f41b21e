"""How several processes come to an agreement on who has which shards, by Leases alone.

There are three sorts of Leases:

- the **guards** are those by which one process leads where the work is not divided.  All that share it hold them under one name, which
  says into how many shards: a process that works alone, or divides the work otherwise, waits until the last of them has gone.
- a **seat** makes a process a member.  There are as many as shards, so that every member can have one; whoever finds none is a spare.
- a **shard** is held by the member that works on it.

Every member looks at all seats and shards every few seconds, and does its part of :func:`assignment`.  A shard that has to move is worked
on no more, its reconciles end, its objects are let go, and then its Lease is released for the next one.  A member that dies keeps its
Leases until they run out.  Who cannot renew one of its Leases in time has lost them all, and ends.
"""

from __future__ import annotations

import asyncio
import logging
import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

from slipway.api.cluster.kinds import LEASE
from slipway.kube.errors import ApiError, ConflictError, UnreachableError
from slipway.runtime.clock import Clock, sleep
from slipway.runtime.leader import Elector, LeaseLostError, LeaseTimes, released
from slipway.runtime.logs import fields
from slipway.runtime.sharding.assignment import assignment
from slipway.runtime.sharding.guard import SharedElector

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from slipway.kube.aio import AsyncClient

_log = logging.getLogger("slipway.runtime.shards")

LABEL = "slipway.io/shards"
"""On seats and shards: the name of what is divided."""
# Those who wait do not all look at the same moment.
_JITTER = 0.2


class Division(NamedTuple):
    """What is divided, and where its Leases are."""

    namespace: str
    name: str
    shards: int

    @property
    def holder(self) -> str:
        """Under which name all members hold the guards."""
        return f"{self.namespace}/{self.name} in {self.shards} shards"

    def seat(self, number: int) -> str:
        return f"{self.name}-member-{number}"

    def shard(self, number: int) -> str:
        return f"{self.name}-shard-{number}"

    @property
    def leases(self) -> list[str]:
        """All that are looked at, by name."""
        return [name(number) for name in (self.shard, self.seat) for number in range(self.shards)]


class Work(Protocol):
    """What is done with shards."""

    async def begin(self, shards: Collection[int]) -> None:
        """These are ours now."""
        ...

    async def end(self, shard: int) -> None:
        """Nothing more is done for this one when this returns: it is about to be somebody else's."""
        ...


class Coordinator:
    """One process.  ``run`` until it is cancelled, then ``leave`` when all work has ended."""

    def __init__(
        self,
        client: AsyncClient,
        division: Division,
        guards: Iterable[tuple[str, str]],
        work: Work,
        *,
        who: str,
        times: LeaseTimes = LeaseTimes(),  # noqa: B008 - a value
        clock: Clock | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.division = division
        self.who = who
        self._client, self._work, self._times, self._given_clock, self._now = client, work, times, clock, now
        labels = {LABEL: division.name}

        def own(name: str) -> Elector:
            return Elector(client, division.namespace, name, who=who, times=times, labels=labels, clock=clock, now=now)

        # In one order everywhere: two that want the same ones never wait for each other.
        self.guards = [
            SharedElector(client, *guard, who=division.holder, times=times, clock=clock, now=now) for guard in sorted(set(guards))
        ]
        self.seats = [own(division.seat(number)) for number in range(division.shards)]
        self.shards = [own(division.shard(number)) for number in range(division.shards)]
        self.seat: Elector | None = None
        self.members: frozenset[str] = frozenset()
        """Who had a seat when last looked."""
        self.waits_for = ""
        """Why this process is no member yet; empty when it is."""
        self._holds: dict[int, asyncio.Task[None]] = {}
        self._leaving: dict[int, asyncio.Task[None]] = {}

    def leads(self, shard: int) -> bool:
        """Whether the shard may be worked on at this moment."""
        return self.shards[shard].leads() and all(guard.leads() for guard in self.guards)

    @property
    def held(self) -> list[int]:
        """The shards whose Leases are ours, those that are about to go among them."""
        return sorted(self._holds)

    async def run(self) -> None:
        """Hold our share, and never return; LeaseLostError when a Lease could not be renewed, or somebody has taken it."""
        try:
            await self._sit_down()
            assert self.seat is not None
            async with asyncio.TaskGroup() as group:
                for elector in (*self.guards, self.seat):
                    group.create_task(elector.hold(), name=f"lease {elector.name}")
                while True:
                    # At first, too: others who start at the same moment are to have their seats before shares are dealt out.
                    await self._rest()
                    await self._look(group)
        except BaseExceptionGroup as errors:
            lost, other = errors.split(LeaseLostError)
            if lost is None or other is not None:
                raise
            # Where one Lease cannot be renewed the others cannot: one of them says it.
            raise lost.exceptions[0] from None
        finally:
            self._holds.clear()
            self._leaving.clear()

    async def leave(self) -> None:
        """Give everything up, in order: the shards, the seat, and the guards if nobody else needs them."""
        if self.seat is None:
            return
        # All of them: one may have been written whose answer never came.
        for shard in self.shards:
            await shard.release()
        await self.seat.release()
        await self._open_guards()

    async def _sit_down(self) -> None:
        """Become a member: the guards first, and when there is a seat they are written, or the last one to go might open them all the same.

        See :meth:`_open_guards`.
        """
        while True:
            if await self._guarded() and await self._read() and await self._take_seat() and await self._guarded(written=True):
                self.waits_for = ""
                _log.info("A member of those who share the work", extra=self._fields())
                return
            if self.seat is not None:
                await self.seat.release()
                self.seat = None
            await self._rest()

    async def _guarded(self, *, written: bool = False) -> bool:
        for guard in self.guards:
            if not await (guard.confirm() if written else guard.attempt()):
                self._wait_for(f"{guard.leader or 'somebody else'} holds the lease {guard.namespace}/{guard.name}")
                return False
        return True

    async def _take_seat(self) -> bool:
        for seat in self.seats:
            if seat.is_free() and await seat.attempt():
                self.seat = seat
                return True
        self._wait_for(f"all {self.division.shards} shards have members, and this process is a spare")
        return False

    def _wait_for(self, what: str) -> None:
        if what != self.waits_for:
            self.waits_for = what
            _log.info("Waiting to share the work", extra=self._fields(waitsFor=what))

    async def _look(self, group: asyncio.TaskGroup) -> None:
        """See who is there and has what, and do our part."""
        if not await self._read():
            return
        members = {seat.leader for seat in self.seats if seat is not self.seat and seat.leader and not seat.is_free()}
        self.members = frozenset({*members, self.who})
        # One whose Lease is just being released is not free: it could be taken again, and be released all the same.
        ours = {*self._holds, *self._leaving}
        holders = {
            number: self.who if number in ours else shard.leader
            for number, shard in enumerate(self.shards)
            if number in ours or not shard.is_free()
        }
        moves = assignment(self.members, self.division.shards, holders)[self.who]
        for number in moves.release:
            if number not in self._leaving:
                self._leaving[number] = group.create_task(self._give(number), name=f"giving up shard {number}")
        taken = [number for number in moves.take if await self.shards[number].attempt()]
        for number in taken:
            self._holds[number] = group.create_task(self.shards[number].hold(), name=f"lease {self.shards[number].name}")
        if taken:
            _log.info("Took shards over", extra=self._fields(taken=taken, members=len(self.members)))
            await self._work.begin(taken)

    async def _give(self, number: int) -> None:
        _log.info("Giving a shard to another member", extra=self._fields(shard=number))
        await self._work.end(number)
        hold = self._holds.pop(number)
        hold.cancel()
        await asyncio.wait({hold})
        if hold.cancelled():
            await self.shards[number].release()
        del self._leaving[number]

    async def _read(self) -> bool:
        """Read all seats and shards at once; whether that could be done."""
        try:
            found = await self._client.list(LEASE, self.division.namespace, labels=f"{LABEL}={self.division.name}")
        except (ApiError, UnreachableError) as error:
            _log.warning("The leases of shards could not be read", extra=self._fields(err=error.message))
            return False
        by_name = {lease["metadata"]["name"]: lease for lease in found}
        for elector in (*self.seats, *self.shards):
            if not elector.leads():
                elector.observe(by_name.get(elector.name))
        return True

    async def _open_guards(self) -> None:
        """Release the guards where nobody has a seat.

        They are read before the seats are: who sits down after that writes them, and then what was read is not what is there.
        """
        try:
            async with asyncio.timeout(self._times.renew_deadline):
                guards = [await self._client.find(LEASE, guard.name, guard.namespace) for guard in self.guards]
                if not await self._read() or any(seat.leader and not seat.is_free() for seat in self.seats):
                    return
                for guard, lease in zip(self.guards, guards, strict=True):
                    if lease is not None and (lease.get("spec") or {}).get("holderIdentity") == guard.who:
                        await self._client.update(LEASE, released(lease, self._now()))
        except ConflictError:
            _log.info("Somebody has come: the guards stay", extra=self._fields())
        except (ApiError, UnreachableError, TimeoutError) as error:
            # They run out by themselves.
            _log.warning("Failed to release the guards", extra=self._fields(err=str(error) or "no answer in time"))

    async def _rest(self) -> None:
        clock = self._given_clock if self._given_clock is not None else asyncio.get_running_loop()
        await sleep(clock, self._times.retry_period * (1 + _JITTER * random.random()))

    def _fields(self, **more: object) -> dict[str, object]:
        return fields(division=self.division.name, shards=self.division.shards, identity=self.who, **more)
