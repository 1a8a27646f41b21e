"""``slipway manager`` as its users run it: installed into a real API server, as a process of its own, under its own role."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from e2e.planes import connection_of, management_plane, real_server
from fleet import cluster_life
from fleet.world import User, World, kubeconfig, preserving_crd
from support.ports import free_port
from support.waiting import eventually_blocking

from slipway.api.cluster import kinds
from slipway.api.cluster.kinds import CLUSTER, KUBEADM_CONFIG, KUBEADM_CONTROL_PLANE, MACHINE, MACHINE_POOL, SECRET, Kind
from slipway.fleet import manifests as made
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import Connection
from slipway.kube.errors import ApiError
from slipway.runtime import rbac

pytestmark = real_server
INSTALL = ("manager", "install", "--controllers=bootstrap")


def _slipway(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "slipway", *arguments], capture_output=True, text=True, timeout=120, check=False)


class _Plane:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.admin = connection_of(path)

    async def as_manager(self) -> Connection:
        """A connection as the ServiceAccount that was installed."""
        body = b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600}}'
        async with AsyncClient(self.admin) as client:
            answer = await client.raw(kinds.path(kinds.SERVICE_ACCOUNT, made.NAMESPACE, made.NAME, "token"), method="POST", body=body)
        return Connection(server=self.admin.server, ca=self.admin.ca, token=msgspec.json.decode(answer)["status"]["token"])

    async def user(self, world: World) -> User:
        return User(await self.as_manager(), rbac.service_account(made.NAME, made.NAMESPACE))


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Plane]:
    with management_plane(tmp_path_factory.mktemp("management")) as found:
        yield _Plane(found.kubeconfig)


class _Manager:
    def __init__(self, process: subprocess.Popen[str], log: Path, health: int) -> None:
        self.process = process
        self.log = log
        self._health = health

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._health}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def wait_until_ready(self, seconds: float = 60) -> None:
        def ready() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            return self.ready()

        eventually_blocking(ready, self.log.read_text, seconds, pause=0.1)


@contextmanager
def _running(folder: Path, config: Path, *flags: str) -> Iterator[_Manager]:
    log, health = folder / "manager.log", free_port()
    command = [sys.executable, "-m", "slipway", "manager", "run", "--kubeconfig", str(config), *flags]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, f"--health-addr=127.0.0.1:{health}", "--metrics-bind-address=0"], stdout=output, stderr=output, text=True
        )
    try:
        yield _Manager(process, log, health)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(10)


def _with_broken_template(kind: Kind, namespace: str) -> dict[str, Any]:
    file = {"path": "/x", "content": "{{ .controlPlane.version", "contentFormat": "Template"}
    metadata = {"name": "broken", "namespace": namespace}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": {"files": [file]}}


@pytest.mark.asyncio
async def test_a_manager_is_installed_and_does_its_work_with_no_more_than_its_role(plane: _Plane, tmp_path: Path) -> None:
    port = free_port()
    installed = _slipway(*INSTALL, "--kubeconfig", str(plane.path), f"--webhook-url=https://127.0.0.1:{port}")
    assert installed.returncode == 0, installed.stderr
    assert "[install] ValidatingWebhookConfiguration slipway-validating-webhooks created" in installed.stdout
    config = tmp_path / "kubeconfig"
    config.write_text(kubeconfig(await plane.as_manager()))
    flags = ("--controllers=bootstrap", f"--webhook-port={port}", "--leader-elect", "--log-format=json")
    async with World(plane.admin, "e-fleet", plane.user) as world:
        await world.install_crds(*map(preserving_crd, (CLUSTER, MACHINE, MACHINE_POOL, KUBEADM_CONTROL_PLANE)))
        with _running(tmp_path, config, *flags) as manager:
            manager.wait_until_ready()
            await cluster_life.begins(world)
            older = KUBEADM_CONFIG._replace(version="v1beta1")
            assert (await world.client.get(older, "worker", world.namespace))["apiVersion"] == older.api_version, "converted"
            for kind in (KUBEADM_CONFIG, older):
                with pytest.raises(ApiError, match=r"denied the request: .*spec\.files\[0\]\.content: Invalid value.*unclosed action"):
                    await world.client.create(kind, _with_broken_template(kind, world.namespace))
            manager.process.send_signal(signal.SIGTERM)
            assert manager.process.wait(30) == 0, manager.log.read_text()
            first = manager.log.read_text()
        await world.patch(SECRET, "first", {"metadata": {"ownerReferences": None}})
        with _running(tmp_path, config, *flags) as manager:
            manager.wait_until_ready()
            await cluster_life.goes_on(world)
            manager.process.send_signal(signal.SIGINT)
            assert manager.process.wait(30) == 0, manager.log.read_text()
            second = manager.log.read_text()
    for log in (first, second):
        lines = [msgspec.json.decode(line) for line in log.splitlines()]
        assert all({"ts", "level", "msg"} <= line.keys() for line in lines), "every line is JSON"
        assert not [line for line in lines if "forbidden" in str(line)]
        assert lines[-1]["msg"] == "Stopped"
    assert '"msg":"Released lease"' in re.sub(r":\s+", ":", first)


def test_installing_again_changes_nothing(plane: _Plane) -> None:
    _slipway(*INSTALL, "--kubeconfig", str(plane.path), "--webhook-url=https://127.0.0.1:1")
    again = _slipway(*INSTALL, "--kubeconfig", str(plane.path), "--webhook-url=https://127.0.0.1:1")
    assert again.returncode == 0
    outcomes = {line.rpartition(" ")[2] for line in again.stdout.splitlines()[:-1]}
    assert outcomes == {"unchanged"}


def test_a_manager_moves_into_the_cluster_and_out_of_it(plane: _Plane) -> None:
    """Webhooks that were called by URL are called by their Service and back, whatever authority was put there in between."""
    for flags in ([], ["--webhook-url=https://127.0.0.1:1"], []):
        done = _slipway(*INSTALL, "--kubeconfig", str(plane.path), *flags)
        assert done.returncode == 0, done.stderr
        assert "[install] CustomResourceDefinition kubeadmconfigs.bootstrap.cluster.x-k8s.io configured" in done.stdout
