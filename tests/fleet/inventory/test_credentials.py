"""A host's credentials read or write nothing but its own Secret: everything else is tried."""

from __future__ import annotations

from contextlib import aclosing

import pytest
from fleet.inventory import trying
from fleet.inventory.management import SPACE, Host, Management, connection
from support.waiting import eventually

from slipway.api.cluster.kinds import MACHINE_INVENTORY, SECRET, path
from slipway.credentials.tpm.software import SoftwareTPM
from slipway.kube.aio import AsyncClient
from slipway.kube.errors import ForbiddenError, UnauthorizedError


@pytest.mark.asyncio
async def test_a_host_reads_and_updates_its_own_secret_and_may_do_nothing_else(management: Management, tpm: SoftwareTPM) -> None:
    serving = await management.start()
    registration = await management.registration()
    config = await Host(registration["status"]["registrationURL"], serving, tpm).register()
    name = config["elemental"]["system-agent"]["secret-name"]
    await management.inventory("other", tpmHash="b" * 64)
    await management.secret("other")
    own = path(SECRET, SPACE, name)
    async with AsyncClient(connection(config)) as host:
        secret = await host.get(SECRET, name, SPACE)
        assert (await host.list(SECRET, SPACE, fields=f"metadata.name={name}"))[0]["metadata"]["name"] == name
        await host.update(SECRET, {**secret, "data": {**secret["data"], "plan-state": "cGVuZGluZw=="}})
        async with aclosing(host.watch(SECRET, SPACE, resource_version="0", fields=f"metadata.name={name}", timeout_seconds=1)) as events:
            assert (await anext(aiter(events))).type == "ADDED"
        await host.raw("/version")
        attempts = await trying.everything(management.client, SPACE, "home")
        assert len(attempts) > 200
        assert await trying.allowed(host, attempts) == []
        mine = [trying.Attempt(verb, own) for verb in ("patch", "delete")]
        assert await trying.allowed(management.client, mine) == mine, "it is seen when somebody may"
        others = [trying.Attempt(verb, path(SECRET, SPACE, "other")) for verb in ("get", "update", "patch", "delete")]
        certificate = trying.Attempt("get", path(SECRET, "home", "slipway-registration-certificate"))
        everybody = trying.Attempt("list", path(SECRET, SPACE))
        by_another_name = trying.Attempt("list", f"{path(SECRET, SPACE)}?fieldSelector=metadata.name%3Dother")
        itself = trying.Attempt("get", path(MACHINE_INVENTORY, SPACE, name))
        more = trying.Attempt("create", f"/api/v1/namespaces/{SPACE}/serviceaccounts/host-{name}/token")
        tries = [*mine, *others, certificate, everybody, by_another_name, itself, more]
        tries += [trying.Attempt("get", each) for each in trying.SECRETS_PATHS]
        assert await trying.allowed(host, tries) == []


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
