"""Watches: the changes of a resource as a stream of lines, from a version on, with bookmarks.

A line is made once for all watches that send it.  A watch whose reader does not keep up is ended, as the real server's is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from slipway.embedded import errors, fielderrors
from slipway.embedded.storage.read import bad_version
from slipway.embedded.storage.store import ADDED, DELETED, MODIFIED, Change, ForgottenError, Stored

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.registry.resources import Resource
    from slipway.embedded.storage.read import Selection
    from slipway.embedded.storage.store import Store
    from slipway.embedded.webhooks.conversion import Converter


BACKLOG = 10_000
"""How many changes may wait for a reader."""
_BEFORE_END = 2.0
_INITIAL_END = "k8s.io/initial-events-end"


class Watch:
    """One watch.  ``shape`` makes another representation of an object (a Table row, its metadata alone) where one is asked for."""

    def __init__(
        self,
        store: Store,
        converter: Converter,
        resource: Resource,
        chosen: Selection,
        query: Mapping[str, str],
        *,
        bookmark_seconds: float,
        shape: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self._store, self._converter, self._resource, self._chosen = store, converter, resource, chosen
        self._bookmarks = query.get("allowWatchBookmarks") in ("1", "true", "True")
        self._bookmark_seconds = bookmark_seconds
        self._initial = query.get("sendInitialEvents") in ("1", "true", "True")
        self._explicit = "sendInitialEvents" in query
        self._shape = shape
        self._version = query.get("resourceVersion", "")
        self._waiting: deque[Change] = deque()
        self._arrived = asyncio.Event()
        self._ended = False
        self._check(query)

    def _check(self, query: Mapping[str, str]) -> None:
        wrong = []
        match = query.get("resourceVersionMatch", "")
        if self._explicit and match != "NotOlderThan":
            detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            wrong.append(fielderrors.forbidden("resourceVersionMatch", detail))
        elif match and not self._explicit:
            wrong.append(
                fielderrors.forbidden(
                    "resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
                )
            )
        if wrong:
            raise errors.invalid("meta.k8s.io", "ListOptions", "", wrong)
        if self._version and not self._version.isdecimal():
            raise errors.StatusError(500, "", bad_version(self._version))

    async def lines(self, deadline: float) -> AsyncGenerator[bytes, None]:
        """The events, until the time of the loop reaches ``deadline`` or the watch is ended."""
        bucket = self._store.bucket(self._resource.bucket)
        try:
            first, since = self._start()
        except ForgottenError as forgotten:
            yield event("ERROR", msgspec.json.encode(errors.too_old(int(self._version), forgotten.oldest).status()))
            return
        bucket.watchers.add(self._offer)
        try:
            loop = asyncio.get_running_loop()
            for stored in first:
                yield event(ADDED, await self._object(stored))
            if self._initial and self._bookmarks:
                yield self._bookmark(since, initial_end=True)
            seen = since
            bookmark_at = self._next_bookmark(loop.time(), deadline)
            while True:
                if self._waiting:
                    change = self._waiting.popleft()
                    seen = change.version
                    line = await self._line(change)
                    if line:
                        yield line
                    continue
                now = loop.time()
                if self._ended or now >= deadline:
                    break
                if self._bookmarks and now >= bookmark_at:
                    bookmark_at = self._next_bookmark(now, deadline)
                    seen = max(seen, self._store.version)
                    yield self._bookmark(seen)
                    continue
                await self._wait(min(deadline, bookmark_at if self._bookmarks else deadline) - now)
        finally:
            bucket.watchers.discard(self._offer)

    def end(self) -> None:
        """End after the events that wait: the resource or the server goes."""
        self._ended = True
        self._arrived.set()

    def _next_bookmark(self, now: float, deadline: float) -> float:
        """Regularly, and once more shortly before the end, so that clients resume from there."""
        last = deadline - _BEFORE_END
        return min(now + self._bookmark_seconds, last) if last > now else now + self._bookmark_seconds

    def _start(self) -> tuple[list[Stored], int]:
        """The objects to begin with, and the version that they show.  Changes after it wait already."""
        now = self._store.version
        if self._initial or (self._version in ("", "0") and not self._explicit):
            bucket = self._store.bucket(self._resource.bucket)
            return [stored for stored in bucket.within(self._chosen.namespace) if self._chosen.holds(self._resource, stored)], now
        if self._version in ("", "0"):
            return [], now
        since = int(self._version)
        self._waiting.extend(self._store.since(self._resource.bucket, since))
        return [], max(since, now)

    def _offer(self, change: Change) -> None:
        if self._ended:
            return
        if len(self._waiting) >= BACKLOG:
            self._waiting.clear()
            self._ended = True
        else:
            self._waiting.append(change)
        self._arrived.set()

    async def _wait(self, seconds: float) -> None:
        self._arrived.clear()
        if self._waiting or self._ended:
            return
        try:
            await asyncio.wait_for(self._arrived.wait(), max(seconds, 0.001))
        except TimeoutError:
            return

    async def _line(self, change: Change) -> bytes:
        """The line of a change as this watch sees it: what leaves the selection is deleted for it, what enters it is added."""
        chosen = self._chosen
        if chosen.namespace and change.current.namespace != chosen.namespace:
            return b""
        if not chosen.labels and not chosen.fields:
            return await self._framed(change, change.type, change.current)
        before = change.previous is not None and chosen.holds(self._resource, change.previous)
        after = change.type != DELETED and chosen.holds(self._resource, change.current)
        if before and after:
            return await self._framed(change, MODIFIED, change.current)
        if after:
            return await self._framed(change, ADDED, change.current)
        if not before or change.previous is None:
            return b""
        if change.type == DELETED:
            return await self._framed(change, DELETED, change.current)
        # The object as the watcher knew it, at the version at which it left.
        manifest = change.previous.manifest()
        manifest["metadata"]["resourceVersion"] = str(change.version)
        return event(DELETED, await self._object(Stored(manifest, change.version)))

    async def _framed(self, change: Change, type_: str, stored: Stored) -> bytes:
        if self._shape is not None:
            return event(type_, await self._object(stored))
        key = (type_, self._resource.api_version)
        line = change.frames.get(key)
        if line is None:
            line = change.frames[key] = event(type_, await self._object(stored))
        return line

    async def _object(self, stored: Stored) -> bytes:
        raw = await self._converter.render(self._resource, stored)
        return raw if self._shape is None else self._shape(raw)

    def _bookmark(self, version: int, *, initial_end: bool = False) -> bytes:
        metadata: Manifest = {"resourceVersion": str(version)}
        if initial_end:
            metadata["annotations"] = {_INITIAL_END: "true"}
        document = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}
        raw = msgspec.json.encode(document)
        return event("BOOKMARK", raw if self._shape is None else self._shape(raw))


def event(type_: str, raw: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), raw.rstrip(b"\n"))
