"""An informer: the objects of one kind, kept up to date by a list and a watch, and whoever wants to hear of their changes.

A list comes in pages.  A watch goes on from the last resource version it saw, from bookmarks too; when the server has forgotten
that version (410) everything is listed anew, and what was deleted meanwhile is told as deleted.  A watch on which not even
bookmarks come any more is given up.  Trouble is logged, counted and told by ``error`` until a watch is open again; of a kind that is
not installed the log says so once.

Where several processes share the work, ``keep`` says what of an object is kept here.  When it says something else than before,
``reconsider`` lets go of what is kept no more, and ``refill`` brings in what was not.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from array import array
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.kube.errors import ApiError, GoneError, NotFoundError, SilentError, UnreachableError, UntrustedError, is_transient
from slipway.runtime.cache.packing import Resting
from slipway.runtime.cache.store import Store
from slipway.runtime.clock import Backoff, Clock, sleep
from slipway.runtime.logs import fields
from slipway.runtime.objects import Object, Outline, without_managed_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from slipway.api.cluster.kinds import Kind
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.metrics import Metrics

    Handler = Callable[[Object | None, Object | None], None]
    # The object itself, an outline of it, or nothing.
    Keep = Callable[[Object], Object | None]

_log = logging.getLogger("slipway.runtime.informer")

# The server ends a watch after a time of our choice, so that watches spread over its replicas again; client-go's figures.
_WATCH_SECONDS = (300, 600)
# A bookmark comes about every minute (kube-apiserver's defaultBookmarkFrequency).
SILENCE = 150.0
# A watch that ends sooner, with nothing to tell, is a failure and not an end.
_SHORT_WATCH = 1.0
# So many failures in a row, and the version to resume from is no longer trusted: the server may have been restored from a backup.
_RESUMES = 5
RESYNC = 10 * 3600.0
# When everything is looked at again: so many objects at once, and so many a second.  With 10,000 objects that takes an hour.
_AT_ONCE, _A_SECOND = 25, 3.0


class Scope(NamedTuple):
    """What an informer is about; informers are shared by it."""

    kind: Kind
    namespace: str = ""
    labels: str = ""
    metadata_only: bool = False
    """Of each object its metadata alone is asked for and kept."""

    def __str__(self) -> str:
        where = f" in the namespace {self.namespace}" if self.namespace else ""
        return f"{self.kind.plural}{'.' if self.kind.group else ''}{self.kind.group}{where}{f' with {self.labels}' if self.labels else ''}"


class Informer:
    """``most`` is how many objects are kept of a server that is not ours (0: all of them)."""

    def __init__(
        self,
        client: AsyncClient,
        scope: Scope,
        *,
        metrics: Metrics | None = None,
        resync: float = RESYNC,
        silence: float = SILENCE,
        most: int = 0,
        clock: Clock | None = None,
        backoff: Backoff | None = None,
        keep: Keep | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.scope = scope
        self.store = Store()
        self._resting = Resting(self.store)
        self.synced = asyncio.Event()
        self.tried = asyncio.Event()
        """The list is here, or it is known why it is not."""
        self.error = ""
        """What is wrong at present; empty while a watch is open."""
        self._client = client
        self._resync_every = resync
        self._silence = silence
        self._most = most
        self._clock = clock
        self._backoff = backoff if backoff is not None else Backoff()
        self._handlers: tuple[Handler, ...] = ()
        self._version = ""
        """Where the watch goes on from; empty when everything is to be listed."""
        self.absent = False
        """The server does not have the kind, and that has been said."""
        self._metrics = _InformerMetrics(metrics, self) if metrics is not None else None
        self._keep = keep
        self._stale = False
        """What was listed last was chosen by what was to be kept before."""
        self._refills: list[asyncio.Future[None]] = []
        self.listed_at = float("-inf")
        """When the last list began, by the monotonic clock."""
        self._interruptible: asyncio.Future[None] | None = None
        self._now = now
        self._opened_at: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether the server tells of changes at present."""
        return self._opened_at is not None

    @property
    def open_for(self) -> float:
        """For how many seconds the watch has been open; 0 while it is not."""
        return 0.0 if self._opened_at is None else self._now() - self._opened_at

    @property
    def version(self) -> str:
        """The resource version up to which changes have been seen; 0 where that is not known."""
        return self._version or "0"

    def add_handler(self, handler: Handler) -> Callable[[], None]:
        """Tell the handler of every change, as (old, new), and at once of what is there; what this gives ends that.

        A resync tells every object as (object, object).  What is there is told in no order, as client-go does: a process that never lives
        for long would else look at the same objects each time.
        """
        self._handlers += (handler,)
        known = self.store.list()
        random.shuffle(known)
        for each in known:
            handler(None, each)

        def remove() -> None:
            self._handlers = tuple(known for known in self._handlers if known is not handler)

        return remove

    def reconsider(self, places: Iterable[tuple[str, str]] | None = None) -> None:
        """Let go of what is not to be kept any more: of those at some places, each a namespace and a name, or of all."""
        if self._keep is None:
            return
        found = self.store.list() if places is None else [self.store.get(name, namespace) for namespace, name in places]
        for known in found:
            if known is None:
                continue
            kept = self._keep(known)
            if kept is None:
                self._remove(known)
            elif kept is not known:
                self._tell(self.store.put(kept), kept)

    async def refill(self) -> None:
        """List everything anew, and wait until that is done.  Where it fails, those who ask for the kind are told until it succeeds."""
        waiting = asyncio.get_running_loop().create_future()
        self._refills.append(waiting)
        self._stale, self._version = True, ""
        if self._interruptible is not None:
            self._interruptible.cancel()
        await waiting

    async def run(self) -> None:
        """List, watch, and never return: what the server says against it is waited out."""
        clock = self._clock if self._clock is not None else asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(clock), name=f"informer of {self.scope}")
            if self._resync_every > 0:
                group.create_task(self._resync(clock), name=f"resync of {self.scope}")

    async def _follow(self, clock: Clock) -> None:
        while True:
            try:
                if not self._version:
                    await self._list_all()
                    continue
                await self._unless_stale(self._watch(clock))
                continue
            except GoneError as error:
                # The first time at once; a server that says so again and again is left alone for longer and longer.
                delay = self._backoff.next() if self._backoff.failures else 0.0
                self._backoff.failures = max(self._backoff.failures, 1)
                self._failed(error, delay, logging.INFO)
                self._version = ""
            except (ApiError, UnreachableError) as error:
                delay = self._backoff.next()
                level = logging.WARNING
                if isinstance(error, NotFoundError) and not self._version:
                    # There is no such kind, so there are no objects of it: who asks gets that answer, and the kind may come yet.
                    self._synced()
                    level = logging.DEBUG if self.absent else logging.INFO
                    self.absent = True
                self._failed(error, delay, level)
                if not is_transient(error) or self._backoff.failures >= _RESUMES:
                    self._version = ""
            await self._unless_stale(sleep(clock, delay))

    async def _unless_stale(self, work: Coroutine[object, object, None]) -> None:
        """Do something that a refill ends."""
        task = self._interruptible = asyncio.ensure_future(work)
        try:
            await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if not self._stale or current is None or current.cancelling():
                raise
        finally:
            self._interruptible = None
            task.cancel()

    async def _list_all(self) -> None:
        """List, for everybody who waits for a list that begins now."""
        waiting, self._refills, self._stale = self._refills, [], False
        self.listed_at = time.monotonic()
        try:
            await self._list()
        except (ApiError, UnreachableError) as error:
            if waiting and not isinstance(error, NotFoundError):
                # What is here was chosen for something else: nobody may take it for all.
                self.synced.clear()
            raise
        finally:
            for each in waiting:
                if not each.done():
                    each.set_result(None)
        if self._stale:
            self._version = ""

    async def _list(self) -> None:
        scope, limit = self.scope, 500
        seen: set[tuple[str, str]] = set()
        token = ""
        while True:
            try:
                page = await self._client.list_page(
                    scope.kind,
                    scope.namespace,
                    labels=scope.labels,
                    limit=limit,
                    continue_token=token,
                    metadata_only=scope.metadata_only,
                )
            except GoneError:
                if not token:
                    raise
                # The list took longer than the server remembers: all of it in one answer, then.
                seen.clear()
                token, limit = "", 0
                continue
            for item in page.items:
                new = self._decoded(item)
                seen.add((new.metadata.namespace, new.metadata.name))
                self._put(new, listed=True)
            token = page.continue_token
            if not token:
                break
        for gone in self.store.missing(seen):
            self._remove(gone)
        self._version, self.absent = page.resource_version, False
        self._synced()
        if self._metrics is not None:
            self._metrics.listed()
        _log.debug("Listed", extra=fields(resource=str(scope), objects=len(self.store), resourceVersion=self._version))

    async def _watch(self, clock: Clock) -> None:
        scope, began, events = self.scope, clock.time(), 0
        stream = self._client.watch(
            scope.kind,
            scope.namespace,
            labels=scope.labels,
            resource_version=self._version,
            timeout_seconds=random.randint(*_WATCH_SECONDS),
            silence=self._silence,
            metadata_only=scope.metadata_only,
            on_open=self._opened,
        )
        async with aclosing(stream):
            async for event in stream:
                new = self._decoded(event.object)
                if event.type in ("ADDED", "MODIFIED"):
                    self._put(new)
                elif event.type == "DELETED":
                    self._remove(new)
                elif event.type != "BOOKMARK":
                    raise ApiError(f'a watch of {scope} said "{event.type}", which is no type of event', code=200, reason="InvalidAnswer")
                self._version = new.metadata.resource_version
                if not events and self._backoff.failures:
                    self._backoff.reset()
                events += 1
        if not events and clock.time() - began < _SHORT_WATCH:
            raise UnreachableError(f"a watch of {scope} ended at once and told nothing")
        self._backoff.reset()

    async def _resync(self, clock: Clock) -> None:
        spent = 0.0
        while True:
            # Not all informers at the same moment.
            await sleep(clock, max(0.0, self._resync_every * random.uniform(0.9, 1.1) - spent))
            began = clock.time()
            await self._look_again(clock)
            spent = clock.time() - began

    async def _look_again(self, clock: Clock) -> None:
        """Tell of every object again, of some at a time: a look at ten thousand is not in the way of what changes meanwhile.

        That may take an hour, for which no object is held that others have let go.
        """
        found = self.store.list()
        namespaces, names = [each.namespace for each in found], [each.name for each in found]
        versions = array("q", (hash(each.metadata.resource_version) for each in found))
        del found
        for number, (namespace, name, version) in enumerate(zip(namespaces, names, versions, strict=True), 1):
            known = self.store.get(name, namespace)
            # One that has changed since was told of by that.
            if known is not None and hash(known.metadata.resource_version) == version:
                self._tell(known, known)
            if number % _AT_ONCE == 0:
                await sleep(clock, _AT_ONCE / _A_SECOND)

    def _decoded(self, raw: msgspec.Raw) -> Object:
        """An object with memory of its own: what the client gives shares that of the whole answer."""
        try:
            # Most of what another process has is not kept, and need not be made small first.
            return Object(self.scope.kind, without_managed_fields(raw) if self._keep is None else bytes(raw))
        except msgspec.MsgspecError as error:
            raise ApiError(f"an object of {self.scope} is not one of Kubernetes: {error}", code=200, reason="InvalidAnswer") from error

    def _put(self, new: Object, *, listed: bool = False) -> None:
        if self._keep is not None:
            kept = self._keep(new)
            if kept is None:
                self._remove(new)
                return
            new = kept if kept is not new else Object(self.scope.kind, without_managed_fields(new.raw))
        if self._most and len(self.store) >= self._most and self.store.get(new.name, new.namespace) is None:
            raise UnreachableError(f"there are more than {self._most} {self.scope}, which are not all kept")
        old = self.store.put(new)
        (self._resting.pack if listed else self._resting.changed)(new)
        if old is not None and _is_same(old, new):
            return
        if self._metrics is not None:
            (self._metrics.added if old is None else self._metrics.modified)()
        self._tell(old, new)

    def _remove(self, last: Object) -> None:
        if self.store.remove(last) is None:
            return
        if self._metrics is not None:
            self._metrics.deleted()
        self._tell(last, None)

    def _tell(self, old: Object | None, new: Object | None) -> None:
        for handler in self._handlers:
            handler(old, new)

    def _synced(self) -> None:
        self.synced.set()
        self.tried.set()

    def _opened(self) -> None:
        if self.error:
            _log.info("The watch is open again", extra=fields(resource=str(self.scope)))
        self.error = ""
        self._opened_at = self._now()

    def _failed(self, error: ApiError | UnreachableError, retry_after: float, level: int) -> None:
        reason = reason_of(error)
        self._opened_at = None
        if isinstance(error, GoneError):
            text = "What the server remembers begins later than the watch: everything is listed anew"
        else:
            self.error = error.message
            self.tried.set()
            absent = self.absent and isinstance(error, NotFoundError)
            text = "The kind is not installed: it is asked for from time to time" if absent else "A list or watch failed and is tried again"
        if self._metrics is not None:
            self._metrics.failed(reason)
        _log.log(level, text, extra=fields(resource=str(self.scope), reason=reason, err=error.message, retryAfter=round(retry_after, 3)))


def _is_same(old: Object, new: Object) -> bool:
    if type(old) is not type(new):
        return False
    # Most of what changes in an object is left out of its outline.
    return old.raw == new.raw if isinstance(new, Outline) else old.metadata.resource_version == new.metadata.resource_version


class _InformerMetrics:
    def __init__(self, metrics: Metrics, informer: Informer) -> None:
        labels = str(informer.scope._replace(namespace="")), informer.scope.namespace
        self.added, self.modified, self.deleted = (
            metrics.informer_events.labels(*labels, kind).inc for kind in ("ADDED", "MODIFIED", "DELETED")
        )
        self.listed = metrics.informer_lists.labels(*labels).inc
        self._errors, self._labels = metrics.informer_errors, labels
        metrics.informer_objects.labels(*labels).set_function(lambda: float(len(informer.store)))
        metrics.informer_synced.labels(*labels).set_function(lambda: float(informer.synced.is_set()))
        metrics.informer_failing.labels(*labels).set_function(lambda: float(bool(informer.error)))

    def failed(self, reason: str) -> None:
        self._errors.labels(*self._labels, reason).inc()


def reason_of(error: ApiError | UnreachableError) -> str:
    """The word for an error in metrics and logs."""
    if isinstance(error, ApiError):
        return error.reason or str(error.code)
    return "Silent" if isinstance(error, SilentError) else "Untrusted" if isinstance(error, UntrustedError) else "Unreachable"
