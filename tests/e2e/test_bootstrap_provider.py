"""The bootstrap provider against a real kube-apiserver: all that the reconciler's own tests say, and what only a real one has.

SLIPWAY_MANAGEMENT_KUBECONFIG names a management plane that is there already, with the CRDs of Cluster API; otherwise one is made.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from e2e.planes import connection_of, management_plane, real_server
from fleet.bootstrap.test_killed import *  # noqa: F403
from fleet.bootstrap.test_provider import *  # noqa: F403
from fleet.bootstrap.test_reconciler import *  # noqa: F403
from fleet.world import MakeWorld, User, World, preserving_crd
from support.waiting import eventually

from slipway.api.cluster import crds
from slipway.api.cluster.kinds import MACHINE_POOL, SECRET, SERVICE_ACCOUNT, path
from slipway.kube.connection import Connection
from slipway.runtime import rbac

# Twice as many kills; 100 machines take some minutes.
MACHINES = int(os.environ.get("SLIPWAY_E2E_KILLED_MACHINES", "100"))
GIVEN = os.environ.get("SLIPWAY_MANAGEMENT_KUBECONFIG", "")
pytestmark = [*real_server, pytest.mark.asyncio]


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if GIVEN:
        yield Path(GIVEN)
        return
    with management_plane(tmp_path_factory.mktemp("labs") / "bootstrap") as plane:
        yield plane.kubeconfig


@pytest.fixture
def connection(kubeconfig: Path) -> Connection:
    return connection_of(kubeconfig)


async def service_account(world: World) -> User:
    await world.client.create(SERVICE_ACCOUNT, {"metadata": {"name": "manager", "namespace": world.namespace}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    place = path(SERVICE_ACCOUNT, world.namespace, "manager", "token")
    answer = msgspec.json.decode(await world.client.raw(place, method="POST", body=msgspec.json.encode(request)))
    connection = Connection(server=world.connection.server, ca=world.connection.ca, token=answer["status"]["token"])
    return User(connection, rbac.service_account("manager", world.namespace))


@pytest_asyncio.fixture
async def make_world(connection: Connection) -> AsyncIterator[MakeWorld]:
    async with AsyncExitStack() as stack:

        async def make() -> World:
            world = await stack.enter_async_context(World(connection, f"h-{secrets.token_hex(4)}", service_account, strict=bool(GIVEN)))
            if not GIVEN:
                await world.install_crds(*crds.crds(), preserving_crd(MACHINE_POOL))
            return world

        yield make


@pytest_asyncio.fixture
async def world(make_world: MakeWorld) -> World:
    return await make_world()


class ManagerProcess:
    """``slipway manager run`` as a process, for one namespace."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, kubeconfig: Path, namespace: str) -> ManagerProcess:
        """Returns when its workers work."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "slipway", "manager", "run", "--controllers=bootstrap", f"--kubeconfig={kubeconfig}"),
            *(f"--namespace={namespace}", "--health-addr=0", "--metrics-bind-address=0", "--webhook-port=0"),
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        seen = b""
        while b"Started workers" not in seen:
            line = await asyncio.wait_for(process.stderr.readline(), 60)
            assert line, f"the manager ended: {seen.decode()}"
            seen += line
        made = cls(process)
        made._drain = asyncio.create_task(process.stderr.read())
        return made

    async def end(self, how: signal.Signals) -> int:
        self._process.send_signal(how)
        code = await asyncio.wait_for(self._process.wait(), 60)
        await self._drain
        return code

    _drain: asyncio.Task[bytes]


async def test_the_manager_as_a_process_makes_data_and_ends_when_told(world: World, kubeconfig: Path) -> None:
    await world.ready()
    manager = await ManagerProcess.start(kubeconfig, world.namespace)
    try:
        await world.machine("w")
        await has_data(world, "w")  # noqa: F405
    finally:
        code = await manager.end(signal.SIGTERM)
    assert code == 0
    assert "v1.35.0" in await world.data("w")


async def stage(world: World, name: str) -> str:
    """How far the data of a machine is."""
    config = await world.config(name)
    if (config.get("status") or {}).get("dataSecretName"):
        return "all"
    if await world.client.find(SECRET, name, world.namespace) is not None:
        return "no status"
    if config.get("spec"):
        return "no Secret"
    return "a token only" if await tokens_of(world, name) else "nothing"  # noqa: F405


async def test_a_manager_that_is_killed_again_and_again_leaves_no_trace(world: World, kubeconfig: Path) -> None:
    """Two kills a machine, each at some moment of the time that its reconcile takes; then one manager that lives."""
    await world.ready()
    await world.machine("first")
    manager = await ManagerProcess.start(kubeconfig, world.namespace)
    began = time.monotonic()
    try:
        await has_data(world, "first")  # noqa: F405
        took = time.monotonic() - began
    finally:
        assert await manager.end(signal.SIGTERM) == 0
    await world.cluster_status(initialized=False)
    await world.machine("cp-0", control_plane=True)
    names = [f"w-{number}" for number in range(MACHINES)]
    stages: Counter[str] = Counter()
    for number, name in enumerate(names):
        if number == 1:
            # The first two kills hit the init, all others the joins.
            await world.cluster_status(initialized=True)
        await world.machine(name)
        for turn in range(2):
            manager = await ManagerProcess.start(kubeconfig, world.namespace)
            if number % 2 and not turn:
                # As soon as there is anything to see.
                await eventually(lambda name=name: tokens_of(world, name), f"{name} has a token", 60)  # type: ignore[misc]  # noqa: F405
            else:
                await asyncio.sleep(random.uniform(0, 1.5 * took))
            assert await manager.end(signal.SIGKILL) == -signal.SIGKILL
            stages[await stage(world, name)] += 1
    manager = await ManagerProcess.start(kubeconfig, world.namespace)
    try:
        await has_data(world, "cp-0", *names)  # noqa: F405
    finally:
        assert await manager.end(signal.SIGTERM) == 0
    print(f"a reconcile took {took:.2f} s; what the kills left: {dict(stages)}")
    names.append("first")
    for name in names:
        await data_is_whole(world, name)  # noqa: F405
        await join(world, name)  # noqa: F405
    # Whatever the first machine got, init or join data, it has one Secret and at most one token.
    await data_is_whole(world, "cp-0")  # noqa: F405
    assert len(await tokens_of(world, "cp-0")) <= 1  # noqa: F405
    assert len(await world.tokens()) == len(names) + len(await tokens_of(world, "cp-0"))  # noqa: F405
    assert await world.lock() is None
