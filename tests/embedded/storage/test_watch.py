"""Watches: bookmarks, versions that are gone, readers that are too slow, and resources that go away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from embedded.wire import DEFINITIONS, Wire, config_map, define, definition, wire
from support.waiting import eventually

from slipway.embedded.endpoints.negotiation import Shape
from slipway.embedded.server import EmbeddedServer
from slipway.embedded.storage import watch as watching
from slipway.embedded.storage.read import ListOptions
from slipway.embedded.storage.selectors import Selection

pytestmark = pytest.mark.asyncio

MAPS = "/api/v1/namespaces/default/configmaps"


async def take(events: AsyncIterator[dict[str, Any]], count: int) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    async for event in events:
        found.append((event["type"], event["object"]["metadata"].get("name", "")))
        if len(found) == count:
            break
    return found


async def version(asker: Wire) -> str:
    _, document = await asker.ask("GET", f"{MAPS}?limit=1")
    return str(document["metadata"]["resourceVersion"])


async def test_bookmarks_come_regularly_and_say_how_far_the_watch_has_seen() -> None:
    async with EmbeddedServer(tls=False, bookmark_seconds=0.05) as server, wire(server.connection()) as asker:
        start = await version(asker)
        async with asker.watch(f"{MAPS}?watch=1&resourceVersion={start}&allowWatchBookmarks=true") as events:
            # A write elsewhere moves the version of the whole store.
            await asker.make("/api/v1/namespaces", {"metadata": {"name": "other"}})
            async for event in events:
                assert event["type"] == "BOOKMARK"
                assert event["object"]["kind"] == "ConfigMap"
                if int(event["object"]["metadata"]["resourceVersion"]) > int(start):
                    break


async def test_no_bookmarks_without_asking() -> None:
    async with EmbeddedServer(tls=False, bookmark_seconds=0.01) as server, wire(server.connection()) as asker:
        start = await version(asker)
        async with asker.watch(f"{MAPS}?watch=1&resourceVersion={start}&timeoutSeconds=1") as events:
            assert [event async for event in events] == []


async def test_the_last_bookmark_comes_before_the_end_of_a_watch(server: EmbeddedServer, asker: Wire) -> None:
    start = await version(asker)
    async with asker.watch(f"{MAPS}?watch=1&resourceVersion={start}&allowWatchBookmarks=true&timeoutSeconds=3") as events:
        assert [event["type"] async for event in events] == ["BOOKMARK"]


async def test_a_compacted_version_is_gone_and_a_new_list_goes_on(server: EmbeddedServer, asker: Wire) -> None:
    old = await version(asker)
    await asker.make(MAPS, config_map("a"))
    server.compact()
    async with asker.watch(f"{MAPS}?watch=1&resourceVersion={old}") as events:
        found = [event async for event in events]
    assert [(event["type"], event["object"]["code"], event["object"]["reason"]) for event in found] == [("ERROR", 410, "Expired")]
    assert found[0]["object"]["message"] == f"too old resource version: {old} ({server.core.store.version})"
    async with asker.watch(f"{MAPS}?watch=1&resourceVersion={await version(asker)}") as events:
        await asker.make(MAPS, config_map("b"))
        assert await take(events, 1) == [("ADDED", "b")]


async def test_the_history_is_as_long_as_it_is_told_to_be() -> None:
    async with EmbeddedServer(tls=False, history=2) as server, wire(server.connection()) as asker:
        await eventually(lambda: server.core.store.get("configmaps", "default", "kube-root-ca.crt"))
        versions = [(await asker.make(MAPS, config_map(name)))["metadata"]["resourceVersion"] for name in "abcd"]
        async with asker.watch(f"{MAPS}?watch=1&resourceVersion={versions[1]}") as events:
            assert await take(events, 2) == [("ADDED", "c"), ("ADDED", "d")]
        async with asker.watch(f"{MAPS}?watch=1&resourceVersion={versions[0]}") as events:
            assert [event["type"] async for event in events] == ["ERROR"]


async def test_pages_of_a_forgotten_list_are_gone_and_can_be_gone_on_with(server: EmbeddedServer, asker: Wire) -> None:
    for name in "abc":
        await asker.make(MAPS, config_map(name, labels={"t": "x"}))
    code, first = await asker.ask("GET", f"{MAPS}?limit=2&labelSelector=t%3Dx")
    assert code == 200
    await asker.ask("DELETE", f"{MAPS}/c")
    await asker.make(MAPS, config_map("d", labels={"t": "x"}))
    server.compact()
    code, document = await asker.ask("GET", f"{MAPS}?limit=2&labelSelector=t%3Dx&continue={first['metadata']['continue']}")
    assert (code, document["reason"]) == (410, "Expired")
    assert document["message"].startswith("The provided continue parameter is too old")
    code, rest = await asker.ask("GET", f"{MAPS}?limit=2&labelSelector=t%3Dx&continue={document['metadata']['continue']}")
    assert (code, [item["metadata"]["name"] for item in rest["items"]]) == (200, ["d"])


def make_watch(server: EmbeddedServer) -> watching.Watch:
    core = server.core
    resource = core.catalog.find("", "v1", "configmaps")
    assert resource is not None
    shape = Shape("", {}, resource, core.converter, core.clock)
    return watching.Watch(core.store, "configmaps", Selection(), ListOptions(version=str(core.store.version)), shape)


async def test_a_line_is_made_once_for_all_watches(server: EmbeddedServer) -> None:
    core = server.core
    watches = [make_watch(server) for _ in range(3)]
    streams = [watch.lines(asyncio.get_running_loop().time() + 10) for watch in watches]
    first = [asyncio.ensure_future(anext(stream)) for stream in streams]
    await eventually(lambda: len(core.store.bucket("configmaps").watchers) == 3)
    core.store.put("configmaps", config_map("a", namespace="default", uid="u"), 0)
    lines = await asyncio.gather(*first)
    assert all(line is lines[0] for line in lines)
    for stream in streams:
        await stream.aclose()
    assert not core.store.bucket("configmaps").watchers


async def test_a_watch_that_is_not_read_is_ended(server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "BACKLOG", 5)
    core, watch = server.core, make_watch(server)
    stream = watch.lines(asyncio.get_running_loop().time() + 10)
    waiting = asyncio.ensure_future(anext(stream))
    await eventually(lambda: core.store.bucket("configmaps").watchers)
    for number in range(20):
        core.store.put("configmaps", config_map(f"m{number}", namespace="default", uid=f"u{number}"), 0)
    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_a_watch_ends_with_its_resource(asker: Wire) -> None:
    await define(asker, definition())
    path = "/apis/embedded.test/v1/namespaces/default/gadgets"
    await asker.make(path, {"apiVersion": "embedded.test/v1", "kind": "Gadget", "metadata": {"name": "g"}})
    async with asker.watch(f"{path}?watch=1") as events:
        assert await take(events, 1) == [("ADDED", "g")]
        await asker.ask("DELETE", f"{DEFINITIONS}/gadgets.embedded.test")
        assert [event["type"] async for event in events] == ["DELETED"]


async def test_a_server_that_stops_ends_its_watches() -> None:
    async with EmbeddedServer(tls=False) as server, wire(server.connection()) as asker, asker.watch(f"{MAPS}?watch=1") as events:
        await anext(events)
        await asyncio.wait_for(server.stop(), 5)
        assert [event["type"] async for event in events] in ([], ["MODIFIED"])


async def test_a_watch_ends_with_its_connection(server: EmbeddedServer) -> None:
    watchers = server.core.store.bucket("configmaps").watchers
    async with wire(server.connection()) as asker, asker.watch(f"{MAPS}?watch=1"):
        await eventually(lambda: watchers)
    await eventually(lambda: not watchers)


@pytest.mark.parametrize(
    ("seconds", "why"),
    [("nan", "invalid syntax"), ("1.5", "invalid syntax"), ("inf", "invalid syntax"), ("9223372036854775808", "value out of range")],
)
async def test_the_time_of_a_watch_is_a_number_of_seconds(asker: Wire, seconds: str, why: str) -> None:
    code, document = await asker.ask("GET", f"{MAPS}?watch=1&timeoutSeconds={seconds}")
    assert (code, document["message"]) == (400, f'strconv.ParseInt: parsing "{seconds}": {why}')
