"""What brings a Machine back to its controller, and a controller that runs by itself."""

from __future__ import annotations

import asyncio

import pytest
from fleet.infrastructure import TEST_CONFIG, TEST_MACHINE, Infrastructure, condition
from fleet.machines.machine.machineworld import MachineWorld, said
from support.waiting import eventually

from slipway.api.cluster.kinds import MACHINE, NODE
from slipway.fleet.machines.machine import watches
from slipway.fleet.machines.machine.reconciler import NAME, MachineReconciler
from slipway.kube.aio import PatchType
from slipway.runtime.manager import Manager, ManagerOptions
from slipway.runtime.objects import Object, Request

pytestmark = pytest.mark.asyncio


def node(ready: str, heartbeat: str) -> Object:
    content = (
        '{"metadata": {"name": "n", "resourceVersion": "1"}, "status": {"conditions": '
        f'[{{"type": "Ready", "status": "{ready}", "lastHeartbeatTime": "{heartbeat}"}}]}}}}'
    )
    return Object(NODE, content.encode())


async def test_a_heartbeat_of_a_node_is_no_news() -> None:
    assert not watches.node_changed(node("True", "1"), node("True", "2"))
    assert watches.node_changed(node("True", "1"), node("False", "1"))


async def test_a_node_brings_its_machine_back(world: MachineWorld) -> None:
    await world.running()
    world.enqueued.clear()
    await world.remote.patch(
        NODE, "m", "", {"status": {"conditions": [condition("Ready", "False")]}}, type=PatchType.MERGE, subresource="status"
    )
    await eventually(lambda: world.enqueued == [Request(world.namespace, "m")], "the Machine is enqueued")


async def test_what_a_machine_refers_to_brings_it_back(world: MachineWorld) -> None:
    await world.running()
    (watch,) = [watch for watch in world.watched if watch.kind.kind == "TestMachine"]
    found = await world.cache.get(TEST_MACHINE, "m", world.namespace)
    assert found is not None
    assert watch.requests is not None
    assert list(await watch.requests(found, world.cache)) == [Request(world.namespace, "m")]


async def test_a_manager_brings_a_machine_up_and_down(world: MachineWorld) -> None:
    await world.cluster()
    manager = Manager(world.client.connection, ManagerOptions(namespace=world.namespace))
    infrastructure = Infrastructure(world.remote.connection)
    infrastructure.add_to(manager)
    reconciler = MachineReconciler(
        manager.client,
        manager.cache,
        workload=world.workload,
        events=manager.events,
        watch=lambda watch: manager.watch(NAME, watch),
        enqueue=lambda request: manager.enqueue(NAME, request),
    )
    reconciler.interval = 0.05
    manager.add(reconciler)
    await world.machine("cp", control_plane=True)
    await world.machine("m")
    for kind in (TEST_MACHINE, TEST_CONFIG):
        await world.client.create(kind, {"metadata": {"name": "m", "namespace": world.namespace}})
    stop = asyncio.Event()
    run = asyncio.create_task(manager.run(stop))

    async def is_available() -> bool:
        return said(await world.get("m"), "Available")[0] == "True"

    async def is_gone() -> bool:
        return await world.client.find(MACHINE, "m", world.namespace) is None

    try:
        await eventually(is_available, "the Machine is available")
        await world.client.delete(MACHINE, "m", world.namespace)
        await eventually(is_gone, "the Machine is gone")
        assert await world.remote.find(NODE, "m") is None
    finally:
        stop.set()
        await run


async def test_a_machine_that_cannot_be_read_is_still_found_by_its_owner() -> None:
    found = Object(
        MACHINE,
        b'{"metadata": {"name": "bad", "namespace": "x", "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", '
        b'"kind": "MachineSet", "name": "y"}]}, "spec": {"providerID": 5}}',
    )
    assert list(watches.concerns(found)) == ["owner MachineSet x/y"]
