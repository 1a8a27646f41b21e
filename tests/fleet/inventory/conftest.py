"""Management clusters for hosts, and the keys of one host: making RSA keys takes longer than any test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from fleet.inventory.management import Management

from slipway.credentials.tpm.software import SoftwareTPM
from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient


@pytest_asyncio.fixture
async def management() -> AsyncIterator[Management]:
    async with EmbeddedServer() as server, AsyncClient(server.connection()) as client, Management(server, client) as made:
        yield made


@pytest.fixture(scope="session")
def tpm() -> SoftwareTPM:
    return SoftwareTPM(bytes(range(32)))


@pytest.fixture(scope="session")
def other_tpm() -> SoftwareTPM:
    return SoftwareTPM(bytes(range(32, 64)))
