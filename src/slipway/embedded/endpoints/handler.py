"""Requests in, answers out: who asks, whether they may, and where it goes.

Reads and watches are answered here, writes by :mod:`slipway.embedded.endpoints.writes`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, NoReturn

from aiohttp import web

from slipway.embedded import errors
from slipway.embedded.access import authentication
from slipway.embedded.access.authorization import Attributes
from slipway.embedded.call import Call
from slipway.embedded.endpoints import bodies, negotiation, request, reviews, writes
from slipway.embedded.endpoints.negotiation import JSON, Shape
from slipway.embedded.registry import subresources
from slipway.embedded.storage import read
from slipway.embedded.storage.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.embedded.access.authentication import User
    from slipway.embedded.registry.resources import Catalog, Resource
    from slipway.embedded.server import Core


BODY_LIMIT = 3 * 1024 * 1024
_WATCH_SECONDS = 1800
_log = logging.getLogger(__name__)


def make_request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    """As aiohttp makes them, with kube-apiserver's limit for bodies."""
    return web.BaseRequest(message, payload, protocol, writer, task, asyncio.get_running_loop(), client_max_size=BODY_LIMIT)


def hang_up(received: web.BaseRequest) -> NoReturn:
    """Leave a request without an answer, as who is gone does.

    A connection whose handshake is under way when a server stops is made after that, and outlives it: a watch on it would tell for hours
    of a store that nobody writes to any more.
    """
    if received.transport is not None:
        received.transport.abort()
    raise ConnectionResetError("the server has stopped")


class Handler:
    """Answers the requests to one server."""

    def __init__(self, core: Core, *, everybody_is_admin: bool = False) -> None:
        self._core = core
        self._everybody_is_admin = everybody_is_admin
        self._watches: set[Watch] = set()
        self._ended = False

    async def __call__(self, received: web.BaseRequest) -> web.StreamResponse:
        if self._ended:
            hang_up(received)
        try:
            return await self._answer(received)
        except errors.StatusError as error:
            return _failure(error)
        except (ConnectionResetError, asyncio.CancelledError):
            raise
        except Exception as error:
            _log.exception("%s %s", received.method, received.path_qs)
            return _failure(errors.internal(f"{type(error).__name__}: {error}"))

    def end(self) -> None:
        """End all watches, and hang up on whoever asks for more."""
        self._ended = True
        self.end_watches()

    def end_watches(self) -> None:
        for watch in self._watches:
            watch.end()

    async def _answer(self, received: web.BaseRequest) -> web.StreamResponse:
        core, query = self._core, dict(received.query)
        asked = request.parse(received.method, received.rel_url.raw_path, query)
        user = self._user(received)
        core.authorizer.check(user, asked)
        if not asked.resource:
            return core.pages.answer(asked, received.headers.get("Accept", ""), received.host)
        resource = core.catalog.find(asked.group, asked.version, asked.resource)
        if resource is None or (asked.subresource and asked.subresource not in resource.subresources):
            raise _unserved(core.catalog, resource, asked)
        call = Call(
            user=user,
            resource=resource,
            verb=asked.verb,
            namespace=asked.namespace if resource.namespaced else "",
            name=asked.name,
            subresource=asked.subresource,
        )
        if resource.verbs == ("create",):
            body = bodies.decode(await _body(received), received.content_type, resource.kind)
            return negotiation.document(reviews.review(core, call, body), 201)
        shape = Shape(received.headers.get("Accept", ""), query, resource, core.converter, core.clock)
        if call.verb == "watch":
            return await self._watch(received, call, shape, query)
        if call.verb in ("get", "list"):
            return await self._read(call, shape, query)
        return await self._write(received, call, shape, query)

    def _user(self, received: web.BaseRequest) -> User:
        transport = received.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        user = self._core.authenticator.user(certificate, received.headers.get("Authorization", ""))
        if self._everybody_is_admin and user is authentication.NOBODY:
            user = authentication.ADMIN
        wanted = received.headers.get("Impersonate-User")
        if not wanted:
            return user
        groups = received.headers.getall("Impersonate-Group", [])
        for plural, name in (("users", wanted), *(("groups", group) for group in groups)):
            self._core.authorizer.check(user, Attributes("impersonate", "", "", "", "", plural, "", name))
        return authentication.impersonated(wanted, groups)

    async def _read(self, call: Call, shape: Shape, query: Mapping[str, str]) -> web.StreamResponse:
        resource, store = call.resource, self._core.store
        if call.verb == "list":
            options = request.list_options(query)
            found = read.page(store, resource.bucket, request.selection(call, options), options)
            return shape.answer(await shape.listed(found), 200, _deprecation(resource))
        read.check_version(store, query.get("resourceVersion", ""))
        stored = store.get(resource.bucket, call.namespace, call.name)
        if stored is None:
            raise errors.not_found(resource.group, resource.plural, call.name)
        if call.subresource == "scale":
            return negotiation.document(subresources.scale_of(resource, stored.manifest()), 200)
        return shape.answer(await shape.shown(stored), 200, _deprecation(resource))

    async def _watch(self, received: web.BaseRequest, call: Call, shape: Shape, query: Mapping[str, str]) -> web.StreamResponse:
        core, resource, options = self._core, call.resource, request.list_options(query)
        chosen = request.selection(call, options)
        watch = Watch(core.store, resource.bucket, chosen, options, shape, bookmark_seconds=core.bookmark_seconds)
        deadline = asyncio.get_running_loop().time() + (options.seconds or _WATCH_SECONDS)
        response = web.StreamResponse(headers={"Content-Type": JSON, "Cache-Control": "no-cache, private"})
        response.enable_chunked_encoding()
        self._watches.add(watch)
        core.watched(resource, watch)
        try:
            await response.prepare(received)
            async for line in watch.lines(deadline):
                await response.write(line)
            await response.write_eof()
        except (ConnectionResetError, ConnectionError):
            _log.debug("the reader of a watch of %s went away", resource.plural)
        finally:
            self._watches.discard(watch)
            core.unwatched(resource, watch)
        return response

    async def _write(self, received: web.BaseRequest, call: Call, shape: Shape, query: Mapping[str, str]) -> web.StreamResponse:
        body = await _body(received)
        call.manager = request.manager(query, received.headers.get("User-Agent", ""))
        call.dry_run, call.field_validation = request.dry_run(query), request.field_validation(query)
        call.force = request.flag(query, "force")
        try:
            return await writes.answer(self._core, call, shape, query, body, received.headers.get("Content-Type", JSON))
        except errors.StatusError as error:
            error.warnings = call.warnings
            raise


async def _body(received: web.BaseRequest) -> bytes:
    try:
        return await received.read()
    except web.HTTPRequestEntityTooLarge:
        text = f"Request entity too large: limit is {BODY_LIMIT}"
        raise errors.StatusError(413, "RequestEntityTooLarge", text) from None


def _unserved(catalog: Catalog, resource: Resource | None, asked: Attributes) -> errors.StatusError:
    """The answer to a path of a resource or a sub-resource that is not served."""
    members = catalog.of_group(asked.group)
    if not members or (resource is None and any(member.custom is not None for member in members)):
        return errors.no_such_page()
    if resource is not None and resource.custom is not None:
        return errors.not_found(resource.group, resource.plural, asked.name)
    return errors.no_such_path()


def _deprecation(resource: Resource) -> list[str]:
    return [resource.custom.deprecation] if resource.custom is not None and resource.custom.deprecation else []


def _failure(error: errors.StatusError) -> web.Response:
    if errors.is_page(error):
        return negotiation.response(f"{error.message}\n".encode(), error.code, content_type="text/plain")
    response = negotiation.document(error.status(), error.code, error.warnings)
    if error.code == 401:
        response.headers["WWW-Authenticate"] = 'Basic realm="kubernetes-master"'
    seconds = (error.details or {}).get("retryAfterSeconds")
    if seconds:
        response.headers["Retry-After"] = str(seconds)
    return response
