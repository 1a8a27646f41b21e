"""What happens to managers, agents and hosts in the middle of a rollout, and that nothing is lost by it."""

from __future__ import annotations

import pytest
from simulation.clusters import Bare
from simulation.estate import FIRST, SECOND
from simulation.rollouts import cluster, failing, killed, power_cycle_clean_host, replacing, roll_control_plane, without_catalog_entry

from slipway.api.cluster.kinds import DEPLOYMENT, POD

pytestmark = pytest.mark.asyncio
THIRD = "v1.36.3"
PATIENCE = 120.0
DNS, ETCD = "v1.13.1", "3.6.8-0"


async def test_a_control_plane_goes_from_minor_to_minor_through_faults_and_its_workers_follow_in_one_step() -> None:
    async with cluster(PATIENCE) as (estate, bare):
        async with replacing(bare, 3), killed(estate, 6, most_writes=60, seed=1):
            # Version and image tags in one edit are one rollout.
            await roll_control_plane(bare, SECOND, dns={"imageTag": DNS}, etcd={"local": {"imageTag": ETCD}})
            await bare.at(SECOND, FIRST, PATIENCE)
        await _tags(bare)

        async with without_catalog_entry(bare, THIRD):
            await roll_control_plane(bare, THIRD)
            waiting = await failing(bare, "ImageResolved", "ImageCatalogMiss")
            await power_cycle_clean_host(bare, waiting)
        await bare.at(THIRD, FIRST, PATIENCE)

        async with replacing(bare, 2):
            await bare.roll_workers(THIRD)
            await bare.at(THIRD, THIRD, PATIENCE)
        await bare.verify(THIRD)


async def _tags(bare: Bare) -> None:
    """Those of the edit are those that run."""
    client = bare.workload.client

    def images(selected: list[dict[str, object]]) -> set[str]:
        return {image for each in selected for image in _images(each)}

    async def taken() -> bool:
        dns = client.find(DEPLOYMENT, "coredns", "kube-system")
        assert dns is not None
        return {image.rpartition(":")[2] for image in _images(dns["spec"]["template"])} == {DNS}

    await bare.estate.until(taken, "CoreDNS has the tag of the edit")
    etcds = [pod for pod in client.list(POD, "kube-system") if pod["metadata"]["name"].startswith("etcd-")]
    assert {image.rpartition(":")[2] for image in images(etcds)} == {ETCD}


def _images(pod: dict[str, object]) -> set[str]:
    spec = pod["spec"]
    assert isinstance(spec, dict)
    return {container["image"] for container in spec["containers"]}
