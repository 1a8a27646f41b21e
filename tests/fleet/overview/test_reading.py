"""Reading and following the objects of a management cluster, with and without rights, kinds and a server that stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from fleet.overview.fleets import NOW, SPACE, at_rest, in_a_rollout, inventory
from fleet.overview.management import fill, let_read, put
from support.waiting import eventually

from slipway.api.cluster.kinds import CLUSTER, KUBEADM_CONTROL_PLANE, MACHINE, MACHINE_DEPLOYMENT, MACHINE_INVENTORY, MACHINE_SET
from slipway.api.elemental import plan
from slipway.api.machinery.errors import OperatorError, UsageError
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.overview.changes import Change
from slipway.fleet.overview.follow import Follower
from slipway.fleet.overview.model import Overview, overview
from slipway.fleet.overview.objects import Objects, chosen, gather
from slipway.fleet.overview.selection import of_cluster
from slipway.fleet.overview.watching import watch
from slipway.kube.aio import AsyncClient
from slipway.kube.errors import UnreachableError

PROGRESS = b'{"instruction":"upgrade","index":4,"of":7,"started":"2026-05-04T11:59:00Z"}'


def secret(name: str) -> dict[str, object]:
    labels = {"elemental.cattle.io/managed": "true"}
    data = plan.wire({"plan": b"{}", "slipway-progress": PROGRESS})
    return {"metadata": {"name": name, "namespace": SPACE, "labels": labels}, "type": "elemental.cattle.io/plan", "data": data}


def fleet() -> Objects:
    objects = in_a_rollout()
    busy = inventory("host-2", machine="prod-cp-b", state="Reprovisioning", plan={"type": "reprovision"})
    inventories = [busy if each["metadata"]["name"] == "host-2" else each for each in objects.inventories]
    return objects._replace(inventories=inventories, plan_secrets=[secret("host-1"), secret("host-2")])


pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def server() -> AsyncIterator[EmbeddedServer]:
    async with EmbeddedServer() as server:
        yield server


async def test_what_is_read_is_what_is_there_and_of_secrets_no_more_than_is_needed(server: EmbeddedServer) -> None:
    async with AsyncClient(server.connection()) as client:
        await fill(client, fleet())
        found = await gather(client)
        assert found.missing == {}
        assert [len(each) for each in found[:9]] == [1, 1, 1, 0, 5, 1, 5, 1, 6]
        assert {each["metadata"]["name"]: "data" in each for each in found.plan_secrets} == {"host-1": False, "host-2": True}
        view = overview(found, NOW)
        assert view.clusters[0].rollout is not None
        busy = next(host for host in view.hosts if host.name == "host-2")
        assert busy.plan is not None
        assert (busy.plan.instruction, busy.plan.step, busy.plan.steps) == ("upgrade", 4, 7)
        assert await chosen(client, SPACE, "rack=3,tier!=db") == {(SPACE, f"host-{number}") for number in range(6)}
        assert (await gather(client, "elsewhere")).clusters == []
        with pytest.raises(UsageError, match='"rack=,=" is no label selector'):
            await chosen(client, "", "rack=,=")


async def test_who_may_read_a_part_sees_that_and_is_told_the_rest(server: EmbeddedServer) -> None:
    async with AsyncClient(server.connection()) as admin, AsyncClient(server.connection("eve", ())) as eve:
        await fill(admin, at_rest())
        await let_read(admin, "eve", CLUSTER, KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE)
        found = await gather(eve)
        assert overview(found, NOW).clusters[0].name == "prod"
        assert found.missing["Secret"] == "you may not list secrets in all namespaces (name one with --namespace, or ask for the right)"
        assert set(found.missing) == {
            "BaremetalCluster", "BaremetalMachine", "ConfigMap", "Event", "MachineInventory", "MachineInventoryPool", "Secret",
        }  # fmt: skip
        async with Follower(eve) as follower:
            assert {"MachineInventory", "Secret"} <= set((await follower.objects()).missing)
            assert follower.trouble == ""


async def test_kinds_that_are_not_installed_are_named(server: EmbeddedServer) -> None:
    async with AsyncClient(server.connection()) as client:
        found = await gather(client)
        assert found.missing["Cluster"] == "Cluster (cluster.x-k8s.io/v1beta2) is not installed in this management cluster"
        async with Follower(client) as follower:
            assert (await follower.objects()).missing["Cluster"] == found.missing["Cluster"]


async def test_a_server_that_is_not_there_is_an_error(server: EmbeddedServer) -> None:
    connection = server.connection()
    await server.stop()
    async with AsyncClient(connection) as client:
        with pytest.raises(UnreachableError):
            await gather(client)
        with pytest.raises(UnreachableError):
            await Follower(client).__aenter__()
    await server.start()


class Recorder:
    def __init__(self) -> None:
        self.began: list[Overview] = []
        self.changes: list[Change] = []
        self.troubles: list[str] = []
        self.ended = False

    def begin(self, view: Overview, now: object) -> None:
        self.began.append(view)

    def show(self, view: Overview, changed: list[Change], trouble: str, now: object) -> None:
        self.changes += changed
        if not self.troubles or self.troubles[-1] != trouble:
            self.troubles.append(trouble)

    def end(self) -> None:
        self.ended = True


@asynccontextmanager
async def watching(server: EmbeddedServer, name: str) -> AsyncIterator[tuple[Recorder, asyncio.Task[None]]]:
    view = Recorder()
    async with AsyncClient(server.connection()) as client, Follower(client) as follower:
        task = asyncio.create_task(watch(follower, view, lambda found: of_cluster(found, name, "")))
        try:
            yield view, task
        finally:
            task.cancel()
            await asyncio.wait({task})


async def test_a_watch_tells_what_changes_and_outlives_a_restart_of_the_server(tmp_path: Path) -> None:
    server = EmbeddedServer(database=tmp_path / "db")
    await server.start()
    async with AsyncClient(server.connection()) as client:
        await fill(client, at_rest())
        async with watching(server, "prod") as (view, task):
            await eventually(lambda: view.began, "the watch has begun")
            await client.delete(MACHINE_INVENTORY, "host-5", SPACE)
            await eventually(lambda: any(each.name == "host-5" and each.text == "is gone" for each in view.changes), "the host is gone")
            await server.stop()
            await eventually(lambda: view.troubles[-1], "the server does not answer")
            await server.start()
            await put(client, MACHINE_INVENTORY, inventory("host-5", state="Available"))
            await eventually(lambda: any(each.name == "host-5" and each.text == "is free" for each in view.changes), "the host is back")
            await eventually(lambda: not view.troubles[-1], "the server answers")
            await client.delete(CLUSTER, "prod", SPACE)
            await asyncio.wait_for(task, 20)
            assert view.ended
            assert any((each.kind, each.text) == ("Cluster", "is gone") for each in view.changes)
    await server.stop()


async def test_a_watch_of_a_cluster_that_is_not_there_is_an_error(server: EmbeddedServer) -> None:
    async with AsyncClient(server.connection()) as client:
        await fill(client, at_rest())
        async with watching(server, "other") as (_, task):
            with pytest.raises(OperatorError, match='there is no Cluster "other"'):
                await asyncio.wait_for(task, 20)
