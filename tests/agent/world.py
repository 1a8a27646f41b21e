"""A management cluster with the Secret of one host, and that host: its files are under a folder, its commands are real."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.waiting import eventually

from slipway.agent import connection
from slipway.agent.loop import Agent
from slipway.agent.machine import Machine, RealMachine
from slipway.agent.plan.journal import Journal, JournalFile
from slipway.api.cluster.kinds import NAMESPACE as NAMESPACES
from slipway.api.cluster.kinds import SECRET
from slipway.api.elemental import names
from slipway.api.elemental import plan as plans
from slipway.api.elemental.plan import Instruction, Plan, SecretState
from slipway.api.machinery.errors import OperatorError
from slipway.host.real import RealHost
from slipway.kube import kubeconfig
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import Connection
from slipway.kube.errors import ConflictError
from slipway.simulation.agent import AgentMachine
from slipway.simulation.host.images import ImageRegistry, OsImage
from slipway.simulation.host.machine import Machine as SimulatedMachine
from slipway.simulation.host.machine import hardware

NAMESPACE, HOST = "metal", "host-1"
SIMULATED = "simulated"
ANYWHERE = pytest.mark.parametrize("site", ["real", SIMULATED], indirect=True)
"""For what is the same on a real host and on a simulated one."""


def shell(name: str, script: str, **fields: Any) -> Instruction:
    return Instruction(name, "sh", ("-c", script), **fields)


def document(server: Connection) -> dict[str, Any]:
    credentials = {
        "client-certificate-data": kubeconfig.encoded(server.client_certificate),
        "client-key-data": kubeconfig.encoded(server.client_key),
    }
    return kubeconfig.document(server=server.server, cluster="c", user="u", ca=server.ca, credentials=credentials)


def unregistered() -> None:
    raise OperatorError("this host is not to register")


def simulated() -> AgentMachine:
    """A simulated host that runs."""
    image = OsImage("registry.test/os:v1.35.4", "v1.35.4")
    made = SimulatedMachine(hardware("host", 1), image, ImageRegistry("registry.test"))
    made.power_on()
    made.switch_image()
    return AgentMachine(made)


class Site:
    """``said`` is what the agent logged; ``under`` stands before every path that a command names."""

    def __init__(self, client: AsyncClient, server: Connection, root: Path, machine: Machine | None = None) -> None:
        self.client = client
        self.server = server
        self.root = root
        self.under = str(root) if machine is None else ""
        self.machine: Machine = machine or RealMachine(RealHost(str(root), {"PATH": os.environ["PATH"]}))
        self.said: list[str] = []

    async def prepare(self) -> None:
        await self.client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        secret = {
            "metadata": {"name": HOST, "namespace": NAMESPACE, "labels": {names.MANAGED_LABEL: names.MANAGED}},
            "type": names.PLAN_SECRET_TYPE,
            "data": plans.wire({plans.PLAN: plans.EMPTY}),
        }
        await self.client.create(SECRET, secret)
        self.connect(self.server)

    def connect(self, server: Connection) -> None:
        connection.save(self.machine, document(server), NAMESPACE, HOST)

    @asynccontextmanager
    async def agent(self, register: Callable[[], None] = unregistered, machine: Machine | None = None) -> AsyncIterator[Agent]:
        """The production agent, in a thread for the time of the block."""
        made = Agent(machine or self.machine, register=register, log=self.said.append)
        thread = threading.Thread(target=made.run, daemon=True)
        thread.start()
        try:
            yield made
        finally:
            made.end()
            await eventually(lambda: not thread.is_alive(), "the agent to end")

    async def give(self, plan: Plan | bytes, max_failures: int = 1) -> str:
        """As Slipway's provider writes a plan; the checksum."""
        await self.edit(plans.written(plan, "test", max_failures))
        return plans.checksum(plan if isinstance(plan, bytes) else plans.encode(plan))

    async def give_as_elemental(self, plan: Plan | bytes, **more: str) -> str:
        """As elemental-operator writes a plan: the key of the plan, and nothing else."""
        raw = plan if isinstance(plan, bytes) else plans.encode(plan)
        await self.edit(plans.wire({plans.PLAN: raw, **{key.replace("_", "-"): value for key, value in more.items()}}))
        return plans.checksum(raw)

    async def edit(self, data: dict[str, str], annotations: dict[str, str] | None = None) -> None:
        while True:
            secret = await self.secret()
            secret["data"] = {**secret.get("data", {}), **data}
            secret["metadata"]["annotations"] = {**secret["metadata"].get("annotations", {}), **(annotations or {})}
            try:
                await self.client.update(SECRET, secret)
            except ConflictError:
                continue
            return

    async def secret(self) -> dict[str, Any]:
        found = await self.client.get(SECRET, HOST, NAMESPACE)
        assert found is not None
        return found

    async def data(self) -> dict[str, bytes]:
        return plans.plain((await self.secret()).get("data"))

    async def state(self) -> SecretState:
        return plans.read((await self.secret()).get("data"))

    async def settled(self, outcome: str, checksum: str = "") -> SecretState:
        async def look() -> SecretState | None:
            state = await self.state()
            return state if state.outcome == outcome and checksum in ("", state.plan_checksum) else None

        found: SecretState = await eventually(look, f"the plan to be {outcome}; the agent said {self.said}")
        return found

    def journal(self) -> Journal:
        return JournalFile(self.machine).load()

    def keep_journal(self, journal: Journal) -> None:
        JournalFile(self.machine).save(journal)

    def lines(self, path: str) -> list[str]:
        host = self.machine.host
        return host.read(f"/{path}").decode().splitlines() if host.exists(f"/{path}") else []

    async def progress(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode((await self.data()).get("slipway-progress") or b"{}")
        return found
