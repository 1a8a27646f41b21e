"""An agent that is killed, wherever it is, and the API server that is not there: no plan is lost, and none is run once more."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from agent.world import HOST, NAMESPACE, Site, shell, unregistered
from support.waiting import eventually

from slipway.agent import connection
from slipway.agent.loop import Agent
from slipway.agent.machine import Command, Finished, RealMachine
from slipway.agent.plan.journal import Journal
from slipway.api.elemental import plan as plans
from slipway.api.elemental.plan import Plan
from slipway.api.machinery.errors import OperatorError
from slipway.embedded.server import EmbeddedServer
from slipway.host.real import RealHost
from slipway.kube import kubeconfig
from slipway.kube.aio import AsyncClient

pytestmark = pytest.mark.asyncio

SOURCE = str(Path(__file__).parents[2] / "src")


class KilledError(BaseException):
    """Ends the agent at once, as SIGKILL does: nothing of it catches this."""


def _written(path: Path) -> bool:
    return path.exists() and bool(path.read_text().strip())


def _lives(process: int) -> bool:
    try:
        return bool(Path(f"/proc/{process}/environ").read_bytes())
    except OSError:
        return False


def _until_killed(agent: Agent) -> None:
    with suppress(KilledError):
        agent.run()


class MortalMachine(RealMachine):
    """Dies at one of the things that it is asked for: before it is done, or right after."""

    def __init__(self, host: RealHost, at: int) -> None:
        super().__init__(host)
        self._left = at

    def _act(self, act: Callable[[], object]) -> object:
        self._left -= 1
        if self._left == 0:
            raise KilledError
        done = act()
        self._left -= 1
        if self._left == 0:
            raise KilledError
        return done

    def keep(self, path: str, content: bytes) -> None:
        self._act(lambda: super(MortalMachine, self).keep(path, content))

    def execute(self, command: Command, *, stop: Callable[[], bool]) -> Finished:
        found = self._act(lambda: super(MortalMachine, self).execute(command, stop=stop))
        assert isinstance(found, Finished)
        return found


async def test_a_plan_of_ten_ends_applied_though_the_agent_is_killed_in_each_instruction(site: Site) -> None:
    """Each instruction waits the first time that it is reached, and is killed there with its agent."""
    here = site.root
    script = "echo {n} >> {here}/tried; test -e {here}/killed-{n} || {{ echo $$ > {here}/at-{n}; sleep 60; }}; touch {here}/effect-{n}"
    checksum = await site.give(Plan(instructions=tuple(shell(f"i{n}", script.format(n=n, here=here)) for n in range(10))))
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    left = []
    for n in range(10):
        agent = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "slipway", "--rootfs", str(here), "agent", "run", env=environment, stdout=asyncio.subprocess.DEVNULL
        )
        reached = here / f"at-{n}"
        await eventually(partial(_written, reached), f"instruction {n}")
        agent.send_signal(signal.SIGKILL)
        await agent.wait()
        left.append(int(reached.read_text()))
        (here / f"killed-{n}").touch()
    async with site.agent():
        state = await site.settled("applied", checksum)
    assert state.failures == 0
    assert site.journal().attempt == 11
    assert [(here / f"effect-{n}").exists() for n in range(10)] == [True] * 10
    # Every run begins at the first instruction, and none of a former agent goes on beside it.
    assert site.lines("tried") == [str(n) for reached in (*range(10), 9) for n in range(reached + 1)]
    assert [process for process in left if _lives(process)] == []


async def test_a_plan_runs_once_wherever_the_agent_dies_after_its_only_instruction(site: Site) -> None:
    """An effect that the journal knows of is never repeated; one that it could not learn of is, and counts as an attempt."""
    for at in range(1, 8):
        log = site.root / f"log-{at}"
        checksum = await site.give(Plan(instructions=(shell("count", f"echo $CATTLE_AGENT_ATTEMPT_NUMBER >> {log}"),)))
        site.keep_journal(Journal())
        mortal = Agent(
            MortalMachine(RealHost(str(site.root), {"PATH": os.environ["PATH"]}), at), register=unregistered, log=site.said.append
        )
        await asyncio.to_thread(_until_killed, mortal)
        async with site.agent():
            await site.settled("applied", checksum)
        assert log.read_text().split() in (["1"], ["2"], ["1", "2"]), f"killed at {at}"
        assert site.journal().state == "succeeded"


async def test_an_outcome_is_kept_while_there_is_no_api_server_and_told_when_there_is(tmp_path: Path) -> None:
    database = tmp_path / "etcd"
    async with EmbeddedServer(database=database) as server, AsyncClient(server.connection()) as client:
        port = int(server.connection().server.rpartition(":")[2])
        site = Site(client, server.connection(), tmp_path / "host")
        await site.prepare()
        gate = site.root / "gate"
        checksum = await site.give(
            Plan(instructions=(shell("wait", f"touch {site.root}/begun; while ! test -e {gate}; do sleep 0.01; done"),))
        )
        running = site.agent()
        await running.__aenter__()
        await eventually(lambda: (site.root / "begun").exists())
    gate.touch()
    await eventually(lambda: site.journal().state == "succeeded", "the plan to end without an API server")
    assert not site.journal().reported
    async with EmbeddedServer(database=database, port=port) as server, AsyncClient(server.connection()) as client:
        site.client = client
        await site.settled("applied", checksum)
        await running.__aexit__(None, None, None)


async def test_two_writers_of_the_secret_lose_nothing(site: Site) -> None:
    """Somebody else writes all the time while an agent reports a plan."""
    checksum = await site.give(Plan(instructions=(shell("x", "sleep 0.05"),)))
    ended = False

    async def write() -> int:
        count = 0
        while not ended:
            count += 1
            await site.edit(plans.wire({"somebody": str(count)}))
        return count

    writer = asyncio.create_task(write())
    async with site.agent():
        await site.settled("applied", checksum)
    ended = True
    written = await writer
    assert int((await site.data())["somebody"]) == written


async def test_a_host_that_cannot_register_goes_on_with_a_connection_that_is_taken_again(site: Site) -> None:
    """As after a moment in which the API server knew nobody: there is no registration on this host to fall back to."""
    refused = kubeconfig.document(server=site.server.server, cluster="c", user="u", ca=site.server.ca, credentials={"token": "unknown"})
    connection.save(site.machine, refused, NAMESPACE, HOST)

    def register() -> None:
        site.connect(site.server)
        raise OperatorError("this host is not to register")

    async with site.agent(register):
        await site.settled("applied")
