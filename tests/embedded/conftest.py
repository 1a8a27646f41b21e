"""An embedded server for each test that wants one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from embedded.wire import Wire, wire

from slipway.embedded.server import EmbeddedServer


@pytest_asyncio.fixture
async def server() -> AsyncIterator[EmbeddedServer]:
    async with EmbeddedServer(tls=False) as started:
        yield started


@pytest_asyncio.fixture
async def asker(server: EmbeddedServer) -> AsyncIterator[Wire]:
    async with wire(server.connection()) as opened:
        yield opened
