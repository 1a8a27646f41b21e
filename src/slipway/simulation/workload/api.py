"""The API of a simulated cluster: the embedded server with the cluster's own authority, and the port-forward that a kubelet would answer.

It can stop answering and go on later with everything that it had: as the API of a cluster does whose virtual address nobody holds, or
whose etcd has no quorum.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import web

from slipway.embedded import bootstrap, errors
from slipway.embedded.access.authentication import MASTERS
from slipway.embedded.endpoints import negotiation, request
from slipway.embedded.endpoints.handler import Handler, hang_up, make_request
from slipway.embedded.pki import Identity
from slipway.embedded.server import Core
from slipway.embedded.storage.store import Store
from slipway.kube.connection import Connection
from slipway.kube.portforward import PROTOCOL
from slipway.simulation.workload import spdy

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.credentials import x509

_now = partial(datetime.now, UTC)
_PIECE = 1 << 15


class WorkloadApi:
    """``target`` says where a port of a Pod is: an address of this machine, or None where nothing listens."""

    def __init__(
        self, address: str, port: int, authority: x509.Authority, version: str, target: Callable[[str, int], tuple[str, int] | None]
    ) -> None:
        self.address, self.port = address, port
        self._target = target
        self._identity = Identity(authority, _now)
        store = Store()
        bootstrap.populate(store, _now)
        self.core = Core(store, _now, tokens={}, version=version, bookmark_seconds=60.0, ca=self._identity.ca)
        self._handler = Handler(self.core)
        self._context = self._identity.server_context((address,))
        self._runner: web.ServerRunner | None = None
        self.serving = False

    @property
    def url(self) -> str:
        return f"https://{self.address}:{self.port}"

    @property
    def ca(self) -> bytes:
        return self._identity.ca

    def start(self) -> None:
        """What works inside goes on, whether anybody is answered or not."""
        self.core.start()

    async def stop(self) -> None:
        await self.close()
        await self.core.stop()

    def connection(self, user: str = "kubernetes-admin", groups: tuple[str, ...] = (MASTERS,)) -> Connection:
        certificate, key = self._identity.client(user, groups)
        return Connection(server=self.url, ca=self.ca, client_certificate=certificate, client_key=key)

    async def open(self) -> None:
        """Answer, from now on."""
        if self.serving:
            return
        server = web.Server(self._answer, request_factory=make_request, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.05)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.address, self.port, ssl_context=self._context, backlog=1024, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.serving = True

    async def close(self) -> None:
        """Answer nobody, and let go of whoever is connected."""
        self.serving = False
        runner, self._runner = self._runner, None
        if runner is not None:
            self._handler.end_watches()
            await runner.cleanup()

    async def _answer(self, received: web.BaseRequest) -> web.StreamResponse:
        if not self.serving:
            hang_up(received)
        parts = received.path.split("/")
        if parts[-1] == "portforward" and parts[1:3] == ["api", "v1"] and len(parts) == 8:
            return await self._forward(received, parts[6])
        return await self._handler(received)

    async def _forward(self, received: web.BaseRequest, pod: str) -> web.StreamResponse:
        """As the streaming server of a container runtime does, through the kubelet and the API server."""
        try:
            asked = request.parse(received.method, received.rel_url.raw_path, dict(received.query))
            self.core.authorizer.check(self._handler._user(received), asked)
        except errors.StatusError as error:
            return negotiation.document(error.status(), error.code)
        if self.core.store.get("pods", asked.namespace, pod) is None:
            missing = errors.not_found("", "pods", pod)
            return negotiation.document(missing.status(), missing.code)
        socket = web.WebSocketResponse(protocols=[PROTOCOL, spdy.PROTOCOL])
        await socket.prepare(received)
        if socket.ws_protocol == spdy.PROTOCOL:
            await self._forward_streams(socket, pod)
        else:
            await self._forward_port(socket, pod, int(received.query["ports"]))
        return socket

    async def _forward_port(self, socket: web.WebSocketResponse, pod: str, port: int) -> None:
        for channel in (0, 1):
            await socket.send_bytes(bytes([channel]) + port.to_bytes(2, "little"))
        try:
            reader, writer = await self._connect(pod, port)
        except OSError as error:
            await socket.send_bytes(b"\x01" + _refusal(pod, port, error))
            return
        back = asyncio.create_task(_copy_back(reader, socket))
        try:
            while (message := await socket.receive()).type is aiohttp.WSMsgType.BINARY:
                if message.data[:1] == b"\x00":
                    writer.write(message.data[1:])
        finally:
            writer.close()
            back.cancel()

    async def _forward_streams(self, socket: web.WebSocketResponse, pod: str) -> None:
        """As client-go asks for it: the streams of SPDY, of which one is for errors and one for the data of a port."""
        wire = spdy.Connection()
        errors_to = 0
        writers: dict[int, asyncio.StreamWriter] = {}
        tasks: list[asyncio.Task[None]] = []
        try:
            while (message := await socket.receive()).type is aiohttp.WSMsgType.BINARY:
                for frame in wire.frames(message.data):
                    match frame.type:
                        case spdy.PING:
                            await socket.send_bytes(wire.pong(frame))
                        case spdy.SYN_STREAM:
                            told = wire.headers(frame)
                            await socket.send_bytes(wire.reply(frame.stream))
                            if told.get("streamtype") == "error":
                                errors_to = frame.stream
                                continue
                            port = int(told["port"])
                            try:
                                reader, writers[frame.stream] = await self._connect(pod, port)
                            except OSError as error:
                                await socket.send_bytes(wire.data(errors_to, _refusal(pod, port, error), last=True))
                                await socket.send_bytes(wire.data(frame.stream, b"", last=True))
                                continue
                            tasks.append(asyncio.create_task(_copy_stream(reader, socket, frame.stream)))
                        case 0 if frame.stream in writers:
                            writers[frame.stream].write(frame.content)
                            if frame.flags & spdy.FIN:
                                writers[frame.stream].write_eof()
                        case spdy.RST_STREAM if frame.stream in writers:
                            writers.pop(frame.stream).close()
        finally:
            for writer in writers.values():
                writer.close()
            for task in tasks:
                task.cancel()

    async def _connect(self, pod: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*(self._target(pod, port) or ("127.0.0.1", 1)))


def _refusal(pod: str, port: int, error: OSError) -> bytes:
    return f"error forwarding port {port} to pod {pod}, uid : {error}".encode()


async def _copy_stream(reader: asyncio.StreamReader, socket: web.WebSocketResponse, stream: int) -> None:
    while data := await reader.read(_PIECE):
        await socket.send_bytes(spdy.Connection.data(stream, data))
    await socket.send_bytes(spdy.Connection.data(stream, b"", last=True))


async def _copy_back(reader: asyncio.StreamReader, socket: web.WebSocketResponse) -> None:
    while data := await reader.read(_PIECE):
        await socket.send_bytes(b"\x00" + data)
    await socket.close()
