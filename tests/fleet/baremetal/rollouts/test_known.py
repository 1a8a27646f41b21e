"""What webhooks of a manager know: also the content of the catalog, of which the cache has the metadata alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from support.waiting import eventually

from slipway.api.cluster.infrastructure.names import CATALOG_NAME
from slipway.api.cluster.kinds import CONFIG_MAP, Kind
from slipway.api.machinery.objects import Manifest
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.baremetal.rollouts.known import Followed, NotKnownYetError
from slipway.kube.aio import AsyncClient, PatchType
from slipway.runtime.cache.cache import Cache


@asynccontextmanager
async def _followed() -> AsyncIterator[tuple[AsyncClient, Followed]]:
    async with EmbeddedServer() as server, AsyncClient(server.connection()) as client:
        cache = Cache(client)
        cache.restrict(CONFIG_MAP, metadata_only=True)
        known = Followed(cache, client)
        known.begin()
        try:
            yield client, known
        finally:
            await known.close()
            await cache.close()


def _entries(known: Followed) -> dict[str, str] | None:
    try:
        found = known.get(CONFIG_MAP, "default", CATALOG_NAME)
    except NotKnownYetError:
        return None
    return (found or {}).get("data")


@pytest.mark.asyncio
async def test_the_entries_of_the_catalog_are_known_and_followed() -> None:
    async with _followed() as (client, known):
        await client.create(CONFIG_MAP, {"metadata": {"name": CATALOG_NAME, "namespace": "default"}, "data": {"v1.34.0": "a:1"}})
        await eventually(lambda: _entries(known) == {"v1.34.0": "a:1"}, "the catalog is known")
        await client.patch(CONFIG_MAP, CATALOG_NAME, "default", {"data": {"v1.35.0": "a:2"}}, type=PatchType.MERGE)
        await eventually(lambda: _entries(known) == {"v1.34.0": "a:1", "v1.35.0": "a:2"}, "the new entry is known")
        await client.delete(CONFIG_MAP, CATALOG_NAME, "default")
        await eventually(lambda: _entries(known) is None, "the catalog is gone")


@pytest.mark.asyncio
async def test_an_answer_that_comes_late_is_not_taken_for_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    async with _followed() as (client, known):
        find, answers, held = client.find, [asyncio.Event(), asyncio.Event()], []

        async def slow(kind: Kind, name: str, namespace: str = "") -> Manifest | None:
            found = await find(kind, name, namespace)
            held.append(found)
            await answers[len(held) - 1].wait()
            return found

        monkeypatch.setattr(client, "find", slow)
        await client.create(CONFIG_MAP, {"metadata": {"name": CATALOG_NAME, "namespace": "default"}, "data": {"v1.34.0": "a:1"}})
        await eventually(lambda: len(held) == 1, "the catalog is read")
        await client.patch(CONFIG_MAP, CATALOG_NAME, "default", {"data": {"v1.34.0": "a:2"}}, type=PatchType.MERGE)
        await eventually(lambda: len(held) == 2, "the catalog is read again")
        answers[1].set()
        await eventually(lambda: _entries(known) == {"v1.34.0": "a:2"}, "the new entry is known")
        answers[0].set()
        await asyncio.sleep(0)
        await known.close()
        assert _entries(known) == {"v1.34.0": "a:2"}
