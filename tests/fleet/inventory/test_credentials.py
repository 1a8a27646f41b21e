"""A host's credentials read or write nothing but its own Secret: everything else is tried."""

from __future__ import annotations

import pytest
from fleet.inventory import trying
from fleet.inventory.management import SPACE, Host, Management, connection
from support.waiting import eventually

from slipway.api.cluster.kinds import MACHINE_INVENTORY, SECRET
from slipway.credentials.tpm.software import SoftwareTPM
from slipway.kube.aio import AsyncClient
from slipway.kube.errors import ForbiddenError, UnauthorizedError


@pytest.mark.asyncio
async def test_a_host_reads_and_updates_its_own_secret_and_may_do_nothing_else(management: Management, tpm: SoftwareTPM) -> None:
    assert await trying.attempted(management, tpm) > 200


@pytest.mark.asyncio
async def test_the_credentials_of_a_host_end_with_its_inventory(management: Management, tpm: SoftwareTPM) -> None:
    serving = await management.start()
    registration = await management.registration()
    config = await Host(registration["status"]["registrationURL"], serving, tpm).register()
    name = config["elemental"]["system-agent"]["secret-name"]
    await management.client.delete(MACHINE_INVENTORY, name, SPACE)
    async with AsyncClient(connection(config)) as host:

        async def is_out() -> bool:
            try:
                await host.get(SECRET, name, SPACE)
            except UnauthorizedError:
                return True
            except ForbiddenError:
                return False
            return False

        await eventually(is_out, "the token is worth nothing")
