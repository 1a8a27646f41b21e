"""The HTTPS server of the page: its files for everybody, what is in them for those whom the API server lets see it.

Nothing can be changed here: there is nothing but GET.  A token comes with every request in the Authorization header, and is never kept.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from slipway import __version__
from slipway.api.cluster.kinds import CLUSTER
from slipway.api.machinery.errors import OperatorError
from slipway.dashboard import assets
from slipway.dashboard.access import KEPT, Access, RefusedError, Sight, Visitor
from slipway.dashboard.desk import Desk
from slipway.dashboard.events import ALIVE, EventStream, SlowClientError, batched, event
from slipway.dashboard.observation import Observation
from slipway.dashboard.options import FLAG
from slipway.dashboard.rows import explained, pictured
from slipway.fleet.overview.objects import KINDS
from slipway.fleet.overview.problems import Ref
from slipway.runtime import logs
from slipway.runtime.healthz import parse_address
from slipway.runtime.webhook.serving import LOOK, CertificateSource, HttpsServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    _Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

    from slipway.api.cluster.kinds import Kind
    from slipway.dashboard.desk import Batch, Reader
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

log = logging.getLogger(__name__)

# Seconds between two signs of life on a stream on which nothing happens, and for which somebody may leave what they asked for.
_SIGN_OF_LIFE = 15.0
_PATIENCE = 20.0
# Seconds for which somebody may hold a connection open and say nothing.
_IDLE = 30.0
_MOST_CONNECTIONS = 512
_MOST_STREAMS, _MOST_STREAMS_EACH = 256, 16
# Tokens of OpenID Connect with many groups are long.
_LARGEST_HEADER = 32 << 10
# Nothing but the page's own files, and no markup from strings.  There is no Strict-Transport-Security: it would hold for every port of a
# name, such as that of a port-forward, and this server speaks nothing but TLS.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "Server": "slipway",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class _Seat:
    """Somebody who reads what is new."""

    def __init__(self, request: web.Request, visitor: Visitor) -> None:
        self._request, self.visitor = request, visitor

    def is_left(self) -> bool:
        return self._request.transport is None or self._request.transport.is_closing()


class DashboardServer:
    """Serves from :meth:`run` until it is stopped; ``client`` asks the API server about those who look, ``cache`` has what they see."""

    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        source: CertificateSource,
        *,
        bind_address: str,
        look: float = LOOK,
        patience: float = _PATIENCE,
        sign_of_life: float = _SIGN_OF_LIFE,
    ) -> None:
        address = parse_address(bind_address, FLAG)
        if address is None:
            raise ValueError("there is no address to serve the dashboard on")
        self._observation = Observation(cache)
        self._access = Access(client, KINDS.values())
        self._desk = Desk(self._observation)
        self._patience, self._sign_of_life = patience, sign_of_life
        self._assets = assets.load()
        self._seats: set[_Seat] = set()
        self._stopping = asyncio.Event()
        application = web.Application()
        application.on_response_prepare.append(_guard)
        application.router.add_get("/", self._asset)
        application.router.add_get("/static/{name}", self._asset)
        application.router.add_get("/api/state", self._answered(self._state), allow_head=False)
        application.router.add_get("/api/stream", self._answered(self._stream), allow_head=False)
        application.router.add_get("/api/timeline", self._answered(self._timeline), allow_head=False)
        application.router.add_get("/api/explain", self._answered(self._explain), allow_head=False)
        application.on_shutdown.append(self._end_streams)
        self._serving = HttpsServer(
            source,
            application,
            what="dashboard pages",
            flag=FLAG,
            address=address.host,
            port=address.port,
            look=look,
            largest_header=_LARGEST_HEADER,
            idle=_IDLE,
            most_connections=_MOST_CONNECTIONS,
        )

    @property
    def port(self) -> int:
        """Where it listens, once it does."""
        return self._serving.port

    def start(self) -> None:
        """Follow the caches; the manager does so with its other informers."""
        self._observation.start()

    def ready(self) -> str:
        return self._serving.ready()

    async def run(self, stop: asyncio.Event) -> None:
        await self._serving.run(stop)

    async def _asset(self, request: web.Request) -> web.Response:
        found = self._assets.get(request.match_info.get("name", assets.INDEX))
        if found is None:
            raise web.HTTPNotFound(text="there is no such file\n")
        headers = {"Cache-Control": "no-cache", "Content-Type": found.type, "ETag": found.tag, "Vary": "Accept-Encoding"}
        if request.headers.get("If-None-Match") == found.tag:
            return web.Response(status=304, headers=headers)
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            return web.Response(body=found.compressed, headers={**headers, "Content-Encoding": "gzip"})
        return web.Response(body=found.content, headers=headers)

    def _answered(self, answer: Callable[[web.Request, Visitor], Awaitable[web.StreamResponse]]) -> _Handler:
        """A handler for those whom the API server knows; whoever is refused gets a sentence."""

        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                return await answer(request, await self._access.visitor(_token(request)))
            except RefusedError as error:
                headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
                return _json({"error": error.message}, status=error.status, headers=headers)

        return handle

    async def _sight(self, request: web.Request, visitor: Visitor) -> Sight:
        return await self._access.sight(visitor, self._observation.present(), named=request.query.get("namespace", ""))

    async def _state(self, request: web.Request, visitor: Visitor) -> web.StreamResponse:
        """Everything at once, for scripts."""
        sight = await self._sight(request, visitor)
        batch = await self._desk.reader(sight).read()
        found = [msgspec.Raw(row) for row in batch.rows] if batch is not None else []
        return _json({**self._told(visitor, sight), "rows": found})

    async def _timeline(self, request: web.Request, visitor: Visitor) -> web.StreamResponse:
        namespace, cluster = (request.query.get(name, "") for name in ("namespace", "cluster"))
        sight = await self._sight(request, visitor)
        held, kinds = self._observation.of_cluster(namespace, cluster), sight.of(namespace)
        if CLUSTER not in held.objects or CLUSTER not in kinds:
            raise RefusedError(404, f"there is no Cluster {cluster} in the namespace {namespace}, or you may not see it")
        made = await asyncio.to_thread(lambda: pictured(held.decoded(kinds), datetime.now(UTC)))
        return web.Response(body=made, content_type="application/json", headers={"Cache-Control": "no-store"})

    async def _explain(self, request: web.Request, visitor: Visitor) -> web.StreamResponse:
        kind, namespace, name = (request.query.get(key, "") for key in ("kind", "namespace", "name"))
        kinds = (await self._sight(request, visitor)).of(namespace)
        known = next((each for each in kinds if each.kind == kind), None)
        held = self._observation.around(known, namespace, name) if known is not None else None
        if held is None or not held.objects:
            raise RefusedError(404, f"there is no {kind} {name} in the namespace {namespace}, or you may not see it")
        try:
            made = await asyncio.to_thread(lambda: explained(held.decoded(kinds), Ref(kind, namespace, name), datetime.now(UTC)))
        except OperatorError as error:
            raise RefusedError(404, error.message) from None
        return web.Response(body=made, content_type="application/json", headers={"Cache-Control": "no-store"})

    async def _stream(self, request: web.Request, visitor: Visitor) -> web.StreamResponse:
        sight = await self._sight(request, visitor)
        seat = self._admit(request, visitor)
        try:
            stream = EventStream(request, patience=self._patience)
            response = await stream.begin()
            try:
                await self._follow(request, visitor, sight, stream)
            except SlowClientError:
                log.info("A reader of the dashboard is too slow and is let go", extra=logs.fields(user=visitor.name))
            except ConnectionResetError:
                log.debug("A reader of the dashboard is gone", extra=logs.fields(user=visitor.name))
        finally:
            self._seats.discard(seat)
        return response

    async def _follow(self, request: web.Request, visitor: Visitor, sight: Sight, stream: EventStream) -> None:
        """Send what is new, again and again; and ask again and again whether they may see it."""
        reader = self._desk.reader(sight, request.headers.get("Last-Event-ID", ""))
        loop = asyncio.get_running_loop()
        asked, told = loop.time(), self._told(visitor, sight)
        await stream.send(event("hello", _encode(told)))
        while not self._stopping.is_set():
            batch = await reader.read()
            await stream.send(*_events(batch, reader) if batch is not None else (ALIVE,))
            await self._wait(reader)
            if loop.time() - asked >= KEPT:
                try:
                    visitor, asked = await self._access.visitor(_token(request)), loop.time()
                    sight = await self._sight(request, visitor)
                except RefusedError as error:
                    await stream.send(event("refused", _encode({"status": error.status, "error": error.message})))
                    return
                reader.see(sight)
                if self._told(visitor, sight) != told:
                    told = self._told(visitor, sight)
                    await stream.send(event("hello", _encode(told)))

    async def _wait(self, reader: Reader) -> None:
        """Until there is something new, or it is time for a sign of life, or for the end."""
        waits = [asyncio.ensure_future(reader.wait()), asyncio.ensure_future(self._stopping.wait())]
        try:
            await asyncio.wait(waits, timeout=self._sign_of_life, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
            await asyncio.wait(waits)

    def _admit(self, request: web.Request, visitor: Visitor) -> _Seat:
        """Take one more reader, or refuse; those who left unsaid do not count."""
        self._seats = {seat for seat in self._seats if not seat.is_left()}
        own = sum(seat.visitor == visitor for seat in self._seats)
        if len(self._seats) >= _MOST_STREAMS or own >= _MOST_STREAMS_EACH:
            raise RefusedError(503, f"{own} pages of yours and {len(self._seats)} of all are open, which is as many as are served")
        seat = _Seat(request, visitor)
        self._seats.add(seat)
        return seat

    def _told(self, visitor: Visitor, sight: Sight) -> dict[str, object]:
        """What the page says of itself: who looks, and why something is not there."""
        missing = self._desk.missing()
        for kind in KINDS.values():
            if kind not in sight.everywhere:
                where = sorted(namespace for namespace, kinds in sight.within.items() if kind in kinds)
                missing.setdefault(kind.kind, _unseen(kind, where))
        return {"user": visitor.name, "version": __version__, "missing": missing}

    async def _end_streams(self, _: web.Application) -> None:
        self._stopping.set()


def _events(batch: Batch, reader: Reader) -> list[bytes]:
    """What is new as events; the last one has the id, so that who lost half of it gets all of it again."""
    sent = [event("whole", b"%d" % len(batch.rows))] if batch.whole else []
    sent += batched(batch.rows)
    if batch.gone:
        sent.append(event("gone", _encode(batch.gone)))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return [*sent, event("seen", _encode({"time": now}), reader.name)]


def _unseen(kind: Kind, where: list[str]) -> str:
    resource = f"{kind.plural}.{kind.group}"
    return f"you may list {resource} in {', '.join(where)} only" if where else f"you may not list {resource}"


def _token(request: web.Request) -> str:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _json(content: object, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    all_headers = {"Cache-Control": "no-store", **(headers or {})}
    return web.Response(body=_encode(content), status=status, content_type="application/json", headers=all_headers)


_encode = msgspec.json.Encoder().encode


async def _guard(_: web.Request, response: web.StreamResponse) -> None:
    """Every answer has the headers that keep a browser from doing anything else with it."""
    response.headers.update(HEADERS)
