"""A management plane beside simulated hosts: the embedded API server, and a manager with all controllers and webhooks, in this process."""

from __future__ import annotations

import asyncio
import gc
import random
import secrets
import socket
from typing import TYPE_CHECKING

from slipway.api.cluster.kinds import NAMESPACE as NAMESPACE_KIND
from slipway.api.machinery.errors import OperatorError
from slipway.embedded.access.authentication import MASTERS
from slipway.embedded.server import EmbeddedServer
from slipway.fleet import registry
from slipway.fleet.bootstrap.options import BootstrapOptions
from slipway.fleet.inventory.options import InventoryOptions
from slipway.fleet.manager import build
from slipway.fleet.manifests import DASHBOARD_PORT, Installation, manifests
from slipway.fleet.manifests import NAMESPACE as HOME
from slipway.fleet.settings import Settings
from slipway.kube.aio import AsyncClient
from slipway.kube.errors import AlreadyExistsError
from slipway.runtime.apply import install

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from slipway.fleet.baremetal.options import BaremetalOptions
    from slipway.runtime.manager import Manager

# Below those that the kernel gives to connections, so that none takes one before its server listens.
_PORTS = range(20000, 32000)
_GRACE = 5.0
_COLLECT = (20_000, 50, 100)


def collect_seldom() -> None:
    """Let the garbage collector of this process look at what a plane makes only: objects of the API have no cycles, and looking for some
    as often as Python does takes a tenth of a run."""
    # What is imported by now lives as long as the program.
    gc.freeze()
    gc.set_threshold(*_COLLECT)


class ManagementPlane:
    """``client`` is the administrator's.  ``pace`` is how long a second of waiting takes.

    With ``database`` the API server can be stopped and started again.  ``dashboard`` lets a manager serve its page on a port.
    """

    def __init__(
        self,
        namespace: str,
        options: BaremetalOptions,
        *,
        pace: float,
        database: Path | None = None,
        dashboard: Callable[[Manager, int], None] | None = None,
    ) -> None:
        self._namespace, self._options, self._pace, self._dashboard = namespace, options, pace, dashboard
        self.dashboard_port = free_port("127.0.0.1", DASHBOARD_PORT) if dashboard is not None else 0
        self.server = EmbeddedServer(database=database)
        self.registration_port, self._webhook_port = free_port("127.0.0.1"), free_port("127.0.0.1")
        self._controllers = registry.chosen([registry.ALL])
        self._stop = asyncio.Event()
        self._manager: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self.serve()
        self.start_manager()

    async def serve(self) -> None:
        """The API server alone, with everything in it that a manager needs."""
        await self.server.start()
        self.client = AsyncClient(self.server.connection())
        await install(self.client, self._manifests(), lambda line: None)
        try:
            await self.client.create(NAMESPACE_KIND, {"metadata": {"name": self._namespace}})
        except AlreadyExistsError:
            # A cluster may be in one of those that every API server has.
            return

    async def stop(self) -> None:
        try:
            await self.stop_manager()
        finally:
            if hasattr(self, "client"):
                await self.client.close()
            await self.server.stop()

    def dashboard_url(self) -> str:
        """Where the page is, for an administrator: the token is behind the hash, which no browser sends."""
        token = secrets.token_urlsafe(24)
        self.server.add_token(token, "demo", (MASTERS,))
        return f"https://127.0.0.1:{self.dashboard_port}/#token={token}"

    def start_manager(self) -> None:
        self._stop = asyncio.Event()
        manager = build(self.server.connection(), self.settings())
        if self._dashboard is not None:
            self._dashboard(manager, self.dashboard_port)
        self._manager = asyncio.create_task(manager.run(self._stop), name="manager")

    async def stop_manager(self) -> None:
        """End it in order, or at once where that takes too long."""
        manager, self._manager = self._manager, None
        if manager is None:
            return
        self._stop.set()
        await asyncio.wait({manager}, timeout=_GRACE)
        await _cancel(manager)

    async def kill_manager(self) -> None:
        """It dies at whatever line it is."""
        manager, self._manager = self._manager, None
        if manager is not None:
            await _cancel(manager)

    def check(self) -> None:
        """Raise what the manager has ended with, if it has."""
        if self._manager is not None and self._manager.done():
            self._manager.result()
            raise OperatorError("the manager has ended")

    def _manifests(self) -> list[dict[str, object]]:
        declared = registry.declarations(self._controllers)
        return manifests(
            Installation(
                rules=declared.rules,
                crds=declared.crds,
                webhooks=declared.webhooks,
                controllers=declared.names,
                leases=declared.leases,
                works_with_providers=declared.works_with_providers,
                image="none",
                webhook_url=f"https://127.0.0.1:{self._webhook_port}",
            )
        )

    def settings(self) -> Settings:
        """What a manager of this plane is told."""
        return Settings(
            controllers=self._controllers,
            namespace="",
            watch_filter="",
            concurrency=10,
            leader_elect=False,
            own_namespace=HOME,
            metrics_address="0",
            health_address="0",
            webhook_port=self._webhook_port,
            webhook_cert_dir="",
            sync_period=600,
            bootstrap=BootstrapOptions(),
            inventory=InventoryOptions(
                bind_address=f"127.0.0.1:{self.registration_port}", url=f"https://127.0.0.1:{self.registration_port}"
            ),
            baremetal=self._options,
            pace=self._pace,
            log_format="text",
            verbosity=0,
        )


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})


def free_port(address: str, wanted: int = 0) -> int:
    """The port that is wanted, or else one that nobody listens on at the moment."""
    for port in [*([wanted] if wanted else []), *random.sample(_PORTS, k=100)]:
        if is_free(address, port):
            return port
    raise OperatorError(f"no port of {address} is free to listen on")


def is_free(address: str, port: int) -> bool:
    with socket.socket() as found:
        try:
            found.bind((address, port))
        except OSError:
            return False
        return True
