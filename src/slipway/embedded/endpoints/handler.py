"""Requests in, answers out: who asks, whether they may, and what the verbs do."""

from __future__ import annotations

import asyncio
import copy
import logging
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from slipway.embedded import errors, fielderrors
from slipway.embedded.access import authentication
from slipway.embedded.endpoints import bodies, negotiation, reviews
from slipway.embedded.endpoints import request as requests
from slipway.embedded.fieldmanager import apply, patches
from slipway.embedded.registry import decoding, delete, subresources
from slipway.embedded.registry.write import WriteOptions, Written, reset_fields, type_of
from slipway.embedded.storage import read
from slipway.embedded.storage import watch as watching

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.access.authentication import User
    from slipway.embedded.core import Core
    from slipway.embedded.endpoints.request import RequestInfo
    from slipway.embedded.registry.resources import Catalog, Resource


JSON = "application/json"
BODY_LIMIT = 3 * 1024 * 1024
_WATCH_SECONDS = 1800.0
_log = logging.getLogger(__name__)


class Handler:
    """Answers the requests to one server."""

    def __init__(self, core: Core, *, everybody_is_admin: bool = False) -> None:
        self._core = core
        self._everybody_is_admin = everybody_is_admin
        self._watches: set[watching.Watch] = set()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except errors.StatusError as error:
            return _failure(error)
        except (ConnectionResetError, asyncio.CancelledError):
            raise
        except Exception as error:
            _log.exception("%s %s", request.method, request.path_qs)
            return _failure(errors.internal(f"{type(error).__name__}: {error}"))

    def end_watches(self) -> None:
        for watch in self._watches:
            watch.end()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        query = dict(request.query)
        info = requests.parse(request.method, request.rel_url.raw_path, query)
        user = self._user(request)
        self._core.authorizer.check(user, info)
        if not info.resource:
            return self._core.pages.answer(request, info)
        resource = self._core.catalog.find(info.group, info.version, info.resource)
        if resource is None and not self._core.catalog.of_group(info.group):
            raise errors.no_such_page()
        if resource is None or (info.subresource and info.subresource not in resource.subresources):
            raise _unserved(self._core.catalog, resource, info)
        namespace = info.namespace if resource.namespaced else ""
        if resource.verbs == ("create",):
            body = bodies.decode(await _body(request), request.content_type, resource.kind)
            return _json(reviews.review(self._core, resource, body, user, namespace), 201)
        if info.verb == "watch":
            return await self._watch(request, resource, namespace, query)
        if info.verb in ("get", "list"):
            return await self._read(request, resource, info, namespace, query)
        return await self._write(request, resource, info, namespace, query, user)

    def _user(self, request: web.BaseRequest) -> User:
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        user = self._core.authenticator.user(certificate, request.headers.get("Authorization", ""))
        if self._everybody_is_admin and user is authentication.NOBODY:
            user = authentication.ADMIN
        wanted = request.headers.get("Impersonate-User")
        if not wanted:
            return user
        groups = request.headers.getall("Impersonate-Group", [])
        for plural, name in (("users", wanted), *(("groups", group) for group in groups)):
            self._core.authorizer.check(user, requests.RequestInfo("impersonate", "", "", "", "", plural, "", name))
        return authentication.impersonated(wanted, groups)

    async def _read(
        self, request: web.BaseRequest, resource: Resource, info: RequestInfo, namespace: str, query: Mapping[str, str]
    ) -> web.StreamResponse:
        core = self._core
        shape = negotiation.wanted(request.headers.get("Accept", ""), query, resource, core.clock)
        if info.verb == "get":
            stored = read.get(core.store, resource, namespace, info.name, query)
            if info.subresource == "scale":
                return _json(subresources.scale_of(resource, stored.manifest()), 200)
            raw = await core.converter.render(resource, stored)
            return shape.answer(shape.one(raw), 200, _deprecation(resource))
        found = read.page(core.store, resource, read.selection(resource, namespace, query), query)
        if not shape.is_plain:
            items = await core.converter.render_all(resource, found.objects)
            return shape.answer(shape.listed(items, found), 200, _deprecation(resource))
        return shape.answer(await read.render(core.converter, resource, found), 200, _deprecation(resource))

    async def _watch(self, request: web.BaseRequest, resource: Resource, namespace: str, query: Mapping[str, str]) -> web.StreamResponse:
        core = self._core
        shape = negotiation.wanted(request.headers.get("Accept", ""), query, resource, core.clock)
        watch = watching.Watch(
            core.store,
            core.converter,
            resource,
            read.selection(resource, namespace, query),
            query,
            bookmark_seconds=core.bookmark_seconds,
            shape=None if shape.is_plain else shape.event,
        )
        loop = asyncio.get_running_loop()
        seconds = read.number(query.get("timeoutSeconds", "")) or _WATCH_SECONDS
        response = web.StreamResponse(headers={"Content-Type": JSON, "Cache-Control": "no-cache, private"})
        response.enable_chunked_encoding()
        self._watches.add(watch)
        core.watched(resource, watch)
        try:
            await response.prepare(request)
            async for line in watch.lines(loop.time() + seconds):
                await response.write(line)
            await response.write_eof()
        except (ConnectionResetError, ConnectionError):
            _log.debug("the reader of a watch of %s went away", resource.plural)
        finally:
            self._watches.discard(watch)
            core.unwatched(resource, watch)
        return response

    async def _write(
        self, request: web.BaseRequest, resource: Resource, info: RequestInfo, namespace: str, query: dict[str, str], user: User
    ) -> web.StreamResponse:
        body = await _body(request)
        content_type = request.headers.get("Content-Type", JSON)
        options = _options(request, query, user)
        options.authorize_create = lambda: self._core.authorizer.check(user, info._replace(verb="create"))
        try:
            return await self._written(request, resource, info, namespace, query, body, content_type, options)
        except errors.StatusError as error:
            error.warnings = options.warnings
            raise

    async def _written(
        self,
        request: web.BaseRequest,
        resource: Resource,
        info: RequestInfo,
        namespace: str,
        query: dict[str, str],
        body: bytes,
        content_type: str,
        options: WriteOptions,
    ) -> web.StreamResponse:
        core = self._core
        shape = negotiation.wanted(request.headers.get("Accept", ""), query, resource, core.clock)
        if info.verb in ("delete", "deletecollection"):
            manifest = bodies.decode(body, content_type, "DeleteOptions") if body.strip() else {}
            return await self._delete(resource, info, namespace, delete.options_of(manifest, query), options, query)
        if info.subresource in subresources.CREATED and info.verb == "create":
            manifest = bodies.decode(body, content_type, info.subresource)
            answer, code = await subresources.create(core, resource, info, namespace, manifest, options)
            return _json(answer, code, options.warnings)
        if info.subresource == "scale":
            return _json(await self._scale(resource, info, namespace, body, content_type, options), 200, options.warnings)
        if info.verb == "create" and not info.name and (namespace or not resource.namespaced):
            manifest = bodies.decode(body, content_type, resource.kind)
            bodies.check(resource, manifest, namespace)
            written = await core.registry.create(resource, namespace, manifest, options)
        elif info.verb == "update" and info.name:
            manifest = bodies.decode(body, content_type, resource.kind)
            bodies.check(resource, manifest, namespace, info.name)
            written = await core.registry.update(
                resource, namespace, info.name, lambda _: copy.deepcopy(manifest), options, subresource=info.subresource
            )
        elif info.verb == "patch" and info.name:
            written = await self._patch(resource, info, namespace, body, content_type, options, query)
        else:
            raise errors.method_not_allowed()
        return shape.answer(shape.one(written.raw), 201 if written.created else 200, options.warnings)

    async def _patch(
        self,
        resource: Resource,
        info: RequestInfo,
        namespace: str,
        body: bytes,
        content_type: str,
        options: WriteOptions,
        query: Mapping[str, str],
    ) -> Written:
        media_type = content_type.partition(";")[0].strip()
        if media_type not in patches.accepted(resource):
            raise errors.unsupported_media_type(patches.accepted(resource)) if resource.custom else errors.unsupported_patch_type()
        if media_type == patches.APPLY:
            return await self._apply(resource, info, namespace, body, options, query)
        if "force" in query:
            wrong = [fielderrors.forbidden("force", "may not be specified for non-apply patch")]
            raise errors.invalid("meta.k8s.io", "PatchOptions", "", wrong)
        patch = patches.decode(media_type, body)

        def change(live: Manifest | None) -> Manifest:
            if live is None:
                raise errors.not_found(resource.group, resource.plural, info.name)
            patched = patches.apply(resource, media_type, patch, live)
            type_ = type_of(resource) if resource.custom is None else None
            if type_ is not None and (mismatch := decoding.mismatch(patched, type_, resource.kind)):
                text = msgspec.json.encode(patched).decode()
                raise errors.invalid("", "", "", [fielderrors.invalid("patch", text, mismatch)])
            bodies.check(resource, patched, namespace, info.name)
            return patched

        return await self._core.registry.update(
            resource, namespace, info.name, change, options, subresource=info.subresource, creates=False
        )

    async def _apply(
        self, resource: Resource, info: RequestInfo, namespace: str, body: bytes, options: WriteOptions, query: Mapping[str, str]
    ) -> Written:
        if not query.get("fieldManager"):
            wrong = [fielderrors.required("fieldManager", "is required for apply patch")]
            raise errors.invalid("meta.k8s.io", "PatchOptions", "", wrong)
        applied = bodies.decode(body, patches.APPLY, resource.kind)
        given = str(applied.get("apiVersion") or "")
        if (given, applied.get("kind")) != (resource.api_version, resource.kind):
            prefixed = given if "/" in given else f"/{given}"
            raise errors.bad_request(f"invalid object type: {prefixed}, Kind={applied.get('kind') or ''}")
        bodies.check(resource, applied, namespace, info.name, fill=False)
        force = query.get("force") in ("1", "true", "True")

        def change(live: Manifest | None) -> Manifest:
            metadata = applied.get("metadata")
            if live is None and not (isinstance(metadata, dict) and metadata.get("name")):
                text = f"the name of the object ({info.name} based on URL) was undeterminable: name must be provided"
                raise errors.bad_request(text)
            return apply.apply(
                live,
                copy.deepcopy(applied),
                options.manager,
                force=force,
                type_=type_of(resource),
                now=self._core.clock(),
                subresource=info.subresource,
                reset=reset_fields(resource, info.subresource),
            )

        return await self._core.registry.update(
            resource, namespace, info.name, change, options, subresource=info.subresource, creates=not info.subresource, tracked=True
        )

    async def _scale(
        self, resource: Resource, info: RequestInfo, namespace: str, body: bytes, content_type: str, options: WriteOptions
    ) -> Manifest:
        media_type = content_type.partition(";")[0].strip()
        content = patches.decode(media_type, body) if info.verb == "patch" else bodies.decode(body, content_type, "Scale")

        def change(live: Manifest | None) -> Manifest:
            if live is None:
                raise errors.not_found(resource.group, resource.plural, info.name)
            after = content
            if info.verb == "patch":
                after = patches.apply(subresources.SCALE, media_type, content, subresources.scale_of(resource, live, lax=True))
            return subresources.scaled(resource, live, after)

        # The real server does not say who owns the replicas of a custom resource that were set by its scale.
        written = await self._core.registry.update(
            resource, namespace, info.name, change, options, creates=False, tracked=resource.custom is not None
        )
        return subresources.scale_of(resource, msgspec.json.decode(written.raw))

    async def _delete(
        self,
        resource: Resource,
        info: RequestInfo,
        namespace: str,
        options: delete.DeleteOptions,
        writing: WriteOptions,
        query: Mapping[str, str],
    ) -> web.StreamResponse:
        core = self._core
        writing.dry_run = options.dry_run
        if info.verb == "delete":
            done = await delete.delete(core.registry, resource, namespace, info.name, options, writing)
            if not done.gone or delete.returns_object(resource):
                code = 202 if not done.gone and options.orphan is False else 200
                return _raw(done.raw, code, writing.warnings)
            details = {"name": info.name, "group": resource.group, "kind": resource.plural, "uid": done.uid}
            details = {key: value for key, value in details.items() if value}
            status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
            return _json(status, 200, writing.warnings)
        found = read.page(core.store, resource, read.selection(resource, namespace, query), query)
        for stored in found.objects:
            try:
                await delete.delete(core.registry, resource, stored.namespace, stored.name, options, writing)
            except errors.StatusError as error:
                if error.code != 404:
                    raise
        return _raw(await read.render(core.converter, resource, found), 200, writing.warnings)


async def _body(request: web.BaseRequest) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        text = f"Request entity too large: limit is {BODY_LIMIT}"
        raise errors.StatusError(413, "RequestEntityTooLarge", text) from None


def _unserved(catalog: Catalog, resource: Resource | None, info: RequestInfo) -> errors.StatusError:
    """The answer to a path of a group that is served, for a resource or a sub-resource that is not."""
    if any(member.custom is not None for member in catalog.of_group(info.group)):
        return errors.no_such_page() if resource is None else errors.not_found(resource.group, resource.plural, info.name)
    return errors.no_such_path()


def _deprecation(resource: Resource) -> list[str]:
    return [resource.custom.deprecation] if resource.custom is not None and resource.custom.deprecation else []


def _options(request: web.BaseRequest, query: Mapping[str, str], user: User) -> WriteOptions:
    dry_run, validation = query.get("dryRun", ""), query.get("fieldValidation", "")
    if dry_run not in ("", "All"):
        wrong = fielderrors.not_supported("dryRun", [dry_run], ("All",))
        raise errors.invalid("meta.k8s.io", "CreateOptions", "", [wrong])
    if validation not in ("", "Ignore", "Warn", "Strict"):
        wrong = fielderrors.not_supported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn"))
        raise errors.invalid("meta.k8s.io", "CreateOptions", "", [wrong])
    agent = request.headers.get("User-Agent", "").partition("/")[0][:128]
    return WriteOptions(
        user=user,
        manager=query.get("fieldManager") or agent or "unknown",
        dry_run=dry_run == "All",
        field_validation=validation or "Warn",
    )


def _failure(error: errors.StatusError) -> web.Response:
    if errors.is_page(error):
        return negotiation.response(f"{error.message}\n".encode(), error.code, [], "text/plain")
    response = _json(error.status(), error.code, error.warnings)
    if error.code == 401:
        response.headers["WWW-Authenticate"] = 'Basic realm="kubernetes-master"'
    seconds = (error.details or {}).get("retryAfterSeconds")
    if seconds:
        response.headers["Retry-After"] = str(seconds)
    return response


def _json(document: Manifest, code: int, warnings: list[str] | None = None) -> web.Response:
    return _raw(msgspec.json.encode(document) + b"\n", code, warnings)


def _raw(body: bytes, code: int, warnings: list[str] | None = None) -> web.Response:
    return negotiation.response(body, code, warnings or [])
