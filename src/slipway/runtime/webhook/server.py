"""The HTTPS server of webhooks: admission and conversion reviews, by the paths that Cluster API's managers have.

Its certificate changes while it runs: connections that stand go on, new ones see the new certificate.  Where the certificate comes
from is a :class:`CertificateSource`: the manager's own Secret, or a folder that somebody else fills.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec
from aiohttp import web

from slipway.api.machinery.errors import OperatorError
from slipway.credentials import tls
from slipway.runtime import logs
from slipway.runtime.webhook import admission, certificates, conversion

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Coroutine
    from pathlib import Path

    from slipway.runtime.webhook.admission import Defaulter, Validator
    from slipway.runtime.webhook.conversion import Convert
    from slipway.runtime.webhook.store import CertificateStore

log = logging.getLogger(__name__)

# A review has an object twice, each of at most 3 MB; a conversion has a whole page of a list.
_LARGEST = 64 << 20
# Seconds between two looks at the certificate, and after a failure.
_LOOK = 60.0
_RETRY = 5.0
_CLOSING = 5.0
_WHOSE = "the webhooks' certificate and key"


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
    """``tls.crt`` and ``tls.key`` in a folder, as cert-manager's Secrets are mounted."""

    path: Path

    async def pair(self) -> Pair:
        pair = Pair(*(self._read(name) for name in ("tls.crt", "tls.key")))
        certificates.check_pair(*pair, source=str(self.path))
        return pair

    def _read(self, name: str) -> bytes:
        try:
            return (self.path / name).read_bytes()
        except OSError as error:
            raise OperatorError(f"cannot read the webhooks' certificate {self.path / name}: {error.strerror or error}") from None


class WebhookServer:
    """Serves the webhooks that are added to it, from :meth:`run` until it is stopped."""

    def __init__(
        self, source: CertificateSource, *, address: str = "", port: int = 9443, look: float = _LOOK, retry: float = _RETRY
    ) -> None:
        self._source = source
        self._address = address
        self._wanted_port = port
        self._look = look
        self._retry = retry
        self._pair: Pair | None = None
        self._context: ssl.SSLContext | None = None
        self._why_not = "the webhooks are not served yet"
        self.port = 0
        self._application = web.Application(client_max_size=_LARGEST)
        self.paths: list[str] = []

    def add(self, *webhooks: Validator | Defaulter) -> None:
        for webhook in webhooks:
            self._route(webhook.path, _Admission(webhook).answer)

    def add_conversion(self, convert: Convert) -> None:
        self._route(conversion.PATH, _Conversion(convert).answer)

    def ready(self) -> str:
        """Empty while webhooks are served; else why they are not."""
        return self._why_not

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until ``stop``; a review that is being answered is answered first."""
        while self._context is None:
            await _unless(stop, self._refresh())
            if stop.is_set() or (self._context is None and await _wait(stop, self._retry)):
                return
        runner = web.AppRunner(self._application, handle_signals=False, access_log=None, shutdown_timeout=_CLOSING)
        await runner.setup()
        try:
            await self._listen(runner)
            while not await _wait(stop, self._look if not self._why_not else self._retry):
                await _unless(stop, self._refresh())
        finally:
            self._why_not = "the webhooks are not served any more"
            await runner.cleanup()

    async def _listen(self, runner: web.AppRunner) -> None:
        site = web.TCPSite(runner, self._address or None, self._wanted_port, ssl_context=self._context)
        try:
            await site.start()
        except OSError as error:
            raise OperatorError(
                f"cannot serve webhooks on port {self._wanted_port}: {error.strerror or error}; --webhook-port chooses another"
            ) from None
        self.port = runner.addresses[0][1]
        self._why_not = ""
        log.info("Serving webhooks", extra=logs.fields(port=self.port, paths=self.paths))

    async def _refresh(self) -> None:
        """Look at the certificate and show a new one.  What fails is told and tried again; what is shown stays."""
        try:
            pair = await self._source.pair()
            if pair == self._pair:
                return
            # Tried apart first: a pair that does not fit must not spoil the one that is served.
            fresh = tls.server_context(*pair, whose=_WHOSE)
            if self._context is None:
                self._context = fresh
            else:
                tls.show(self._context, pair.certificate + b"\n" + pair.key, _WHOSE)
                log.info("Showing a new certificate of the webhooks")
            self._pair = pair
        except OperatorError as error:
            log.error("The webhooks' certificate could not be renewed", extra=logs.fields(err=error.message))
            if self._context is None:
                self._why_not = error.message

    def _route(self, path: str, answer: Callable[[web.Request], Awaitable[web.Response]]) -> None:
        self.paths.append(path)
        self._application.router.add_post(path, answer)


class _Admission(NamedTuple):
    webhook: Validator | Defaulter

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        try:
            return _json(admission.review(body, self.webhook))
        except admission.BadReviewError as error:
            return _bad(error)
        except OperatorError as error:
            return _json(admission.refusal(body, 400, "BadRequest", error.message))
        except Exception:
            # An error of ours must not be taken for the user's: the API server tells them, and the log has the trace.
            log.exception("A webhook failed", extra=logs.fields(path=self.webhook.path))
            return _json(admission.refusal(body, 500, "InternalError", f"the webhook {self.webhook.path} failed; its log says why"))


class _Conversion(NamedTuple):
    convert: Convert

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        try:
            return _json(conversion.review(body, self.convert))
        except admission.BadReviewError as error:
            return _bad(error)


def _json(document: object, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(document), status=status, content_type="application/json")


def _bad(error: OperatorError) -> web.Response:
    status = {"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "message": error.message}
    return _json({**status, "reason": "BadRequest", "code": 400}, 400)


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
