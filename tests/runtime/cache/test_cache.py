"""Reads from memory: by name, namespace, label and index, shared by everybody, on an API server that changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest
import pytest_asyncio
from runtime.replay_server import FORBIDDEN, ReplayServer
from support.waiting import eventually

from slipway.api.cluster.kinds import CONFIG_MAP, NAMESPACE, SECRET
from slipway.api.machinery.errors import OperatorError
from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient
from slipway.runtime.cache.cache import ON_ITS_WAY, Cache, NotSyncedError, behind
from slipway.runtime.objects import Object

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with EmbeddedServer(tls=False) as server, AsyncClient(server.connection()) as made:
        await made.create(NAMESPACE, {"metadata": {"name": "other"}})
        for namespace, name, of in (("default", "a", "x"), ("default", "b", "y"), ("other", "a", "x")):
            await made.create(CONFIG_MAP, config_map(name, namespace, of))
        yield made


def config_map(name: str, namespace: str, of: str) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": namespace, "labels": {"of": of, "test": "yes"}}, "data": {"of": of}}


@pytest_asyncio.fixture
async def cache(client: AsyncClient) -> AsyncIterator[Cache]:
    made = Cache(client)
    made.restrict(CONFIG_MAP, labels="test=yes")
    yield made
    await made.close()


def names(found: Iterable[Object]) -> list[tuple[str, str]]:
    return sorted((known.namespace, known.name) for known in found)


def by_of(known: Object) -> Iterable[str]:
    return [str(known.content()["data"]["of"])]


async def test_a_first_read_lists_and_the_next_ones_ask_nobody(client: AsyncClient, cache: Cache) -> None:
    found = await cache.get(CONFIG_MAP, "a", "default")
    assert found is not None
    assert found.content()["data"] == {"of": "x"}
    assert await cache.get(CONFIG_MAP, "none", "default") is None
    assert await cache.get(CONFIG_MAP, "a", "default") is found


async def test_lists_are_by_namespace_label_and_index(cache: Cache) -> None:
    cache.add_index(CONFIG_MAP, "of", by_of)
    assert names(await cache.list(CONFIG_MAP)) == [("default", "a"), ("default", "b"), ("other", "a")]
    assert names(await cache.list(CONFIG_MAP, "default")) == [("default", "a"), ("default", "b")]
    assert names(await cache.list(CONFIG_MAP, labels={"of": "x"})) == [("default", "a"), ("other", "a")]
    assert names(await cache.list(CONFIG_MAP, index=("of", "x"))) == [("default", "a"), ("other", "a")]
    assert names(await cache.list(CONFIG_MAP, "other", index=("of", "x"))) == [("other", "a")]
    assert await cache.list(CONFIG_MAP, index=("of", "nothing")) == []


async def test_of_some_names_those_that_are_there_are_found_in_their_order(cache: Cache) -> None:
    found = await cache.some(CONFIG_MAP, ["b", "none", "a"], "default")
    assert [each.name for each in found] == ["b", "a"]
    assert names(await cache.some(CONFIG_MAP, ["a", "b"], "other")) == [("other", "a")]


async def test_an_index_follows_changes_and_may_come_late(client: AsyncClient, cache: Cache) -> None:
    await cache.list(CONFIG_MAP)
    cache.add_index(CONFIG_MAP, "of", by_of)
    assert names(await cache.list(CONFIG_MAP, index=("of", "y"))) == [("default", "b")]
    await client.update(CONFIG_MAP, config_map("a", "default", "y"))

    async def moved() -> bool:
        return names(await cache.list(CONFIG_MAP, index=("of", "y"))) == [("default", "a"), ("default", "b")]

    await eventually(moved)
    assert names(await cache.list(CONFIG_MAP, index=("of", "x"))) == [("other", "a")]
    await client.delete(CONFIG_MAP, "b", "default")

    async def gone() -> bool:
        return names(await cache.list(CONFIG_MAP, index=("of", "y"))) == [("default", "a")]

    await eventually(gone)


async def test_an_index_of_that_name_by_another_function_is_a_mistake(cache: Cache) -> None:
    cache.add_index(CONFIG_MAP, "of", by_of)
    cache.add_index(CONFIG_MAP, "of", by_of)
    with pytest.raises(ValueError, match='have an index "of" already'):
        cache.add_index(CONFIG_MAP, "of", lambda known: [])


async def test_one_object_that_an_index_does_not_understand_is_left_out_of_it(
    client: AsyncClient, cache: Cache, caplog: pytest.LogCaptureFixture
) -> None:
    await client.create(CONFIG_MAP, {"metadata": {"name": "odd", "namespace": "default", "labels": {"test": "yes"}}})
    cache.add_index(CONFIG_MAP, "of", by_of)
    assert names(await cache.list(CONFIG_MAP, index=("of", "y"))) == [("default", "b")]
    assert await cache.get(CONFIG_MAP, "odd", "default") is not None
    assert "An object is left out of an index" in caplog.text


async def test_informers_are_shared_by_kind_namespace_and_selector(cache: Cache) -> None:
    first = cache.informer(CONFIG_MAP)
    assert cache.informer(CONFIG_MAP) is first
    assert cache.informer(CONFIG_MAP, namespace="other") is not first
    assert cache.informer(CONFIG_MAP, labels="of=x") is not first
    assert cache.informer(SECRET) is not first
    assert len(cache.informers) == 4


async def test_a_restriction_keeps_the_rest_out(client: AsyncClient, cache: Cache) -> None:
    await client.create(CONFIG_MAP, {"metadata": {"name": "plain", "namespace": "default"}})
    assert await cache.get(CONFIG_MAP, "plain", "default") is None
    with pytest.raises(ValueError, match="configmaps are cached already"):
        cache.restrict(CONFIG_MAP, labels="other=yes")


async def test_a_cache_of_one_namespace_has_that_one_and_says_so_when_asked_for_another(client: AsyncClient) -> None:
    cache = Cache(client, namespace="other")
    cache.restrict(CONFIG_MAP, labels="test=yes")
    try:
        assert names(await cache.list(CONFIG_MAP)) == [("other", "a")]
        # What is in no namespace is not restricted.
        assert await cache.get(NAMESPACE, "default") is not None
        with pytest.raises(OperatorError, match="works in the namespace other only"):
            await cache.get(CONFIG_MAP, "a", "default")
    finally:
        await cache.close()


async def test_what_may_not_be_listed_is_an_error_that_says_why() -> None:
    async with ReplayServer() as server, AsyncClient(server.connection) as client:
        cache = Cache(client, sync_timeout=0.3)
        reading = asyncio.create_task(cache.get(CONFIG_MAP, "a", "default"))
        try:
            await (await server.next_list()).answer(FORBIDDEN, 403)
            with pytest.raises(NotSyncedError, match=r"configmaps could not be listed: configmaps is forbidden: User .nobody."):
                await reading
        finally:
            await cache.close()


async def test_of_a_kind_that_is_restricted_to_metadata_nothing_else_leaves_the_server(client: AsyncClient) -> None:
    cache = Cache(client)
    cache.restrict(SECRET, labels="test", metadata_only=True)
    cache.restrict(SECRET, labels="test", metadata_only=True)
    try:
        secret = {"metadata": {"name": "s", "namespace": "default", "labels": {"test": ""}}, "data": {"password": "c2VjcmV0"}}
        await client.create(SECRET, secret)
        listed = await cache.get(SECRET, "s", "default")
        await client.create(SECRET, {**secret, "metadata": {**secret["metadata"], "name": "t"}})  # type: ignore[dict-item]

        async def watched() -> Object | None:
            return await cache.get(SECRET, "t", "default")

        await eventually(watched)
        for found in (listed, await watched()):
            assert found is not None
            assert found.metadata.labels == {"test": ""}
            assert b"c2VjcmV0" not in found.raw
            assert (found.content()["apiVersion"], found.content()["kind"]) == ("v1", "Secret")
        with pytest.raises(ValueError, match="secrets are cached already"):
            cache.restrict(SECRET, labels="other")
    finally:
        await cache.close()


async def test_the_cache_is_behind_until_our_own_write_has_come_back(client: AsyncClient) -> None:
    now = 0.0
    cache = Cache(client, clock=lambda: now)
    try:
        first = await client.get(CONFIG_MAP, "a", "default")
        assert await cache.get(CONFIG_MAP, "a", "default") is not None
        cache.wrote(CONFIG_MAP, first)
        assert not cache.is_behind(CONFIG_MAP, "a", "default")
        written = {"metadata": {**first["metadata"], "resourceVersion": str(int(first["metadata"]["resourceVersion"]) + 1000)}}
        cache.wrote(CONFIG_MAP, written)
        assert cache.is_behind(CONFIG_MAP, "a", "default")
        assert not cache.is_behind(CONFIG_MAP, "a", "other")
        await eventually(lambda: cache.informer(CONFIG_MAP).is_open, "the watch is open")
        now = ON_ITS_WAY
        assert not cache.is_behind(CONFIG_MAP, "a", "default")
        made = await client.create(CONFIG_MAP, config_map("new", "default", "x"))
        cache.wrote(CONFIG_MAP, made)

        async def arrived() -> bool:
            return not cache.is_behind(CONFIG_MAP, "new", "default")

        await eventually(arrived)
        assert await cache.get(CONFIG_MAP, "new", "default") is not None
    finally:
        await cache.close()


async def test_a_write_is_waited_for_however_long_the_watch_was_broken(tmp_path: Path) -> None:
    """Whoever took the cache for the newest after half a minute would do the same again."""
    now = 0.0
    async with EmbeddedServer(tls=False, database=tmp_path / "objects.db") as server, AsyncClient(server.connection()) as client:
        cache = Cache(client, clock=lambda: now)
        try:
            assert await cache.get(CONFIG_MAP, "new", "default") is None
            informer = cache.informer(CONFIG_MAP)
            await eventually(lambda: informer.is_open, "the watch is open")
            last = await client.create(SECRET, {"metadata": {"name": "s", "namespace": "default"}})
            await server.stop()
            await eventually(lambda: not informer.is_open, "the watch is broken")
            version = str(int(last["metadata"]["resourceVersion"]) + 1)
            cache.wrote(CONFIG_MAP, {"metadata": {"name": "new", "namespace": "default", "resourceVersion": version}})
            now = 10 * ON_ITS_WAY
            assert cache.is_behind(CONFIG_MAP, "new", "default")
            await server.start()
            made = await client.create(CONFIG_MAP, config_map("new", "default", "x"))
            assert int(made["metadata"]["resourceVersion"]) >= int(version)
            await eventually(lambda: not cache.is_behind(CONFIG_MAP, "new", "default"), "it has come")
            assert await cache.get(CONFIG_MAP, "new", "default") is not None
        finally:
            await cache.close()


@pytest.mark.parametrize(
    ("version", "written", "seconds", "expected"),
    [
        pytest.param("9", "10", 0.1, True, id="our write is on its way"),
        pytest.param("10", "10", 0.1, False, id="it has arrived"),
        pytest.param("11", "10", 0.1, False, id="somebody wrote after us"),
        pytest.param("9", "10", 31.0, False, id="it never comes: etcd was restored from a backup"),
        pytest.param("9x", "10", 0.1, False, id="not a number"),
    ],
)
async def test_the_cache_is_behind_for_a_moment_after_a_write(version: str, written: str, seconds: float, expected: bool) -> None:
    assert behind(version, written, seconds) is expected
