"""A client of one etcd member for an event loop, over any byte stream: a tunnel through the API server, or a connection of its own.

It asks one member; who else could be asked is for who calls.  What etcd turns away while it elects a leader or settles is asked again for a
moment: an election takes about a second, and a caller that had to come back would start all over.  The certificate of the member must be
signed by the CA that the TLS context trusts; names in it are compared only where a server name is given, since in a tunnel it is the tunnel
that chooses the peer.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import msgspec

from slipway.kube.bytestream import TlsStream
from slipway.kube.http1 import Http1Connection
from slipway.kube.portforward import PortForwardError
from slipway.workload import etcdapi, etcdsnapshot
from slipway.workload.etcdapi import EtcdError, EtcdUnreachableError
from slipway.workload.etcdsnapshot import SnapshotStream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from slipway.kube.bytestream import ByteStream
    from slipway.workload.etcdapi import Call

T = TypeVar("T")

TIMEOUT = 15.0
"""For one request, as Cluster API has it."""
_PATIENCE = 3.0
# A disk that has other things to do may take its time for the next piece of a large database.
_NEXT_PIECE = 30.0
_PAUSE = 0.15


class AsyncEtcd:
    """Asks one member, one thing after another."""

    def __init__(self, connection: Http1Connection, name: str, timeout: float) -> None:
        self._connection = connection
        self.name = name
        self._timeout = timeout

    async def ask(self, call: Call[T]) -> T:
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                return await self._ask(call)
            except EtcdUnreachableError:
                # The connection is gone with what was on it.
                raise
            except EtcdError as error:
                if not error.transient or time.monotonic() > end:
                    raise
            await asyncio.sleep(_PAUSE)

    async def snapshot(self, write: Callable[[bytes], Awaitable[None]], progress: Callable[[int, int], None] | None = None) -> int:
        """Stream the database to ``write``; its size.  ``progress`` hears how much has come, and of how much.

        What came is checked against the size that etcd announced and the digest that it appends.
        """
        call, received = etcdapi.snapshot(), SnapshotStream(self.name)
        async with _explained(self.name, self._timeout):
            answer = await self._connection.stream("POST", call.target, {"Content-Type": "application/json"}, b"{}")
        waiting = b""
        pieces = aiter(answer.pieces)
        while True:
            async with _explained(self.name, max(self._timeout, _NEXT_PIECE)):
                some = await anext(pieces, b"")
            lines = (waiting + some).split(b"\n")
            waiting = lines.pop() if some else b""
            for line in filter(bytes.strip, lines):
                came = etcdsnapshot.piece(self.name, line, answer.status)
                received.add(came)
                await write(came.blob)
                if progress is not None:
                    progress(received.size, received.announced)
            if not some:
                return received.ended()

    async def _ask(self, call: Call[T]) -> T:
        body = msgspec.json.encode(call.body)
        async with _explained(self.name, self._timeout):
            answer = await self._connection.request("POST", call.target, {"Content-Type": "application/json"}, body)
        return etcdapi.understood(call, self.name, answer.status, answer.content)


@asynccontextmanager
async def over(stream: ByteStream, context: ssl.SSLContext, name: str, *, timeout: float = TIMEOUT) -> AsyncIterator[AsyncEtcd]:
    """A client of the member at the other end, for the time of the block; ``name`` is what errors call it."""
    tls = TlsStream(stream, context)
    async with _explained(name, timeout):
        await tls.handshake()
    yield AsyncEtcd(Http1Connection(tls, name), name, timeout)


def chain_only(context: ssl.SSLContext) -> ssl.SSLContext:
    """The same context, which trusts who shows a server's certificate of the CA, whatever name is in it."""
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    return context


@asynccontextmanager
async def _explained(name: str, timeout: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(timeout):
            yield
    except TimeoutError as error:
        raise EtcdUnreachableError(f"{name}: it does not answer in time") from error
    except ssl.SSLCertVerificationError as error:
        raise EtcdError(
            f"{name}: its certificate is not trusted: {error.verify_message}; it must be signed by this cluster's etcd CA, and the clocks "
            "must be right"
        ) from error
    except ssl.SSLError as error:
        if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            raise EtcdUnreachableError(f"{name}: it closed the connection") from error
        raise EtcdError(f"{name}: no TLS with it: {error.reason or error}") from error
    except PortForwardError as error:
        raise EtcdUnreachableError(f"{name}: {error.message}") from error
    except OSError as error:
        raise EtcdUnreachableError(f"{name}: {error.strerror or error}") from error
