"""An asyncio client of the Kubernetes API: objects are plain dictionaries, lists and watches keep theirs undecoded for who wants that.

Every failure is one of :mod:`slipway.kube.errors`.  Only what the server turned away unread, since it has too much to do, is asked
again; for everything else who calls knows whether that would be right.
"""

from __future__ import annotations

import asyncio
import time
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

import msgspec

from slipway.api.cluster import kinds
from slipway.kube import errors

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from types import TracebackType

    import aiohttp

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aiotransport import Answer
    from slipway.kube.connection import Connection


JSON = "application/json"
# What asks for the metadata of objects alone: the rest of a Secret, say, does not leave the server then.
_PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
# How many objects of a list come in one answer, as client-go has it.
PAGE = 500
# How often something is asked that the server turns away with 429 and the time to come back at, as client-go has it.
_TRIES = 11


class PatchType(StrEnum):
    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"
    STRATEGIC = "application/strategic-merge-patch+json"


class Page(NamedTuple):
    """A part of a list.  Its items share the memory of the whole answer: keep a copy, not the item."""

    items: list[msgspec.Raw]
    resource_version: str
    continue_token: str


class WatchEvent(NamedTuple):
    """ADDED, MODIFIED, DELETED or BOOKMARK.  The object shares the memory of its line: keep a copy."""

    type: str
    object: msgspec.Raw


class _ListMeta(msgspec.Struct, gc=False):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    continue_token: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


class _Line(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


_decode_list = msgspec.json.Decoder(_List).decode
_decode_line = msgspec.json.Decoder(_Line).decode
_decode_any = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class AsyncClient:
    """Talks to one API server as one user.  ``on_request`` hears of every request: its verb, the status (0: no answer) and the seconds.

    ``largest`` bounds, in bytes, what a server that is not ours may send at once: an answer, or an event of a watch.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        user_agent: str = "slipway",
        timeout: float = 30.0,
        largest: int = 0,
        on_request: Callable[[str, int, float], None] | None = None,
    ) -> None:
        from slipway.kube.aiotransport import AsyncTransport

        self.connection = connection
        self._transport = AsyncTransport(connection, user_agent=user_agent, timeout=timeout, largest=largest)
        self.on_request = on_request

    @property
    def host(self) -> str:
        """The server's host and port."""
        return self._transport.host

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Manifest:
        return await self._ask("get", "GET", kinds.path(kind, namespace, name))

    async def find(self, kind: Kind, name: str, namespace: str = "") -> Manifest | None:
        """The object; None where there is none."""
        try:
            return await self.get(kind, name, namespace)
        except errors.NotFoundError:
            return None

    async def list(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", metadata_only: bool = False
    ) -> list[Manifest]:
        """The objects of a namespace, or of all of them, each with its apiVersion and kind; or their metadata alone."""
        found: list[Manifest] = []
        token = ""
        while True:
            page = await self.list_page(kind, namespace, labels=labels, fields=fields, continue_token=token, metadata_only=metadata_only)
            found += [{"apiVersion": kind.api_version, "kind": kind.kind, **_decode_any(item)} for item in page.items]
            token = page.continue_token
            if not token:
                return found

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        namespace = manifest["metadata"].get("namespace", "") if kind.namespaced else ""
        return await self._ask("create", "POST", kinds.path(kind, namespace), _typed(kind, manifest))

    async def update(self, kind: Kind, manifest: Manifest, *, subresource: str = "") -> Manifest:
        metadata = manifest["metadata"]
        path = kinds.path(kind, metadata.get("namespace", "") if kind.namespaced else "", metadata["name"], subresource)
        return await self._ask("update", "PUT", path, _typed(kind, manifest) if not subresource or subresource == "status" else manifest)

    async def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str,
        body: object,
        *,
        type: PatchType,  # noqa: A002 - the word of the API
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
    ) -> Manifest:
        """``field_manager`` owns what is written, and must be given for APPLY; ``force`` takes fields over from other managers."""
        query = _query(fieldManager=field_manager, force="true" if force else "")
        return await self._ask("patch", "PATCH", kinds.path(kind, namespace, name, subresource) + query, body, type.value)

    async def delete(
        self, kind: Kind, name: str, namespace: str = "", *, propagation: str = "", uid: str = "", resource_version: str = ""
    ) -> bool:
        """Whether there was one to delete; a ConflictError where it is another one than ``uid`` or ``resource_version`` say.

        ``propagation`` is Background, Foreground or Orphan.
        """
        options: Manifest = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if propagation:
            options["propagationPolicy"] = propagation
        if uid or resource_version:
            options["preconditions"] = {
                **({"uid": uid} if uid else {}),
                **({"resourceVersion": resource_version} if resource_version else {}),
            }
        try:
            await self._ask("delete", "DELETE", kinds.path(kind, namespace, name), options if len(options) > 2 else None)
        except errors.NotFoundError:
            return False
        return True

    async def list_page(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = PAGE,
        continue_token: str = "",
        resource_version: str = "",
        metadata_only: bool = False,
    ) -> Page:
        """A part of the list; a GoneError where the server has forgotten the state that ``continue_token`` is of."""
        query = {"labelSelector": labels, "fieldSelector": fields, "limit": str(limit) if limit else "", "continue": continue_token}
        path = kinds.path(kind, namespace) + _query(resourceVersion=resource_version, **query)
        content = await self._answer("list", "GET", path, None, JSON, accept=_PARTIAL_LIST if metadata_only else "")
        try:
            found = _decode_list(content)
        except msgspec.DecodeError:
            raise errors.not_kubernetes(content, 200) from None
        return Page(found.items or [], found.metadata.resource_version, found.metadata.continue_token)

    async def watch(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        resource_version: str = "",
        timeout_seconds: int = 0,
        bookmarks: bool = True,
        silence: float = 0.0,
        metadata_only: bool = False,
        on_open: Callable[[], None] | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Every change since ``resource_version``, until the server ends the watch.

        A GoneError where the server no longer knows the changes since then.  With ``silence``, a SilentError after so many seconds
        in which nothing came.  ``on_open`` is called when the server has agreed to the watch.
        """
        query = {"labelSelector": labels, "fieldSelector": fields, "timeoutSeconds": str(timeout_seconds) if timeout_seconds else ""}
        path = kinds.path(kind, namespace) + _query(
            watch="true", resourceVersion=resource_version, allowWatchBookmarks="true" if bookmarks else "", **query
        )
        response = await self._open(path, silence, _PARTIAL if metadata_only else "")
        try:
            if response.status != 200:
                content = b""
                while chunk := await self._transport.some(response, f"watch of {path}", silence):
                    content += chunk
                    self._transport.check(len(content))
                raise errors.failure(response.status, content)
            if on_open is not None:
                on_open()
            tail = b""
            while chunk := await self._transport.some(response, f"watch of {path}", silence):
                lines = (tail + chunk if tail else chunk).split(b"\n")
                tail = lines.pop()
                self._transport.check(len(tail))
                for line in lines:
                    yield _event(line)
            if tail.strip():
                yield _event(tail)
        finally:
            response.close()

    async def raw(self, path: str, *, method: str = "GET", body: bytes | None = None, content_type: str = JSON) -> bytes:
        """The body of the answer to any request; an ApiError where it is not success."""
        return await self._answer(method.lower(), method, path, body, content_type)

    async def websocket(self, path: str, protocol: str) -> aiohttp.ClientWebSocketResponse:
        """A websocket of one subprotocol; an ApiError where the server opens none.  Who asked closes it."""
        began, status = time.perf_counter(), 0
        try:
            socket = await self._transport.websocket(path, protocol)
            status = 101
        except errors.ApiError as error:
            status = error.code
            raise
        finally:
            if self.on_request is not None:
                self.on_request("connect", status, time.perf_counter() - began)
        return socket

    async def _ask(self, verb: str, method: str, path: str, body: object = None, content_type: str = JSON) -> Manifest:
        content = await self._answer(verb, method, path, None if body is None else _encode(body), content_type)
        return errors.decode(content, 200)

    async def _answer(self, verb: str, method: str, path: str, body: bytes | None, content_type: str, accept: str = "") -> bytes:
        for left in reversed(range(_TRIES)):
            answer = await self._request(verb, method, path, body, content_type, accept)
            if 200 <= answer.status < 300:
                return answer.content
            if answer.status != 429 or not answer.retry_after.isdecimal() or not left:
                break
            await asyncio.sleep(int(answer.retry_after))
        raise errors.failure(answer.status, answer.content)

    async def _request(self, verb: str, method: str, path: str, body: bytes | None, content_type: str, accept: str) -> Answer:
        began, status = time.perf_counter(), 0
        try:
            answer = await self._transport.request(method, path, body, content_type, accept=accept)
            status = answer.status
        finally:
            if self.on_request is not None:
                self.on_request(verb, status, time.perf_counter() - began)
        return answer

    async def _open(self, path: str, silence: float, accept: str) -> aiohttp.ClientResponse:
        began, status = time.perf_counter(), 0
        try:
            response = await self._transport.open(path, silence=silence, accept=accept)
            status = response.status
        finally:
            if self.on_request is not None:
                self.on_request("watch", status, time.perf_counter() - began)
        return response


def _typed(kind: Kind, manifest: Manifest) -> Manifest:
    return {"apiVersion": kind.api_version, "kind": kind.kind, **manifest}


def _query(**values: str) -> str:
    given = {name: value for name, value in values.items() if value}
    return f"?{urlencode(given)}" if given else ""


def _event(line: bytes) -> WatchEvent:
    try:
        event = _decode_line(line)
    except msgspec.DecodeError:
        raise errors.not_kubernetes(line, 200) from None
    if event.type == "ERROR":
        raise errors.status_failure(errors.decode(bytes(event.object), 200), 500)
    return WatchEvent(event.type, event.object)
