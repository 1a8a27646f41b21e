"""A controller: events of the kinds that a reconciler watches become requests, requests are de-duplicated and reconciled by N workers.

A reconcile that fails, hangs or has a bug becomes an error in the log and in the metrics, and is run again after a delay that doubles
with each failure in a row.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
import uuid
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol

from slipway.api.machinery.errors import OperatorError
from slipway.kube.errors import ConflictError
from slipway.runtime.logs import fields, within
from slipway.runtime.queue import Queue, QueueClosed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.cache.informer import Informer
    from slipway.runtime.metrics import Metrics
    from slipway.runtime.objects import Object, Request, Result
    from slipway.runtime.rbac import Rule

_log = logging.getLogger("slipway.runtime.controller")

WATCH_FILTER_LABEL = "cluster.x-k8s.io/watch-filter"
RECONCILE_TIMEOUT = 120.0
GRACE = 30.0
# How long after a failure an event is mapped to requests again, at first and at most.
_FIRST_MAPPING_DELAY, _LONGEST_MAPPING_DELAY = 0.5, 60.0
# For how many seconds the same failure of a watch is not told again.
_MAPPING_FAILURES = 30.0
RESPITE = 20.0
"""For reconcilers that look at many objects at once: they take a twentieth of the time at most, however slow the API server is."""
_LONGEST_RESPITE = 10.0
# So many times are remembered before those that no longer matter are let go.
_RESTS = 1000


class Watch(NamedTuple):
    """A kind whose changes matter.  ``requests`` says which objects to reconcile then (None: the object itself), from its old and its
    new state; ``when`` which changes count; ``labels`` chooses other objects than those that the cache has of the kind by default."""

    kind: Kind
    requests: Callable[[Object, Cache], Awaitable[Iterable[Request]]] | None = None
    when: Callable[[Object | None, Object | None], bool] | None = None
    labels: str = ""


class Reconciler(Protocol):
    """One may also have an ``interval``: an object is reconciled at most once in so many seconds, however often it changes.

    And a ``respite``: so many times as long as its reconcile took it is left alone afterwards, ten seconds at most.  That is for what many
    others concern: where the API server has too much to do, one look at them all takes the place of several.
    """

    @property
    def name(self) -> str: ...

    @property
    def watches(self) -> Sequence[Watch]:
        """The first one is of its own kind."""

    @property
    def rules(self) -> Sequence[Rule]:
        """Exactly what it needs to be allowed."""

    async def reconcile(self, request: Request) -> Result: ...


class Controller:
    """``may_work`` is asked before every reconcile: a process that was asleep may have lost the lead without having noticed, and of what
    several processes share another one may have the object.
    ``pace`` is how long a second takes that a reconciler asks to wait."""

    def __init__(
        self,
        reconciler: Reconciler,
        cache: Cache,
        metrics: Metrics,
        *,
        concurrency: int = 10,
        timeout: float = RECONCILE_TIMEOUT,
        grace: float = GRACE,
        watch_filter: str = "",
        may_work: Callable[[Request], bool] | None = None,
        pace: float = 1.0,
    ) -> None:
        if concurrency < 1:
            raise OperatorError(f"the controller {reconciler.name} cannot work with a concurrency of {concurrency}: it is at least 1")
        self.reconciler = reconciler
        self.name = reconciler.name
        self._cache, self._metrics = cache, metrics
        self._concurrency, self._timeout, self._grace = concurrency, timeout, grace
        self._watch_filter = watch_filter
        self._may_work = may_work
        self._pace = pace
        self._watches = list(reconciler.watches)
        self._running: _Running | None = None
        self._in_hand: Mapping[Request, float] = {}
        self._one_less = asyncio.Event()
        self.interval: float = getattr(reconciler, "interval", 0.0) * pace
        self.respite: float = getattr(reconciler, "respite", 0.0)
        # From when on objects may be reconciled again, as far as that is yet to come.
        self._rests: dict[Request, float] = {}
        name = reconciler.name
        self._succeeded = metrics.reconciles.labels(name, "success").inc
        self._requeued = metrics.reconciles.labels(name, "requeue_after").inc
        self._failed = metrics.reconciles.labels(name, "error").inc
        self._errors, self._panics = metrics.reconcile_errors.labels(name).inc, metrics.reconcile_panics.labels(name).inc
        self._timeouts = metrics.reconcile_timeouts.labels(name).inc
        self._seconds = metrics.reconcile_time.labels(name).observe
        metrics.workers.labels(name).set(concurrency)

    @property
    def watches(self) -> list[Watch]:
        return self._watches

    def watch(self, watch: Watch) -> None:
        """Watch another kind, from now on; nothing where that kind is watched in the same way already."""
        if any((known.kind, known.requests, known.labels) == (watch.kind, watch.requests, watch.labels) for known in self._watches):
            return
        self._watches.append(watch)
        if self._running is not None:
            self._running.watch(watch)

    def enqueue(self, request: Request) -> None:
        """Let an object be reconciled for a reason that no watch of the management cluster tells; nothing while the controller rests."""
        if self._running is not None:
            self._running.add(request)

    def look_at(self, mine: Callable[[Object], bool]) -> None:
        """Let those objects of its own kind be reconciled that are ``mine`` now and were not before."""
        if self._running is None:
            return
        watch = self._watches[0]
        for found in self._cache.informer(watch.kind, labels=watch.labels).store.list():
            if mine(found) and self.counts(watch._replace(when=None), None, found):
                self._running.add(found.request)

    async def ended(self, concerns: Callable[[Request], bool]) -> None:
        """Wait until no worker has an object in hand that ``concerns`` the caller."""
        while any(map(concerns, list(self._in_hand))):
            self._one_less.clear()
            await self._one_less.wait()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until ``stop`` is set; reconciles that run then have ``grace`` seconds to end before they are cancelled."""
        queue: Queue[Request] = Queue(metrics=self._metrics.queue(self.name))
        self._metrics.follow(self.name, queue, asyncio.get_running_loop().time)
        self._in_hand = queue.processing
        async with asyncio.TaskGroup() as group:
            running = self._running = _Running(self, queue, group)
            try:
                for watch in self._watches:
                    running.watch(watch)
                workers = [group.create_task(self._work(queue), name=f"worker {n} of {self.name}") for n in range(self._concurrency)]
                _log.info("Started workers", extra=fields(controller=self.name, workers=self._concurrency))
                await stop.wait()
            finally:
                self._running = None
                running.end()
                queue.close()
            _, late = await asyncio.wait(workers, timeout=self._grace)
            if late:
                _log.warning(
                    "Cancelling reconciles that did not end",
                    extra=fields(controller=self.name, requests=[str(key) for key in queue.processing]),
                )
            for worker in late:
                worker.cancel()
        _log.info("All workers finished", extra=fields(controller=self.name))

    def counts(self, watch: Watch, old: Object | None, new: Object | None) -> bool:
        """Whether a change is one to reconcile for."""
        current = new if new is not None else old
        if current is None or (self._watch_filter and current.metadata.labels.get(WATCH_FILTER_LABEL) != self._watch_filter):
            return False
        if watch.when is None:
            return True
        try:
            return watch.when(old, new)
        except Exception:
            # One reconcile too many does no harm, one too few does.
            _log.exception("A filter of events failed: the event is taken", extra=fields(controller=self.name, object=repr(current)))
            return True

    async def requests(self, watch: Watch, objects: Iterable[Object]) -> set[Request]:
        """What to reconcile because these objects (the states before and after a change) are as they are."""
        assert watch.requests is not None
        async with asyncio.timeout(self._timeout):
            return {request for known in objects for request in await watch.requests(known, self._cache)}

    def mapping_failed(self, watch: Watch, error: Exception, delay: float, *, tell: bool) -> None:
        self._metrics.mapping_errors.labels(self.name).inc()
        if not tell:
            return
        told = fields(controller=self.name, kind=watch.kind.kind, retryAfter=delay, err=str(error) or type(error).__name__)
        _log.error("An event could not be mapped to requests", extra=told, exc_info=None if isinstance(error, OperatorError) else error)

    async def _work(self, queue: Queue[Request]) -> None:
        while True:
            try:
                request = await queue.get()
            except QueueClosed:
                return
            try:
                if self._may_work is not None and not self._may_work(request):
                    # Whoever leads now has the same request in its own queue.
                    continue
                wait = self._too_soon(request)
                if wait > 0:
                    queue.add_after(request, wait)
                    continue
                await self._reconcile(queue, request)
            finally:
                queue.done(request)
                self._one_less.set()

    def _too_soon(self, request: Request) -> float:
        """In how many seconds the object may be reconciled; 0 where it may be now."""
        now = time.monotonic()
        wait = self._rests.get(request, -math.inf) - now
        if wait > 0:
            return wait
        self._rest(request, now, self.interval)
        return 0.0

    def _rest(self, request: Request, since: float, seconds: float) -> None:
        """Let the object alone for some seconds, from a moment of its reconcile on."""
        if not seconds:
            return
        if len(self._rests) >= _RESTS:
            now = time.monotonic()
            self._rests = {known: until for known, until in self._rests.items() if until > now}
        self._rests[request] = max(since + seconds, self._rests.get(request, -math.inf))

    async def _reconcile(self, queue: Queue[Request], request: Request) -> None:
        with within(controller=self.name, namespace=request.namespace, name=request.name, reconcileID=str(uuid.uuid4())):
            began = time.monotonic()
            limit = asyncio.timeout(self._timeout)
            try:
                async with limit:
                    result = await self.reconciler.reconcile(request)
            except Exception as error:
                self._report(error, timed_out=limit.expired(), retry_after=queue.add_rate_limited(request))
            else:
                queue.forget(request)
                ended = time.monotonic()
                self._rest(request, began, result.pause * self._pace)
                self._rest(request, ended, min(self.respite * (ended - began), _LONGEST_RESPITE) * self._pace)
                if result.requeue_after > 0:
                    queue.add_after(request, result.requeue_after * self._pace)
                    self._requeued()
                else:
                    self._succeeded()
            finally:
                self._seconds(time.monotonic() - began)

    def _report(self, error: Exception, *, timed_out: bool, retry_after: float) -> None:
        self._failed()
        self._errors()
        if timed_out and isinstance(error, TimeoutError):
            self._timeouts()
            text = f"the reconcile did not end within {self._timeout:g}s"
            _log.error("Reconciler error", extra=fields(err=text, retryAfter=retry_after))
        elif isinstance(error, ConflictError):
            _log.info("The object was changed meanwhile: reconciling again", extra=fields(err=error.message, retryAfter=retry_after))
        elif isinstance(error, OperatorError):
            _log.error("Reconciler error", extra=fields(err=error.message, retryAfter=retry_after))
        else:
            # Not a sentence for an operator but a mistake in the program.
            self._panics()
            _log.error("Observed a panic", extra=fields(retryAfter=retry_after), exc_info=error)


class _Running:
    """The watches of a controller that runs: events come in from informers and go out as requests."""

    def __init__(self, controller: Controller, queue: Queue[Request], group: asyncio.TaskGroup) -> None:
        self._controller, self._queue, self._group = controller, queue, group
        self._ends: list[Callable[[], object]] = []

    def watch(self, watch: Watch) -> None:
        informer = self._controller._cache.informer(watch.kind, labels=watch.labels)
        handler: _Own | _Mapping
        if watch.requests is None:
            handler = _Own(self._controller, watch, self._queue, informer)
        else:
            handler = mapping = _Mapping(self._controller, watch, self._queue, informer)
            task = self._group.create_task(mapping.run(), name=f"{self._controller.name}: watch of {watch.kind.plural}")
            self._ends.append(task.cancel)
        self._ends.append(informer.add_handler(handler.add))
        handler.begins = False

    def add(self, request: Request) -> None:
        self._queue.add(request)

    def end(self) -> None:
        for end in self._ends:
            end()
        self._ends.clear()


class _Handler:
    """Hears of the objects of a kind, at first of all that are there."""

    def __init__(self, controller: Controller, watch: Watch, queue: Queue[Request], informer: Informer) -> None:
        self._controller, self._watch, self._queue, self._informer = controller, watch, queue, informer
        self.begins = True

    def can_wait(self, old: Object | None, new: Object | None) -> bool:
        """Whether nothing has happened to it, as far as can be seen: it was there at the start, or all are told again."""
        return self.begins or old is new or not self._informer.synced.is_set()


class _Own(_Handler):
    """Of the kind that is reconciled: each event is a request for that object."""

    def add(self, old: Object | None, new: Object | None) -> None:
        if self._controller.counts(self._watch, old, new):
            current = new if new is not None else old
            assert current is not None
            self._queue.add(current.request, patient=self.can_wait(old, new))


class _Event(NamedTuple):
    states: tuple[Object, ...]
    """Of one object: before and after."""
    delay: float
    """After which it is asked about again, if that fails."""
    patient: bool


class _Mapping(_Handler):
    """Asks a watch, event by event, which requests follow; an event for which that fails is asked about again later."""

    def __init__(self, controller: Controller, watch: Watch, queue: Queue[Request], informer: Informer) -> None:
        super().__init__(controller, watch, queue, informer)
        self._events: deque[_Event] = deque()
        self._some = asyncio.Event()
        self._told, self._told_at = "", -math.inf

    def add(self, old: Object | None, new: Object | None) -> None:
        if old is new and self._watch.kind != self._controller.watches[0].kind:
            # Each object of the controller's own kind is looked at again by itself; one more look for each that refers to it would be many.
            return
        if not self._controller.counts(self._watch, old, new):
            return
        states = tuple(state for state in (old, new) if state is not None)
        self._append(_Event(states[-1:] if old is new else states, _FIRST_MAPPING_DELAY, self.can_wait(old, new)))

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._events:
                self._some.clear()
                await self._some.wait()
            event = self._events.popleft()
            try:
                found = await self._controller.requests(self._watch, event.states)
            except Exception as error:
                self._controller.mapping_failed(self._watch, error, event.delay, tell=self._is_news(repr(error)))
                loop.call_later(event.delay, self._append, event._replace(delay=min(event.delay * 2, _LONGEST_MAPPING_DELAY)))
            else:
                for request in found:
                    self._queue.add(request, patient=event.patient)

    def _is_news(self, failure: str) -> bool:
        """Where a server is away all events fail for one reason, of which there are thousands in a large fleet."""
        now = time.monotonic()
        if failure == self._told and now - self._told_at < _MAPPING_FAILURES:
            return False
        self._told, self._told_at = failure, now
        return True

    def _append(self, event: _Event) -> None:
        self._events.append(event)
        self._some.set()
