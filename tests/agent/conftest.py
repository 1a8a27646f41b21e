"""A host with a Secret on the embedded API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from agent.world import Site

from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient


@pytest_asyncio.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with EmbeddedServer() as server, AsyncClient(server.connection()) as client:
        made = Site(client, server.connection(), tmp_path)
        await made.prepare()
        yield made
