"""A server that forwards ports of Pods as a kubelet and its container runtime do, in front of an API server that does not.

It is what the streaming server of Kubernetes is on the wire (k8s.io/kubelet/pkg/cri/streaming/portforward, recorded from real hosts of 1.33
to 1.36): a message on each channel that says the port, data on channel 0, the reason of a failure on channel 1, and an end without a word.
"""

from __future__ import annotations

import asyncio
import json
from types import TracebackType

import aiohttp
from aiohttp import web

from slipway.credentials import tls
from slipway.kube.connection import Connection

PROTOCOL = "v4.channel.k8s.io"


class PortForwardingServer:
    """``targets`` is where the ports of Pods are; everything else is asked of the API server ``behind``."""

    def __init__(self, behind: Connection | None = None) -> None:
        self.targets: dict[str, tuple[str, int]] = {}
        """By Pod and port, as in ``etcd-a:2379``."""
        self.refused: dict[str, tuple[int, str]] = {}
        """What is answered instead of a websocket, by Pod."""
        self.silent: set[str] = set()
        """Pods whose kubelet hangs."""
        self.spoken = PROTOCOL
        self.opened: list[str] = []
        self._behind = behind
        self._session: aiohttp.ClientSession | None = None
        self._runner: web.AppRunner | None = None
        self._released = asyncio.Event()
        self.connection = Connection(server="")

    async def __aenter__(self) -> PortForwardingServer:
        app = web.Application()
        app.router.add_get("/api/v1/namespaces/{namespace}/pods/{pod}/portforward", self._forward)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.connection = Connection(server=f"http://127.0.0.1:{port}")
        if self._behind is not None:
            context = tls.client_context(
                "behind", ca=self._behind.ca, certificate=self._behind.client_certificate, key=self._behind.client_key
            )
            headers = {"Authorization": f"Bearer {self._behind.token}"} if self._behind.token else {}
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context), headers=headers)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._released.set()
        if self._session is not None:
            await self._session.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _pass_on(self, request: web.Request) -> web.Response:
        if self._session is None or self._behind is None:
            return web.Response(status=404)
        headers = {name: value for name, value in request.headers.items() if name in ("Content-Type", "Accept")}
        body = await request.read()
        url = f"{self._behind.server}{request.path_qs}"
        async with self._session.request(request.method, url, data=body or None, headers=headers) as answer:
            return web.Response(status=answer.status, body=await answer.read(), content_type=answer.content_type)

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        pod, port = request.match_info["pod"], request.query["ports"]
        self.opened.append(pod)
        if pod in self.silent:
            await self._released.wait()
        if pod in self.refused:
            code, words = self.refused[pod]
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": words, "code": code}
            return web.Response(status=code, text=json.dumps(status), content_type="application/json")
        socket = web.WebSocketResponse(protocols=[self.spoken])
        await socket.prepare(request)
        for channel in (0, 1):
            await socket.send_bytes(bytes([channel]) + int(port).to_bytes(2, "little"))
        try:
            reader, writer = await asyncio.open_connection(*self.targets.get(f"{pod}:{port}", ("127.0.0.1", 1)))
        except OSError as error:
            await socket.send_bytes(b"\x01error forwarding port " + port.encode() + b" to pod 1234, uid : " + str(error).encode())
            return socket
        back = asyncio.create_task(self._copy_back(reader, socket))
        while (message := await socket.receive()).type is aiohttp.WSMsgType.BINARY:
            if message.data[:1] == b"\x00":
                writer.write(message.data[1:])
        writer.close()
        back.cancel()
        return socket

    async def _copy_back(self, reader: asyncio.StreamReader, socket: web.WebSocketResponse) -> None:
        while data := await reader.read(1 << 15):
            await socket.send_bytes(b"\x00" + data)
        await socket.close()
