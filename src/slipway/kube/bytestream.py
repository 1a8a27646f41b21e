"""Bytes in both directions between here and one peer, whatever carries them, and TLS over that.

asyncio's own TLS wants a socket underneath.  What goes through an API server to a port of a Pod has none, so that TLS is done here over any
pair of "read some" and "write all": the same code then serves a tunnel and a plain connection.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Protocol

_PIECE = 1 << 16
# How long a peer has to answer that it is closing, too; who goes on using what is closed waits for nothing more.
_GOODBYE = 2.0


class ByteStream(Protocol):
    """OSError and OperatorError are what its methods raise."""

    async def read(self) -> bytes:
        """Some bytes; none at the end."""

    async def write(self, data: bytes) -> None:
        """All of the bytes, once the peer, or what carries them, takes them."""

    async def close(self) -> None: ...


class TcpStream:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def connect(cls, host: str, port: int) -> TcpStream:
        return cls(*await asyncio.open_connection(host, port))

    async def read(self) -> bytes:
        return await self._reader.read(_PIECE)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        self._writer.close()
        try:
            async with asyncio.timeout(_GOODBYE):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            # The peer has gone before: nothing is left to close.
            pass


class TlsStream:
    """A client's side of TLS over another stream, for one coroutine at a time.  It is closed with the stream that it is over."""

    def __init__(self, under: ByteStream, context: ssl.SSLContext, server_name: str | None = None) -> None:
        self._under = under
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=False, server_hostname=server_name)
        self._ended = False

    async def handshake(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._receive()
            except ssl.SSLError:
                # The alert that says why goes out before the error does.
                await self._flush()
                raise
            else:
                await self._flush()
                return

    def peer_certificate(self) -> bytes:
        """The peer's certificate in DER, after the handshake; judged only as far as the context wants that."""
        certificate = self._tls.getpeercert(binary_form=True)
        if certificate is None:
            raise ssl.SSLError("the peer has shown no certificate")
        return certificate

    async def read(self) -> bytes:
        while True:
            try:
                return self._tls.read(_PIECE)
            except ssl.SSLWantReadError:
                # TLS 1.3 may want to say something on its own, such as new keys.
                await self._flush()
                await self._receive()
            except ssl.SSLZeroReturnError:
                return b""

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self._tls.write(view) :]
            except ssl.SSLWantReadError:
                await self._flush()
                await self._receive()
            else:
                await self._flush()

    async def close(self) -> None:
        await self._under.close()

    async def _flush(self) -> None:
        if data := self._outgoing.read():
            await self._under.write(data)

    async def _receive(self) -> None:
        if self._ended:
            raise ssl.SSLEOFError(ssl.SSL_ERROR_EOF, "the connection ended in the middle of what was being said")
        if data := await self._under.read():
            self._incoming.write(data)
        else:
            self._ended = True
            self._incoming.write_eof()
