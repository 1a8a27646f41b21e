"""How many connections a server takes, whatever comes over them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import web
from support.waiting import eventually

from slipway.runtime.webhook import certificates
from slipway.runtime.webhook.serving import HttpsServer, Pair

pytestmark = pytest.mark.asyncio


class _Certificate:
    async def pair(self) -> Pair:
        from datetime import UTC, datetime

        made = certificates.renewed(None, ["127.0.0.1"], datetime.now(UTC))
        return Pair(made.certificate, made.key)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[HttpsServer]:
    made = HttpsServer(_Certificate(), web.Application(), what="tests", flag="--x", address="127.0.0.1", port=0, most_connections=2)
    stop = asyncio.Event()
    running = asyncio.create_task(made.run(stop))
    await eventually(lambda: made.port)
    yield made
    stop.set()
    await running


async def test_strangers_who_say_nothing_take_so_many_connections_and_no_more(server: HttpsServer) -> None:
    silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    assert await asyncio.wait_for(reader.read(1), 5) == b""
    for _, each in [*silent, (reader, writer)]:
        each.close()

    async def taken() -> bool:
        later, closing = await asyncio.open_connection("127.0.0.1", server.port)
        try:
            await asyncio.wait_for(later.read(1), 0.05)
        except TimeoutError:
            return True
        finally:
            closing.close()
        return False

    await eventually(taken, "a connection to be taken again")
