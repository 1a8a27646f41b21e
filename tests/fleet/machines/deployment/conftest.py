"""Workers of one cluster a test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from fleet.machines.workers import Workers, employed


@pytest_asyncio.fixture
async def workers() -> AsyncIterator[Workers]:
    async with employed() as made:
        yield made
