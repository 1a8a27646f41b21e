"""The inventory under exactly the roles that are generated for it: nothing is refused, and nothing is given that is not used."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from fleet.inventory.management import SPACE, Host, Management
from fleet.privileges import Alone, Observer, Use, unused
from support.ports import free_port
from support.waiting import eventually

from slipway.api.cluster import kinds
from slipway.api.cluster.kinds import MACHINE_INVENTORY, ROLE, ROLE_BINDING, SECRET, SEED_IMAGE, SERVICE_ACCOUNT
from slipway.api.elemental.protocol import Frame
from slipway.credentials.tpm.software import SoftwareTPM
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.inventory.options import InventoryOptions
from slipway.fleet.inventory.registration.server import RegistrationServer
from slipway.fleet.manager import build
from slipway.kube.aio import AsyncClient, PatchType
from slipway.runtime.apply import install

# Declared, and needed only by chance: after a conflict or by who registers while somebody else writes.
_BY_CHANCE: dict[Use, str] = {
    ("get", MACHINE_INVENTORY.group, MACHINE_INVENTORY.plural): "reads what is there after a conflict",
    ("get", kinds.MACHINE_REGISTRATION.group, kinds.MACHINE_REGISTRATION.plural): "reads what is there after a conflict",
    ("get", SEED_IMAGE.group, SEED_IMAGE.plural): "reads what is there after a conflict",
    ("patch", kinds.MACHINE_REGISTRATION.group, kinds.MACHINE_REGISTRATION.plural): "writes what changed of metadata and spec",
    ("get", "", SERVICE_ACCOUNT.plural): "looks whose one is that was there before",
    ("get", ROLE.group, ROLE.plural): "looks whose one is that was there before",
    ("get", ROLE_BINDING.group, ROLE_BINDING.plural): "looks whose one is that was there before",
    ("update", ROLE.group, ROLE.plural): "narrows a role that somebody widened",
    ("update", ROLE_BINDING.group, ROLE_BINDING.plural): "mends a binding that somebody changed",
    ("delete", ROLE_BINDING.group, ROLE_BINDING.plural): "makes a binding anew that refers to another role",
    ("list", "", SECRET.plural): "given to hosts, which nobody can who does not have it",
    ("create", "", kinds.CORE_EVENT.plural): "says what happened",
    ("patch", "", kinds.CORE_EVENT.plural): "counts an Event that is said again",
}


@pytest.mark.asyncio
async def test_the_inventory_does_all_its_work_under_its_role_and_needs_all_of_it(
    monkeypatch: pytest.MonkeyPatch, tpm: SoftwareTPM
) -> None:
    alone = Alone(("inventory",), free_port())
    port = free_port()
    async with EmbeddedServer() as server, AsyncClient(server.connection()) as client:
        await client.create(kinds.NAMESPACE, {"metadata": {"name": SPACE}})
        await install(client, [*alone.manifests()], lambda line: None)
        observer = Observer(monkeypatch, server)
        reached = InventoryOptions(bind_address=f"127.0.0.1:{port}", url=f"https://127.0.0.1:{port}")
        manager = build(server.connection(alone.user, ()), msgspec.structs.replace(alone._settings(), inventory=reached))
        (serving,) = [each for each in manager._webhooks if isinstance(each, RegistrationServer)]
        stop = asyncio.Event()
        task = asyncio.create_task(manager.run(stop))
        try:
            await eventually(lambda: task.done() or not any(why for _, why in manager._readyz()), "hosts can register")
            await _life(Management(server, client), serving, tpm)
        finally:
            stop.set()
            await asyncio.wait_for(task, 30)
    assert observer.refused[alone.user] == set()
    assert unused(alone.permissions(), observer.used[alone.user]) - _BY_CHANCE.keys() == set(), "given, and of no use"
    assert _BY_CHANCE.keys() - alone.permissions() == set(), "not given any more"


async def _life(management: Management, serving: RegistrationServer, tpm: SoftwareTPM) -> None:
    """A host registers, applies a plan, is seen by its image, and is reset and deleted."""
    url = (await management.registration())["status"]["registrationURL"]
    host = Host(url, serving, tpm)
    name = (await host.register())["elemental"]["system-agent"]["secret-name"]
    await host.register({Frame.ANNOTATIONS: {"elemental.cattle.io/registration-ip": "10.0.0.5"}}, update=True)
    await management.apply(name)
    await management.told(name, "Ready", "PlanSuccessfullyApplied")
    seed = {"metadata": {"name": "boot", "namespace": SPACE}, "spec": {"registrationRef": {"name": "all"}, "retriggerBuild": True}}
    await management.client.create(SEED_IMAGE, seed)
    await management.when(SEED_IMAGE, "boot", lambda found: found.get("status", {}).get("state") in ("Completed", "Failed"))
    change = {"metadata": {"annotations": {"elemental.cattle.io/resettable": "true"}}}
    await management.client.patch(MACHINE_INVENTORY, name, SPACE, change, type=PatchType.MERGE)
    await management.client.delete(MACHINE_INVENTORY, name, SPACE)
    await management.told(name, "Ready", "Resetting")
    await management.apply(name)

    async def gone() -> bool:
        return await management.client.find(MACHINE_INVENTORY, name, SPACE) is None

    await eventually(gone, "the inventory is gone")
