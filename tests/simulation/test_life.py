"""The whole life of a bare-metal cluster, all of it ours and the hosts simulated: registered, made, upgraded without a spare, verified."""

from __future__ import annotations

import time

import pytest
from simulation.clusters import PLANE, WORKERS, Bare
from simulation.estate import FIRST, SECOND, Estate

from slipway.api.cluster.kinds import KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT

pytestmark = pytest.mark.asyncio


async def test_a_cluster_is_made_and_upgraded_by_replacing_every_node_with_no_spare_host() -> None:
    async with Estate() as estate:
        began = time.monotonic()
        hosts = await estate.hosts(7)
        print("registered", time.monotonic() - began)
        async with Bare(estate, hosts, planes=3, workers=2) as bare:
            await bare.make()
            await bare.at(FIRST, FIRST)
            print("made", time.monotonic() - began)
            await bare.patch(KUBEADM_CONTROL_PLANE, PLANE, {"spec": {"version": SECOND}})
            await bare.at(SECOND, FIRST)
            print("control plane", time.monotonic() - began)
            await bare.patch(MACHINE_DEPLOYMENT, WORKERS, {"spec": {"template": {"spec": {"version": SECOND}}}})
            await bare.at(SECOND, SECOND)
            print("workers", time.monotonic() - began)
            assert bare.wrong == []
