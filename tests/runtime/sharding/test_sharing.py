"""Managers that share the work: each has its part of it, and hands it over with nothing in hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

import aiohttp
import pytest
import pytest_asyncio
from support.waiting import eventually

from slipway.api.cluster.kinds import CONFIG_MAP, LEASE, Kind
from slipway.api.machinery.errors import OperatorError
from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient
from slipway.runtime.cache.cache import Cache
from slipway.runtime.controller import Watch
from slipway.runtime.leader import LeaseTimes
from slipway.runtime.manager import Manager, ManagerOptions
from slipway.runtime.objects import DONE, Object, Request, Result
from slipway.runtime.rbac import Rule
from slipway.runtime.sharding.assignment import shard_of

pytestmark = pytest.mark.asyncio
TIMES = LeaseTimes(lease_duration=15.0, renew_deadline=10.0, retry_period=0.1)
FIRST, SECOND = ([f"c{number}" for number in range(8) if shard_of("default", f"c{number}", 2) == shard] for shard in (0, 1))


class ByName:
    """ConfigMaps are divided by their names, and nothing of others' is kept."""

    shards = 2

    def divides(self, kind: Kind) -> bool:
        return kind == CONFIG_MAP

    def after(self, kind: Kind) -> Sequence[Kind]:
        return ()

    def shard(self, found: Object) -> int:
        return shard_of(found.namespace, found.name, self.shards)

    def kept(self, found: Object, shards: Collection[int]) -> Object | None:
        return found if self.shard(found) in shards else None

    def follow(self, cache: Cache) -> None:
        pass

    async def close(self) -> None:
        pass


class Recording:
    name = "recording"
    rules: Sequence[Rule] = ()
    watches: Sequence[Watch] = (Watch(CONFIG_MAP),)

    def __init__(self, journal: list[tuple[str, str, str]], who: str) -> None:
        self._journal, self._who = journal, who
        self.gate: asyncio.Event | None = None

    async def reconcile(self, request: Request) -> Result:
        self._journal.append((self._who, "begins", request.name))
        if self.gate is not None:
            await self.gate.wait()
        self._journal.append((self._who, "ends", request.name))
        return DONE


class Run:
    def __init__(self, server: EmbeddedServer, journal: list[tuple[str, str, str]], who: str) -> None:
        options = ManagerOptions(
            leader_elect=True,
            leader_namespace="default",
            identity=who,
            lease=TIMES,
            health_address="127.0.0.1:0",
            metrics_address="127.0.0.1:0",
        )
        self.manager = Manager(server.connection(), options, ByName())
        self.reconciler = Recording(journal, who)
        self.manager.add(self.reconciler)
        self.stop = asyncio.Event()
        self.task = asyncio.create_task(self.manager.run(self.stop))

    @property
    def active(self) -> set[int]:
        assert self.manager.share is not None
        return self.manager.share.holding.active

    @property
    def kept(self) -> list[str]:
        found = {each.name for each in self.manager.cache.informer(CONFIG_MAP).store.list()}
        return [name for name in sorted(FIRST + SECOND) if name in found]

    async def get(self, path: str) -> str:
        port = self.manager.metrics_port if path == "/metrics" else self.manager.health_port
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as response:
            return await response.text()


@asynccontextmanager
async def running(server: EmbeddedServer, journal: list[tuple[str, str, str]], who: str) -> AsyncIterator[Run]:
    run = Run(server, journal, who)
    try:
        yield run
    finally:
        run.stop.set()
        await asyncio.wait_for(run.task, 30)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[EmbeddedServer]:
    async with EmbeddedServer(tls=False) as started:
        async with AsyncClient(started.connection()) as client:
            for name in FIRST + SECOND:
                await client.create(CONFIG_MAP, {"metadata": {"name": name, "namespace": "default"}})
        yield started


async def test_a_second_one_takes_its_part_when_nothing_of_it_is_in_hand_and_gives_it_back_when_it_stops(server: EmbeddedServer) -> None:
    journal: list[tuple[str, str, str]] = []
    async with running(server, journal, "a") as first:
        await eventually(lambda: {name for _, what, name in journal if what == "ends"} >= {*FIRST, *SECOND})
        first.reconciler.gate = asyncio.Event()
        async with AsyncClient(server.connection()) as client:
            found = await client.get(CONFIG_MAP, SECOND[0], "default")
            await client.update(CONFIG_MAP, {**found, "data": {"x": "y"}})
        await eventually(lambda: journal[-1] == ("a", "begins", SECOND[0]))
        edited = len(journal)
        async with running(server, journal, "b") as second:
            await eventually(lambda: first.active == {0})
            assert second.active == set()
            assert journal[-1] == ("a", "begins", SECOND[0])
            first.reconciler.gate.set()
            await eventually(lambda: second.active == {1})
            await eventually(lambda: {name for who, what, name in journal if (who, what) == ("b", "ends")} >= {*SECOND})
            assert journal.index(("a", "ends", SECOND[0]), edited) < journal.index(("b", "begins", SECOND[0]))
            assert (first.kept, second.kept) == (FIRST, SECOND)

            assert await second.get("/readyz?verbose") == "[+]shutdown ok\n[+]shards [1] of 2 ok\nreadyz check passed\n"
            told = await second.get("/metrics")
            for line in (
                "slipway_shards 2.0",
                "slipway_shards_held 1.0",
                "slipway_shard_members 2.0",
                "slipway_shards_waiting 0.0",
                'slipway_shard_objects{kind="ConfigMap",shard="1"} ',
                'leader_election_master_status{name="slipway-manager-shard-1"} 1.0',
                'leader_election_master_status{name="slipway-manager-leader"} 1.0',
            ):
                assert line in told, line
        await eventually(lambda: first.active == {0, 1})
        assert first.kept == sorted(FIRST + SECOND)
    async with AsyncClient(server.connection()) as client:
        assert {lease["spec"]["holderIdentity"] for lease in await client.list(LEASE, "default")} == {""}


async def test_what_changes_while_a_shard_changes_hands_is_seen_by_who_gets_it(server: EmbeddedServer) -> None:
    journal: list[tuple[str, str, str]] = []
    async with running(server, journal, "a") as first, AsyncClient(server.connection()) as client:
        await eventually(lambda: first.active == {0, 1})
        async with running(server, journal, "b") as second:
            for number in range(20):
                await client.create(CONFIG_MAP, {"metadata": {"name": f"new-{number}", "namespace": "default"}})
                await asyncio.sleep(0)
            await eventually(lambda: second.active == {1})
            new = {f"new-{number}" for number in range(20)}
            await eventually(lambda: {name for _, what, name in journal if what == "ends" and name in new} == new)


async def test_work_is_not_divided_without_leader_election(server: EmbeddedServer) -> None:
    with pytest.raises(OperatorError, match="it cannot be without leader election"):
        Manager(server.connection(), ManagerOptions(), ByName())
