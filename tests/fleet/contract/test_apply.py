"""Server-side apply that is not sent again without need."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from support.waiting import eventually

from slipway.api.cluster.kinds import CONFIG_MAP
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.contract.apply import Applier
from slipway.kube.aio import AsyncClient, PatchType
from slipway.kube.errors import ConflictError
from slipway.runtime.cache.cache import Cache

pytestmark = pytest.mark.asyncio


class Place:
    def __init__(self, client: AsyncClient, cache: Cache) -> None:
        self.client, self.cache = client, cache
        self.patches = 0
        client.on_request = self._count

    def _count(self, verb: str, code: int, seconds: float) -> None:
        self.patches += verb == "patch"


@pytest_asyncio.fixture
async def place() -> AsyncIterator[Place]:
    async with EmbeddedServer(tls=False) as server, AsyncClient(server.connection()) as client, AsyncClient(server.connection()) as other:
        cache = Cache(other)
        yield Place(client, cache)
        await cache.close()


def wanted(**data: str) -> dict[str, object]:
    return {"metadata": {"name": "a", "namespace": "default"}, "data": data}


async def test_the_same_is_not_applied_twice_while_the_object_stays_as_it_is(place: Place) -> None:
    applier = Applier(place.client, place.cache, "m")
    made = await applier.apply(CONFIG_MAP, wanted(a="1"))
    made = await applier.apply(CONFIG_MAP, wanted(a="1"), current=made)
    again = await applier.apply(CONFIG_MAP, wanted(a="1"), current=made)
    assert again == made
    # The uid came with the second one, so that one was another intent.
    assert place.patches == 2


async def test_what_somebody_else_changed_is_applied_again(place: Place) -> None:
    applier = Applier(place.client, place.cache, "m")
    made = await applier.apply(CONFIG_MAP, wanted(a="1"), current=await applier.apply(CONFIG_MAP, wanted(a="1")))
    changed = await place.client.patch(CONFIG_MAP, "a", "default", {"data": {"a": "2"}}, type=PatchType.MERGE)
    assert changed["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
    assert (await applier.apply(CONFIG_MAP, wanted(a="1"), current=changed))["data"] == {"a": "1"}


async def test_what_is_no_longer_wanted_goes(place: Place) -> None:
    applier = Applier(place.client, place.cache, "m")
    made = await applier.apply(CONFIG_MAP, wanted(a="1", b="2"))
    assert (await applier.apply(CONFIG_MAP, wanted(a="1"), current=made))["data"] == {"a": "1"}


async def test_an_update_does_not_make_again_what_is_gone(place: Place) -> None:
    applier = Applier(place.client, place.cache, "m")
    made = await applier.apply(CONFIG_MAP, wanted(a="1"))
    await place.client.delete(CONFIG_MAP, "a", "default")
    with pytest.raises(ConflictError):
        await applier.apply(CONFIG_MAP, wanted(a="2"), current=made)
    assert await place.client.find(CONFIG_MAP, "a", "default") is None


async def test_the_cache_is_told_what_was_written(place: Place) -> None:
    applier = Applier(place.client, place.cache, "m")
    await place.cache.list(CONFIG_MAP)
    made = await applier.apply(CONFIG_MAP, wanted(a="1"))

    async def seen() -> bool:
        return not place.cache.is_behind(CONFIG_MAP, "a", "default")

    await eventually(seen)
    known = await place.cache.get(CONFIG_MAP, "a", "default")
    assert known is not None
    assert known.metadata.resource_version == made["metadata"]["resourceVersion"]
