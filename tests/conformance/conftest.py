"""The suite runs on the embedded API server always, and on the real kube-apiserver where there is one.

``make e2e`` starts the lab's management plane for it; ``SLIPWAY_CONFORMANCE_KUBECONFIG`` names one that runs already.  The real
server is the oracle: what a test here says must hold there.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from conformance import gauges as metered
from conformance.api import Api
from conformance.gauges import Asked, Webhooks
from conformance.widgets import GROUP, Widgets

from slipway.embedded.server import EmbeddedServer
from slipway.kube.connection import Connection, from_kubeconfig

LAB = "conformance"
VERSION = "v1.35.4"


@pytest.fixture(scope="session", params=["embedded", "real"])
def kubeconfig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of an administrator of the server under test."""
    if request.param == "embedded":
        with embedded() as server:
            path = tmp_path_factory.mktemp("conformance") / "kubeconfig"
            path.write_text(server.kubeconfig())
            yield path
    elif given := os.environ.get("SLIPWAY_CONFORMANCE_KUBECONFIG"):
        yield Path(given)
    elif os.environ.get("SLIPWAY_E2E") == "1":
        yield from management_plane()
    else:
        pytest.skip("needs a real kube-apiserver: run it with `make e2e`, or name one in SLIPWAY_CONFORMANCE_KUBECONFIG")


class embedded:  # noqa: N801
    """The embedded server on an event loop of its own, as the tests block."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server = EmbeddedServer()

    def __enter__(self) -> EmbeddedServer:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._server.start(), self._loop).result(timeout=30)
        return self._server

    def __exit__(self, *error: object) -> None:
        asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result(timeout=30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=30)


def management_plane() -> Iterator[Path]:
    """The lab's management plane: etcd, kube-apiserver and kube-controller-manager."""
    command = [str(Path(sys.executable).parent / "slipway"), "lab", "--lab", LAB]

    def run(*words: str) -> str:
        return subprocess.run([*command, "management", *words], check=True, capture_output=True, text=True).stdout

    run("up", "--kubernetes-version", VERSION)
    try:
        (status,) = json.loads(run("status", "-o", "json"))
        # A server that has just begun remembers everything.  One that is started anew has forgotten what was before, as any does in time.
        os.kill(next(row["pid"] for row in status["programs"] if row["name"] == "kube-apiserver"), signal.SIGKILL)
        run("up", "--kubernetes-version", VERSION)
        yield Path(status["kubeconfig"])
    finally:
        subprocess.run([*command, "down"], check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="session")
def connection(kubeconfig: Path) -> Connection:
    return from_kubeconfig(yaml.safe_load(kubeconfig.read_text()), lambda path: Path(path).read_bytes(), source=str(kubeconfig))


@pytest.fixture(scope="session")
def api(connection: Connection) -> Api:
    """The administrator."""
    return Api(connection)


@pytest.fixture(scope="module")
def namespace(api: Api) -> Iterator[str]:
    """A namespace for the tests of one file."""
    name = f"d-conformance-{uuid.uuid4().hex[:8]}"
    api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).ok()
    yield name
    api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="session")
def widgets(api: Api) -> Iterator[Widgets]:
    """A custom resource with everything that a schema can ask for."""
    with Widgets.installed(api) as made:
        yield made


@pytest.fixture
def unique() -> str:
    """A name that no other test has."""
    return f"t-{uuid.uuid4().hex[:10]}"


@pytest.fixture(scope="module")
def webhooks(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhooks]:
    """A server of webhooks, and a kind in two versions that it converts."""
    with metered.serving(api, tmp_path_factory.mktemp("webhooks")) as made:
        yield made


@pytest.fixture
def asked(api: Api, webhooks: Webhooks, namespace: str) -> Asked:
    return Asked(api, webhooks, namespace)


@pytest.fixture
def gauges(namespace: str) -> Callable[..., str]:
    def path(version: str, name: str = "", subresource: str = "") -> str:
        return "/".join(filter(None, (f"/apis/{GROUP}/{version}/namespaces/{namespace}/{metered.PLURAL}", name, subresource)))

    return path
