"""Management clusters for hosts, and the keys of two hosts."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.asymmetric import rsa
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
    return _tpm()


@pytest.fixture(scope="session")
def other_tpm() -> SoftwareTPM:
    return _tpm()


def _tpm() -> SoftwareTPM:
    return SoftwareTPM.of_keys(*(rsa.generate_private_key(65537, 2048) for _ in range(2)))
