"""The bootstrap provider as a manager runs it: events, permissions, and what others do to its objects meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fleet.world import World
from support.waiting import eventually

from slipway.api.cluster.kinds import KUBEADM_CONFIG, KUBEADM_CONTROL_PLANE, ROLE, SECRET
from slipway.fleet import registry
from slipway.fleet.baremetal.options import BaremetalOptions
from slipway.fleet.bootstrap.options import BootstrapOptions
from slipway.fleet.bootstrap.reconciler import RULES
from slipway.fleet.inventory.options import InventoryOptions
from slipway.fleet.machines.options import MachinesOptions
from slipway.fleet.snapshots.options import SnapshotOptions
from slipway.kube.aio import PatchType
from slipway.kube.connection import Connection
from slipway.runtime.manager import Manager, ManagerOptions

pytestmark = [pytest.mark.asyncio]


@asynccontextmanager
async def running(world: World, connection: Connection | None = None) -> AsyncIterator[Manager]:
    manager = Manager(connection or world.connection, ManagerOptions(namespace=world.namespace))
    options = registry.FleetOptions(BootstrapOptions(), InventoryOptions(), BaremetalOptions(), MachinesOptions(), SnapshotOptions())
    for reconciler, _ in registry.controllers(("bootstrap",), manager, options):
        manager.add(reconciler)
    stop = asyncio.Event()
    task = asyncio.create_task(manager.run(stop))
    try:
        yield manager
    finally:
        stop.set()
        await task


async def has_data(world: World, *names: str) -> None:
    async def made() -> bool:
        configs = [await world.config(name) for name in names]
        return all((config.get("status") or {}).get("dataSecretName") for config in configs)

    await eventually(made, f"{', '.join(names)} have data", 60)


async def test_a_cluster_comes_up_by_events_alone(world: World) -> None:
    """In the order in which the core and control-plane controllers make things, under the permissions that are declared and no more."""
    manager_user = await world.user(RULES)
    async with running(world, manager_user.connection):
        await world.cluster(initialized=False, provisioned=False)
        await world.machine("cp-0", control_plane=True)
        workers = [f"w-{number}" for number in range(5)]
        for name in workers:
            await world.machine(name)
        await world.control_plane("v1.35.0")
        await world.certificates()
        await world.kubeconfig()
        await world.cluster_status(initialized=False)
        await has_data(world, "cp-0")
        assert not (await world.config("w-0")).get("status", {}).get("dataSecretName")
        await world.cluster_status(initialized=True)
        await world.machine("cp-1", control_plane=True)
        await world.pool("pool")
        await has_data(world, *workers, "cp-1", "pool")
        assert await world.lock() is None
        assert len(await world.tokens()) == len(workers) + 2
        # The control plane is upgraded before any host has read its data.
        await world.patch(KUBEADM_CONTROL_PLANE, "cp", {"spec": {"version": "v1.36.0"}})

        async def rendered() -> bool:
            return all(["v1.36.0" in await world.data(name) for name in (*workers, "pool")])

        await eventually(rendered, "the data of workers is for v1.36.0", 60)
        assert len(await world.tokens()) == len(workers) + 2
        for name in workers:
            await world.joined(name)

        async def removed() -> bool:
            return len(await world.tokens()) == 2

        await eventually(removed, "tokens of nodes that joined are gone", 60)


async def test_a_data_secret_that_is_deleted_comes_back_at_once(world: World) -> None:
    await world.ready()
    await world.machine("w")
    async with running(world):
        await has_data(world, "w")
        first = await world.client.get(SECRET, "w", world.namespace)
        await world.client.delete(SECRET, "w", world.namespace)

        async def made_again() -> bool:
            found = await world.client.find(SECRET, "w", world.namespace)
            return found is not None and found["metadata"]["uid"] != first["metadata"]["uid"] and found["data"] == first["data"]

        await eventually(made_again, "the Secret is there again")


async def test_a_control_plane_that_comes_back_is_noticed(world: World) -> None:
    """With another version; and by machines that could not be given data without it."""
    await world.ready("v1.34.0")
    await world.machine("w")
    async with running(world):
        await has_data(world, "w")
        await world.client.delete(KUBEADM_CONTROL_PLANE, "cp", world.namespace)
        await world.machine("late")

        async def refused() -> bool:
            conditions = ((await world.config("late")).get("status") or {}).get("conditions") or ()
            return any(condition["reason"] == "ControlPlaneVersionUnreadable" for condition in conditions)

        await eventually(refused, "the missing control plane is told")

        await world.control_plane("v1.35.0")
        await has_data(world, "late")

        async def rendered() -> bool:
            return "v1.35.0" in await world.data("w")

        await eventually(rendered, "the data is for the new version")


async def test_permissions_that_are_revoked_are_told_and_waited_for(world: World) -> None:
    user = await world.user(RULES)
    await world.ready()
    role = await world.client.get(ROLE, f"{world.namespace}-manager", world.namespace)
    without = [rule for rule in role["rules"] if "secrets" not in rule["resources"]]
    await world.patch(ROLE, role["metadata"]["name"], {"rules": without})
    async with running(world, user.connection):
        await world.machine("w")

        async def told() -> bool:
            status = (await world.config("w")).get("status") or {}
            messages = [condition["message"] for condition in status.get("conditions") or () if condition["status"] != "True"]
            return any('cannot get resource "secrets"' in message for message in messages)

        await eventually(told, "a condition says what is forbidden", 60)
        await world.patch(ROLE, role["metadata"]["name"], {"rules": role["rules"]})
        await has_data(world, "w")
        assert len(await world.tokens()) == 1


async def test_two_managers_at_once_make_one_secret_and_one_token_each(world: World) -> None:
    """It takes a leader that does not know that it lost the lead."""
    await world.ready()
    names = [f"w-{number}" for number in range(10)]
    async with running(world), running(world):
        for name in names:
            await world.machine(name)
        await has_data(world, *names)
    tokens = await world.tokens()
    assert len(tokens) == len(names)
    for name in names:
        config = await world.config(name)
        token = config["spec"]["joinConfiguration"]["discovery"]["bootstrapToken"]["token"]
        assert token in await world.data(name)
        assert f"bootstrap-token-{token[:6]}" in [secret["metadata"]["name"] for secret in tokens]


async def test_somebody_who_writes_all_the_time_does_not_stop_it(world: World) -> None:
    await world.ready()
    await world.machine("w")

    async def busybody() -> None:
        number = 0
        while True:
            number += 1
            body = {"metadata": {"annotations": {"seen": str(number)}}}
            await world.client.patch(KUBEADM_CONFIG, "w", world.namespace, body, type=PatchType.MERGE)
            # Twenty writes a second are more than any controller makes to one object.
            await asyncio.sleep(0.05)

    task = asyncio.create_task(busybody())
    try:
        async with running(world):
            await has_data(world, "w")
    finally:
        task.cancel()
    assert len(await world.tokens()) == 1
    assert await world.client.find(SECRET, "w", world.namespace) is not None
