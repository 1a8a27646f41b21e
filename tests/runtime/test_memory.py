"""A process that runs for long takes little for each connection, reads as well as before, and seldom stands still for its garbage."""

from __future__ import annotations

import gc
from asyncio import sslproto
from collections.abc import Iterator

import pytest

from slipway.api.cluster.kinds import CONFIG_MAP
from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient
from slipway.runtime import memory


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test does to the process is undone."""
    monkeypatch.setattr(sslproto.SSLProtocol, "max_size", sslproto.SSLProtocol.max_size)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


def connections() -> list[sslproto.SSLProtocol]:
    return [each for each in gc.get_objects() if type(each) is sslproto.SSLProtocol]


@pytest.mark.asyncio
async def test_a_connection_has_a_buffer_for_one_record_and_reads_what_is_larger() -> None:
    memory.economise()
    others = connections()
    text = "many records " * 50_000
    async with EmbeddedServer() as server, AsyncClient(server.connection()) as client:
        await client.create(CONFIG_MAP, {"metadata": {"name": "large", "namespace": "default"}, "data": {"text": text}})
        found = await client.get(CONFIG_MAP, "large", "default")
        buffers = {len(each.get_buffer(-1)) for each in connections() if each not in others}
    assert found["data"]["text"] == text
    assert buffers == {memory.TLS_BUFFER}


def test_all_that_is_kept_is_looked_through_a_tenth_as_often_and_what_is_young_as_ever() -> None:
    young, middle, full = gc.get_threshold()
    memory.economise()
    assert gc.get_threshold() == (young, middle, 10 * full)
