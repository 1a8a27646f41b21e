"""Whole objects of which the metadata alone is cached: read once for every state, and never older than what the cache has heard of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from support.waiting import eventually

from slipway.api.cluster.kinds import SECRET
from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient, PatchType
from slipway.runtime.cache.cache import Cache

pytestmark = pytest.mark.asyncio


class Reader:
    """A cache that has the metadata of Secrets; ``asked`` is how often one was read from the server, and ``now`` the time."""

    def __init__(self, client: AsyncClient, other: AsyncClient) -> None:
        self.client, self.asked, self.now = other, 0, 0.0
        client.on_request = self._count
        self.cache = Cache(client, clock=lambda: self.now)
        self.cache.restrict(SECRET, metadata_only=True)

    def _count(self, verb: str, status: int, seconds: float) -> None:
        self.asked += verb == "get"

    async def read(self) -> str:
        found = await self.cache.whole(SECRET, "s", "default")
        return "none" if found is None else str(found["data"]["v"])

    async def write(self, value: str, *, heard: bool = True) -> dict[str, object]:
        body = {"data": {"v": value}}
        written = await self.client.patch(SECRET, "s", "default", body, type=PatchType.MERGE)
        if heard:
            await eventually(lambda: self.version() == written["metadata"]["resourceVersion"])
        return written

    def version(self) -> str:
        seen = self.cache.informer(SECRET).store.get("s", "default")
        return "" if seen is None else seen.metadata.resource_version


@pytest_asyncio.fixture
async def reader() -> AsyncIterator[Reader]:
    async with (
        EmbeddedServer(tls=False) as server,
        AsyncClient(server.connection()) as client,
        AsyncClient(server.connection()) as other,
    ):
        await other.create(SECRET, {"metadata": {"name": "s", "namespace": "default"}, "data": {"v": "MQ=="}})
        made = Reader(client, other)
        await made.cache.get(SECRET, "s", "default")
        yield made
        await made.cache.close()


async def test_a_state_is_read_once_by_however_many(reader: Reader) -> None:
    assert await asyncio.gather(*(reader.read() for _ in range(5))) == ["MQ=="] * 5
    assert await reader.read() == "MQ=="
    assert reader.asked == 1


async def test_a_state_that_the_cache_has_heard_of_is_read(reader: Reader) -> None:
    await reader.read()
    await reader.write("Mg==")
    assert await reader.read() == "Mg=="
    assert reader.asked == 2


async def test_what_was_written_is_known_before_the_cache_hears_of_it(reader: Reader) -> None:
    await reader.read()
    await reader.cache.close()
    reader.cache.wrote_whole(SECRET, await reader.write("Mg==", heard=False))
    assert await reader.read() == "Mg=="
    assert reader.asked == 1


async def test_a_question_from_before_a_write_is_not_the_answer_to_one_after_it(reader: Reader) -> None:
    early = asyncio.create_task(reader.read())
    await asyncio.sleep(0)
    written = await reader.write("Mg==", heard=False)
    reader.cache.wrote_whole(SECRET, written)
    assert await reader.read() == "Mg=="
    await early
    assert await reader.read() == "Mg=="


async def test_a_cache_that_hears_nothing_is_not_believed_for_long(reader: Reader) -> None:
    await reader.read()
    await reader.cache.close()
    await reader.write("Mg==", heard=False)
    assert await reader.read() == "MQ=="
    reader.now += 60
    assert await reader.read() == "Mg=="


async def test_what_the_cache_does_not_have_is_asked_for_each_time(reader: Reader) -> None:
    await reader.client.delete(SECRET, "s", "default")
    await eventually(lambda: not reader.version())
    assert [await reader.read(), await reader.read()] == ["none", "none"]
    assert reader.asked == 2


async def test_who_is_cancelled_takes_the_answer_from_nobody(reader: Reader) -> None:
    first, second = (asyncio.create_task(reader.read()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == "MQ=="
    assert reader.asked == 1
