"""The Cluster and MachineHealthCheck controllers in one manager, with exactly the permissions that they declare: a Cluster's whole life."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from fleet.infrastructure import TEST_CLUSTER
from fleet.machines.stage import CONTROL_PLANE, NAMESPACE_NAME, Stage
from support.waiting import eventually

from slipway.api.cluster.kinds import (
    CLUSTER,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_HEALTH_CHECK,
    NODE,
)
from slipway.fleet.clustercache import WorkloadClusters
from slipway.fleet.machines.cluster.reconciler import ClusterReconciler
from slipway.fleet.machines.healthcheck.reconciler import MachineHealthCheckReconciler
from slipway.runtime import rbac
from slipway.runtime.manager import Manager, ManagerOptions
from slipway.runtime.objects import Request, timestamp

pytestmark = pytest.mark.asyncio

USER = "least-privileged"
ENDPOINT = {"host": "10.0.0.1", "port": 6443}


async def _allow(stage: Stage) -> None:
    """What the controllers declare, and what the providers of the test aggregate to that."""
    provided = [rbac.rule(kind, *rbac.READ, "patch", "delete") for kind in (TEST_CLUSTER, CONTROL_PLANE)]
    role = rbac.cluster_role(USER, [*ClusterReconciler.rules, *MachineHealthCheckReconciler.rules, *provided])
    await stage.client.create(CLUSTER_ROLE, role)
    await stage.client.create(CLUSTER_ROLE_BINDING, rbac.binding(role, rbac.user(USER)))


@asynccontextmanager
async def _managed(stage: Stage) -> AsyncIterator[None]:
    manager = Manager(stage.server.connection(USER, ()), ManagerOptions())
    workload = WorkloadClusters(manager.client)
    manager.at_start(lambda: workload.follow(manager.cache.informer(CLUSTER)))
    manager.at_end(workload.close)

    def cluster(request: Request) -> None:
        manager.enqueue(ClusterReconciler.name, request)

    def check(request: Request) -> None:
        manager.enqueue(MachineHealthCheckReconciler.name, request)

    clusters = ClusterReconciler(
        manager.client,
        manager.cache,
        workload=workload,
        events=manager.events,
        watch=lambda watch: manager.watch(ClusterReconciler.name, watch),
        enqueue=cluster,
    )
    checks = MachineHealthCheckReconciler(
        manager.client,
        manager.cache,
        workload=workload,
        events=manager.events,
        watch=lambda watch: manager.watch(MachineHealthCheckReconciler.name, watch),
        enqueue=check,
    )
    # A test does not wait for seconds to pass.
    clusters.interval, checks.interval = 0.0, 0.0
    manager.add(clusters)
    manager.add(checks)
    stop = asyncio.Event()
    task = asyncio.create_task(manager.run(stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, 30)


async def _says(stage: Stage, name: str, state: str) -> None:
    async def said() -> bool:
        return (await stage.conditions(CLUSTER, "c")).get(name, ("",))[0] == state

    await eventually(said, f"the Cluster says {name} {state}")


async def test_a_cluster_comes_a_machine_fails_and_all_goes(stage: Stage) -> None:
    await _allow(stage)
    await stage.kubeconfig()
    async with _managed(stage):
        infrastructure = {"apiGroup": TEST_CLUSTER.group, "kind": "TestCluster", "name": "c"}
        control_plane = {"apiGroup": CONTROL_PLANE.group, "kind": "TestControlPlane", "name": "cp"}
        await stage.create(CLUSTER, "c", {"infrastructureRef": infrastructure, "controlPlaneRef": control_plane})
        await _says(stage, "InfrastructureReady", "False")
        # What was missing is noticed when it comes, and not by looking again.
        await stage.create(TEST_CLUSTER, "c", {"controlPlaneEndpoint": ENDPOINT}, {"initialization": {"provisioned": True}})
        await _says(stage, "InfrastructureReady", "True")
        await stage.create(CONTROL_PLANE, "cp", {}, {"initialization": {"controlPlaneInitialized": True}})
        await _says(stage, "Available", "True")

        await stage.member(MACHINE_DEPLOYMENT, "md", own=True)
        await stage.member(MACHINE, "m", labels={"pool": "a"})
        await stage.status(MACHINE, "m", {"nodeRef": {"name": "m"}})
        since = timestamp(datetime.now(UTC) - timedelta(minutes=10))
        ready = {"type": "Ready", "status": "False", "reason": "KubeletStopped", "lastTransitionTime": since}
        await stage.create(NODE, "m")
        await stage.patch(NODE, "m", {"status": {"conditions": [ready]}}, subresource="status")
        bad = [{"type": "Ready", "status": "False", "timeoutSeconds": 60}]
        spec = {"clusterName": "c", "selector": {"matchLabels": {"pool": "a"}}, "checks": {"unhealthyNodeConditions": bad}}
        await stage.create(MACHINE_HEALTH_CHECK, "h", spec)

        async def marked() -> bool:
            return "OwnerRemediated" in await stage.conditions(MACHINE, "m")

        await eventually(marked, "the Machine is to be remediated")

        await stage.client.delete(CLUSTER, "c", NAMESPACE_NAME)

        async def waits_for_the_machine() -> bool:
            return await stage.names(MACHINE_DEPLOYMENT) == [] and (await stage.conditions(CLUSTER, "c"))["Deleting"] == (
                "True",
                "WaitingForWorkersDeletion",
            )

        await eventually(waits_for_the_machine, "the MachineDeployment is gone, and its Machine is waited for")
        await stage.client.delete(MACHINE, "m", NAMESPACE_NAME)
        # An event that concerns the Cluster is needed, or five seconds.
        await stage.patch(TEST_CLUSTER, "c", {"metadata": {"annotations": {"seen": "again"}}})

        async def gone() -> bool:
            return await stage.find(CLUSTER, "c") is None

        await eventually(gone, "the Cluster is gone")
        assert await stage.names(CONTROL_PLANE) == []
        assert await stage.names(TEST_CLUSTER) == []
