"""One stage a test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from fleet.machines.stage import Stage, staged


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as made:
        yield made
