"""Leader election: client-go's rules, with a clock that the test moves and a real API server behind a real connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from runtime.manual_clock import ManualClock, settled
from runtime.replay_server import ReplayServer
from support.waiting import eventually

from slipway.api.cluster.kinds import LEASE
from slipway.api.machinery.errors import OperatorError
from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient
from slipway.runtime import leader
from slipway.runtime.leader import Elector, LeaseLostError, LeaseTimes

pytestmark = pytest.mark.asyncio
NOW = datetime(2026, 5, 1, 12, 0, 0, 250000, tzinfo=UTC)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[EmbeddedServer]:
    async with EmbeddedServer(tls=False) as started:
        yield started


class Candidate:
    """An elector with a clock and a client of its own, and the requests that it made."""

    def __init__(self, server: EmbeddedServer | ReplayServer, who: str, *, wall: datetime = NOW) -> None:
        connection = server.connection() if isinstance(server, EmbeddedServer) else server.connection
        self.requests: list[tuple[str, int]] = []
        self.client = AsyncClient(connection, on_request=lambda verb, code, _: self.requests.append((verb, code)))
        self.clock = ManualClock()
        self.wall = wall
        self.elector = Elector(
            self.client, "default", "manager", who=who, clock=self.clock, now=lambda: self.wall + timedelta(seconds=self.clock.now - 1000)
        )

    async def asked(self, count: int) -> None:
        """Wait until so many requests were answered, and what follows from the last is done."""
        await eventually(lambda: len(self.requests) >= count)
        await settled()

    async def lease(self) -> dict[str, Any]:
        return dict((await self.client.get(LEASE, "manager", "default"))["spec"])


@asynccontextmanager
async def candidate(server: EmbeddedServer | ReplayServer, who: str, *, wall: datetime = NOW) -> AsyncIterator[Candidate]:
    made = Candidate(server, who, wall=wall)
    try:
        yield made
    finally:
        await made.client.close()


@asynccontextmanager
async def background(work: Any) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_the_first_candidate_creates_the_lease(server: EmbeddedServer) -> None:
    async with candidate(server, "a") as a:
        await asyncio.wait_for(a.elector.acquire(), 10)
        assert a.elector.leads()
        assert await a.lease() == {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-05-01T12:00:00.250000Z",
            "renewTime": "2026-05-01T12:00:00.250000Z",
            "leaseTransitions": 0,
        }


async def test_a_renewal_changes_the_time_of_renewal_alone_and_takes_one_request(server: EmbeddedServer) -> None:
    async with candidate(server, "a") as a:
        await asyncio.wait_for(a.elector.acquire(), 10)
        before = len(a.requests)
        async with background(a.elector.hold()):
            await settled()
            a.clock.advance(2)
            await a.asked(before + 1)
        assert a.requests[before:] == [("update", 200)]
        found = await a.lease()
        assert (found["acquireTime"], found["renewTime"]) == ("2026-05-01T12:00:00.250000Z", "2026-05-01T12:00:02.250000Z")
        assert found["leaseTransitions"] == 0


@pytest.mark.parametrize("skew", [timedelta(days=-1), timedelta(0), timedelta(days=1)])
async def test_a_lease_is_taken_only_after_it_was_seen_unchanged_for_its_duration_whatever_the_clocks_say(
    server: EmbeddedServer, skew: timedelta
) -> None:
    async with candidate(server, "a", wall=NOW + skew) as a, candidate(server, "b") as b:
        await asyncio.wait_for(a.elector.acquire(), 10)
        async with background(b.elector.acquire()) as acquiring:
            await b.asked(1)
            elapsed = 0.0
            while elapsed < 14:
                b.clock.advance(4.5)
                elapsed += 4.5
                answered = len(b.requests)
                await b.asked(answered + 1)
                if elapsed < 14:
                    assert not acquiring.done()
                if elapsed == 9.0:
                    # The holder is alive: the waiting begins anew.
                    async with background(a.elector.hold()):
                        await settled()
                        a.clock.advance(2)
                        await eventually(lambda: ("update", 200) in a.requests)
            assert not acquiring.done()
            while not acquiring.done():
                b.clock.advance(4.5)
                elapsed += 4.5
                await b.asked(len(b.requests) + 1)
                await settled()
        assert acquiring.result() is None
        # Seen changed at 13.5 s, so not before 28.5 s.
        assert elapsed >= 28.5
        found = await b.lease()
        assert (found["holderIdentity"], found["leaseTransitions"]) == ("b", 1)


async def test_a_released_lease_is_taken_at_the_next_look(server: EmbeddedServer) -> None:
    async with candidate(server, "a") as a, candidate(server, "b") as b:
        await asyncio.wait_for(a.elector.acquire(), 10)
        async with background(b.elector.acquire()) as acquiring:
            await b.asked(1)
            await a.elector.release()
            assert not a.elector.leads()
            assert (await a.lease())["holderIdentity"] == ""
            b.clock.advance(4.5)
            await asyncio.wait_for(acquiring, 10)
        assert (await b.lease())["leaseTransitions"] == 1


async def test_a_lease_that_cannot_be_renewed_is_lost_before_anybody_can_take_it(server: EmbeddedServer) -> None:
    async with candidate(server, "a") as a:
        await asyncio.wait_for(a.elector.acquire(), 10)
        await server.stop()
        async with background(a.elector.hold()) as holding:
            await settled()
            for _ in range(4):
                a.clock.advance(2)
                await a.asked(len(a.requests) + 1)
                assert a.elector.leads()
                assert not holding.done()
            a.clock.advance(2)
            # At 10 s, and others may take over at 15 s at the earliest.
            assert not a.elector.leads()
            with pytest.raises(LeaseLostError, match="the lease default/manager could not be renewed within 10s"):
                await asyncio.wait_for(holding, 10)


async def test_a_server_that_never_answers_does_not_keep_the_holder_from_giving_up() -> None:
    async with ReplayServer() as server, candidate(server, "a") as a:
        async with background(a.elector.acquire()) as acquiring:
            await (await server.next()).answer('{"kind":"Status","code":404,"reason":"NotFound"}', 404)
            await (await server.next()).answer('{"metadata":{"name":"manager","namespace":"default"},"spec":{"holderIdentity":"a"}}', 201)
            await asyncio.wait_for(acquiring, 10)
        async with background(a.elector.hold()) as holding:
            await settled()
            a.clock.advance(2)
            await server.next()
            a.clock.advance(7.9)
            await settled()
            assert not holding.done()
            a.clock.advance(0.1)
            with pytest.raises(LeaseLostError):
                await asyncio.wait_for(holding, 10)


async def test_the_deadline_counts_from_when_the_renewal_was_sent() -> None:
    lease = '{"metadata":{"name":"manager","namespace":"default","resourceVersion":"1"},"spec":{"holderIdentity":"a"}}'
    async with ReplayServer() as server, candidate(server, "a") as a:
        async with background(a.elector.acquire()) as acquiring:
            await (await server.next()).answer('{"kind":"Status","code":404,"reason":"NotFound"}', 404)
            await (await server.next()).answer(lease, 201)
            await asyncio.wait_for(acquiring, 10)
        async with background(a.elector.hold()):
            await settled()
            a.clock.advance(2)
            renewal = await server.next()
            a.clock.advance(3)
            await renewal.answer(lease)
            await a.asked(3)
            # Sent at 2 s, answered at 5 s.
            a.clock.now = 1011.9
            assert a.elector.leads()
            a.clock.now = 1012.0
            assert not a.elector.leads()


async def test_who_sees_another_holder_gives_up_at_once(server: EmbeddedServer) -> None:
    async with candidate(server, "a") as a:
        await asyncio.wait_for(a.elector.acquire(), 10)
        found = await a.client.get(LEASE, "manager", "default")
        found["spec"]["holderIdentity"] = "b"
        await a.client.update(LEASE, found)
        async with background(a.elector.hold()) as holding:
            await settled()
            a.clock.advance(2)
            with pytest.raises(LeaseLostError, match="b has taken the lease default/manager"):
                await asyncio.wait_for(holding, 10)
        assert not a.elector.leads()
        await a.elector.release()
        assert (await a.lease())["holderIdentity"] == "b"


async def test_a_lease_that_somebody_deleted_or_touched_is_written_again(server: EmbeddedServer) -> None:
    async with candidate(server, "a") as a:
        await asyncio.wait_for(a.elector.acquire(), 10)
        async with background(a.elector.hold()):
            await settled()
            await a.client.delete(LEASE, "manager", "default")
            a.clock.advance(2)
            await eventually(lambda: ("create", 201) in a.requests[3:])
            await settled()
            found = await a.client.get(LEASE, "manager", "default")
            found["metadata"]["labels"] = {"touched": "yes"}
            await a.client.update(LEASE, found)
            a.clock.advance(2)
            await eventually(lambda: ("update", 409) in a.requests and a.requests[-1] == ("update", 200))
        assert a.elector.leader == "a"
        assert (await a.client.get(LEASE, "manager", "default"))["metadata"]["labels"] == {"touched": "yes"}


async def test_of_many_candidates_one_leads(server: EmbeddedServer) -> None:
    made = [Candidate(server, f"candidate-{number}") for number in range(8)]
    tasks = [asyncio.create_task(each.elector.acquire()) for each in made]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=10)
        await asyncio.gather(*(each.asked(1) for each in made))
        for _ in range(3):
            for each in made:
                each.clock.advance(4.5)
            await settled()
        assert sum(each.elector.leads() or task.done() for each, task in zip(made, tasks, strict=True)) == 1
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for each in made:
            await each.client.close()


@pytest.mark.parametrize("times", [LeaseTimes(10, 10, 2), LeaseTimes(15, 10, 9), LeaseTimes(15, 10, 0)])
async def test_times_that_would_let_two_lead_are_refused(times: LeaseTimes) -> None:
    with pytest.raises(OperatorError, match="must be longer than"):
        times.checked()


async def test_each_process_has_an_identity_of_its_own_that_says_where_it_runs() -> None:
    import socket

    first, second = leader.identity(), leader.identity()
    assert first != second
    assert first.startswith(socket.gethostname() + "_")


async def test_a_take_over_that_was_cancelled_on_its_way_is_undone_by_a_release(server: EmbeddedServer) -> None:
    async with candidate(server, "a") as written, candidate(server, "a") as stopped:
        await asyncio.wait_for(written.elector.acquire(), 10)
        # The one that is stopped has not heard that its identity holds the lease.
        await stopped.elector.release()
        assert (await stopped.lease())["holderIdentity"] == ""


async def test_a_lease_that_may_not_be_read_is_told() -> None:
    forbidden = '{"kind":"Status","code":403,"reason":"Forbidden","message":"leases is forbidden"}'
    async with ReplayServer() as server, candidate(server, "a") as a, background(a.elector.acquire()):
        await (await server.next()).answer(forbidden, 403)
        await eventually(lambda: a.elector.error == "leases is forbidden")
        a.clock.advance(4.5)
        await (await server.next()).answer('{"metadata":{"name":"manager"},"spec":{"holderIdentity":"b","leaseDurationSeconds":15}}')
        await eventually(lambda: a.elector.error == "")
