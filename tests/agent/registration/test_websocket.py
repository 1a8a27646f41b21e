"""The WebSocket of a registration, against servers that do what they should and what they should not."""

from __future__ import annotations

import hashlib
import ssl
import struct
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.tlsserver import Identity, Server, Step, authority, json_answer, leaf

from slipway.agent.registration import websocket
from slipway.agent.registration.websocket import RefusedError, WebSocket, connect
from slipway.api.machinery.errors import OperatorError
from slipway.kube.errors import UnreachableError, UntrustedError

CA = authority()
Serve = Callable[..., Server]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    made: list[Server] = []

    def start(step: Step, identity: Identity | None = None) -> Server:
        made.append(Server(tmp_path, identity or leaf(CA), step))
        return made[-1]

    yield start
    for server in made:
        server.close()


def accepting(*frames: bytes, heard: list[bytes] | None = None, key: str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11") -> Step:
    """A server that takes the WebSocket, sends frames in the same packet as its answer, and listens for one."""

    def step(connection: ssl.SSLSocket, request: bytes) -> bool:
        fields = dict(line.split(": ", 1) for line in request.decode().split("\r\n")[1:] if ": " in line)
        accept = b64encode(hashlib.sha1((fields["Sec-WebSocket-Key"] + key).encode()).digest()).decode()
        head = f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        connection.sendall(head.encode() + b"".join(frames))
        if heard is not None:
            heard.append(connection.recv(1 << 20))
        return False

    return step


def frame(payload: bytes, kind: int = 0x82) -> bytes:
    if len(payload) < 126:
        return struct.pack("!BB", kind, len(payload)) + payload
    return struct.pack("!BBH", kind, 126, len(payload)) + payload


def dial(server: Server, timeout: float = 10.0, ca: Identity = CA) -> WebSocket:
    return connect(f"{server.url}/x", ca=ca.certificate, headers={"Authorization": "Bearer PLAINme"}, environment={}, timeout=timeout)


def test_messages_are_whole_whatever_the_frames(serve: Serve) -> None:
    """A message in three parts with a ping in between (RFC 6455, 5.4), and a long one."""
    heard: list[bytes] = []
    parts = (frame(b"one ", 0x02), frame(b"are you there", 0x89), frame(b"two ", 0x00), frame(b"three", 0x80))
    socket = dial(serve(accepting(*parts, frame(b"x" * 300), heard=heard)))
    assert socket.receive() == b"one two three"
    assert socket.receive() == b"x" * 300
    socket.close()


def test_what_a_client_sends_is_masked(serve: Serve) -> None:
    heard: list[bytes] = []
    server = serve(accepting(heard=heard))
    socket = dial(server)
    socket.send(b"hello")
    with pytest.raises(UnreachableError):
        socket.receive()
    sent = heard[0]
    assert sent[:2] == b"\x82\x85"
    assert websocket.masked(sent[6:11], sent[2:6]) == b"hello"
    assert b"Authorization: Bearer PLAINme" in server.requests[0][0]


@pytest.mark.parametrize(
    ("step", "error", "why"),
    [
        (accepting(frame(struct.pack("!H", 1008) + b"no room", 0x88)), UnreachableError, "ended the exchange: no room"),
        (accepting(b"\x82\x7f" + struct.pack("!Q", 1 << 40)), OperatorError, "more than the"),
        (accepting(b"\x82\x85mask\0\0\0\0\0"), OperatorError, "none of a WebSocket server"),
        (accepting(b"\x82\x05ab"), UnreachableError, "in the middle of the exchange"),
    ],
    ids=["closed", "terabyte", "masked", "cut"],
)
def test_a_server_that_does_not_keep_to_it_is_told_of(serve: Serve, step: Step, error: type[Exception], why: str) -> None:
    socket = dial(serve(step))
    with pytest.raises(error, match=why):
        socket.receive()
    socket.close()


def test_a_server_that_never_ends_its_message_is_left(serve: Serve) -> None:
    socket = dial(serve(accepting(*[frame(b"x" * 60000, 0x00)] * 30)))
    with pytest.raises(OperatorError, match="more than"):
        socket.receive()
    socket.close()


def test_a_server_that_says_nothing_is_left_after_the_deadline(serve: Serve) -> None:
    socket = dial(serve(accepting(heard=[])), timeout=0.3)
    with pytest.raises(UnreachableError, match=r"did not answer in time|took too long"):
        socket.receive()
    socket.close()


def test_an_answer_to_another_handshake_is_none(serve: Serve) -> None:
    with pytest.raises(OperatorError, match="does not speak WebSocket"):
        dial(serve(accepting(key="another")))


@pytest.mark.parametrize("status", ["401 Unauthorized", "404 Not Found", "200 OK"])
def test_a_refusal_is_told_in_the_words_of_the_server(serve: Serve, status: str) -> None:
    with pytest.raises(RefusedError, match="its reason") as caught:
        dial(serve(json_answer("its reason", status)))
    assert caught.value.status == int(status[:3])


def test_a_server_of_another_authority_is_not_told_who_the_host_is(serve: Serve) -> None:
    server = serve(accepting())
    with pytest.raises(UntrustedError):
        dial(server, ca=authority("other"))
    assert not any(server.requests)


@pytest.mark.parametrize("url", ["http://192.0.2.1/x", "https://", "https://192.0.2.1:99999/x", "ftp://192.0.2.1", "nonsense"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(OperatorError, match="not of the form"):
        connect(url, ca=b"", headers={}, environment={}, timeout=1.0)


def test_masking_is_its_own_inverse() -> None:
    for length in range(12):
        payload = bytes(range(length))
        assert websocket.masked(websocket.masked(payload, b"\x01\x80\xff\x00"), b"\x01\x80\xff\x00") == payload
