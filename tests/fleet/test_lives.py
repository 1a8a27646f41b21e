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
from fleet import lives_v1beta1
from fleet.lives import FIRST, NAME, NAMESPACE, SECOND, STAGES, Authority, Life, agreed, life
from support.ports import free_port
from support.waiting import eventually

from slipway.api.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, KUBEADM_CONFIG_TEMPLATE, KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT
from slipway.credentials import keys, x509
from slipway.embedded.server import EmbeddedServer
from slipway.fleet import manifests as made
from slipway.fleet import registry
from slipway.fleet.bootstrap.options import BootstrapOptions
from slipway.fleet.manager import build
from slipway.fleet.manifests import Installation
from slipway.fleet.settings import Settings
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import Connection
from slipway.kube.errors import ApiError
from slipway.runtime.apply import install
from slipway.runtime.manager import Manager

pytestmark = [pytest.mark.recorded, pytest.mark.asyncio]
# With the end-to-end tests as often as it takes to hit every line.
KILLS = 200 if os.environ.get("SLIPWAY_E2E") == "1" else 10
GOLDEN = Path(__file__).parent.parent / "golden/clusterapi/rests"


@asynccontextmanager
async def embedded() -> AsyncIterator[tuple[Connection, Authority]]:
    """An API server, and who signs its certificates."""
    async with EmbeddedServer() as server:
        authority = server.authority
        yield server.connection(), Authority(x509.pem(authority.certificate), keys.private_pem(authority.key))


async def prepare(connection: Connection, webhook_port: int = 0) -> None:
    """What ``slipway manager install --controllers=all`` makes; without a port neither webhooks nor conversion."""
    declared = registry.declarations(registry.chosen(["all"]))
    installation = Installation(
        rules=declared.rules,
        crds=declared.crds,
        webhooks=declared.webhooks if webhook_port else (),
        controllers=declared.names,
        leases=declared.leases,
        image="none",
        webhook_url=f"https://127.0.0.1:{webhook_port}",
    )
    async with AsyncClient(connection) as client:
        if webhook_port:
            await install(client, made.manifests(installation), lambda line: None)
            return
        for crd in declared.crds:
            await client.create(CUSTOM_RESOURCE_DEFINITION, crd)


def manager(connection: Connection, webhook_port: int = 0) -> Manager:
    """Every controller, as ``slipway manager --controllers=all`` has them."""
    settings = Settings(
        controllers=registry.chosen(["all"]),
        namespace="",
        watch_filter="",
        concurrency=10,
        leader_elect=False,
        own_namespace="",
        metrics_address="0",
        health_address="0",
        webhook_port=webhook_port,
        webhook_cert_dir="",
        sync_period=600,
        bootstrap=BootstrapOptions(),
        log_format="text",
        verbosity=0,
    )
    built = build(connection, settings)
    for controller in built.controllers:
        # In the field an object is looked at once a second at most, and health once in fifteen.
        controller.interval = min(controller.interval, 0.02)
    return built


@asynccontextmanager
async def running(connection: Connection, webhook_port: int = 0) -> AsyncIterator[Manager]:
    stop = asyncio.Event()
    built = manager(connection, webhook_port)
    task = asyncio.create_task(built.run(stop))
    try:
        yield built
    finally:
        stop.set()
        await asyncio.wait_for(task, 60)


async def test_each_rest_is_as_under_upstreams_managers() -> None:
    port = free_port()
    async with embedded() as (connection, authority):
        await prepare(connection, port)
        async with running(connection, port), life(connection, authority, pause=0.3) as one:
            await webhooks_are_asked(one)
            await _live(one)


async def test_what_is_written_in_v1beta1_comes_to_the_same_rest() -> None:
    port = free_port()
    async with embedded() as (connection, authority):
        await prepare(connection, port)
        async with running(connection, port), life(connection, authority, pause=0.3) as one:
            await webhooks_are_asked(one)
            await one.begin(lives_v1beta1.manifests)
            await one.at_rest("the cluster is made", one.all_at(FIRST, 3, 2))
            await _is_as_recorded(one, "made")


async def webhooks_are_asked(one: Life) -> None:
    """Until the authority of the webhooks is in their configurations, the API server refuses everything."""

    async def taken() -> bool:
        body = {"metadata": {"name": "asked", "namespace": NAMESPACE}, "spec": {"template": {"spec": {"verbosity": 1}}}}
        try:
            await one.client.create(KUBEADM_CONFIG_TEMPLATE, body)
        except ApiError:
            return False
        return await one.client.delete(KUBEADM_CONFIG_TEMPLATE, "asked", NAMESPACE)

    await eventually(taken, "the webhooks answer", 30)


async def _live(one: Life) -> None:
    for stage, play in STAGES.items():
        await play(one)
        await _is_as_recorded(one, stage)


async def _is_as_recorded(one: Life, stage: str) -> None:
    expected = [agreed(item) for item in json.loads((GOLDEN / f"{stage}.json").read_text())]
    found = [agreed(json.loads(line)) for line in await one.taken_down()]
    assert _lines(found) == _lines(expected), stage


def _lines(items: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True) for item in items)


async def test_a_manager_that_is_killed_again_and_again_during_a_rollout_ends_right() -> None:
    """Three control planes and five workers; each process lives for some milliseconds, until a last one ends the work."""
    chance = random.Random(1)
    async with embedded() as (connection, authority), life(connection, authority, pause=0.3) as one:
        await prepare(connection)
        await one.begin(workers=5)
        async with running(connection):
            await one.at_rest("the cluster is made", one.all_at(FIRST, 3, 5))
        await one.patch(KUBEADM_CONTROL_PLANE, f"{NAME}-cp", {"version": SECOND})
        await one.patch(MACHINE_DEPLOYMENT, f"{NAME}-md", {"template": {"spec": {"version": SECOND}}})
        for _ in range(KILLS):
            await _killed_after(connection, chance.uniform(0.0, 0.25))
        async with running(connection):
            await one.at_rest("every machine is replaced", one.all_at(SECOND, 3, 5))
        await nothing_doubled(one)


async def _killed_after(connection: Connection, seconds: float) -> None:
    task = asyncio.create_task(manager(connection).run(asyncio.Event()))
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.wait({task})


async def nothing_doubled(one: Life, count: int = 8) -> None:
    """Each Machine has one of each, and nothing is left of those that were replaced."""
    from fleet.infrastructure import TEST_MACHINE

    from slipway.api.cluster.kinds import KUBEADM_CONFIG, MACHINE, MACHINE_SET, NODE

    machines = {item["metadata"]["name"] for item in await one.client.list(MACHINE, NAMESPACE)}
    assert len(machines) == count
    for kind in (KUBEADM_CONFIG, TEST_MACHINE):
        assert Counter(item["metadata"]["name"] for item in await one.client.list(kind, NAMESPACE)) == Counter(machines), kind.kind
    assert {item["metadata"]["name"] for item in await one.client.list(NODE)} == machines
    assert len(await one.client.list(MACHINE_SET, NAMESPACE)) == 1
