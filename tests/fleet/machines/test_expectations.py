"""What a controller waits for before it acts again, on the embedded API server, with a clock of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from support.waiting import eventually

from slipway.api.cluster.kinds import CONFIG_MAP
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.machines.expectations import UNSURE, Expectations
from slipway.fleet.machines.machineset.creation import MACHINE_FAILED, CreationError
from slipway.kube.aio import AsyncClient
from slipway.kube.errors import ApiError, UnreachableError
from slipway.runtime.cache.cache import ON_ITS_WAY, Cache
from slipway.runtime.objects import Request

pytestmark = pytest.mark.asyncio
ONE = Request("default", "one")
LOST = CreationError("a Machine could not be made", MACHINE_FAILED, "the answer is lost")
LOST.__cause__ = UnreachableError("the answer is lost")


class Place:
    def __init__(self, client: AsyncClient, cache: Cache) -> None:
        self.client, self.cache = client, cache
        self.now = 100.0
        self.expected = Expectations(client, cache, lambda: self.now)

    async def make(self) -> None:
        await self.client.create(CONFIG_MAP, {"metadata": {"name": "made", "namespace": "default"}})

    async def lose(self, error: BaseException, *, made: bool) -> None:
        if made:
            await self.make()
        with pytest.raises(type(error)), self.expected.making(ONE, CONFIG_MAP, "made"):
            raise error


@pytest_asyncio.fixture
async def place() -> AsyncIterator[Place]:
    async with EmbeddedServer(tls=False) as server, AsyncClient(server.connection()) as client:
        cache = Cache(client, clock=lambda: made.now)
        made = Place(client, cache)
        await cache.get(CONFIG_MAP, "made", "default")
        yield made
        await cache.close()


@pytest.mark.parametrize("error", [asyncio.CancelledError(), UnreachableError("lost"), LOST, ApiError("late", code=504, reason="Timeout")])
async def test_what_was_made_by_a_request_without_an_answer_is_waited_for(place: Place, error: BaseException) -> None:
    await place.lose(error, made=True)

    async def is_seen() -> bool:
        # As soon as the cache shows it, or the server, asked in due time, and then the cache.
        place.now += UNSURE
        return await place.expected.wait(ONE) == 0 and await place.cache.get(CONFIG_MAP, "made", "default") is not None

    await eventually(is_seen, "it is in the cache")


async def test_a_request_that_came_to_nothing_is_known_to_when_the_server_is_asked(place: Place) -> None:
    await place.lose(UnreachableError("lost"), made=False)
    assert await place.expected.wait(ONE) == UNSURE
    place.now += UNSURE
    assert await place.expected.wait(ONE) == 0


async def test_what_is_not_there_yet_when_the_request_ends_is_not_taken_for_nothing(place: Place) -> None:
    await place.lose(asyncio.CancelledError(), made=False)
    assert await place.expected.wait(ONE) == UNSURE
    # The server had it in hand.
    await place.make()
    place.now += UNSURE
    found = await place.client.get(CONFIG_MAP, "made", "default")
    while await place.expected.wait(ONE):
        await asyncio.sleep(0)
    known = await place.cache.get(CONFIG_MAP, "made", "default")
    assert known is not None
    assert known.metadata.uid == found["metadata"]["uid"]


async def test_what_was_refused_is_not_waited_for(place: Place) -> None:
    await place.lose(ApiError("no", code=403, reason="Forbidden"), made=False)
    assert await place.expected.wait(ONE) == 0


async def test_what_never_comes_is_waited_for_half_a_minute(place: Place) -> None:
    with place.expected.making(ONE, CONFIG_MAP, "made"):
        place.cache.wrote(CONFIG_MAP, {"metadata": {"name": "made", "namespace": "default", "resourceVersion": "999999"}})
    assert await place.expected.wait(ONE) == ON_ITS_WAY
    await eventually(lambda: place.cache.informer(CONFIG_MAP).is_open, "the watch is open")
    place.now += ON_ITS_WAY + 1
    assert await place.expected.wait(ONE) == 0
