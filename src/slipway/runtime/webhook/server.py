"""The HTTPS server of webhooks: admission and conversion reviews, by the paths that Cluster API's managers have.

Its certificate changes while it runs: connections that stand go on, new ones see the new certificate.  Where the certificate comes
from is a :class:`CertificateSource`: the manager's own Secret, or a folder that somebody else fills.

Whoever reaches the port can send anything: how a body is taken in is in :mod:`slipway.runtime.webhook.bodies`, and what it says is judged
by a few threads beside the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec
from aiohttp import web

from slipway.api.machinery.errors import OperatorError
from slipway.credentials import tls
from slipway.runtime import logs
from slipway.runtime.webhook import admission, certificates, conversion
from slipway.runtime.webhook.bodies import Bodies, UnacceptableError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from slipway.runtime.webhook.admission import Defaulter, Validator
    from slipway.runtime.webhook.conversion import Convert
    from slipway.runtime.webhook.store import CertificateStore

log = logging.getLogger(__name__)

# What an API server takes in is 3 MiB (maxRequestBodyBytes of k8s.io/apiserver), and what it can store is half of that: so the old and the
# new state of an object fit, with what the review says around them.  A conversion has a whole list.
_LARGEST_ADMISSION = (3 << 20) + (64 << 10)
_LARGEST_CONVERSION = 64 << 20
# Seconds within which a body must have come: by then the API server has given up (10 s unless a webhook says otherwise).
_BODY = 10.0
# Seconds after which a connection that sends no whole request is closed, as controller-runtime's servers have it.
_IDLE = 90.0
# Seconds for which the rest of a refused body is read and thrown away, so that the sender sees the answer.
_LINGER = 1.0
_JUDGES = 4
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
        self,
        source: CertificateSource,
        *,
        address: str = "",
        port: int = 9443,
        look: float = _LOOK,
        retry: float = _RETRY,
        body_timeout: float = _BODY,
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
        self._application = web.Application()
        self._bodies = Bodies(body_timeout)
        self._judges = ThreadPoolExecutor(_JUDGES, thread_name_prefix="webhooks")
        self.paths: list[str] = []

    def add(self, *webhooks: Validator | Defaulter) -> None:
        for webhook in webhooks:
            self._route(webhook.path, _LARGEST_ADMISSION, _Admission(webhook).judge)

    def add_conversion(self, convert: Convert) -> None:
        self._route(conversion.PATH, _LARGEST_CONVERSION, _Conversion(convert).judge)

    def ready(self) -> str:
        """Empty while webhooks are served; else why they are not."""
        return self._why_not

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until ``stop``; a review that is being answered is answered first."""
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
            keepalive_timeout=_IDLE,
            lingering_time=_LINGER,
        )
        await runner.setup()
        try:
            await self._listen(runner)
            while not await _wait(stop, self._look if not self._why_not else self._retry):
                await _unless(stop, self._refresh())
        finally:
            self._why_not = "the webhooks are not served any more"
            await runner.cleanup()
            self._judges.shutdown(wait=False, cancel_futures=True)

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

    def _route(self, path: str, largest: int, judge: Callable[[bytes], Answer]) -> None:
        async def answer(request: web.Request) -> web.Response:
            try:
                async with self._bodies.body(request, largest) as body:
                    status, content = await asyncio.get_running_loop().run_in_executor(self._judges, judge, body)
            except UnacceptableError as error:
                status, content = _refused(error.code, error.reason, error.message)
            return web.Response(body=content, status=status, content_type="application/json")

        self.paths.append(path)
        self._application.router.add_post(path, answer)


class Answer(NamedTuple):
    """The status of an HTTP answer and its body."""

    status: int
    content: bytes


class _Admission(NamedTuple):
    webhook: Validator | Defaulter

    def judge(self, body: bytes) -> Answer:
        try:
            return _said(admission.review(body, self.webhook))
        except admission.BadReviewError as error:
            return _refused(400, "BadRequest", error.message)
        except OperatorError as error:
            return _said(admission.refusal(body, 400, "BadRequest", error.message))
        except Exception:
            # An error of ours must not be taken for the user's: the API server tells them, and the log has the trace.
            log.exception("A webhook failed", extra=logs.fields(path=self.webhook.path))
            return _said(admission.refusal(body, 500, "InternalError", f"the webhook {self.webhook.path} failed; its log says why"))


class _Conversion(NamedTuple):
    convert: Convert

    def judge(self, body: bytes) -> Answer:
        try:
            return _said(conversion.review(body, self.convert))
        except admission.BadReviewError as error:
            return _refused(400, "BadRequest", error.message)
        except Exception:
            log.exception("A conversion failed")
            return _refused(500, "InternalError", "the conversion failed; the manager's log says why")


def _said(document: object, status: int = 200) -> Answer:
    return Answer(status, msgspec.json.encode(document))


def _refused(code: int, reason: str, message: str) -> Answer:
    status = {"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "message": message}
    return _said({**status, "reason": reason, "code": code}, code)


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
