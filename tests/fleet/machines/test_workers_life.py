"""The MachineDeployment and MachineSet controllers in one manager, with exactly the permissions that they declare: workers' whole life."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from fleet.infrastructure import TEST_CONFIG, TEST_CONFIG_TEMPLATE, TEST_MACHINE, TEST_MACHINE_TEMPLATE
from fleet.machines.workers import SPACE, Workers, employed
from support.waiting import eventually

from slipway.api.cluster.kinds import (
    CLUSTER,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
)
from slipway.fleet.clustercache import WorkloadClusters
from slipway.fleet.machines.deployment.reconciler import MachineDeploymentReconciler
from slipway.fleet.machines.machineset.reconciler import MachineSetReconciler
from slipway.kube.errors import NotFoundError
from slipway.runtime import rbac
from slipway.runtime.manager import Manager, ManagerOptions

pytestmark = pytest.mark.asyncio

USER = "least-privileged"


async def allow(workers: Workers) -> None:
    """What the controllers declare, and what the providers of the test aggregate to that."""
    provided = [
        *(rbac.rule(kind, *rbac.READ, "create", "patch", "delete") for kind in (TEST_MACHINE, TEST_CONFIG)),
        *(rbac.rule(kind, *rbac.READ, "patch") for kind in (TEST_MACHINE_TEMPLATE, TEST_CONFIG_TEMPLATE)),
        rbac.rule(KUBEADM_CONTROL_PLANE, *rbac.READ),
    ]
    role = rbac.cluster_role(USER, [*MachineDeploymentReconciler.rules, *MachineSetReconciler.rules, *provided])
    await workers.client.create(CLUSTER_ROLE, role)
    await workers.client.create(CLUSTER_ROLE_BINDING, rbac.binding(role, rbac.user(USER)))


@asynccontextmanager
async def managed(workers: Workers) -> AsyncIterator[None]:
    manager = Manager(workers.server.connection(USER, ()), ManagerOptions())
    workload = WorkloadClusters(manager.client)
    manager.at_start(lambda: workload.follow(manager.cache.informer(CLUSTER)))
    manager.at_end(workload.close)
    client, cache, events = manager.client, manager.cache, manager.events
    deployments = MachineDeploymentReconciler(client, cache, events=events, watch=lambda one: manager.watch("machinedeployment", one))
    sets = MachineSetReconciler(client, cache, workload=workload, events=events, watch=lambda one: manager.watch("machineset", one))
    # A test does not wait for seconds to pass.
    deployments.interval, sets.interval = 0.0, 0.0
    manager.add(deployments)
    manager.add(sets)
    stop = asyncio.Event()
    tasks = [asyncio.create_task(manager.run(stop)), asyncio.create_task(machines(workers, stop))]
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(asyncio.gather(*tasks), 30)


async def machines(workers: Workers, stop: asyncio.Event) -> None:
    """Machines come and go at once."""
    while not stop.is_set():
        with suppress(NotFoundError):
            await workers.let_go()
            await workers.bring_up()
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), 0.02)


async def test_workers_come_are_rolled_out_and_go_by_events_alone() -> None:
    async with employed() as workers:
        await allow(workers)
        await workers.control_plane("v1.35.0", "v1.35.0")
        async with managed(workers):
            await workers.deployment(replicas=2, surge=1)

            async def available(version: str, replicas: int = 2) -> bool:
                status = (await workers.get(MACHINE_DEPLOYMENT, "md")).get("status") or {}
                sets = await workers.names(MACHINE_SET)
                return status.get("availableReplicas") == replicas and await workers.versions() == [version] * replicas and len(sets) == 1

            await eventually(lambda: available("v1.35.0"), "the workers are there")

            await workers.patch(MACHINE_DEPLOYMENT, "md", {"spec": {"template": {"spec": {"version": "v1.35.1"}}}})

            async def waits() -> bool:
                return "to have version v1.35.1 first" in (await workers.told(MACHINE_DEPLOYMENT, "md", "RollingOut"))[2]

            await eventually(waits, "the control plane is waited for")
            await workers.control_plane("v1.35.1", "v1.35.1")
            await eventually(lambda: available("v1.35.1"), "the workers have the new version")
            assert await workers.names(TEST_MACHINE) == await workers.names(TEST_CONFIG) == await workers.names(MACHINE)

            await workers.client.delete(MACHINE_DEPLOYMENT, "md", SPACE)

            async def gone() -> bool:
                return not await workers.names(MACHINE_DEPLOYMENT)

            await eventually(gone, "the workers are gone")
            assert await workers.names(MACHINE) == []
