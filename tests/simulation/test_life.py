"""The whole life of a bare-metal cluster, all of it ours and the hosts simulated: registered, made, upgraded without a spare, verified."""

from __future__ import annotations

import pytest
from simulation.clusters import PLANE, WORKERS, Bare
from simulation.estate import FIRST, SECOND, Estate

from slipway.api.cluster.kinds import (
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
)
from slipway.simulation.boot import CLEARED
from slipway.simulation.host.machine import Machine

pytestmark = pytest.mark.asyncio


async def test_a_cluster_is_made_and_upgraded_by_replacing_every_node_with_no_spare_host() -> None:
    async with Estate() as estate:
        hosts = await estate.hosts(7)
        bare = Bare(estate, hosts, planes=3, workers=2)
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
        await bare.verify(SECOND)
        assert before.isdisjoint({machine["metadata"]["name"] for machine in await bare.machines()}), "a node was not replaced"
        assert bare.wrong == []
        assert estate.world.segment.doubled == []
        for host in hosts[:5]:
            assert _sentinels(host.machine) == ["/var/lib/data"], host.machine.hardware.name
        # Those that no pool names were left alone.
        assert [host.machine.boots for host in hosts[5:]] == [1, 1]


def _leave_sentinels(machine: Machine) -> None:
    for folder in (*CLEARED, "/var/lib/data"):
        machine.tree.make_dirs(folder)
        machine.tree.write(f"{folder}/sentinel", b"x")


def _sentinels(machine: Machine) -> list[str]:
    return [folder for folder in (*CLEARED, "/var/lib/data") if machine.tree.exists(f"{folder}/sentinel")]
