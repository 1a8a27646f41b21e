"""The runtime against a real kube-apiserver: one that is killed, permissions that come late, leaders that are killed or fall asleep."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from e2e import planes
from e2e.planes import real_server
from e2e.runtime_candidate import NAMESPACE, TIMES

from slipway.api.cluster import kinds
from slipway.api.cluster.kinds import CONFIG_MAP, LEASE, SECRET
from slipway.api.machinery.yaml import goyaml
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import Connection
from slipway.lab.management import state as managementstate
from slipway.runtime.cache.cache import Cache
from slipway.runtime.metrics import Metrics
from slipway.runtime.objects import Object

pytestmark = [*real_server, pytest.mark.asyncio]


class Plane(NamedTuple):
    folder: Path
    kubeconfig: Path
    connection: Connection

    def kill_api_server(self) -> None:
        state = managementstate.load(self.folder)
        assert state is not None
        os.kill(state.processes["kube-apiserver"].pid, signal.SIGKILL)

    def start_again(self) -> None:
        planes.start(self.folder)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("labs") / "runtime"
    with planes.management_plane(folder) as made:
        yield Plane(folder, made.kubeconfig, planes.connection_of(made.kubeconfig))


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def cached(connection: Connection, **options: Any) -> AsyncIterator[tuple[Cache, Metrics]]:
    metrics = Metrics()
    async with AsyncClient(connection) as client:
        made = Cache(client, metrics=metrics, **options)
        try:
            yield made, metrics
        finally:
            await made.close()


def config_map(name: str, namespace: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "data": data}


async def test_an_informer_goes_on_where_it_was_when_the_api_server_was_killed(plane: Plane) -> None:
    async with AsyncClient(plane.connection) as client, cached(plane.connection) as (made, metrics):
        await client.create(kinds.NAMESPACE, {"metadata": {"name": "restarts"}})
        await client.create(SECRET, {"metadata": {"name": "stays", "namespace": "restarts"}})
        told: list[tuple[str, bool]] = []

        def handle(old: Object | None, new: Object | None) -> None:
            current = new if new is not None else old
            assert current is not None
            told.append((current.name, new is not None))

        informer = made.informer(SECRET, namespace="restarts")
        informer.add_handler(handle)
        await until(informer.synced.is_set)
        plane.kill_api_server()
        await until(lambda: informer.error)
        await asyncio.to_thread(plane.start_again)
        await client.create(SECRET, {"metadata": {"name": "new", "namespace": "restarts"}})
        await client.delete(SECRET, "stays", "restarts")
        await until(lambda: ("stays", False) in told)
        assert told == [("stays", True), ("new", True), ("stays", False)]
        assert informer.error == ""
        labels = {"kind": "secrets", "namespace": "restarts"}
        # A server that has just begun may have forgotten the version to resume from; then there is one more list, and what was
        # told above is the same.
        assert metrics.registry.get_sample_value("slipway_informer_lists_total", labels) in (1, 2)


async def test_a_permission_that_comes_late_is_waited_for(plane: Plane) -> None:
    async with AsyncClient(plane.connection) as client:
        await client.create(kinds.NAMESPACE, {"metadata": {"name": "permissions"}})
        await client.create(kinds.SERVICE_ACCOUNT, {"metadata": {"name": "manager", "namespace": "permissions"}})
        path = kinds.path(kinds.SERVICE_ACCOUNT, "permissions", "manager", "token")
        answer = await client.raw(path, method="POST", body=b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}')
        token = str(goyaml.load(answer.decode())[0].value["status"]["token"])
        limited = Connection(server=plane.connection.server, ca=plane.connection.ca, token=token)
        async with cached(limited, namespace="permissions") as (made, metrics):
            informer = made.informer(CONFIG_MAP)
            await until(lambda: informer.error)
            assert 'cannot list resource "configmaps" in API group "" in the namespace "permissions"' in informer.error
            labels = {"kind": "configmaps", "namespace": "permissions", "reason": "Forbidden"}
            assert metrics.registry.get_sample_value("slipway_informer_errors_total", labels)
            rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}]
            await client.create(kinds.ROLE, {"metadata": {"name": "manager", "namespace": "permissions"}, "rules": rules})
            binding = {
                "metadata": {"name": "manager", "namespace": "permissions"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "manager"},
                "subjects": [{"kind": "ServiceAccount", "name": "manager", "namespace": "permissions"}],
            }
            await client.create(kinds.ROLE_BINDING, binding)
            await until(lambda: informer.synced.is_set() and not informer.error)
            await client.create(CONFIG_MAP, config_map("a", "permissions"))
            await until(lambda: informer.store.get("a", "permissions"))


class Candidate:
    """A manager in a process, and what it said."""

    def __init__(self, plane: Plane, who: str) -> None:
        command = [sys.executable, str(Path(__file__).with_name("runtime_candidate.py")), str(plane.kubeconfig), who]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.strip())

    @property
    def reconciles(self) -> list[float]:
        return [float(line.split()[1]) for line in self.lines if line.startswith("reconcile ")]

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@pytest.fixture
def candidates(plane: Plane) -> Iterator[Callable[[str], Candidate]]:
    started: list[Candidate] = []

    def start(who: str) -> Candidate:
        started.append(Candidate(plane, who))
        return started[-1]

    yield start
    for each in started:
        each.end()


@pytest.mark.parametrize("how", ["terminated", "killed", "asleep"])
async def test_leaders_never_overlap(plane: Plane, candidates: Callable[[str], Candidate], how: str) -> None:
    async with AsyncClient(plane.connection) as client:
        if await client.find(kinds.NAMESPACE, NAMESPACE) is None:
            await client.create(kinds.NAMESPACE, {"metadata": {"name": NAMESPACE}})
            await client.create(CONFIG_MAP, config_map("a", NAMESPACE))
        await client.delete(LEASE, "test", NAMESPACE)
        first = candidates("first")
        await until(lambda: len(first.reconciles) > 5)
        second = candidates("second")
        await until(lambda: any("Another one leads" in line for line in second.lines))
        assert second.reconciles == []
        ended = time.monotonic()
        number = {"terminated": signal.SIGTERM, "killed": signal.SIGKILL, "asleep": signal.SIGSTOP}[how]
        first.process.send_signal(number)
        await until(lambda: len(second.reconciles) > 5)
        if how == "asleep":
            first.process.send_signal(signal.SIGCONT)
            await until(lambda: first.process.poll() is not None)
            assert first.process.returncode == 1
            assert any(line.startswith("error ") and "lease leaders/test" in line for line in first.lines)
        lease = (await client.get(LEASE, "test", NAMESPACE))["spec"]
        assert (lease["holderIdentity"], lease["leaseTransitions"]) == ("second", 1)
    took = second.reconciles[0] - ended
    assert max(first.reconciles) < second.reconciles[0]
    if how == "terminated":
        # A lease that was given up is taken at the next look.
        assert took < TIMES.lease_duration
    else:
        assert TIMES.lease_duration - TIMES.renew_deadline < took < TIMES.lease_duration + 10
