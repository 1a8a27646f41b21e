"""A byte stream to a port of a Pod, through the API server: what ``kubectl port-forward`` does, from an event loop.

The request is a websocket with the subprotocol ``v4.channel.k8s.io``: every message begins with the number of a channel, 0 for the data and
1 for what went wrong, and the first one on each says which port it is of.  API servers hand it on to the kubelet and that to the container
runtime, where it ends: those of 1.33 to 1.36 pass it on as it is, with and without the gate ExtendWebSocketsToKubelet, and the streaming
server of Kubernetes that container runtimes are built with takes it.  The newer ``SPDY/3.1+portforward.k8s.io`` tunnels SPDY in the
websocket to have many streams; one stream needs none of that.

Whoever asks needs ``get`` on ``pods/portforward``, and from Kubernetes 1.35 on ``create`` as well.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp

from slipway.api.cluster import kinds
from slipway.api.machinery.errors import OperatorError
from slipway.kube.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from slipway.kube.aio import AsyncClient

PROTOCOL = "v4.channel.k8s.io"
_DATA, _ERROR = 0, 1
# What the streaming server reads at once; a longer message is allowed, and would only be held in memory for longer.
_PIECE = 1 << 15
# For the other side to say why it ends, when it has ended.
_LAST_WORDS = 1.0


class PortForwardError(OperatorError):
    """There is no stream to the port, or no longer: what the kubelet or the runtime said, or that they say nothing."""


class PortForward:
    """A stream to one port; see :class:`slipway.kube.bytestream.ByteStream`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, what: str) -> None:
        self._socket = socket
        self._what = what
        self._announced: set[int] = set()

    async def read(self) -> bytes:
        while True:
            message = await self._socket.receive()
            if message.type is not aiohttp.WSMsgType.BINARY:
                return self._end(message)
            if data := self._data(message.data):
                return data

    async def write(self, data: bytes) -> None:
        for start in range(0, len(data), _PIECE):
            try:
                await self._socket.send_bytes(bytes([_DATA]) + data[start : start + _PIECE])
            except (aiohttp.ClientError, ConnectionError, RuntimeError) as error:
                raise await self._ended(error) from error

    async def close(self) -> None:
        await self._socket.close()

    def _data(self, message: bytes) -> bytes:
        """The bytes that a message brings to who reads; none where it was for this class."""
        if not message:
            return b""
        channel, content = message[0], message[1:]
        if channel not in (_DATA, _ERROR):
            raise PortForwardError(f"{self._what}: the server sends on channel {channel}, and there are two")
        if channel not in self._announced:
            self._announced.add(channel)
            if len(content) != 2:
                raise PortForwardError(f"{self._what}: the server does not say which port channel {channel} is of")
            return b""
        if channel == _ERROR:
            raise PortForwardError(f"{self._what}: {content.decode(errors='replace').strip()}")
        return content

    def _end(self, message: aiohttp.WSMessage) -> bytes:
        if message.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED):
            return b""
        said = message.data if isinstance(message.data, Exception) else f"a message of type {message.type}"
        raise PortForwardError(f"{self._what}: the stream broke: {said}")

    async def _ended(self, error: Exception) -> PortForwardError:
        """Why nothing more is taken: what the other side said about it before it went, if anything."""
        try:
            async with asyncio.timeout(_LAST_WORDS):
                while await self.read():
                    pass
        except PortForwardError as why:
            return why
        except (TimeoutError, RuntimeError):
            pass
        return PortForwardError(f"{self._what}: the stream has ended ({error})")


@asynccontextmanager
async def connect(client: AsyncClient, namespace: str, pod: str, port: int) -> AsyncIterator[PortForward]:
    """A stream for the time of the block.  The timeout of the client is that of the connection, not of the stream.

    An ApiError where the API server knows no such Pod, does not allow it, or finds no kubelet (500, "error dialing backend"); an
    UnreachableError where there is no API server.  A kubelet that hangs, and a port at which nothing listens, are a PortForwardError; the
    latter shows when the stream is used.
    """
    path = f"{kinds.path(kinds.POD, namespace, pod, 'portforward')}?ports={port}"
    what = f"port {port} of Pod {namespace}/{pod}"
    try:
        socket = await client.websocket(path, PROTOCOL)
    except UnreachableError as error:
        if not isinstance(error.__cause__, TimeoutError):
            raise
        # An API server waits for the kubelet for longer than anybody for the API server: silence tells nothing about the latter.
        raise PortForwardError(f"{what}: {error.message}, or the kubelet behind it did not") from error
    try:
        yield PortForward(socket, what)
    finally:
        await socket.close()
