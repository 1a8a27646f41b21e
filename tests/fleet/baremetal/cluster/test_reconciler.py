"""BaremetalClusters: the endpoint, when they are ready, and when they may go."""

from __future__ import annotations

import pytest
from fleet.baremetal.estate import NS, VIP, Estate

from slipway.api.cluster.infrastructure.cluster import BaremetalClusterSpec, ControlPlaneLoadBalancer, Endpoint
from slipway.api.cluster.infrastructure.pool import MachineInventoryPool, MachineInventoryPoolSpec, PoolMember
from slipway.api.cluster.kinds import BAREMETAL_CLUSTER, BAREMETAL_MACHINE, CLUSTER
from slipway.fleet.baremetal.cluster.failuredomains import domains
from slipway.fleet.baremetal.cluster.reconciler import judge

BALANCER = ControlPlaneLoadBalancer(host=VIP, type="Internal", vrid=1)


@pytest.mark.parametrize(
    ("spec", "reason", "endpoint"),
    [
        (BaremetalClusterSpec(), "EndpointMissing", ("", 0)),
        (BaremetalClusterSpec(control_plane_load_balancer=BALANCER), "EndpointReady", (VIP, 6443)),
        (BaremetalClusterSpec(control_plane_endpoint=Endpoint(host="api.example.com")), "EndpointReady", ("api.example.com", 6443)),
        (
            BaremetalClusterSpec(control_plane_endpoint=Endpoint(host=VIP, port=6443), control_plane_load_balancer=BALANCER),
            "EndpointReady",
            (VIP, 6443),
        ),
        (
            BaremetalClusterSpec(control_plane_endpoint=Endpoint(host=VIP, port=7443), control_plane_load_balancer=BALANCER),
            "EndpointConflict",
            ("", 0),
        ),
    ],
)
def test_an_endpoint_is_judged(spec: BaremetalClusterSpec, reason: str, endpoint: tuple[str, int]) -> None:
    verdict = judge(spec)
    assert (verdict.reason, (verdict.host, verdict.port)) == (reason, endpoint)


@pytest.mark.asyncio
async def test_a_cluster_is_ready_with_its_endpoint_and_says_so_for_both_contracts(metal: Estate) -> None:
    await metal.cluster()
    await metal.reconcile("c", metal.clusters)
    found = await metal.get(BAREMETAL_CLUSTER, "c")
    assert found["spec"]["controlPlaneEndpoint"] == {"host": VIP, "port": 6443}
    assert (found["status"]["ready"], found["status"]["initialization"]) == (True, {"provisioned": True})
    assert (await metal.condition("c", "Ready", BAREMETAL_CLUSTER))[0] == "True"


@pytest.mark.asyncio
async def test_failure_domains_are_where_the_hosts_of_the_clusters_pools_are(metal: Estate) -> None:
    await metal.cluster()
    for number, rack in enumerate(("a", "b", "b", "c", "")):
        await metal.host(f"rack-{number}", metadata={"labels": {"topology.kubernetes.io/zone": rack} if rack else {}})
    await metal.pool("rack-0", "rack-1", "rack-4", name="planes")
    await metal.pool("rack-2", name="workers")
    await metal.pool("rack-3", name="others", cluster="elsewhere")
    await metal.machine("m", pool="planes", control_plane=True)
    await metal.reconcile("m")
    assert (await metal.status("m"))["failureDomain"] == "a"
    await metal.reconcile("c", metal.clusters)
    found = (await metal.get(BAREMETAL_CLUSTER, "c"))["status"]["failureDomains"]
    assert found == [{"name": "a", "controlPlane": True}, {"name": "b", "controlPlane": True}]


@pytest.mark.parametrize(("of_planes", "expected"), [({"p"}, {"a": True, "b": True, "c": False}), (set(), dict.fromkeys("abc", False))])
def test_a_control_plane_is_spread_over_the_domains_of_its_own_pools(of_planes: set[str], expected: dict[str, bool]) -> None:
    located = {"1": "a", "2": "b", "3": "b", "4": "c"}
    pools = [
        MachineInventoryPool(
            metadata={"name": name}, spec=MachineInventoryPoolSpec(machine_inventories=[PoolMember(name=host) for host in hosts])
        )
        for name, hosts in (("p", "12"), ("w", "345"))
    ]
    assert {each["name"]: each["controlPlane"] for each in domains(pools, of_planes, located)} == expected


@pytest.mark.asyncio
async def test_a_paused_cluster_is_left_alone(metal: Estate) -> None:
    await metal.cluster()
    await metal.patch(CLUSTER, "c", {"spec": {"paused": True}})
    await metal.reconcile("c", metal.clusters)
    assert (await metal.condition("c", "Paused", BAREMETAL_CLUSTER))[0] == "True"
    assert "controlPlaneEndpoint" not in (await metal.get(BAREMETAL_CLUSTER, "c"))["spec"]


@pytest.mark.asyncio
async def test_infrastructure_that_somebody_else_manages_is_left_alone(metal: Estate) -> None:
    await metal.cluster()
    before = await metal.patch(BAREMETAL_CLUSTER, "c", {"metadata": {"annotations": {"cluster.x-k8s.io/managed-by": "terraform"}}})
    for reconciler in (metal.clusters, metal.alive):
        await metal.reconcile("c", reconciler)
    assert await metal.get(BAREMETAL_CLUSTER, "c") == before


@pytest.mark.asyncio
async def test_infrastructure_without_a_label_goes_after_the_last_machine_too(metal: Estate) -> None:
    await metal.cluster()
    await metal.machine("m")
    await metal.reconcile("c", metal.clusters)
    await metal.patch(BAREMETAL_CLUSTER, "c", {"metadata": {"labels": None}})
    for kind in (CLUSTER, BAREMETAL_CLUSTER):
        await metal.client.delete(kind, "c", NS)
    await metal.reconcile("c", metal.clusters)
    assert await metal.find(BAREMETAL_CLUSTER, "c")


@pytest.mark.asyncio
async def test_a_cluster_goes_after_its_last_machine(metal: Estate) -> None:
    await metal.cluster()
    await metal.machine("m")
    await metal.reconcile("c", metal.clusters)
    await metal.reconcile("m")
    await metal.client.delete(BAREMETAL_CLUSTER, "c", NS)
    await metal.reconcile("c", metal.clusters)
    assert await metal.find(BAREMETAL_CLUSTER, "c")
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")
    await metal.reconcile("c", metal.clusters)
    assert await metal.find(BAREMETAL_CLUSTER, "c") is None
