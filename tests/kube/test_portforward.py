"""Streams to ports of Pods: the framing, and what becomes of failures, against a server that speaks websocket as container runtimes do."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web
from support.portforwarding import PortForwardingServer
from support.tlsserver import Server, authority, json_answer, leaf

from slipway.credentials import tls
from slipway.kube import portforward
from slipway.kube.aio import AsyncClient
from slipway.kube.bytestream import TcpStream, TlsStream
from slipway.kube.connection import Connection
from slipway.kube.errors import ApiError, NotFoundError, UnreachableError
from slipway.kube.portforward import PortForwardError

pytestmark = pytest.mark.asyncio

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]


@pytest_asyncio.fixture
async def forwarding() -> AsyncIterator[PortForwardingServer]:
    async with PortForwardingServer() as server:
        yield server


@pytest_asyncio.fixture
async def client(forwarding: PortForwardingServer) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(forwarding.connection, timeout=5) as made:
        yield made


async def echoing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1000):
        writer.write(data.upper())
    writer.close()


async def read_all(stream: portforward.PortForward, size: int) -> bytes:
    content = b""
    while len(content) < size and (data := await stream.read()):
        content += data
    return content


async def test_bytes_go_there_and_back(forwarding: PortForwardingServer, client: AsyncClient) -> None:
    async with await asyncio.start_server(echoing, "127.0.0.1", 0) as server:
        forwarding.targets["web:80"] = server.sockets[0].getsockname()
        async with portforward.connect(client, "default", "web", 80) as stream:
            await stream.write(b"hello")
            assert await read_all(stream, 5) == b"HELLO"
            # More than fits into one message.
            await stream.write(b"x" * 100_000)
            assert await read_all(stream, 100_000) == b"X" * 100_000


async def test_the_end_of_the_connection_is_the_end_of_the_stream(forwarding: PortForwardingServer, client: AsyncClient) -> None:
    async def short(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"bye")
        writer.close()

    async with await asyncio.start_server(short, "127.0.0.1", 0) as server:
        forwarding.targets["web:80"] = server.sockets[0].getsockname()
        async with portforward.connect(client, "default", "web", 80) as stream:
            assert await read_all(stream, 10) == b"bye"
            assert await stream.read() == b""


async def test_a_port_at_which_nobody_listens_says_so(client: AsyncClient) -> None:
    async with portforward.connect(client, "kube-system", "web", 81) as stream:
        with pytest.raises(PortForwardError, match=r"port 81 of Pod kube-system/web: error forwarding port 81 .*"):
            await stream.read()


async def test_the_words_of_the_api_server_are_kept(forwarding: PortForwardingServer, client: AsyncClient) -> None:
    forwarding.refused = {
        "gone": (404, 'pods "gone" not found'),
        "lost": (500, "error dialing backend: dial tcp 10.0.0.1:10250: connect: connection refused"),
    }
    with pytest.raises(NotFoundError, match='pods "gone" not found'):
        async with portforward.connect(client, "default", "gone", 80):
            pass
    with pytest.raises(ApiError, match="error dialing backend") as caught:
        async with portforward.connect(client, "default", "lost", 80):
            pass
    assert caught.value.code == 500


async def test_a_kubelet_that_hangs_is_no_fault_of_the_api_server(forwarding: PortForwardingServer) -> None:
    forwarding.silent = {"web"}
    async with AsyncClient(forwarding.connection, timeout=0.05) as client:
        with pytest.raises(PortForwardError, match="or the kubelet behind it did not"):
            async with portforward.connect(client, "default", "web", 80):
                pass


async def test_an_api_server_that_is_not_there_is_unreachable() -> None:
    async with AsyncClient(Connection(server="http://127.0.0.1:1")) as client:
        with pytest.raises(UnreachableError):
            async with portforward.connect(client, "default", "web", 80):
                pass


async def test_another_subprotocol_is_refused(forwarding: PortForwardingServer, client: AsyncClient) -> None:
    forwarding.spoken = "v9.channel.k8s.io"
    with pytest.raises(UnreachableError, match=r"does not speak v4\.channel"):
        async with portforward.connect(client, "default", "web", 80):
            pass


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([b"\x00P\x00", b"\x07x"], "sends on channel 7"),
        ([b"\x00"], "does not say which port channel 0 is of"),
        ([b"\x00P\x00", b"\x01P\x00", b"\x01it broke"], "it broke"),
    ],
)
async def test_what_is_not_the_protocol_is_told(messages: list[bytes], said: str) -> None:
    async def odd(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=[portforward.PROTOCOL])
        await socket.prepare(request)
        for message in messages:
            await socket.send_bytes(message)
        return socket

    app = web.Application()
    app.router.add_get("/{path:.*}", odd)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with (
            AsyncClient(Connection(server=f"http://127.0.0.1:{runner.addresses[0][1]}")) as client,
            portforward.connect(client, "default", "web", 80) as stream,
        ):
            with pytest.raises(PortForwardError, match=said):
                await stream.read()
    finally:
        await runner.cleanup()


CA = authority()


def trusting(*, name: bool = False) -> ssl.SSLContext:
    context = tls.trusting(CA.certificate.decode())
    context.check_hostname = name
    return context


async def test_tls_goes_through_the_tunnel(forwarding: PortForwardingServer, client: AsyncClient, tmp_path: Path) -> None:
    server = Server(tmp_path, leaf(CA), json_answer("{}"))
    forwarding.targets["web:443"] = ("127.0.0.1", server.port)
    try:
        async with portforward.connect(client, "default", "web", 443) as stream:
            inner = TlsStream(stream, trusting())
            await inner.handshake()
            assert inner.peer_certificate()
            await inner.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await inner.read()).startswith(b"HTTP/1.1 200")
    finally:
        server.close()


async def test_a_certificate_of_another_authority_is_not_believed(tmp_path: Path) -> None:
    server = Server(tmp_path, leaf(authority()))
    stream = await TcpStream.connect("127.0.0.1", server.port)
    try:
        with pytest.raises(ssl.SSLCertVerificationError):
            await TlsStream(stream, trusting()).handshake()
    finally:
        await stream.close()
        server.close()


async def test_a_connection_that_breaks_off_is_not_an_end(tmp_path: Path) -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.close()

    async with await asyncio.start_server(cut, "127.0.0.1", 0) as server:
        stream = await TcpStream.connect(*server.sockets[0].getsockname())
        with pytest.raises(ssl.SSLError):
            await TlsStream(stream, trusting()).handshake()
        await stream.close()
