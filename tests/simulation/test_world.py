"""A world without a manager: hosts boot seeds, become clusters, and lose their power."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import count
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from simulation import seeds
from support.waiting import eventually

from slipway.api.cluster.kinds import CONFIG_MAP, DEPLOYMENT, LEASE, NODE, POD
from slipway.kube.aio import AsyncClient
from slipway.kube.errors import ApiError
from slipway.simulation.boot import Life
from slipway.simulation.kubelet import SERVICE, Kubelet
from slipway.simulation.workload.cluster import WorkloadCluster
from slipway.simulation.workload.controllers import BUDGET
from slipway.simulation.world import World

pytestmark = pytest.mark.asyncio
_numbers = count(1)


def address() -> str:
    """A virtual address that nothing else on this machine has."""
    import os

    return f"127.{64 + os.getpid() % 60}.{next(_numbers)}.1"


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    async with World() as made:
        made.registry.push("os", "1.34", "v1.34.10")
        made.registry.push("os", "1.35", "v1.35.4")
        yield made


def host(world: World, name: str, kubernetes: str = "1.34") -> Life:
    image = world.registry.pull(f"{world.registry.address}/os:{kubernetes}")
    assert image is not None
    return world.add_host(name, image, with_agent=False)


def nodes(cluster: WorkloadCluster) -> dict[str, str]:
    """The kubelets of the Nodes that are ready."""
    return {
        node["metadata"]["name"]: node["status"]["nodeInfo"]["kubeletVersion"]
        for node in cluster.client.list(NODE)
        if any(each["type"] == "Ready" and each["status"] == "True" for each in (node.get("status") or {}).get("conditions") or ())
    }


def has(world: World, wanted: Callable[[WorkloadCluster], bool]) -> Callable[[], object]:
    async def probe() -> bool:
        return any(wanted(cluster) for cluster in world.clusters.values())

    return probe


def _has_voters(wanted: int, cluster: WorkloadCluster) -> bool:
    return [member.learner for member in cluster.etcd.members.values()] == [False] * wanted


async def made(world: World, vip: str, *, planes: int = 1, workers: int = 0) -> tuple[WorkloadCluster, list[Life]]:
    """A cluster of so many hosts."""
    endpoint = f"{vip}:6443"
    hosts = [host(world, f"cp-{number}") for number in range(max(planes, 2))]
    addresses = [each.machine.hardware.address.partition("/")[0] for each in hosts]
    files = [seeds.alive_files(vip, mine, addresses) for mine in addresses]
    seeds.place(hosts[0], "one", seeds.init("cp-0", "v1.34.10", endpoint, files[0]))
    await hosts[0].power_on()
    await eventually(
        has(world, lambda cluster: "cp-0" in nodes(cluster) and cluster.client.find(CONFIG_MAP, "coredns", "kube-system") is not None),
        "the first control plane is up",
        20,
    )
    for number in range(1, planes):
        seeds.place(hosts[number], "one", seeds.join(f"cp-{number}", endpoint, control_plane=True, files=files[number]))
        await hosts[number].power_on()
        await eventually(has(world, partial(_has_voters, number + 1)), "it joins", 20)
    for number in range(workers):
        worker = host(world, f"w-{number}")
        hosts.append(worker)
        seeds.place(worker, "one", seeds.join(f"w-{number}", endpoint, control_plane=False))
        await worker.power_on()
    (cluster,) = world.clusters.values()
    await eventually(has(world, lambda cluster: len(nodes(cluster)) == planes + workers), "all nodes are ready", 20)
    return cluster, hosts


async def test_a_cluster_comes_up_with_its_nodes_as_kubeadm_makes_them(world: World) -> None:
    cluster, _ = await made(world, address(), planes=3, workers=1)
    assert nodes(cluster) == {"cp-0": "v1.34.10", "cp-1": "v1.34.10", "cp-2": "v1.34.10", "w-0": "v1.34.10"}
    found = {node["metadata"]["name"]: node for node in cluster.client.list(NODE)}
    assert found["w-0"]["spec"]["providerID"] == "baremetal:///w-0"
    assert "node-role.kubernetes.io/control-plane" in found["cp-2"]["metadata"]["labels"]
    assert found["cp-1"]["spec"]["taints"][0]["key"] == "node-role.kubernetes.io/control-plane"
    assert {member.name for member in cluster.etcd.members.values()} == {"cp-0", "cp-1", "cp-2"}
    await eventually(lambda: cluster.client.find(LEASE, "w-0", "kube-node-lease"), "the kubelet of w-0 renews its Lease")
    await eventually(lambda: cluster.client.find(POD, "etcd-cp-1", "kube-system"), "the static Pods have mirrors")


async def test_the_virtual_address_goes_to_another_host_when_its_holder_loses_its_power(world: World) -> None:
    vip = address()
    cluster, hosts = await made(world, vip, planes=3)
    machines = [host.machine for host in hosts]
    (holder,) = world.segment.holders(vip, machines)
    next(host for host in hosts if host.machine is holder).power_off()

    def taken_over() -> bool:
        held = world.segment.holders(vip, machines)
        return len(held) == 1 and held[0] is not holder and cluster.api.serving

    await eventually(taken_over, "another host has the address, and the API answers")
    assert world.segment.doubled == []


async def test_where_keepalived_fails_everywhere_nobody_has_the_address_until_it_runs_again(world: World) -> None:
    vip = address()
    cluster, hosts = await made(world, vip)
    machines = [host.machine for host in hosts]
    for fails in (True, False):
        for machine in machines:
            machine.faults.keepalived_fails = fails
            machine.changed()
        assert len(world.segment.holders(vip, machines)) == (0 if fails else 1)
        await eventually(lambda fails=fails: cluster.api.serving is not fails, "the API answers where somebody has the address")  # type: ignore[misc]


async def test_without_a_quorum_of_etcd_nobody_answers_and_with_one_again_everybody_is_still_there(world: World) -> None:
    cluster, hosts = await made(world, address(), planes=3)
    before = set(nodes(cluster))
    for host in hosts[:2]:
        host.power_off()
    await eventually(lambda: not cluster.api.serving, "the API does not answer")
    for host in hosts[:2]:
        await host.power_on()
    await eventually(lambda: cluster.api.serving, "the API answers again", 20)
    assert set(nodes(cluster)) == before
    assert len(world.clusters) == 1


async def test_of_a_kubelet_that_is_stopped_nothing_is_known_after_a_while_until_it_runs_again(world: World) -> None:
    """As kube-controller-manager says of a Node whose Lease is not renewed, whatever ended its kubelet."""
    cluster, hosts = await made(world, address(), workers=1)
    worker = hosts[-1].machine
    worker.stop(SERVICE)
    await eventually(lambda: set(nodes(cluster)) == {"cp-0"}, "the Node to be unknown")
    worker.start(SERVICE)
    await eventually(lambda: set(nodes(cluster)) == {"cp-0", worker.hardware.name}, "the Node to be Ready")


async def test_a_kubelet_that_is_stopped_in_the_middle_of_a_look_starts_nothing_any_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent stops it and removes its containers from another thread: on a host that was cleaned so none may come back."""
    _, (plane, *_) = await made(world, address())
    machine, read, run = plane.machine, Kubelet._manifests, Kubelet._run_static_pods

    def stopped_meanwhile(kubelet: Kubelet) -> dict[str, Any]:
        found = read(kubelet)
        machine.stop(SERVICE)
        for container in list(machine.containers.values()):
            machine.end_container(container.id)
        return found

    def run_what_was_read(kubelet: Kubelet) -> None:
        with monkeypatch.context() as patched:
            if kubelet._machine is machine:
                patched.setattr(Kubelet, "_manifests", stopped_meanwhile)
            run(kubelet)

    monkeypatch.setattr(Kubelet, "_run_static_pods", run_what_was_read)
    # Something that the kubelet looks at has changed.
    machine.changed()
    await eventually(lambda: SERVICE not in machine.active, "the kubelet is stopped")
    assert not machine.containers
    monkeypatch.undo()
    machine.start(SERVICE)
    await eventually(lambda: machine.running("etcd"), "a kubelet that is started again runs static Pods")


async def test_a_host_with_a_wrong_token_does_not_join(world: World) -> None:
    vip = address()
    cluster, _ = await made(world, vip)
    stranger = host(world, "stranger")
    seeds.place(stranger, "one", seeds.join("stranger", f"{vip}:6443", control_plane=False, token="abcdef.ffffffffffffffff"))
    await stranger.power_on()
    await eventually(lambda: stranger.log, "cloud-init ends with a failure")
    log = stranger.machine.tree.file("/var/log/cloud-init-output.log").content.decode()
    assert "failed to verify JWS signature" in log
    assert "stranger" not in nodes(cluster)


async def test_a_budget_keeps_a_pod_until_another_one_runs_elsewhere(world: World) -> None:
    cluster, _ = await made(world, address(), workers=2)
    labels = {"app": "shop"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "shop", "image": "shop:1"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": pod}
    await cluster.client.create(DEPLOYMENT, {"metadata": {"name": "shop", "namespace": "default"}, "spec": spec})
    budget = {"minAvailable": 2, "selector": {"matchLabels": labels}}
    await cluster.client.create(BUDGET, {"metadata": {"name": "shop", "namespace": "default"}, "spec": budget})

    def running() -> list[str]:
        pods = cluster.client.list(POD, "default")
        return [each["metadata"]["name"] for each in pods if (each.get("status") or {}).get("phase") == "Running"]

    def allowed() -> int | None:
        found = cluster.client.find(BUDGET, "shop", "default") or {}
        return (found.get("status") or {}).get("disruptionsAllowed")

    await eventually(lambda: len(running()) == 2 and allowed() == 0, "two run, and none may go")
    first = running()[0]
    async with AsyncClient(cluster.api.connection()) as client:
        path = f"/api/v1/namespaces/default/pods/{first}/eviction"
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": first, "namespace": "default"}}
        with pytest.raises(ApiError, match="disruption budget"):
            await client.raw(path, method="POST", body=msgspec.json.encode(body))
        await cluster.client.patch(DEPLOYMENT, "shop", "default", {"spec": {"replicas": 3}})
        await eventually(lambda: len(running()) == 3 and allowed() == 1, "three run, and one may go")
        await client.raw(path, method="POST", body=msgspec.json.encode(body))
    await eventually(lambda: first not in running() and len(running()) == 3, "the Pod is gone, and another one runs")
