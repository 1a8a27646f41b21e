"""An HTTPS server whose certificate changes while it runs: connections that stand go on, new ones see the new certificate.

Where the certificate comes from is a :class:`CertificateSource`: the manager's own Secret, or a folder that somebody else fills.  What is
served is an application of whoever starts it: the webhooks, or the registration of hosts.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

from aiohttp import web

from slipway.api.machinery.errors import OperatorError
from slipway.credentials import tls
from slipway.runtime import logs
from slipway.runtime.webhook import certificates, listening

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from slipway.runtime.webhook.store import CertificateStore

log = logging.getLogger(__name__)

# Seconds after which a connection that sends no whole request is closed, as controller-runtime's servers have it.
_IDLE = 90.0
# Seconds for which the rest of a refused body is read and thrown away, so that the sender sees the answer.
_LINGER = 1.0
# Seconds between two looks at the certificate, and after a failure.
LOOK = 60.0
RETRY = 5.0
_CLOSING = 5.0
_MOST_CONNECTIONS = 512


class Pair(NamedTuple):
    """A certificate chain and its key, PEM."""

    certificate: bytes
    key: bytes


class CertificateSource(Protocol):
    async def pair(self) -> Pair:
        """What to serve with now."""


class Certified(NamedTuple):
    """Certificates of the manager's own."""

    store: CertificateStore
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def pair(self) -> Pair:
        current = await self.store.ensure(self.clock())
        return Pair(current.certificate, current.key)


class Folder(NamedTuple):
    """``tls.crt`` and ``tls.key`` in a folder, as cert-manager's Secrets are mounted; ``whose`` they are goes into what is told."""

    path: Path
    whose: str = "webhooks'"

    async def pair(self) -> Pair:
        pair = Pair(*(self.read(name) for name in ("tls.crt", "tls.key")))
        certificates.check_pair(*pair, source=f"the {self.whose} certificate in {self.path}")
        return pair

    def read(self, name: str) -> bytes:
        try:
            return (self.path / name).read_bytes()
        except OSError as error:
            raise OperatorError(f"cannot read the {self.whose} certificate {self.path / name}: {error.strerror or error}") from None


class HttpsServer:
    """Serves an application from :meth:`run` until it is stopped; ``what`` it serves goes into what is told, ``flag`` into what to do."""

    def __init__(
        self,
        source: CertificateSource,
        application: web.Application,
        *,
        what: str,
        flag: str,
        address: str = "",
        port: int,
        look: float = LOOK,
        retry: float = RETRY,
        largest_header: int = 8190,
        idle: float = _IDLE,
        most_connections: int = _MOST_CONNECTIONS,
    ) -> None:
        self._source = source
        self._application = application
        self._what, self._flag = what, flag
        self._address = address
        self._wanted_port = port
        self._look, self._retry = look, retry
        self._largest_header = largest_header
        self._idle = idle
        self._most_connections = most_connections
        self._pair: Pair | None = None
        self._context: ssl.SSLContext | None = None
        self._why_not = f"{what} are not served yet"
        self.port = 0

    def ready(self) -> str:
        """Empty while it is served; else why not."""
        return self._why_not

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until ``stop``; a request that is being answered is answered first."""
        while self._context is None:
            await _unless(stop, self._refresh())
            if stop.is_set() or (self._context is None and await _wait(stop, self._retry)):
                return
        runner = web.AppRunner(
            self._application,
            handle_signals=False,
            access_log=None,
            shutdown_timeout=_CLOSING,
            auto_decompress=False,
            keepalive_timeout=self._idle,
            lingering_time=_LINGER,
            max_field_size=self._largest_header,
        )
        await runner.setup()
        try:
            await self._listen(runner)
            while not await _wait(stop, self._look if not self._why_not else self._retry):
                await _unless(stop, self._refresh())
        finally:
            self._why_not = f"{self._what} are not served any more"
            await runner.cleanup()

    async def _listen(self, runner: web.AppRunner) -> None:
        try:
            for each in listening.listen(self._address, self._wanted_port, self._most_connections):
                await web.SockSite(runner, each, ssl_context=self._context).start()
        except OSError as error:
            raise OperatorError(
                f"cannot serve {self._bare} on port {self._wanted_port}: {error.strerror or error}; {self._flag} chooses another"
            ) from None
        self.port = runner.addresses[0][1]
        self._why_not = ""
        log.info("Serving %s", self._bare, extra=logs.fields(port=self.port))

    async def _refresh(self) -> None:
        """Look at the certificate and show a new one.  What fails is told and tried again; what is shown stays."""
        whose = f"{self._what}' certificate and key"
        try:
            pair = await self._source.pair()
            if pair == self._pair:
                return
            # Tried apart first: a pair that does not fit must not spoil the one that is served.
            fresh = tls.server_context(*pair, whose=whose)
            if self._context is None:
                self._context = fresh
            else:
                tls.show(self._context, pair.certificate + b"\n" + pair.key, whose)
                log.info("Showing a new certificate of %s", self._what)
            self._pair = pair
        except OperatorError as error:
            log.error("%s' certificate could not be renewed", self._what.capitalize(), extra=logs.fields(err=error.message))
            if self._context is None:
                self._why_not = error.message

    @property
    def _bare(self) -> str:
        return self._what.removeprefix("the ")


async def _unless(stop: asyncio.Event, work: Coroutine[None, None, None]) -> None:
    """Do the work, but not past the end: an API server that does not answer must not hold that up."""
    task, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        unfinished = {one for one in (task, stopped) if not one.done()}
        for one in unfinished:
            one.cancel()
        if unfinished:
            await asyncio.wait(unfinished)
    if not task.cancelled():
        task.result()


async def _wait(stop: asyncio.Event, seconds: float) -> bool:
    """Whether the end came before the seconds were over."""
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return False
    return True
