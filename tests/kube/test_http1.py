"""Answers of HTTP servers, however they come in pieces."""

from __future__ import annotations

import pytest

from slipway.kube.http1 import Http1Connection, NotHttpError, Response

pytestmark = pytest.mark.asyncio


class Pieces:
    """A stream that has its answers already, in pieces of a size."""

    def __init__(self, content: bytes, size: int) -> None:
        self._pieces = [content[start : start + size] for start in range(0, len(content), size)]
        self.written = b""

    async def read(self) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""

    async def write(self, data: bytes) -> None:
        self.written += data

    async def close(self) -> None:
        pass


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;ext=1\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_answers_come_one_after_another(size: int) -> None:
    stream = Pieces(ANSWER + b"HTTP/1.1 100 Continue\r\n\r\n" + CHUNKED + b"HTTP/1.1 204 Nothing\r\n\r\n" + ANSWER, size)
    connection = Http1Connection(stream, "me")
    assert [await connection.request("POST", "/v3/x", {"A": "b"}, b"{}") for _ in range(4)] == [
        Response(200, b"hello"),
        Response(503, b"abc0123456789"),
        Response(204, b""),
        Response(200, b"hello"),
    ]
    assert stream.written.startswith(b"POST /v3/x HTTP/1.1\r\nHost: me\r\nA: b\r\nContent-Length: 2\r\n\r\n{}")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        ANSWER[:-1],
        CHUNKED[:-3],
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 two OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nno length",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0_5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + (b"100000\r\n" + b"x" * (1 << 20) + b"\r\n") * 17,
        b"x" * 100_000,
    ],
)
async def test_what_is_no_whole_answer_is_an_error(content: bytes) -> None:
    with pytest.raises(NotHttpError):
        await Http1Connection(Pieces(content, 4096), "me").request("GET", "/", {}, b"")
