"""Watches: the changes of a resource as a stream of lines, from a version on, with bookmarks.

A line is made once for all watches that send it.  A watch whose reader does not keep up is ended, as the real server's is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Protocol

import msgspec

from slipway.embedded import errors
from slipway.embedded.errors import FieldError
from slipway.embedded.storage.read import bad_version, parsed_version
from slipway.embedded.storage.store import ADDED, DELETED, MODIFIED, Change, ForgottenError, Stored

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.storage.read import ListOptions
    from slipway.embedded.storage.selectors import Selection
    from slipway.embedded.storage.store import Store


BACKLOG = 10_000
"""How many changes may wait for a reader."""
_BEFORE_END = 2.0
_INITIAL_END = "k8s.io/initial-events-end"


class View(Protocol):
    """The form in which a watch shows objects."""

    @property
    def frames(self) -> str:
        """The name under which lines are shared by all watches of the same view; empty where they are this watch's own."""

    async def shown(self, stored: Stored) -> bytes:
        """An object, encoded."""

    def bookmark(self, metadata: Manifest) -> bytes:
        """An object with nothing but its metadata."""


class Watch:
    """One watch of a bucket."""

    def __init__(
        self, store: Store, bucket: str, chosen: Selection, options: ListOptions, view: View, *, bookmark_seconds: float = 60.0
    ) -> None:
        self._store, self._bucket, self._chosen, self._options, self._view = store, bucket, chosen, options, view
        self._bookmark_seconds = bookmark_seconds
        self._waiting: deque[Change] = deque()
        self._arrived = asyncio.Event()
        self._ended = False
        self._since = self._checked()

    def _checked(self) -> int:
        """The version to start from, of options that go together."""
        options, wrong = self._options, []
        if options.initial is not None and options.match != "NotOlderThan":
            detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            wrong.append(FieldError.forbidden("resourceVersionMatch", detail))
        elif options.match and options.initial is None:
            detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            wrong.append(FieldError.forbidden("resourceVersionMatch", detail))
        if wrong:
            raise errors.invalid("meta.k8s.io", "ListOptions", "", wrong)
        version = parsed_version(options.version or "0")
        if version is None:
            raise errors.StatusError(500, "", bad_version(options.version))
        return version

    async def lines(self, deadline: float) -> AsyncGenerator[bytes, None]:
        """The events, until the time of the loop reaches ``deadline`` or the watch is ended."""
        bucket = self._store.bucket(self._bucket)
        try:
            first, since = self._start()
        except ForgottenError as forgotten:
            yield event("ERROR", msgspec.json.encode(errors.too_old(self._since, forgotten.oldest).status()))
            return
        bucket.watchers.add(self._offer)
        try:
            loop = asyncio.get_running_loop()
            for stored in first:
                yield event(ADDED, await self._view.shown(stored))
            if self._options.initial and self._options.bookmarks:
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
                if self._options.bookmarks and now >= bookmark_at:
                    bookmark_at = self._next_bookmark(now, deadline)
                    seen = max(seen, self._store.version)
                    yield self._bookmark(seen)
                    continue
                await self._wait(min(deadline, bookmark_at if self._options.bookmarks else deadline) - now)
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
        if self._options.initial or (not self._since and self._options.initial is None):
            return list(filter(self._chosen.holds, self._store.bucket(self._bucket).within(self._chosen.namespace))), now
        if not self._since:
            return [], now
        self._waiting.extend(self._store.since(self._bucket, self._since))
        return [], max(self._since, now)

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
        before = change.previous is not None and chosen.holds(change.previous)
        after = change.type != DELETED and chosen.holds(change.current)
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
        return event(DELETED, await self._view.shown(Stored(manifest, change.version)))

    async def _framed(self, change: Change, type_: str, stored: Stored) -> bytes:
        if not self._view.frames:
            return event(type_, await self._view.shown(stored))
        key = (type_, self._view.frames)
        line = change.frames.get(key)
        if line is None:
            line = change.frames[key] = event(type_, await self._view.shown(stored))
        return line

    def _bookmark(self, version: int, *, initial_end: bool = False) -> bytes:
        metadata: Manifest = {"resourceVersion": str(version)}
        if initial_end:
            metadata["annotations"] = {_INITIAL_END: "true"}
        return event("BOOKMARK", self._view.bookmark(metadata))


def event(type_: str, raw: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), raw.rstrip(b"\n"))
