"""The production agent at a manager: from the seed's file to an inventory that is Ready, and on after its token is worth nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fleet.inventory.management import SPACE, Management
from support.waiting import eventually

from slipway.agent import connection, paths
from slipway.agent.loop import Agent
from slipway.agent.machine import RealMachine
from slipway.agent.registration import exchange
from slipway.agent.registration import settings as registration
from slipway.api.cluster.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, MACHINE_INVENTORY, MACHINE_REGISTRATION, SECRET, SERVICE_ACCOUNT
from slipway.api.elemental import plan
from slipway.api.elemental.registration import MachineRegistration, MachineRegistrationStatus
from slipway.api.machinery.yaml import goyaml
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.inventory.registration.configuration import client_config
from slipway.host.real import RealHost
from slipway.kube.aio import AsyncClient
from slipway.runtime import rbac

UUID = "4c4c4544-0042-3510-8051-b7c04f4e4a32"


class Machine:
    """A host whose files are under a folder, with the file that a seed puts there."""

    def __init__(self, root: Path, url: str, authorities: bytes) -> None:
        self.machine = RealMachine(RealHost(str(root), {"PATH": os.environ["PATH"]}))
        told = MachineRegistration(status=MachineRegistrationStatus(registration_url=url))
        told.spec.config.elemental.registration.auth = "sys-uuid"
        file = root / paths.REGISTRATION.lstrip("/")
        file.parent.mkdir(parents=True)
        file.write_text(goyaml.dump(client_config(told, authorities)))
        board = root / "sys/class/dmi/id"
        board.mkdir(parents=True)
        (board / "product_uuid").write_text(f"{UUID}\n")
        self.said: list[str] = []

    def register(self) -> None:
        wanted = registration.settings(registration.load(self.machine.host))
        exchange.register(self.machine, wanted, log=self.said.append)

    @asynccontextmanager
    async def agent(self) -> AsyncIterator[None]:
        made = Agent(self.machine, register=self.register, log=self.said.append)
        thread = threading.Thread(target=made.run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            made.end()
            await eventually(lambda: not thread.is_alive(), "the agent to end")


@pytest.mark.asyncio
async def test_a_host_registers_by_itself_and_becomes_ready(management: Management, tmp_path: Path) -> None:
    serving = await management.start()
    found = await management.registration(machineName="m-1", config={"elemental": {"registration": {"auth": "sys-uuid"}}})
    machine = Machine(tmp_path, found["status"]["registrationURL"], serving.authorities)
    async with machine.agent():
        ready = await management.told("m-1", "Ready", "PlanSuccessfullyApplied")
    assert ready["status"] == "True"
    inventory = await management.client.get(MACHINE_INVENTORY, "m-1", SPACE)
    assert inventory["metadata"]["annotations"]["elemental.cattle.io/registration-ip"] == "127.0.0.1"


@pytest.mark.asyncio
async def test_a_host_whose_token_is_worth_nothing_registers_anew(management: Management, tmp_path: Path) -> None:
    serving = await management.start()
    found = await management.registration(machineName="m-1", config={"elemental": {"registration": {"auth": "sys-uuid"}}})
    machine = Machine(tmp_path, found["status"]["registrationURL"], serving.authorities)
    async with machine.agent():
        await management.told("m-1", "Ready", "PlanSuccessfullyApplied")
        first = connection.load(machine.machine.host)
        await management.client.delete(SERVICE_ACCOUNT, "host-m-1", SPACE)
        await management.report("m-1", plan=b'{"instructions":[]}')
        await eventually(lambda: connection.load(machine.machine.host) != first, "the host has a new token")
    assert [each["metadata"]["name"] for each in await management.client.list(MACHINE_INVENTORY, SPACE)] == ["m-1"]


class Clock:
    """Of the API server and of the host."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


class TimedHost(RealHost):
    def __init__(self, root: Path, clock: Clock) -> None:
        super().__init__(str(root), {"PATH": os.environ["PATH"]})
        self._clock = clock

    def now(self) -> datetime:
        return self._clock()


@pytest.mark.asyncio
async def test_a_host_whose_registration_is_gone_gets_its_next_token(tmp_path: Path) -> None:
    clock = Clock()
    async with EmbeddedServer(clock=clock) as server, AsyncClient(server.connection()) as client, Management(server, client) as management:
        serving = await management.start()
        found = await management.registration(machineName="m-1", config={"elemental": {"registration": {"auth": "sys-uuid"}}})
        machine = Machine(tmp_path, found["status"]["registrationURL"], serving.authorities)
        machine.machine = RealMachine(TimedHost(tmp_path, clock))
        async with machine.agent():
            await management.told("m-1", "Ready", "PlanSuccessfullyApplied")
        await client.delete(MACHINE_REGISTRATION, "all", SPACE)
        before = connection.load(machine.machine.host)

        async def taken() -> bool:
            data = plan.plain((await management.secret("m-1"))["data"])
            return not data.get(plan.TOKEN, b"-") and not data.get(plan.TOKEN_REQUEST, b"-")

        clock.ahead = timedelta(days=300)
        async with machine.agent():
            await eventually(lambda: connection.load(machine.machine.host) != before, "the host has a new token")
            await eventually(taken, "its Secret has it no more")
        clock.ahead = timedelta(days=600)
        async with machine.agent():
            await management.report("m-1", plan=b'{"instructions":[]}')
            await management.when(MACHINE_INVENTORY, "m-1", lambda found: found["status"]["plan"].get("state") == "Applied")
    assert [line for line in machine.said if "registering" in line] == machine.said[:1]


@pytest.mark.asyncio
async def test_no_token_is_written_beside_a_plan_in_flight(management: Management) -> None:
    await management.start()
    await management.inventory("m-1", tpmHash="a" * 64)
    await management.told("m-1", "Ready", "WaitingForPlan")
    await management.report("m-1", plan=b'{"instructions":[]}', plan_state=b"in-progress", slipway_token_request=b"true")
    await management.when(
        MACHINE_INVENTORY, "m-1", lambda found: found["status"]["plan"]["checksum"] == plan.checksum(b'{"instructions":[]}')
    )
    assert plan.TOKEN not in (await management.secret("m-1"))["data"]
    await management.apply("m-1")
    await management.when(SECRET, "m-1", lambda found: found["data"].get(plan.TOKEN))


@pytest.mark.asyncio
async def test_a_host_whose_next_token_is_not_to_be_had_is_told_of_all_the_same(management: Management) -> None:
    groups = ["elemental.cattle.io", "baremetal.alauda.io", "rbac.authorization.k8s.io", "coordination.k8s.io", "events.k8s.io"]
    rules = [
        {"apiGroups": groups, "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["secrets", "serviceaccounts", "configmaps", "events"], "verbs": ["*"]},
    ]
    role = {**rbac.cluster_role("no-tokens", ()), "rules": rules}
    await management.client.create(CLUSTER_ROLE, role)
    await management.client.create(CLUSTER_ROLE_BINDING, rbac.binding(role, rbac.user("no-tokens")))
    await management.start(management.server.connection("no-tokens", ()))
    await management.inventory("m-1", tpmHash="a" * 64)
    await management.told("m-1", "Ready", "WaitingForPlan")
    await management.report("m-1", slipway_token_request=b"true")
    await management.apply("m-1")
    await management.told("m-1", "Ready", "PlanSuccessfullyApplied")
    assert plan.TOKEN not in (await management.secret("m-1"))["data"]
