"""Workload clusters that are watched: their Nodes, and whether they answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.waiting import eventually

from slipway.api.cluster.kinds import NODE
from slipway.api.machinery.errors import OperatorError
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.liveclusters import PROVIDER_ID, DisconnectedError, LiveCluster, Probe, calm_interval, until_next
from slipway.fleet.machines.cluster.status import PROBE_GRACE
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import Connection
from slipway.runtime.objects import Object

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUICK = 0.02


class Heard:
    def __init__(self) -> None:
        self.nodes: list[str] = []
        self.changes = 0
        self.connection: Connection | OperatorError = OperatorError("there is no kubeconfig yet")

    async def connect(self) -> Connection:
        if isinstance(self.connection, OperatorError):
            raise self.connection
        return self.connection

    def node(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self.nodes.append(new.name)

    def change(self) -> None:
        self.changes += 1


@asynccontextmanager
async def live(heard: Heard) -> AsyncIterator[LiveCluster]:
    cluster = LiveCluster("ns/c", heard.connect, on_node=heard.node, on_change=heard.change, interval=QUICK, now=lambda: NOW)
    try:
        yield cluster
    finally:
        await cluster.close()


@pytest.mark.asyncio
async def test_nodes_are_found_by_the_id_of_their_provider_and_told() -> None:
    heard = Heard()
    async with EmbeddedServer(tls=False) as server, AsyncClient(server.connection()) as client:
        await client.create(NODE, {"metadata": {"name": "n"}, "spec": {"providerID": "metal://1"}})
        heard.connection = server.connection()
        async with live(heard) as cluster:
            await eventually(lambda: heard.nodes == ["n"])
            assert [node.name for node in await cluster.cache.list(NODE, index=(PROVIDER_ID, "metal://1"))] == ["n"]
            assert cluster.probe == Probe(connected=True, succeeded_at=NOW, failed_in_a_row=0, why="")
            await client.create(NODE, {"metadata": {"name": "m"}})
            await eventually(lambda: heard.nodes == ["n", "m"])


@pytest.mark.asyncio
async def test_while_there_is_no_connection_it_is_said_why() -> None:
    heard = Heard()
    async with live(heard) as cluster:
        await eventually(lambda: cluster.probe.failed_in_a_row > 1)
        with pytest.raises(DisconnectedError, match="no connection to the workload cluster ns/c: there is no kubeconfig yet"):
            assert cluster.cache
        assert heard.changes == 1


@pytest.mark.asyncio
async def test_a_cluster_that_comes_later_is_connected_to() -> None:
    heard = Heard()
    async with EmbeddedServer(tls=False) as server, live(heard) as cluster:
        await eventually(lambda: heard.changes == 1)
        heard.connection = server.connection()
        await eventually(lambda: cluster.probe.connected)
        assert heard.changes == 2


@pytest.mark.asyncio
async def test_the_cache_of_a_cluster_that_does_not_answer_is_dropped_after_five_failures() -> None:
    heard, failed, changes = Heard(), [], []

    def asked(verb: str, code: int, seconds: float) -> None:
        if verb == "get" and not code:
            failed.append(seconds)

    async with EmbeddedServer(tls=False) as server:
        heard.connection = server.connection()
        cluster = LiveCluster(
            "ns/c",
            heard.connect,
            on_node=heard.node,
            on_change=lambda: changes.append((cluster.probe.connected, len(failed))),
            on_request=asked,
            interval=QUICK,
            # One that has failed to answer is not left alone for as long as one that answers.
            calm=lambda: 3600.0 if failed else QUICK,
            now=lambda: NOW,
        )
        await eventually(lambda: changes == [(True, 0)])
    try:
        await eventually(lambda: not changes[-1][0])
        assert next(failures for connected, failures in changes if not connected) == 5
        assert cluster.probe.succeeded_at == NOW
        with pytest.raises(DisconnectedError):
            assert cluster.cache
    finally:
        await cluster.close()


@pytest.mark.parametrize(("clusters", "seconds"), [(1, 10.0), (50, 10.0), (100, 20.0), (200, 40.0), (5000, 40.0)])
def test_there_are_five_probes_a_second_at_most_while_none_is_left_alone_until_it_seems_to_be_gone(clusters: int, seconds: float) -> None:
    assert calm_interval(clusters) == seconds
    # A probe may come a twentieth later, and take five seconds.
    assert timedelta(seconds=1.05 * seconds + 5) < PROBE_GRACE


@given(st.floats(0, 1e6), st.floats(0.1, 60))
def test_clusters_are_probed_once_an_interval_at_moments_that_they_share(began: float, interval: float) -> None:
    moments = [began]
    for _ in range(4):
        moments.append(moments[-1] + until_next(moments[-1], interval))
    apart = [after - before for before, after in pairwise(moments)]
    assert 0.95 * interval - 1e-6 <= apart[0] <= 1.05 * interval + 1e-6
    assert apart[1:] == pytest.approx([interval] * 3, abs=1e-6)
    assert moments[1] / (interval / 10) == pytest.approx(round(moments[1] / (interval / 10)), abs=1e-4)
