"""The HTTPS server of webhooks: admission and conversion reviews, by the paths that Cluster API's managers have.

Whoever reaches the port can send anything: how a body is taken in is in :mod:`slipway.runtime.webhook.bodies`, and what it says is judged
by a few threads beside the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from aiohttp import web

from slipway.api.machinery.errors import OperatorError
from slipway.runtime import logs
from slipway.runtime.webhook import admission, conversion
from slipway.runtime.webhook.bodies import Bodies, UnacceptableError
from slipway.runtime.webhook.serving import LOOK, RETRY, CertificateSource, Certified, Folder, HttpsServer, Pair

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.runtime.webhook.admission import Defaulter, Validator
    from slipway.runtime.webhook.conversion import Convert

__all__ = ["Certified", "Folder", "Pair", "WebhookServer"]

log = logging.getLogger(__name__)

# What an API server takes in is 3 MiB (maxRequestBodyBytes of k8s.io/apiserver), and what it can store is half of that: so the old and the
# new state of an object fit, with what the review says around them.  A conversion has a whole list.
_LARGEST_ADMISSION = (3 << 20) + (64 << 10)
_LARGEST_CONVERSION = 64 << 20
# Seconds within which a body must have come: by then the API server has given up (10 s unless a webhook says otherwise).
_BODY = 10.0
_JUDGES = 4


class WebhookServer:
    """Serves the webhooks that are added to it, from :meth:`run` until it is stopped."""

    def __init__(
        self,
        source: CertificateSource,
        *,
        address: str = "",
        port: int = 9443,
        look: float = LOOK,
        retry: float = RETRY,
        body_timeout: float = _BODY,
    ) -> None:
        self._application = web.Application()
        self._serving = HttpsServer(
            source,
            self._application,
            what="the webhooks",
            flag="--webhook-port",
            address=address,
            port=port,
            look=look,
            retry=retry,
        )
        self._bodies = Bodies(body_timeout)
        self._judges = ThreadPoolExecutor(_JUDGES, thread_name_prefix="webhooks")
        self.paths: list[str] = []

    @property
    def port(self) -> int:
        """Where it listens, once it does."""
        return self._serving.port

    def add(self, *webhooks: Validator | Defaulter) -> None:
        for webhook in webhooks:
            self._route(webhook.path, _LARGEST_ADMISSION, _Admission(webhook).judge)

    def add_conversion(self, convert: Convert) -> None:
        self._route(conversion.PATH, _LARGEST_CONVERSION, _Conversion(convert).judge)

    def ready(self) -> str:
        """Empty while webhooks are served; else why they are not."""
        return self._serving.ready()

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until ``stop``; a review that is being answered is answered first."""
        try:
            await self._serving.run(stop)
        finally:
            self._judges.shutdown(wait=False, cancel_futures=True)

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
