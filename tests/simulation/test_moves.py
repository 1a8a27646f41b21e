"""What needs another template rather than another version, on simulated hosts."""

from __future__ import annotations

import pytest
from simulation.clusters import NAME, WORKERS, Bare
from simulation.estate import FIRST, SPACE, Estate

from slipway.api.cluster.kinds import (
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
)

pytestmark = pytest.mark.asyncio


async def test_workers_move_to_another_pool_by_another_template() -> None:
    async with Estate() as estate:
        hosts = await estate.hosts(4)
        bare = Bare(estate, hosts, planes=2, workers=1)
        bare.control_planes = 1
        await bare.make(FIRST, replicas=1)
        await bare.at(FIRST, FIRST)
        (before,), after = bare.workers, estate.name_of(hosts[3])
        metadata = {"name": "elsewhere", "namespace": SPACE}
        pool = {"clusterName": NAME, "machineInventories": [{"name": after}]}
        await estate.client.create(MACHINE_INVENTORY_POOL, {"metadata": metadata, "spec": pool})
        template = {"template": {"spec": {"machineInventoryPoolRef": {"name": "elsewhere"}}}}
        await estate.client.create(BAREMETAL_MACHINE_TEMPLATE, {"metadata": metadata, "spec": template})
        await bare.patch(MACHINE_DEPLOYMENT, WORKERS, {"spec": {"template": {"spec": {"infrastructureRef": {"name": "elsewhere"}}}}})

        async def moved() -> bool:
            found = [each.get("status") or {} for each in await estate.client.list(BAREMETAL_MACHINE, SPACE)]
            in_use = {(status.get("machineInventoryRef") or {}).get("name") for status in found if status.get("phase") == "Running"}
            return after in in_use and before not in in_use

        await estate.until(moved, f"the worker has moved from {before} to {after}", 60)
        await bare.at(FIRST, FIRST)
        left = (await estate.client.get(MACHINE_INVENTORY, before, SPACE))["metadata"]["annotations"]
        assert left["baremetal.alauda.io/allocation-state"] == "Available"
        assert left["baremetal.alauda.io/pool"] == f"{WORKERS}-pool"
        assert bare.wrong == []
