"""The manager as a whole: start, probes, leading, losing the lead, stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from runtime.replay_server import FORBIDDEN, ReplayServer
from support.waiting import eventually

from slipway.api.cluster.kinds import CONFIG_MAP, LEASE, NAMESPACE, Kind
from slipway.api.machinery.errors import OperatorError
from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import Connection
from slipway.kube.errors import ConflictError
from slipway.runtime.controller import Watch
from slipway.runtime.leader import LeaseLostError, LeaseTimes, holder, taken
from slipway.runtime.manager import Lease, Manager, ManagerOptions
from slipway.runtime.objects import DONE, Request, Result
from slipway.runtime.rbac import Rule

pytestmark = pytest.mark.asyncio
QUICK = LeaseTimes(lease_duration=3.0, renew_deadline=1.0, retry_period=0.1)


class Recording:
    name = "recording"
    rules: Sequence[Rule] = ()

    def __init__(self, kind: Kind = CONFIG_MAP) -> None:
        self.watches: Sequence[Watch] = (Watch(kind),)
        self.asked: list[Request] = []
        self.gate: asyncio.Event | None = None
        self.cancelled = False

    async def reconcile(self, request: Request) -> Result:
        self.asked.append(request)
        if self.gate is not None:
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.cancelled = True
                raise
        return DONE


@pytest_asyncio.fixture
async def server() -> AsyncIterator[EmbeddedServer]:
    async with EmbeddedServer(tls=False) as started:
        yield started


class Run:
    def __init__(self, connection: Connection, reconciler: Recording | None = None, **options: object) -> None:
        self.manager = Manager(
            connection,
            ManagerOptions(health_address="127.0.0.1:0", metrics_address="127.0.0.1:0", lease=QUICK, **options),  # type: ignore[arg-type]
        )
        self.reconciler = reconciler or Recording()
        self.manager.add(self.reconciler)
        self.stop = asyncio.Event()
        self.task = asyncio.create_task(self.manager.run(self.stop))

    async def probe(self, path: str) -> tuple[int, str]:
        await eventually(lambda: self.manager.metrics_port)
        port = self.manager.metrics_port if path == "/metrics" else self.manager.health_port
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as response:
            return response.status, await response.text()


@asynccontextmanager
async def running(connection: Connection, reconciler: Recording | None = None, **options: object) -> AsyncIterator[Run]:
    run = Run(connection, reconciler, **options)
    try:
        yield run
    finally:
        run.stop.set()
        _, late = await asyncio.wait({run.task}, timeout=15)
        assert not late
    run.task.result()


async def test_it_starts_reconciles_answers_probes_and_stops(server: EmbeddedServer) -> None:
    async with AsyncClient(server.connection()) as client:
        await client.create(CONFIG_MAP, {"metadata": {"name": "a", "namespace": "default"}})
        async with running(server.connection()) as run:
            await eventually(lambda: Request("default", "a") in run.reconciler.asked)
            assert await run.probe("/healthz") == (200, "ok")
            assert await run.probe("/readyz") == (200, "ok")
            assert (await run.probe("/readyz?verbose"))[1] == "[+]shutdown ok\nreadyz check passed\n"
            status, text = await run.probe("/metrics")
            assert status == 200
            host = server.connection().server.removeprefix("http://")
            assert f'rest_client_requests_total{{code="200",host="{host}",method="GET"}} 2.0' in text
            assert 'controller_runtime_reconcile_total{controller="recording",result="success"}' in text
            assert 'workqueue_depth{controller="recording",name="recording"} 0.0' in text


async def test_a_namespace_restricts_it(server: EmbeddedServer) -> None:
    async with AsyncClient(server.connection()) as client:
        await client.create(NAMESPACE, {"metadata": {"name": "mine"}})
        async with running(server.connection(), namespace="mine") as run:
            for namespace in ("default", "mine"):
                await client.create(CONFIG_MAP, {"metadata": {"name": "a", "namespace": namespace}})
            await eventually(lambda: Request("mine", "a") in run.reconciler.asked)
        assert {request.namespace for request in run.reconciler.asked} == {"mine"}


async def test_what_may_not_be_listed_is_seen_in_metrics_and_log_and_takes_no_webhooks_away(caplog: pytest.LogCaptureFixture) -> None:
    async with ReplayServer() as server, running(server.connection) as run:
        assert await run.probe("/readyz") == (200, "ok")
        await (await server.next_list()).answer(FORBIDDEN, 403)
        await eventually(lambda: run.manager.cache.informers[0].error)
        assert await run.probe("/readyz") == (200, "ok")
        assert "A list or watch failed and is tried again" in caplog.text
        assert await run.probe("/healthz") == (200, "ok")
        _, metrics = await run.probe("/metrics")
        assert 'slipway_informer_errors_total{kind="configmaps",namespace="",reason="Forbidden"} 1.0' in metrics
        assert 'slipway_informer_failing{kind="configmaps",namespace=""} 1.0' in metrics
        await (await server.next_list()).answer('{"metadata":{"resourceVersion":"5"},"items":[]}')
        await (await server.next_watch()).send('{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"6"}}}\n')
        await eventually(lambda: run.manager.cache.informers[0].error == "")
        _, metrics = await run.probe("/metrics")
        assert 'slipway_informer_failing{kind="configmaps",namespace=""} 0.0' in metrics


async def test_a_kind_that_is_not_installed_does_not_keep_the_others_from_being_reconciled(server: EmbeddedServer) -> None:
    missing = Kind("nothing.example.com", "v1", "Thing", "things")
    async with AsyncClient(server.connection()) as client:
        await client.create(CONFIG_MAP, {"metadata": {"name": "a", "namespace": "default"}})
    async with running(server.connection(), Recording(missing)) as run:
        run.manager.watch("recording", Watch(CONFIG_MAP))
        await eventually(lambda: Request("default", "a") in run.reconciler.asked)


async def test_one_leads_the_other_waits_and_takes_over_when_the_first_stops(server: EmbeddedServer) -> None:
    election: dict[str, Any] = {"leader_elect": True, "leader_namespace": "default"}
    async with AsyncClient(server.connection()) as client:
        await client.create(CONFIG_MAP, {"metadata": {"name": "a", "namespace": "default"}})
        async with running(server.connection(), **election) as first:
            await eventually(lambda: first.reconciler.asked)
            async with running(server.connection(), **election) as second:
                await eventually(lambda: any(elector.leader for elector in second.manager.electors.values()))
                # It waits with its cache filled, and is ready.
                assert await second.probe("/readyz") == (200, "ok")
                assert 'leader_election_master_status{name="slipway-manager-leader"} 0.0' in (await second.probe("/metrics"))[1]
                assert second.reconciler.asked == []
                first.stop.set()
                await asyncio.wait_for(first.task, 15)
                await eventually(lambda: second.reconciler.asked)
                assert 'leader_election_master_status{name="slipway-manager-leader"} 1.0' in (await second.probe("/metrics"))[1]
        assert (await client.get(LEASE, "slipway-manager-leader", "default"))["spec"]["holderIdentity"] == ""


async def test_who_loses_the_lead_cancels_its_work_and_ends(server: EmbeddedServer) -> None:
    reconciler = Recording()
    reconciler.gate = asyncio.Event()
    async with AsyncClient(server.connection()) as client:
        await client.create(CONFIG_MAP, {"metadata": {"name": "a", "namespace": "default"}})
        run = Run(server.connection(), reconciler, leader_elect=True, leader_namespace="default", grace=60.0)
        await eventually(lambda: reconciler.asked)
        lease = await client.get(LEASE, "slipway-manager-leader", "default")
        while True:
            lease = await client.get(LEASE, "slipway-manager-leader", "default")
            lease["spec"]["holderIdentity"] = "somebody else"
            try:
                await client.update(LEASE, lease)
                break
            except OperatorError:
                # It was just renewed.
                continue
        with pytest.raises(LeaseLostError, match="somebody else has taken the lease"):
            await asyncio.wait_for(run.task, 15)
        assert reconciler.cancelled
        assert (await client.get(LEASE, "slipway-manager-leader", "default"))["spec"]["holderIdentity"] == "somebody else"


async def test_an_api_server_that_is_away_for_long_ends_the_lead_before_the_lease_can_be_taken(server: EmbeddedServer) -> None:
    reconciler = Recording()
    reconciler.gate = asyncio.Event()
    async with AsyncClient(server.connection()) as client:
        await client.create(CONFIG_MAP, {"metadata": {"name": "a", "namespace": "default"}})
    run = Run(server.connection(), reconciler, leader_elect=True, leader_namespace="default", grace=60.0)
    await eventually(lambda: reconciler.asked)
    loop = asyncio.get_running_loop()
    await server.stop()
    began = loop.time()
    with pytest.raises(LeaseLostError, match="could not be renewed within 1s"):
        await asyncio.wait_for(run.task, 15)
    assert reconciler.cancelled
    assert loop.time() - began < QUICK.lease_duration


async def test_a_stop_while_it_waits_for_the_server_is_heard() -> None:
    async with ReplayServer() as server, running(server.connection) as run:
        await server.next_list()
        run.stop.set()
        await asyncio.wait_for(run.task, 10)


class Webhooks:
    def __init__(self) -> None:
        self.problem = "no certificate yet"
        self.ran: list[str] = []
        self.looked = 0

    def ready(self) -> str:
        self.looked += 1
        return self.problem

    async def run(self, stop: asyncio.Event) -> None:
        self.ran.append("started")
        await stop.wait()
        self.ran.append("stopped")


async def test_webhooks_run_on_a_manager_that_does_not_lead_and_count_for_readiness(server: EmbeddedServer) -> None:
    webhooks = Webhooks()
    async with AsyncClient(server.connection()) as client:
        held = {"holderIdentity": "other", "leaseDurationSeconds": 3600}
        await client.create(LEASE, {"metadata": {"name": "slipway-manager-leader", "namespace": "default"}, "spec": held})
    run = Run(server.connection(), leader_elect=True, leader_namespace="default")
    run.manager.add_webhooks(webhooks)
    await eventually(lambda: webhooks.ran == ["started"])
    await eventually(lambda: run.manager.cache.informers and run.manager.cache.informers[0].synced.is_set())
    assert await run.probe("/readyz") == (
        500,
        "[+]shutdown ok\n[-]webhooks failed: no certificate yet\nreadyz check failed\n",
    )
    run.stop.set()
    await asyncio.wait_for(run.task, 10)
    assert webhooks.ran == ["started", "stopped"]


async def test_controllers_begin_when_webhooks_are_served_to_which_their_writes_are_shown(server: EmbeddedServer) -> None:
    webhooks = Webhooks()
    async with AsyncClient(server.connection()) as client, running(server.connection()) as run:
        run.manager.add_webhooks(webhooks)
        await client.create(CONFIG_MAP, {"metadata": {"name": "a", "namespace": "default"}})
        await eventually(lambda: run.manager.cache.informers and run.manager.cache.informers[0].store.get("a", "default"))
        webhooks.looked = 0
        await eventually(lambda: webhooks.looked > 3)
        assert not run.reconciler.asked
        webhooks.problem = ""
        await eventually(lambda: Request("default", "a") in run.reconciler.asked)


async def test_webhooks_that_cannot_be_served_do_not_hold_controllers_up_for_long(
    server: EmbeddedServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with AsyncClient(server.connection()) as client, running(server.connection(), webhook_patience=0.1) as run:
        run.manager.add_webhooks(Webhooks())
        await client.create(CONFIG_MAP, {"metadata": {"name": "a", "namespace": "default"}})
        await eventually(lambda: Request("default", "a") in run.reconciler.asked)
    (told,) = [record for record in caplog.records if "without the webhooks" in record.message]
    assert told.__dict__["fields"] == {"err": "no certificate yet"}


async def test_a_bug_in_an_informer_ends_the_manager_with_its_error(server: EmbeddedServer) -> None:
    async with AsyncClient(server.connection()) as client:
        run = Run(server.connection())
        await eventually(lambda: run.reconciler.asked)

        def broken(old: object, new: object) -> None:
            if getattr(new, "name", "") == "poison":
                raise RuntimeError("a handler of the runtime itself")

        run.manager.cache.informer(CONFIG_MAP).add_handler(broken)
        await client.create(CONFIG_MAP, {"metadata": {"name": "poison", "namespace": "default"}})
        with pytest.raises(RuntimeError, match="a handler of the runtime itself"):
            await asyncio.wait_for(run.task, 15)


async def test_an_address_that_is_taken_is_said_to_be(server: EmbeddedServer) -> None:
    manager = Manager(server.connection(), ManagerOptions(health_address=f"127.0.0.1:{server.port}"))
    with pytest.raises(OperatorError, match=f"cannot listen on 127.0.0.1:{server.port}, which --health-addr asks for: "):
        await manager.run(asyncio.Event())


async def test_leader_election_without_a_namespace_is_refused(server: EmbeddedServer) -> None:
    with pytest.raises(OperatorError, match="leader election needs a namespace for its Lease"):
        Manager(server.connection(), ManagerOptions(leader_elect=True))


async def test_each_lease_is_for_its_own_controllers(server: EmbeddedServer) -> None:
    async with AsyncClient(server.connection()) as client:
        await client.create(CONFIG_MAP, {"metadata": {"name": "a", "namespace": "default"}})
        now = datetime.now(UTC)
        held = taken(None, "another-manager", LeaseTimes(lease_duration=600), now, namespace="default", name="theirs")
        await client.create(LEASE, held)
        ours, theirs = Recording(), Recording()
        theirs.name = "other"
        manager = Manager(
            server.connection(), ManagerOptions(lease=QUICK, leader_elect=True, leader_namespace="default", leader_name="ours")
        )
        manager.add(ours)
        manager.add(theirs, lease=Lease("default", "theirs"))
        stop = asyncio.Event()
        task = asyncio.create_task(manager.run(stop))
        try:
            await eventually(lambda: ours.asked)
            await eventually(lambda: manager.electors[Lease("default", "theirs")].leader == "another-manager")
            assert theirs.asked == []
            await client.delete(LEASE, "theirs", "default")
            await eventually(lambda: theirs.asked)
        finally:
            stop.set()
            await asyncio.wait_for(task, 15)
        assert holder(await client.get(LEASE, "ours", "default")) == ""


async def test_a_lease_that_is_lost_ends_the_work_of_the_others_too(server: EmbeddedServer) -> None:
    async with AsyncClient(server.connection()) as client:
        await client.create(CONFIG_MAP, {"metadata": {"name": "a", "namespace": "default"}})
        one, other = Recording(), Recording()
        other.name = "other"
        manager = Manager(server.connection(), ManagerOptions(lease=QUICK, leader_elect=True, leader_namespace="default"))
        manager.add(one)
        manager.add(other, lease=Lease("default", "second"))
        task = asyncio.create_task(manager.run(asyncio.Event()))
        await eventually(lambda: one.asked and other.asked)

        async def stolen() -> bool:
            lease = await client.get(LEASE, "second", "default")
            try:
                await client.update(LEASE, taken(lease, "a-thief", QUICK, datetime.now(UTC), namespace="default", name="second"))
            except ConflictError:
                # It was just renewed.
                return False
            return True

        await eventually(stolen)
        with pytest.raises(LeaseLostError, match="a-thief has taken the lease default/second"):
            await asyncio.wait_for(task, 15)
        assert holder(await client.get(LEASE, "slipway-manager-leader", "default")) == ""
