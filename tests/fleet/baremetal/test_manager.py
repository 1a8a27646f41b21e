"""A manager of the bare-metal controllers, under exactly the roles that are generated for it: what it must notice, it notices."""

from __future__ import annotations

import pytest
from fleet.baremetal.estate import CATALOG, NS, VERSION, Estate
from fleet.privileges import Alone, Observer, Use, unused
from fleet.world import preserving_crd
from support.ports import free_port
from support.waiting import eventually

from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CLUSTER,
    CONFIG_MAP,
    CORE_EVENT,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    NAMESPACE,
)
from slipway.embedded.server import EmbeddedServer
from slipway.runtime.apply import install

# Declared, and not needed in this scenario, or by chance alone.
NOT_HERE: dict[Use, str] = {
    ("get", BAREMETAL_CLUSTER.group, BAREMETAL_CLUSTER.plural): "reads what is there after a conflict",
    ("get", BAREMETAL_MACHINE.group, BAREMETAL_MACHINE.plural): "reads what is there after a conflict",
    ("get", MACHINE_INVENTORY_POOL.group, MACHINE_INVENTORY_POOL.plural): "reads what is there after a conflict",
    ("patch", "", CORE_EVENT.plural): "counts an Event that is said again",
}


@pytest.mark.asyncio
async def test_a_machine_lives_by_watches_alone_and_the_roles_are_just_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Alone(("baremetal",), free_port())
    async with EmbeddedServer() as server:
        metal = Estate(server)
        try:
            await install(metal.client, alone.manifests(), lambda line: None)
            for kind in (CLUSTER, MACHINE, MACHINE_INVENTORY, KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT):
                await metal.client.create(CUSTOM_RESOURCE_DEFINITION, preserving_crd(kind))
            await metal.create(NAMESPACE, NS)
            observer = Observer(monkeypatch, server)
            async with alone.running(server.connection(alone.user, ())):
                await _life(metal)
        finally:
            await metal.close()
    assert observer.refused[alone.user] == set()
    assert unused(alone.permissions(), observer.used[alone.user]) <= NOT_HERE.keys(), "given, and of no use"


async def _life(metal: Estate) -> None:
    async def is_in(phase: str, name: str = "m") -> None:
        async def reached() -> bool:
            return (await metal.status(name)).get("phase") == phase

        await eventually(reached, f"{name} is {phase}")

    async def pool_has(**counters: int) -> None:
        async def counted() -> bool:
            status = (await metal.get(MACHINE_INVENTORY_POOL, "pool")).get("status") or {}
            return all(status.get(name) == count for name, count in counters.items())

        await eventually(counted, f"the pool has {counters}")

    await metal.cluster()
    await metal.patch(CONFIG_MAP, "elemental-image-catalog", {"data": {VERSION: None}})
    await metal.machine("m")
    await is_in("Pending")
    await metal.pool("rack-1", "rack-2")
    await metal.host("rack-1")
    await is_in("Failed")
    # The literal patch of the guide: adding the key is all that it takes.
    await metal.patch(CONFIG_MAP, "elemental-image-catalog", {"data": CATALOG})
    await is_in("Reprovisioning")
    await pool_has(total=2, reprovisioning=1, unavailable=1)
    await metal.applies("rack-1")
    await metal.joins("rack-1")
    await is_in("Running")
    await metal.host("rack-2")
    await pool_has(total=2, allocated=1, available=1)
    await metal.machine("n", data=None)
    await is_in("Allocated", "n")
    for name in ("m", "n"):
        await metal.client.delete(BAREMETAL_MACHINE, name, NS)
    await is_in("Preparing")
    await metal.applies("rack-1")
    await pool_has(total=2, available=2)

    async def gone() -> bool:
        return await metal.find(BAREMETAL_MACHINE, "m") is None and await metal.find(BAREMETAL_MACHINE, "n") is None

    await eventually(gone, "the machines are gone")
    await metal.client.delete(BAREMETAL_CLUSTER, "c", NS)

    async def released() -> bool:
        return await metal.find(BAREMETAL_CLUSTER, "c") is None

    await eventually(released, "the BaremetalCluster is gone")
