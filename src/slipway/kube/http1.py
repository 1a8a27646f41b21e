"""HTTP/1.1 requests, one after another, over a byte stream that is there already.

For servers that are reached through something else than a socket; everything else has http.client and aiohttp.
"""

from __future__ import annotations

import http.client
import io
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from email.message import Message

    from slipway.kube.bytestream import ByteStream

# What http.client takes of one header; a head is a few of them.
_LONGEST_HEAD = 1 << 16
_LONGEST_BODY = 1 << 24


class Response(NamedTuple):
    status: int
    content: bytes


class Streamed(NamedTuple):
    status: int
    pieces: AsyncIterator[bytes]


class NotHttpError(OSError):
    """What came is no answer of an HTTP server, or not the whole of one."""


class Http1Connection:
    """``host`` is what goes into the header of that name."""

    def __init__(self, stream: ByteStream, host: str) -> None:
        self._stream = stream
        self._host = host
        self._waiting = b""

    async def request(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Response:
        status, received = await self._begin(method, target, headers, body)
        return Response(status, await self._body(received, status))

    async def stream(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Streamed:
        """An answer of any length, which is read piece by piece, and to its end before anything else is asked."""
        status, received = await self._begin(method, target, headers, body)
        if received.get("Transfer-Encoding", "").lower() == "chunked":
            return Streamed(status, self._chunks())
        content = await self._body(received, status)

        async def whole() -> AsyncIterator[bytes]:
            yield content

        return Streamed(status, whole())

    async def _begin(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Message]:
        fields = {"Host": self._host, **headers, "Content-Length": str(len(body))}
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        await self._stream.write("\r\n".join(lines).encode("latin-1") + body)
        status = 100
        while status // 100 == 1:
            status, received = _head(await self._until(b"\r\n\r\n"))
        return status, received

    async def _body(self, headers: Message, status: int) -> bytes:
        if status in (204, 304):
            return b""
        if headers.get("Transfer-Encoding", "").lower() == "chunked":
            pieces, whole = [], 0
            async for piece in self._chunks():
                whole += len(piece)
                _check(whole)
                pieces.append(piece)
            return b"".join(pieces)
        return await self._exactly(_number(headers.get("Content-Length", "").encode(), 10))

    async def _chunks(self) -> AsyncIterator[bytes]:
        while size := _number((await self._until(b"\r\n")).partition(b";")[0], 16):
            yield (await self._exactly(size + 2))[:-2]
        # Trailers, of which there are none most of the time, end with an empty line.
        while await self._until(b"\r\n") != b"\r\n":
            pass

    async def _until(self, end: bytes) -> bytes:
        while end not in self._waiting:
            if len(self._waiting) > _LONGEST_HEAD:
                raise NotHttpError("what came is longer than the head of any answer")
            await self._more()
        head, _, self._waiting = self._waiting.partition(end)
        return head + end

    async def _exactly(self, size: int) -> bytes:
        _check(size)
        while len(self._waiting) < size:
            await self._more()
        content, self._waiting = self._waiting[:size], self._waiting[size:]
        return content

    async def _more(self) -> None:
        data = await self._stream.read()
        if not data:
            raise NotHttpError("the connection ended before the answer did")
        self._waiting += data


def _head(text: bytes) -> tuple[int, Message]:
    first, _, rest = text.partition(b"\r\n")
    words = first.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise NotHttpError(f"not the answer of an HTTP server: {first[:60]!r}")
    try:
        return int(words[1]), http.client.parse_headers(io.BytesIO(rest))
    except http.client.HTTPException as error:
        raise NotHttpError(f"the head of the answer cannot be read: {error}") from error


def _check(size: int) -> None:
    # Two more bytes end a chunk.
    if size > _LONGEST_BODY + 2:
        raise NotHttpError(f"an answer of more than {_LONGEST_BODY} bytes is longer than any that is expected")


def _number(text: bytes, base: int) -> int:
    digits = text.strip()
    # Python would also read a sign, and underscores.
    if not digits.isalnum():
        raise NotHttpError(f"the answer does not say how long it is: {text[:60]!r}")
    try:
        return int(digits, base)
    except ValueError:
        raise NotHttpError(f"the answer does not say how long it is: {text[:60]!r}") from None
