"""A new estate for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from fleet.baremetal.estate import Estate, estate


@pytest_asyncio.fixture(name="metal")
async def _metal() -> AsyncIterator[Estate]:
    async with estate() as made:
        yield made
