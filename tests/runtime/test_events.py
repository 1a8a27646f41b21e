"""Events: counted, combined, written in the background, and never in anybody's way."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from runtime.widgets import SPACE, WIDGET, api_client, widget

from slipway.api.cluster.kinds import CORE_EVENT
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import Connection
from slipway.runtime.events import Aggregator, EventRecorder, Subject

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def _subject(message: str, reason: str = "R") -> Subject:
    return Subject("v1", "Widget", "n", "w", "1", "Normal", reason, message)


def test_what_is_said_again_is_counted() -> None:
    aggregator = Aggregator()
    for second in range(3):
        found = aggregator.count(_subject("m"), NOW + timedelta(seconds=second))
    assert (found.times, found.first, found.last) == (3, NOW, NOW + timedelta(seconds=2))
    assert aggregator.count(_subject("m", "Other"), NOW).times == 1


def test_many_messages_for_one_reason_become_one_event() -> None:
    """client-go: more than ten within ten minutes."""
    aggregator = Aggregator()
    found = [aggregator.count(_subject(f"m{number}"), NOW + timedelta(seconds=number)) for number in range(12)]
    assert [count.times for count in found[:10]] == [1] * 10
    assert found[10].message == "(combined from similar events): m11"
    assert found[10] is found[11]
    assert found[11].times == 2


def test_what_was_said_long_ago_is_not_similar() -> None:
    aggregator = Aggregator()
    found = [aggregator.count(_subject(f"m{number}"), NOW + timedelta(minutes=2 * number)) for number in range(30)]
    assert not any("combined" in count.message for count in found)


def test_a_long_message_is_cut_to_what_the_api_server_takes() -> None:
    assert len(Aggregator().count(_subject("m" * 2000), NOW).message) == 1024


async def _events(client: AsyncClient) -> list[dict[str, Any]]:
    return await client.list(CORE_EVENT, SPACE)


@pytest.mark.asyncio
async def test_an_event_is_written_and_counted() -> None:
    async with api_client() as client:
        about = await client.create(WIDGET, widget("w"))
        recorder = EventRecorder(client, "slipway-test", instance="me", clock=lambda: NOW)
        recorder.event(about, "Warning", "Failed", "it did not work")
        await recorder.flush()
        recorder.event(about, "Warning", "Failed", "it did not work")
        recorder.event(about, "Warning", "Failed", "it did not work")
        recorder.event(about, "Normal", "Done", "it did")
        await recorder.close()
        found = {event["reason"]: event for event in await _events(client)}
    failed = found["Failed"]
    assert failed["count"] == 3
    assert failed["message"] == "it did not work"
    assert failed["type"] == "Warning"
    assert failed["involvedObject"] == {
        "apiVersion": WIDGET.api_version,
        "kind": "Widget",
        "name": "w",
        "namespace": SPACE,
        "uid": about["metadata"]["uid"],
    }
    assert (failed["source"], failed["reportingComponent"], failed["reportingInstance"]) == (
        {"component": "slipway-test"},
        "slipway-test",
        "me",
    )
    assert failed["firstTimestamp"] == failed["lastTimestamp"] == "2026-05-01T12:00:00Z"
    assert found["Done"]["count"] == 1
    assert (recorder.dropped, recorder.failed) == (0, 0)


@pytest.mark.asyncio
async def test_an_event_that_ended_goes_on_in_a_new_one() -> None:
    async with api_client() as client:
        about = await client.create(WIDGET, widget("w"))
        recorder = EventRecorder(client, "slipway-test")
        recorder.event(about, "Normal", "Said", "m")
        await recorder.flush()
        (first,) = await _events(client)
        await client.delete(CORE_EVENT, first["metadata"]["name"], SPACE)
        recorder.event(about, "Normal", "Said", "m")
        await recorder.close()
        (second,) = await _events(client)
    assert second["metadata"]["name"] != first["metadata"]["name"]
    assert second["count"] == 2


@pytest.mark.asyncio
async def test_an_api_server_that_is_away_costs_events_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    connection = Connection(server="http://127.0.0.1:1")
    async with AsyncClient(connection, timeout=1) as client:
        recorder = EventRecorder(client, "slipway-test")
        about = {**widget("w"), "metadata": {"name": "w", "namespace": SPACE, "uid": "1"}}
        recorder.event(about, "Normal", "Said", "m")
        await recorder.close()
    assert recorder.failed == 1
    assert "an Event could not be written" in caplog.text


@pytest.mark.asyncio
async def test_a_slow_api_server_makes_it_drop_the_newest() -> None:
    """A server that takes connections and never answers."""
    held: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda reader, writer: held.append(writer), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with AsyncClient(Connection(server=f"http://127.0.0.1:{port}"), timeout=60) as client:
        recorder = EventRecorder(client, "slipway-test")
        for number in range(1200):
            about = {"apiVersion": "v1", "kind": "X", "metadata": {"name": f"x{number}", "namespace": SPACE, "uid": str(number)}}
            recorder.event(about, "Normal", "Said", "m")
        assert recorder.dropped == 200
        await recorder.close(timeout=0.1)
        assert recorder.dropped == 1199, "all but the one that was on its way"
    for writer in held:
        writer.close()
    server.close()
