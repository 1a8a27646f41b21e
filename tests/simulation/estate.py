"""A management plane on an embedded API server with all of our controllers, and a world of simulated hosts that register with it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import count
from typing import Any, Self

from fleet.world import lean_crd
from support.ports import free_port
from support.waiting import eventually

from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    CLUSTER,
    CLUSTER_RESOURCE_SET,
    CLUSTER_RESOURCE_SET_BINDING,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONFIG,
    KUBEADM_CONFIG_TEMPLATE,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_DRAIN_RULE,
    MACHINE_HEALTH_CHECK,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    MACHINE_REGISTRATION,
    MACHINE_SET,
    NAMESPACE,
    SECRET,
    SEED_IMAGE,
    Kind,
)
from slipway.api.elemental import plan as plans
from slipway.embedded.server import EmbeddedServer
from slipway.fleet import registry
from slipway.fleet.baremetal.options import BaremetalOptions
from slipway.fleet.bootstrap.options import BootstrapOptions
from slipway.fleet.inventory.options import InventoryOptions
from slipway.fleet.manager import build
from slipway.fleet.settings import Settings
from slipway.kube.aio import AsyncClient, PatchType
from slipway.simulation.boot import Life
from slipway.simulation.workload.local import LocalClient
from slipway.simulation.world import World

Manifest = dict[str, Any]
SPACE = "cpaas-system"
FIRST, SECOND = "v1.34.10", "v1.35.4"
ELEMENTAL = (MACHINE_INVENTORY, MACHINE_REGISTRATION, SEED_IMAGE)
KINDS = (
    *ELEMENTAL,
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    MACHINE_INVENTORY_POOL,
    CLUSTER,
    KUBEADM_CONFIG,
    KUBEADM_CONFIG_TEMPLATE,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_SET,
    MACHINE_DEPLOYMENT,
    MACHINE_HEALTH_CHECK,
    MACHINE_DRAIN_RULE,
    CLUSTER_RESOURCE_SET,
    CLUSTER_RESOURCE_SET_BINDING,
)
PACE = 0.02
"""How long a second takes that a manager waits: its hosts are that much faster."""
_addresses = count(1)


def virtual_address() -> str:
    """One that nothing else on this machine has."""
    return f"127.{64 + os.getpid() % 60}.{next(_addresses)}.1"


class Estate:
    """``client`` is the management cluster's administrator."""

    def __init__(self, *, controllers: tuple[str, ...] = ("all",), pace: float = 0.0, options: BaremetalOptions | None = None) -> None:
        self.options = options or BaremetalOptions()
        self.world = World(pace=pace)
        self.server = EmbeddedServer()
        # An address of its own, so that nobody's connection takes the port while no manager has it.
        self.address, self.port = virtual_address(), free_port()
        self._controllers = registry.chosen(controllers)
        self._stack = AsyncExitStack()
        self._stop: asyncio.Event | None = None
        self._manager: asyncio.Task[None] | None = None
        for version in (FIRST, SECOND, "v1.36.3"):
            self.world.registry.push("os", version, version)

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self.server)
        self.client = await self._stack.enter_async_context(AsyncClient(self.server.connection()))
        for name in (SPACE, "home"):
            await self.client.create(NAMESPACE, {"metadata": {"name": name}})
        for kind in KINDS if "machines" in self._controllers else ELEMENTAL:
            await self.client.create(CUSTOM_RESOURCE_DEFINITION, lean_crd(kind))
        await self.start()
        await self._stack.enter_async_context(self.world)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        await self._stack.aclose()

    # The manager.

    async def start(self) -> None:
        manager = build(self.server.connection(), self._settings())
        self._stop = asyncio.Event()
        self._manager = asyncio.create_task(manager.run(self._stop))

    async def stop(self) -> None:
        if self._stop is not None and self._manager is not None:
            self._stop.set()
            await asyncio.wait_for(self._manager, 30)
            self._manager = None

    async def kill(self) -> None:
        """The manager dies at whatever line it is."""
        if self._manager is not None:
            self._manager.cancel()
            await asyncio.wait({self._manager})
            self._manager = None

    def _settings(self) -> Settings:
        return Settings(
            controllers=self._controllers,
            namespace="",
            watch_filter="",
            concurrency=10,
            leader_elect=False,
            own_namespace="home",
            metrics_address="0",
            health_address="0",
            webhook_port=0,
            webhook_cert_dir="",
            sync_period=600,
            bootstrap=BootstrapOptions(),
            baremetal=self.options,
            inventory=InventoryOptions(bind_address=f"{self.address}:{self.port}", url=f"https://{self.address}:{self.port}"),
            pace=PACE,
            log_format="text",
            verbosity=0,
        )

    # Hosts.

    async def registration(self, auth: str = "tpm") -> Manifest:
        spec = {
            "machineName": "${System Information/Serial Number}",
            "config": {"elemental": {"registration": {"auth": auth, "emulate-tpm": True}}},
        }
        await self.client.create(MACHINE_REGISTRATION, {"metadata": {"name": "all", "namespace": SPACE}, "spec": spec})

        def usable(found: Manifest) -> bool:
            return bool((found.get("status") or {}).get("registrationURL"))

        return await self.when(MACHINE_REGISTRATION, "all", usable, "hosts can register", 60)

    async def hosts(self, number: int, *, auth: str = "tpm", version: str = FIRST) -> list[Life]:
        """Switch on so many hosts, and wait until they are registered and have nothing to do."""
        told = (await self.registration(auth))["status"]["registrationURL"]
        ca = await self.registration_authority()
        image = self.world.registry.pull(f"{self.world.registry.address}/os:{version}")
        assert image is not None
        made = [self.world.add_host(f"host-{index}", image) for index in range(number)]
        for host in made:
            self.world.give_registration(host, told, ca, auth=auth)
            await host.power_on()
        for host in made:
            await self.when(MACHINE_INVENTORY, self.name_of(host), _is_ready, f"{host.machine.hardware.name} is registered", 60)
        return made

    async def registration_authority(self) -> str:
        from base64 import b64decode

        found = await self.when(SECRET, "slipway-registration-certificate", lambda secret: True, "there is a certificate", namespace="home")
        data = found["data"]
        return b64decode(data.get("ca.crt") or data["tls.crt"]).decode()

    @staticmethod
    def name_of(host: Life) -> str:
        """The name of its inventory."""
        return host.machine.hardware.serial.lower()

    async def secret(self, host: Life) -> Manifest:
        return await self.client.get(SECRET, self.name_of(host), SPACE)

    async def give_plan(self, host: Life, plan: plans.Plan, kind: str, *, max_failures: int = 3) -> None:
        """As the provider gives one."""
        data = plans.written(plan, kind, max_failures)
        await self.client.patch(SECRET, self.name_of(host), SPACE, {"data": data}, type=PatchType.MERGE)

    async def outcome(self, host: Life) -> str:
        return str(plans.read((await self.secret(host)).get("data")).outcome)

    # Waiting.

    async def when(
        self, kind: Kind, name: str, check: Callable[[Manifest], bool], what: str = "", patience: float = 20, namespace: str = SPACE
    ) -> Manifest:
        local = LocalClient(self.server.core)

        def found() -> Manifest | None:
            known = local.find(kind, name, namespace)
            return known if known is not None and check(known) else None

        got: Manifest = await eventually(found, what or f"the {kind.kind} {name} is as it should be", patience)
        return got

    async def until(self, probe: Callable[[], Awaitable[object]], what: str, patience: float = 30) -> None:
        await eventually(probe, what, patience)


def condition(found: Manifest, type_: str) -> Manifest:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == type_), {})


def _is_ready(found: Manifest) -> bool:
    return condition(found, "Ready").get("status") == "True"
