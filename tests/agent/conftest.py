"""A host with a Secret on the embedded API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from agent.world import SIMULATED, Site, simulated

from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient


@pytest_asyncio.fixture
async def site(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    """A real host; a simulated one where a test says so."""
    machine = simulated() if getattr(request, "param", "") == SIMULATED else None
    async with EmbeddedServer() as server, AsyncClient(server.connection()) as client:
        made = Site(client, server.connection(), tmp_path, machine)
        await made.prepare()
        yield made
