"""Server-sent events: what goes over the wire, compressed as it goes, and given up where nobody takes it off."""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TYPE = "text/event-stream"
ALIVE = b": alive\n\n"
"""What is sent where nothing happens, so that either side learns that the other one is gone."""
# So many rows go in one event: the page draws while the rest is on its way.
_ROWS = 500
# The API's objects say the same words again and again: the fastest compression takes nine tenths off.
_LEVEL = 1
_GZIP = 31


def event(name: str, data: bytes, id_: str = "") -> bytes:
    """JSON has no line breaks of its own, so an event's data is one line."""
    head = f"event: {name}\n" + (f"id: {id_}\n" if id_ else "")
    return head.encode() + b"data: " + data + b"\n\n"


def batched(rows: Sequence[bytes]) -> Iterator[bytes]:
    """Rows as events of a bounded size."""
    for begin in range(0, len(rows), _ROWS):
        yield event("rows", b"[" + b",".join(rows[begin : begin + _ROWS]) + b"]")


class SlowClientError(Exception):
    """Somebody does not take what they asked for."""


class EventStream:
    """An answer that goes on; what is not taken within ``patience`` seconds ends it."""

    def __init__(self, request: web.Request, *, patience: float) -> None:
        self._request, self._patience = request, patience
        compressed = "gzip" in request.headers.get("Accept-Encoding", "")
        self._compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP) if compressed else None
        self._response = web.StreamResponse(headers={"Cache-Control": "no-store", "Content-Type": TYPE, "X-Accel-Buffering": "no"})
        if compressed:
            self._response.headers["Content-Encoding"] = "gzip"

    async def begin(self) -> web.StreamResponse:
        await self._response.prepare(self._request)
        return self._response

    async def send(self, *events: bytes) -> None:
        for each in events:
            data = each
            if self._compressor is not None:
                # All of it can be read by now, and not only when the block is full.
                data = self._compressor.compress(each) + self._compressor.flush(zlib.Z_SYNC_FLUSH)
            try:
                async with asyncio.timeout(self._patience):
                    await self._response.write(data)
            except TimeoutError:
                if self._request.transport is not None:
                    self._request.transport.abort()
                raise SlowClientError from None
