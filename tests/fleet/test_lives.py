"""A cluster's life under our managers alone, on the embedded API server: at each rest as under upstream's managers."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fleet.lives import FIRST, NAME, NAMESPACE, SECOND, STAGES, Authority, Life, agreed, life

from slipway.api.cluster import crds
from slipway.api.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT
from slipway.credentials import keys, x509
from slipway.embedded.server import EmbeddedServer
from slipway.fleet import registry
from slipway.fleet.bootstrap.options import BootstrapOptions
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import Connection
from slipway.runtime.manager import Manager, ManagerOptions

pytestmark = [pytest.mark.recorded, pytest.mark.asyncio]
# With the end-to-end tests as often as it takes to hit every line.
KILLS = 200 if os.environ.get("SLIPWAY_E2E") == "1" else 10
GOLDEN = Path(__file__).parent.parent / "golden/clusterapi/rests"


@asynccontextmanager
async def embedded() -> AsyncIterator[tuple[Connection, Authority]]:
    async with EmbeddedServer() as server:
        async with AsyncClient(server.connection()) as client:
            for crd in crds.crds():
                await client.create(CUSTOM_RESOURCE_DEFINITION, crd)
        authority = server.authority
        yield server.connection(), Authority(x509.pem(authority.certificate), keys.private_pem(authority.key))


def manager(connection: Connection) -> Manager:
    """Every controller, as ``slipway manager --controllers=all`` has them."""
    made = Manager(connection, ManagerOptions())
    for reconciler, lease in registry.controllers(registry.chosen(["all"]), made, registry.FleetOptions(BootstrapOptions())):
        if hasattr(reconciler, "interval"):
            # In the field an object is looked at once a second at most, and health once in fifteen.
            reconciler.interval = 0.02
        made.add(reconciler, lease=lease)
    return made


@asynccontextmanager
async def running(connection: Connection) -> AsyncIterator[Manager]:
    stop = asyncio.Event()
    made = manager(connection)
    task = asyncio.create_task(made.run(stop))
    try:
        yield made
    finally:
        stop.set()
        await asyncio.wait_for(task, 60)


async def test_each_rest_is_as_under_upstreams_managers() -> None:
    async with embedded() as (connection, authority), running(connection), life(connection, authority, pause=0.3) as one:
        for stage, play in STAGES.items():
            await play(one)
            expected = [agreed(item) for item in json.loads((GOLDEN / f"{stage}.json").read_text())]
            found = [agreed(json.loads(line)) for line in await one.taken_down()]
            assert _lines(found) == _lines(expected), stage


def _lines(items: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True) for item in items)


async def test_a_manager_that_is_killed_again_and_again_during_a_rollout_ends_right() -> None:
    """Three control planes and five workers; each process lives for some milliseconds, until a last one ends the work."""
    chance = random.Random(1)
    async with embedded() as (connection, authority), life(connection, authority, pause=0.3) as one:
        await one.begin(workers=5)
        async with running(connection):
            await one.at_rest("the cluster is made", one.all_at(FIRST, 3, 5))
        await one.patch(KUBEADM_CONTROL_PLANE, f"{NAME}-cp", {"version": SECOND})
        await one.patch(MACHINE_DEPLOYMENT, f"{NAME}-md", {"template": {"spec": {"version": SECOND}}})
        for _ in range(KILLS):
            await _killed_after(connection, chance.uniform(0.0, 0.25))
        async with running(connection):
            await one.at_rest("every machine is replaced", one.all_at(SECOND, 3, 5))
        await _nothing_doubled(one)


async def _killed_after(connection: Connection, seconds: float) -> None:
    task = asyncio.create_task(manager(connection).run(asyncio.Event()))
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.wait({task})


async def _nothing_doubled(one: Life) -> None:
    """Each Machine has one of each, and nothing is left of those that were replaced."""
    from fleet.infrastructure import TEST_MACHINE

    from slipway.api.cluster.kinds import KUBEADM_CONFIG, MACHINE, MACHINE_SET, NODE

    machines = {item["metadata"]["name"] for item in await one.client.list(MACHINE, NAMESPACE)}
    assert len(machines) == 8
    for kind in (KUBEADM_CONFIG, TEST_MACHINE):
        assert Counter(item["metadata"]["name"] for item in await one.client.list(kind, NAMESPACE)) == Counter(machines), kind.kind
    assert {item["metadata"]["name"] for item in await one.client.list(NODE)} == machines
    assert len(await one.client.list(MACHINE_SET, NAMESPACE)) == 1
