"""An agent on a host in trouble: nobody knows it any more, its disk is full, or what it watches is older than what it wrote."""

from __future__ import annotations

import asyncio
import errno
import threading
from pathlib import Path

import msgspec
import pytest
from agent.world import HOST, NAMESPACE, Site, shell, unregistered
from support.ports import free_port
from support.waiting import eventually

from slipway.agent import connection
from slipway.agent.loop import Agent
from slipway.agent.machine import RealMachine
from slipway.agent.secret import seen
from slipway.api.elemental import plan as plans
from slipway.api.elemental.plan import HTTPGet, PeriodicInstruction, Plan, Probe
from slipway.embedded.server import EmbeddedServer
from slipway.kube import kubeconfig
from slipway.kube.aio import AsyncClient

pytestmark = pytest.mark.asyncio


class _Pauses(threading.Event):
    """Records the pauses instead of making them, and ends after so many."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self.made: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.made.append(timeout or 0.0)
        if len(self.made) >= self._most:
            self.set()
        return self.is_set()


async def test_a_host_that_nobody_knows_any_more_asks_ever_more_seldom(site: Site) -> None:
    """Its token is refused and so is its registration: ten thousand such hosts must not ask once a second for ever."""
    refused = kubeconfig.document(server=site.server.server, cluster="c", user="u", ca=site.server.ca, credentials={"token": "unknown"})
    connection.save(site.machine, refused, NAMESPACE, HOST)
    agent = Agent(site.machine, register=unregistered, log=site.said.append)
    pauses = agent._ending = _Pauses(14)
    await asyncio.to_thread(agent.run)
    assert pauses.made[0] == 0.0
    assert all(pause >= 30.0 for pause in pauses.made[-3:])


@pytest.mark.parametrize(("server", "ca"), [("https://127.0.0.1:1", b"rubbish"), ("http://[", b"")])
async def test_a_connection_with_which_nothing_can_be_reached_is_replaced_by_a_registration(site: Site, server: str, ca: bytes) -> None:
    useless = kubeconfig.document(server=server, cluster="c", user="u", ca=ca, credentials={"token": "t"})
    connection.save(site.machine, useless, NAMESPACE, HOST)
    agent = Agent(site.machine, register=lambda: site.connect(site.server), log=site.said.append)
    agent._ending = _Pauses(3)
    thread = asyncio.create_task(asyncio.to_thread(agent.run))
    await site.settled("applied")
    agent.end()
    await thread


class _FullDisk(RealMachine):
    """Nothing can be kept any more once it is full."""

    full = False

    def keep(self, path: str, content: bytes) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().keep(path, content)


async def test_a_plan_on_a_full_disk_fails_with_a_sentence(site: Site) -> None:
    machine = _FullDisk(site.machine.host)
    async with site.agent(machine=machine):
        await site.settled("applied")
        machine.full = True
        await site.give(Plan(instructions=(shell("x", f"touch {site.root}/done"),)))
        failed = await site.settled("failed")
        assert "the agent's journal" in failed.output["plan"]
        assert "No space left on device" in failed.output["plan"]
        machine.full = False
        await site.settled("applied", await site.give(Plan(instructions=(shell("y", "true"),))))
    assert not (site.root / "done").exists()


async def test_a_plan_that_fills_the_disk_is_told_all_the_same(site: Site) -> None:
    machine = _FullDisk(site.machine.host)
    gate = site.root / "gate"
    async with site.agent(machine=machine):
        checksum = await site.give(
            Plan(instructions=(shell("fill", f"touch {site.root}/begun; while ! test -e {gate}; do sleep 0.01; done"),))
        )
        await eventually(lambda: (site.root / "begun").exists())
        machine.full = True
        gate.touch()
        await site.settled("applied", checksum)


async def test_a_plan_is_not_begun_by_a_secret_that_is_older_than_what_was_written(site: Site) -> None:
    """A watch that begins anew may tell of the Secret as it was before: here as it was before the plan failed."""
    async with site.agent() as agent:
        await site.settled("applied")
        await site.give(Plan(instructions=(shell("x", f"echo x >> {site.root}/runs; false"),)))
        before = seen(await site.secret())
        await site.settled("failed")
        await eventually(lambda: site.journal().reported)
        agent._mailbox.put(before, sure=True)
        await site.settled("applied", await site.give(Plan(instructions=(shell("y", "true"),))))
    assert site.lines("runs") == ["x"]


async def test_a_periodic_instruction_keeps_its_period_while_there_is_no_api_server(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with EmbeddedServer() as server, AsyncClient(server.connection()) as client:
        site = Site(client, server.connection(), tmp_path / "host")
        await site.prepare()
        script = f"echo x >> {site.root}/ticks; while ! test -e {gate}; do sleep 0.01; done"
        await site.give(Plan(periodic_instructions=(PeriodicInstruction("tick", "sh", ("-c", script)),)))
        running = site.agent()
        agent = await running.__aenter__()
        await eventually(lambda: site.lines("ticks"))
    gate.touch()
    await eventually(lambda: any("the Secret cannot be written" in line for line in site.said), "the outage to be noticed")
    for _ in range(2):
        agent._mailbox.wake()
        await eventually(lambda: not agent._mailbox._unread, "the agent to look around")
    await running.__aexit__(None, None, None)
    assert site.lines("ticks") == ["x"]


async def test_a_period_of_probes_that_is_none_is_that_of_probes_without_one(site: Site) -> None:
    probe = Probe(HTTPGet(f"http://127.0.0.1:{free_port()}/"), failure_threshold=9)
    await site.edit(plans.wire({plans.PROBE_PERIOD_SECONDS: "-1"}))
    await site.give(Plan(probes={"down": probe}))

    async def failures() -> int:
        found = msgspec.json.decode((await site.data()).get(plans.PROBE_STATUSES) or b"{}")
        return int(found.get("down", {}).get("failureCount", 0))

    async with site.agent() as agent:
        await eventually(failures, "a first probe")
        for _ in range(3):
            agent._mailbox.wake()
            await eventually(lambda: not agent._mailbox._unread, "the agent to look around")
        assert await failures() == 1
