"""One stage a test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from fleet.machines.stage import Stage, staged

from slipway.api.cluster.kinds import CLUSTER


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged(CLUSTER) as made:
        yield made
