"""The whole life of a bare-metal cluster, all of it ours and the hosts simulated: registered, made, upgraded without a spare, verified."""

from __future__ import annotations

import pytest
from simulation.clusters import COUNTERS, PLANE, WORKERS, Bare
from simulation.estate import FIRST, SECOND, SPACE, Estate

from slipway.api.cluster.kinds import (
    BAREMETAL_MACHINE,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    NODE,
    SECRET,
)
from slipway.simulation.boot import CLEARED
from slipway.simulation.host.machine import Machine

pytestmark = pytest.mark.asyncio


async def test_a_cluster_is_made_and_upgraded_by_replacing_every_node_with_no_spare_host() -> None:
    async with Estate() as estate:
        hosts = await estate.hosts(7)
        async with Bare(estate, hosts, planes=3, workers=2) as bare:
            await bare.make()
            await bare.at(FIRST, FIRST)
            before = {machine["metadata"]["name"] for machine in await bare.machines()}
            for host in hosts:
                _leave_sentinels(host.machine)
            # The patches of the guide, word for word.
            await bare.patch(KUBEADM_CONTROL_PLANE, PLANE, {"spec": {"version": SECOND}})
            await bare.at(SECOND, FIRST)
            await bare.patch(MACHINE_DEPLOYMENT, WORKERS, {"spec": {"template": {"spec": {"version": SECOND}}}})
            await bare.at(SECOND, SECOND)
            await _verify(bare)
            assert before.isdisjoint({machine["metadata"]["name"] for machine in await bare.machines()}), "a node was not replaced"
            assert bare.wrong == []
            assert estate.world.segment.doubled == []
            for host in hosts[:5]:
                assert _sentinels(host.machine) == ["/var/lib/data"], host.machine.hardware.name
            # Those that no pool names were left alone.
            assert [host.machine.boots for host in hosts[5:]] == [1, 1]


async def _verify(bare: Bare) -> None:
    """The section *Verification* of the guide, sentence by sentence."""
    client = bare.estate.client
    machines = await client.list(BAREMETAL_MACHINE, SPACE)
    assert [machine["status"]["phase"] for machine in machines] == ["Running"] * 5
    assert {machine["spec"]["version"] for machine in await bare.machines()} == {SECOND}
    nodes = bare.workload.client.list(NODE)
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes} == {SECOND}
    assert len(nodes) == 5
    for node in nodes:
        assert any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])
    for machine in machines:
        secret = await client.get(SECRET, machine["status"]["machineInventoryRef"]["name"], SPACE)
        assert secret["metadata"]["annotations"]["baremetal.alauda.io/plan.type"] == "reprovision"

    def at_rest(pool: dict[str, object]) -> bool:
        status = pool.get("status")
        assert isinstance(status, dict)
        counted = sum(status.get(key) or 0 for key in COUNTERS)
        return counted == status["total"] and not status.get("preparing") and not status.get("reprovisioning")

    for pool in (f"{PLANE}-pool", f"{WORKERS}-pool"):
        await bare.estate.when(MACHINE_INVENTORY_POOL, pool, at_rest, f"{pool} is at rest")
    # Owners of those in use, and of none else.
    for inventory in await client.list(MACHINE_INVENTORY, SPACE):
        owned = "baremetal.alauda.io/owner-baremetalmachine" in (inventory["metadata"].get("annotations") or {})
        assert owned is (inventory["metadata"]["name"] in (*bare.planes, *bare.workers))
    etcd = bare.workload.etcd
    assert len(etcd.members) == 3
    assert etcd.has_quorum()


def _leave_sentinels(machine: Machine) -> None:
    for folder in (*CLEARED, "/var/lib/data"):
        machine.tree.make_dirs(folder)
        machine.tree.write(f"{folder}/sentinel", b"x")


def _sentinels(machine: Machine) -> list[str]:
    return [folder for folder in (*CLEARED, "/var/lib/data") if machine.tree.exists(f"{folder}/sentinel")]
