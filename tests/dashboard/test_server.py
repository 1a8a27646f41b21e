"""The page's server with a real API server behind it: who sees what, and how it is told."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing

import aiohttp
import pytest
import pytest_asyncio
from dashboard import fleets
from dashboard.site import Site, events, serving
from support.waiting import eventually

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import CLUSTER, MACHINE, MACHINE_INVENTORY, MACHINE_INVENTORY_POOL
from slipway.fleet.overview.objects import KINDS
from slipway.kube.aio import PatchType

pytestmark = pytest.mark.asyncio
EVERY = tuple(KINDS.values())


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    async with serving() as made:
        await made.create(
            fleets.cluster("team-a", "red"),
            *fleets.machine("team-a", "red-0", "red", "host-1"),
            fleets.host("team-a", "host-1", pool="reds", cluster="red", machine="red-0", state="Allocated"),
            fleets.host("team-a", "host-2", pool="reds", state="Available"),
            fleets.pool("team-a", "reds", "red", ["host-1", "host-2"]),
            fleets.host("team-b", "host-3"),
        )
        yield made


async def test_without_a_token_there_is_nothing(site: Site) -> None:
    for path in ("/api/state", "/api/stream", "/api/timeline", "/api/explain"):
        status, said = await site.ask(path)
        assert status == 401
        assert "token" in said["error"]


async def test_a_token_that_the_api_server_does_not_know_opens_nothing(site: Site) -> None:
    assert (await site.ask("/api/state", "wrong"))[0] == 401
    assert (await site.ask("/api/state", "x" * 20_000))[0] == 401


async def test_who_may_list_nothing_is_told_what_they_would_need(site: Site) -> None:
    status, said = await site.ask("/api/state", site.token("nobody"))
    assert status == 403
    assert said["error"].startswith("nobody may list none of what this page shows")
    assert "machineinventories.elemental.cattle.io" in said["error"]


async def test_who_may_list_everything_sees_everything(site: Site) -> None:
    token = await site.allow("anna", *EVERY)
    await eventually(lambda: site.is_seen(token, "host/team-b/host-3"))
    assert await site.rows(token) == {
        "cluster/team-a/red",
        "machine/team-a/red-0",
        "host/team-a/host-1",
        "host/team-a/host-2",
        "pool/team-a/reds",
        "host/team-b/host-3",
    }


async def test_who_may_see_one_namespace_sees_that_one_alone(site: Site) -> None:
    token = await site.allow("ben", *EVERY, namespace="team-a")
    await eventually(lambda: site.is_seen(token, "host/team-a/host-2"))
    found = await site.rows(token)
    assert {key.split("/")[1] for key in found} == {"team-a"}
    status, _ = await site.ask("/api/explain?kind=MachineInventory&namespace=team-b&name=host-3", token)
    assert status == 404
    status, state = await site.ask("/api/state", token)
    assert state["missing"]["Cluster"] == "you may list clusters.cluster.x-k8s.io in team-a only"


async def test_a_kind_that_somebody_may_not_list_is_not_told_in_any_row(site: Site) -> None:
    token = await site.allow("cleo", CLUSTER, MACHINE)
    await eventually(lambda: site.is_seen(token, "machine/team-a/red-0"))
    _, state = await site.ask("/api/state", token)
    assert {row["type"] for row in state["rows"]} == {"cluster", "machine"}
    # The host is known by the BaremetalMachine alone.
    assert [row.get("host") for row in state["rows"] if row["type"] == "machine"] == [None]
    assert state["missing"]["MachineInventory"] == "you may not list machineinventories.elemental.cattle.io"


async def test_who_has_rights_in_a_namespace_where_nothing_is_yet_may_name_it(site: Site) -> None:
    token = await site.allow("dora", *EVERY, namespace="slipway-system")
    assert (await site.ask("/api/state", token))[0] == 403
    assert await site.rows(token, "/api/state?namespace=slipway-system") == set()


async def test_every_answer_has_the_strict_policy_and_the_other_headers(site: Site) -> None:
    token = await site.allow("anna", *EVERY)
    for path in ("/", "/static/main.js", "/static/none.js", "/none", "/api/state", "/api/stream"):
        async with site.get(path, token) as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["X-Frame-Options"] == "DENY"
            assert answer.headers["Referrer-Policy"] == "no-referrer"


async def test_nothing_can_be_written(site: Site) -> None:
    token = await site.allow("anna", *EVERY)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session:
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            async with session.request(method, f"{site.url}/api/state", headers={"Authorization": f"Bearer {token}"}) as answer:
                assert answer.status == 405


async def test_a_stream_begins_with_everything_and_goes_on_with_what_changes(site: Site) -> None:
    token = await site.allow("anna", *EVERY)
    await eventually(lambda: site.is_seen(token, "host/team-b/host-3"))
    async with site.get("/api/stream", token) as answer, aclosing(events(answer)) as told:
        first = [await anext(told) for _ in range(4)]
        assert [each.name for each in first] == ["hello", "whole", "rows", "seen"]
        assert first[1].data == len(first[2].data) == 6
        change = {"metadata": {"annotations": {names.ALLOCATION_STATE_ANNOTATION: "Unavailable"}}}
        await site.client.patch(MACHINE_INVENTORY, "host-2", "team-a", change, type=PatchType.MERGE)
        delta = await anext(told)
        assert [(row["key"], row["stage"]) for row in delta.data] == [("host/team-a/host-2", "unavailable")]
        assert delta.data[0]["problem"]["toDo"]
        assert (await anext(told)).name == "seen"
        await site.client.delete(MACHINE_INVENTORY, "host-3", "team-b")
        gone = await anext(told)
        assert (gone.name, gone.data) == ("gone", ["host/team-b/host-3"])


async def test_who_comes_back_gets_what_they_missed_and_no_more(site: Site) -> None:
    token = await site.allow("anna", *EVERY)
    await eventually(lambda: site.is_seen(token, "host/team-b/host-3"))
    async with site.get("/api/stream", token) as answer, aclosing(events(answer)) as told:
        last = [await anext(told) for _ in range(4)][-1].id
    await site.create(fleets.host("team-a", "host-4"))
    await eventually(lambda: site.is_seen(token, "host/team-a/host-4"))
    async with site.get("/api/stream", token, **{"Last-Event-ID": last}) as answer, aclosing(events(answer)) as told:
        again = [await anext(told) for _ in range(3)]
    assert [each.name for each in again] == ["hello", "rows", "seen"]
    assert [row["key"] for row in again[1].data] == ["host/team-a/host-4"]


@pytest.mark.parametrize("last", ["0123-4567-8", "nonsense", "-", "99999999999999999999"])
async def test_who_comes_back_from_elsewhere_gets_everything(site: Site, last: str) -> None:
    token = await site.allow("anna", *EVERY)
    async with site.get("/api/stream", token, **{"Last-Event-ID": last}) as answer, aclosing(events(answer)) as told:
        assert [(await anext(told)).name for _ in range(2)] == ["hello", "whole"]


async def test_a_stream_ends_when_the_manager_does(site: Site) -> None:
    token = await site.allow("anna", *EVERY)
    async with site.get("/api/stream", token) as answer, aclosing(events(answer)) as told:
        await anext(told)
        await site.dashboard._end_streams(None)  # type: ignore[arg-type]
        async with asyncio.timeout(5):
            assert [each.name async for each in told][-1] == "seen"


async def test_who_does_not_read_is_let_go() -> None:
    async with serving(patience=0.2) as site:
        token = await site.allow("anna", *EVERY)
        # More than the buffers of two sockets hold.
        await site.create(*(fleets.host("team-a", f"host-{number}", pool="p" * 200_000) for number in range(40)))
        await eventually(lambda: site.is_seen(token, "host/team-a/host-39"))
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        _, writer = await asyncio.open_connection("127.0.0.1", site.dashboard.port, ssl=trusting, limit=1)
        request = f"GET /api/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
        writer.write(request.encode())
        await eventually(lambda: site.dashboard._seats, "the reader has come")
        await eventually(lambda: not site.dashboard._seats, "the reader is let go")
        writer.transport.abort()


async def test_somebody_may_hold_so_many_streams_and_no_more(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slipway.dashboard.server._MOST_STREAMS_EACH", 2)
    token = await site.allow("anna", *EVERY)
    async with site.get("/api/stream", token) as first, site.get("/api/stream", token) as second:
        assert (first.status, second.status) == (200, 200)
        status, said = await site.ask("/api/stream", token)
        assert status == 503
        assert "2 pages of yours" in said["error"]


async def test_a_red_thing_is_explained(site: Site) -> None:
    wrong = fleets.condition(names.PLAN_APPLIED_CONDITION, "False", names.PLAN_FAILED_REASON, "the disk is full")
    await site.create(
        *fleets.machine("team-a", "red-1", "red", "host-5", problem=wrong),
        fleets.host("team-a", "host-5", pool="reds", cluster="red", machine="red-1", state="Reprovisioning"),
    )
    token = await site.allow("anna", *EVERY)
    await eventually(lambda: site.is_seen(token, "machine/team-a/red-1"))
    status, found = await site.ask("/api/explain?kind=Machine&namespace=team-a&name=red-1", token)
    assert status == 200
    assert "the disk is full" in " ".join(found["sentences"])
    assert {each["kind"] for each in found["chain"]} >= {"Machine", "BaremetalMachine"}
    assert found["toDo"]


async def test_the_timeline_of_a_cluster_has_its_hosts(site: Site) -> None:
    token = await site.allow("anna", *EVERY)
    await eventually(lambda: site.is_seen(token, "host/team-a/host-1"))
    status, found = await site.ask("/api/timeline?namespace=team-a&cluster=red", token)
    assert status == 200
    assert [row["name"] for row in found["rows"]] == ["host-1"]
    assert found["rows"][0]["spans"][-1]["stage"] == "node"
    assert (await site.ask("/api/timeline?namespace=team-a&cluster=none", token))[0] == 404


async def test_a_right_to_pools_alone_shows_pools_alone(site: Site) -> None:
    token = await site.allow("eva", MACHINE_INVENTORY_POOL)
    await eventually(lambda: site.is_seen(token, "pool/team-a/reds"))
    assert await site.rows(token) == {"pool/team-a/reds"}
