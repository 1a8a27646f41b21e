"""A management cluster in which the inventory's controllers run and hosts register, and hosts that do so by the protocol alone."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64decode
from contextlib import AsyncExitStack
from typing import Any, NamedTuple, Protocol

import aiohttp
from support.definitions import established
from support.ports import free_port
from support.waiting import eventually

from slipway.api.cluster import crds, kinds
from slipway.api.cluster.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    MACHINE_INVENTORY,
    MACHINE_REGISTRATION,
    NAMESPACE,
    SECRET,
    Kind,
)
from slipway.api.elemental import plan, protocol
from slipway.api.elemental.protocol import Frame, PlainAuthorization, TpmAuthorization
from slipway.api.machinery.yaml import goyaml
from slipway.credentials import tls
from slipway.credentials.tpm import Identity
from slipway.fleet.bootstrap.options import BootstrapOptions
from slipway.fleet.inventory.options import InventoryOptions
from slipway.fleet.inventory.registration.server import RegistrationServer
from slipway.fleet.manager import build
from slipway.fleet.settings import Settings
from slipway.kube.aio import AsyncClient, PatchType
from slipway.kube.connection import Connection
from slipway.runtime.metrics import Metrics

SPACE = "hosts"
Manifest = dict[str, Any]
SMBIOS = {
    "System Information": {"UUID": "4c4c4544-0042-3510-8051-b7c04f4e4a32", "Serial Number": "7B5QJN2", "Manufacturer": "Dell Inc."},
    "Base Board Information": {"Serial Number": ".7B5QJN2.CN7475."},
}
CONTENT: dict[Frame, Any] = {Frame.SMBIOS: SMBIOS}


def settings(port: int, *, controllers: tuple[str, ...] = ("inventory",), home: str = "home", cert_dir: str = "") -> Settings:
    return Settings(
        controllers=controllers,
        namespace="",
        watch_filter="",
        concurrency=10,
        leader_elect=False,
        own_namespace=home,
        metrics_address="0",
        health_address="0",
        webhook_port=0,
        webhook_cert_dir="",
        sync_period=600,
        bootstrap=BootstrapOptions(),
        inventory=InventoryOptions(bind_address=f"127.0.0.1:{port}", url=f"https://127.0.0.1:{port}", cert_dir=cert_dir),
        log_format="text",
        verbosity=0,
        pace=0.1,
    )


class Server(Protocol):
    """An API server: the embedded one, or one that runs elsewhere."""

    def connection(self) -> Connection: ...


class Elsewhere(NamedTuple):
    at: Connection

    def connection(self) -> Connection:
        return self.at


class Management:
    """An API server with the kinds of Elemental and, once started, a manager of the inventory."""

    def __init__(self, server: Server, client: AsyncClient) -> None:
        self.server, self.client = server, client
        self.port = free_port()
        self.metrics = Metrics()
        """Of the manager that was started last."""
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Management:
        for name in (SPACE, "home"):
            await self.client.create(NAMESPACE, {"metadata": {"name": name}})
        for crd in crds.crds():
            if crd["spec"]["group"] == kinds.ELEMENTAL_GROUP:
                await self.client.create(CUSTOM_RESOURCE_DEFINITION, crd)
                await established(self.client, crd["metadata"]["name"])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def start(self, connection: Connection | None = None, *, cert_dir: str = "") -> RegistrationServer:
        """Run a manager; the registration's server of it."""
        manager = build(connection or self.server.connection(), settings(self.port, cert_dir=cert_dir))
        self.metrics = manager.metrics
        stop = asyncio.Event()
        task = asyncio.create_task(manager.run(stop))

        async def end() -> None:
            stop.set()
            await asyncio.wait_for(task, 30)

        self._stack.push_async_callback(end)
        (serving,) = manager._webhooks
        assert isinstance(serving, RegistrationServer)
        await eventually(lambda: task.done() or not serving.ready(), "hosts can register")
        if task.done():
            task.result()
        return serving

    async def registration(self, name: str = "all", **spec: Any) -> Manifest:
        """A registration at which hosts can register."""
        await self.client.create(MACHINE_REGISTRATION, {"metadata": {"name": name, "namespace": SPACE}, "spec": spec})
        return await self.when(MACHINE_REGISTRATION, name, lambda found: found.get("status", {}).get("registrationURL"))

    async def when(self, kind: Kind, name: str, check: Any, what: str = "") -> Manifest:
        """The object, once it is as it should be."""

        async def found() -> Manifest | None:
            known = await self.client.find(kind, name, SPACE)
            return known if known is not None and check(known) else None

        got: Manifest = await eventually(found, what or f"the {kind.kind} {name} is as it should be")
        return got

    async def told(self, name: str, type_: str, reason: str, kind: Kind = MACHINE_INVENTORY) -> Manifest:
        """A condition of an object, once it has this reason."""
        got = await self.when(kind, name, lambda found: condition(found, type_).get("reason") == reason, f"{type_} of {name} is {reason}")
        return condition(got, type_)

    async def inventory(self, name: str, **spec: Any) -> Manifest:
        return await self.client.create(MACHINE_INVENTORY, {"metadata": {"name": name, "namespace": SPACE}, "spec": spec})

    async def secret(self, name: str) -> Manifest:
        return await self.when(SECRET, name, lambda found: True)

    async def report(self, name: str, **values: bytes) -> None:
        """Write to a plan Secret what an agent would."""
        data = plan.wire({key.replace("_", "-"): value for key, value in values.items()})
        await self.client.patch(SECRET, name, SPACE, {"data": data}, type=PatchType.MERGE)

    async def apply(self, name: str) -> None:
        """Let the host apply the plan that it has."""
        raw = b64decode((await self.secret(name))["data"][plan.PLAN])
        await self.report(name, applied_checksum=plan.checksum(raw).encode(), plan_state=b"succeeded")


def condition(found: Manifest, type_: str) -> Manifest:
    conditions: list[Manifest] = found.get("status", {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == type_), {})


class RefusedError(Exception):
    """The endpoint sent an error frame, or closed the connection with a reason."""


class Endpoint(Protocol):
    """What a host must know of where it registers."""

    @property
    def authorities(self) -> bytes: ...


class Host:
    """What a host sends, frame by frame, with no help of the agent's."""

    def __init__(self, url: str, serving: Endpoint, identity: Identity | str) -> None:
        self._url = url
        self._context: ssl.SSLContext = tls.client_context(url, ca=serving.authorities)
        self._identity = identity
        self.heard: list[bytes] = []

    async def register(
        self, content: dict[Frame, Any] | None = None, *, update: bool = False, header: str = "", answer: bytes | None = None
    ) -> Manifest:
        """The configuration that the host is given."""
        identity = self._identity
        if isinstance(identity, str):
            header = header or PlainAuthorization(identity).header()
        else:
            header = header or TpmAuthorization(identity.endorsement_pem, identity.attestation_key()).header()
        async with (
            aiohttp.ClientSession(max_field_size=32768) as session,
            session.ws_connect(self._url, ssl=self._context, headers={"Authorization": header}, max_msg_size=0) as socket,
        ):
            self.heard = []
            if not isinstance(identity, str):
                challenge = protocol.read_challenge(await self._receive(socket))
                given = answer or identity.activate(*challenge)
                await socket.send_bytes(protocol.encode_answer(given))
            await self._expect(socket, Frame.READY)
            await socket.send_bytes(protocol.encode(Frame.VERSION, bytes((protocol.VERSION,))))
            await self._expect(socket, Frame.VERSION)
            if update:
                await socket.send_bytes(protocol.encode(Frame.UPDATE))
                await self._expect(socket, Frame.READY)
            for frame, value in (CONTENT if content is None else content).items():
                sent = protocol.encode(frame, value) if isinstance(value, bytes) else protocol.encode_object(frame, value)
                await socket.send_bytes(sent)
                await self._expect(socket, Frame.READY)
            await socket.send_bytes(protocol.encode(Frame.GET))
            payload = await self._expect(socket, Frame.CONFIG)
        document: Manifest = goyaml.load(payload.decode())[0].value
        return document

    async def _expect(self, socket: aiohttp.ClientWebSocketResponse, wanted: Frame) -> bytes:
        frame, payload = protocol.decode(await self._receive(socket))
        if frame is Frame.ERROR:
            raise RefusedError(protocol.read_error(payload))
        assert frame is wanted
        return payload

    async def _receive(self, socket: aiohttp.ClientWebSocketResponse) -> bytes:
        message = await socket.receive(20)
        if message.type is not aiohttp.WSMsgType.BINARY:
            raise RefusedError(str(message.extra or message.data))
        self.heard.append(message.data)
        data: bytes = message.data
        return data


def connection(config: Manifest) -> Connection:
    """How a host gets to its Secret, by what it was told."""
    agent = config["elemental"]["system-agent"]
    return Connection(server=agent["url"], ca=agent["ca-cert"].encode(), token=agent["token"])
