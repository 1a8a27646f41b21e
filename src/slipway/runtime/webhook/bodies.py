"""Takes in the bodies of requests that anybody may send: none too large, none compressed, none for ever, and few large ones at a time.

A webhook's port asks for no credentials, so what a stranger can make it hold is bounded before anything is read.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web

# Nearly all reviews are smaller.
_LARGE = 256 << 10
_LARGE_AT_ONCE = 4


class UnacceptableError(OperatorError):
    """A body that is not taken: the status and the reason of the answer that says so."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class Bodies:
    """``patience`` is the time in seconds that a body may take from its first byte to its last."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._large = asyncio.Semaphore(_LARGE_AT_ONCE)

    @asynccontextmanager
    async def body(self, request: web.Request, largest: int) -> AsyncIterator[bytes]:
        """The body, while it is worked on; UnacceptableError where it is not to be had."""
        encoding = request.headers.get("Content-Encoding", "identity")
        if encoding.lower() != "identity":
            raise UnacceptableError(
                415, "UnsupportedMediaType", f'the body is sent as "{encoding}": an API server sends reviews uncompressed, send it so'
            )
        length = request.content_length
        if length is not None and length > largest:
            raise _too_large(largest, f"has {length}")
        # Without a length it may become large.
        async with self._large if length is None or length > _LARGE else nullcontext():
            yield await self._read(request, largest)

    async def _read(self, request: web.Request, largest: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._patience):
                while part := await request.content.readany():
                    size += len(part)
                    if size > largest:
                        raise _too_large(largest, "has more")
                    parts.append(part)
        except TimeoutError:
            raise UnacceptableError(
                408, "Timeout", f"the body did not come within {self._patience:g} s: {size} bytes of it are here"
            ) from None
        return b"".join(parts)


def _too_large(largest: int, found: str) -> UnacceptableError:
    return UnacceptableError(413, "RequestEntityTooLarge", f"the body may have {largest} bytes at most, and {found}")
