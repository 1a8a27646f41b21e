"""The Cluster controller killed, or without the API server's answer, at any of its requests, and run again by another process."""

from __future__ import annotations

import itertools

import pytest
from fleet.fuse import Fuse, Killed
from fleet.infrastructure import TEST_CLUSTER
from fleet.machines.stage import CONTROL_PLANE, Stage
from fleet.world import CA_PAIR

from slipway.api.cluster.kinds import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, SECRET
from slipway.fleet.clustercache import WorkloadClusters
from slipway.fleet.machines.cluster.reconciler import ClusterReconciler
from slipway.kube.aio import AsyncClient
from slipway.kube.errors import UnreachableError

pytestmark = pytest.mark.asyncio

ENDPOINT = {"host": "10.0.0.1", "port": 6443}
REFERENCES = {
    "infrastructureRef": {"apiGroup": TEST_CLUSTER.group, "kind": "TestCluster", "name": "c"},
    "controlPlaneRef": {"apiGroup": CONTROL_PLANE.group, "kind": "TestControlPlane", "name": "cp"},
}


async def _process(stage: Stage, fuse: Fuse | None) -> bool:
    """As many reconciles as a Cluster needs for all there is to do; whether they were cut short."""
    async with AsyncClient(stage.server.connection(), on_request=fuse) as client:
        workload = WorkloadClusters(stage.client)
        reconciler = ClusterReconciler(
            client,
            stage.cache,
            workload=workload,
            events=stage.events,
            watch=stage.watched.append,
            enqueue=stage.enqueued.append,
            clock=lambda: stage.now,
        )
        try:
            for _ in range(6):
                await stage.reconcile(reconciler, "c")
        except (Killed, UnreachableError):
            return True
        except Exception as error:
            # A lost answer shows itself in the words of whatever was being done.
            if "the answer is lost" not in str(error):
                raise
            return True
        finally:
            await workload.close()
    return False


async def _to_the_end(stage: Stage, error: type[BaseException]) -> int:
    """Cut short at the first, the second, the third request and so on, until one process gets through; how many did not."""
    for at in itertools.count(1):
        if not await _process(stage, Fuse(at, error)):
            return at - 1
    raise AssertionError("unreachable")


@pytest.mark.parametrize("error", [Killed, UnreachableError])
async def test_a_cluster_comes_however_often_its_controller_is_killed(stage: Stage, error: type[BaseException]) -> None:
    await stage.create(TEST_CLUSTER, "c", {"controlPlaneEndpoint": ENDPOINT}, {"initialization": {"provisioned": True}})
    await stage.create(CONTROL_PLANE, "cp", {}, {"initialization": {"controlPlaneInitialized": True}})
    await stage.create(CLUSTER, "c", REFERENCES)
    assert await _to_the_end(stage, error) > 3
    found = await stage.get(CLUSTER, "c")
    assert found["spec"]["controlPlaneEndpoint"] == ENDPOINT
    assert found["status"]["initialization"] == {"infrastructureProvisioned": True, "controlPlaneInitialized": True}
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
    for kind, name in ((TEST_CLUSTER, "c"), (CONTROL_PLANE, "cp")):
        assert len((await stage.get(kind, name))["metadata"]["ownerReferences"]) == 1


async def test_a_kubeconfig_is_made_once_however_often_its_maker_is_killed(stage: Stage) -> None:
    await stage.secret("c-ca", {"tls.crt": CA_PAIR.certificate, "tls.key": CA_PAIR.key})
    await stage.create(CLUSTER, "c", {"controlPlaneEndpoint": ENDPOINT})
    assert await _to_the_end(stage, Killed) > 3
    assert await stage.names(SECRET) == ["c-ca", "c-kubeconfig"]


@pytest.mark.parametrize("error", [Killed, UnreachableError])
async def test_a_cluster_goes_in_order_however_often_its_controller_is_killed(stage: Stage, error: type[BaseException]) -> None:
    await stage.create(TEST_CLUSTER, "c", {"controlPlaneEndpoint": ENDPOINT}, {"initialization": {"provisioned": True}})
    await stage.create(CONTROL_PLANE, "cp", {}, {"initialization": {"controlPlaneInitialized": True}})
    await stage.create(CLUSTER, "c", REFERENCES)
    assert not await _process(stage, None)
    await stage.member(MACHINE_DEPLOYMENT, "md", own=True)
    await stage.member(MACHINE, "alone", own=True)
    await stage.member(MACHINE, "w", finalizers=["held.io/up"])
    await stage.client.delete(CLUSTER, "c", "ns")
    await _to_the_end(stage, error)
    assert await stage.names(MACHINE_DEPLOYMENT) == []
    assert await stage.names(MACHINE) == ["w"]
    assert "deletionTimestamp" not in (await stage.get(CONTROL_PLANE, "cp"))["metadata"]
    await stage.release(MACHINE, "w")
    await stage.client.delete(MACHINE, "w", "ns")
    await _to_the_end(stage, error)
    for kind in (CONTROL_PLANE, TEST_CLUSTER, CLUSTER):
        assert await stage.names(kind) == []
