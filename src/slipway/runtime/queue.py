"""The work queue of a controller: what must be looked at, each once, never by two workers at a time.

The rules are client-go's: a key that is added while it waits is in the queue once; one that is added while it is processed is
processed once more afterwards; one that failed comes back after a delay that doubles with each failure in a row.

What nothing has happened to can wait for what something has: after a start there are ten thousand objects to be looked at, of which nearly
all are as they should be, and a host that tells the end of its plan would have its turn after them.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

    from slipway.runtime.clock import Clock, Timer

K = TypeVar("K", bound="Hashable")
_K = TypeVar("_K", bound="Hashable", contravariant=True)

# client-go's DefaultTypedItemBasedRateLimiter.
FIRST_DELAY = 0.005
LONGEST_DELAY = 1000.0
# One key in so many is of those that can wait, however much happens: they have their turn, too.
_TURN = 5


class QueueMetrics(Protocol):
    """What hears of the queue's work; the seconds are between an add and its get, and between a get and its done."""

    def added(self) -> None: ...

    def taken(self, seconds: float) -> None: ...

    def finished(self, seconds: float) -> None: ...

    def retried(self) -> None: ...


class QueueClosed(Exception):  # noqa: N818 - not an error, the end
    """There is nothing more to do: the queue was closed."""


class Queue(Generic[K]):
    def __init__(
        self,
        *,
        clock: Clock | None = None,
        first_delay: float = FIRST_DELAY,
        longest_delay: float = LONGEST_DELAY,
        metrics: QueueMetrics | None = None,
    ) -> None:
        self._clock: Clock = clock if clock is not None else asyncio.get_running_loop()
        self._first_delay, self._longest_delay = first_delay, longest_delay
        self._metrics = metrics
        self._order: deque[K] = deque()
        # Those that can wait, in their order.
        self._patient: dict[K, None] = {}
        self._turn = 0
        # What is to be processed, with the time of its add; a key that is processed is here too when it was added again.
        self._dirty: dict[K, float] = {}
        self._processing: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        # Delayed adds: the heap may hold entries that an earlier time for the same key has replaced.
        self._delayed: list[tuple[float, int, K]] = []
        self._delayed_at: dict[K, float] = {}
        self._sequence = 0
        self._timer: Timer | None = None
        self._timer_at = 0.0
        self._getters: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._order) + len(self._patient)

    @property
    def delayed(self) -> int:
        """How many keys will be added later."""
        return len(self._delayed_at)

    @property
    def processing(self) -> dict[K, float]:
        """What workers have in hand, and since when."""
        return self._processing

    def add(self, key: K, *, patient: bool = False) -> None:
        """``patient``: after all that something has happened to."""
        if self._closed:
            return
        if key in self._dirty:
            if not patient and key in self._patient:
                del self._patient[key]
                self._order.append(key)
            return
        self._dirty[key] = self._clock.time()
        if self._metrics is not None:
            self._metrics.added()
        if key not in self._processing:
            self._offer(key, patient=patient)

    def add_after(self, key: K, seconds: float) -> None:
        """Add the key in a while; of several times for one key, the earliest counts."""
        if self._closed:
            return
        if seconds <= 0:
            self.add(key)
            return
        when = self._clock.time() + seconds
        known = self._delayed_at.get(key)
        if known is not None and known <= when:
            return
        self._delayed_at[key] = when
        self._sequence += 1
        heapq.heappush(self._delayed, (when, self._sequence, key))
        self._arm()

    def add_rate_limited(self, key: K) -> float:
        """Add the key after the delay that its failures in a row ask for; that delay."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay: float = min(self._first_delay * 2.0 ** min(failures, 64), self._longest_delay)
        if self._metrics is not None:
            self._metrics.retried()
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """The key succeeded: its next failure is its first."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """The next key, which is the caller's until ``done``; QueueClosed when the queue is closed and nothing waits."""
        while not self._order and not self._patient:
            if self._closed:
                raise QueueClosed
            getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                # It may have been woken for a key that it will not take: another one must.
                if getter.done() and not getter.cancelled():
                    self._wake()
                else:
                    self._getters.remove(getter)
                raise
        key = self._next()
        now = self._clock.time()
        added = self._dirty.pop(key)
        self._processing[key] = now
        self._idle.clear()
        if self._metrics is not None:
            self._metrics.taken(now - added)
        return key

    def done(self, key: K) -> None:
        """The caller no longer works on the key; if it was added meanwhile, it is for the next one."""
        began = self._processing.pop(key)
        if self._metrics is not None:
            self._metrics.finished(self._clock.time() - began)
        if key in self._dirty:
            self._offer(key)
        if not self._processing:
            self._idle.set()

    def close(self) -> None:
        """Take nothing more, hand out nothing more: workers that wait get QueueClosed, keys in hand go on to their ``done``."""
        self._closed = True
        self._order.clear()
        self._patient.clear()
        self._dirty.clear()
        self._delayed.clear()
        self._delayed_at.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._getters:
            self._wake()

    async def drained(self) -> None:
        """Wait until no worker has a key in hand."""
        await self._idle.wait()

    def _offer(self, key: K, *, patient: bool = False) -> None:
        if patient:
            self._patient[key] = None
        else:
            self._order.append(key)
        self._wake()

    def _next(self) -> K:
        self._turn = (self._turn + 1) % _TURN
        if not self._patient or (self._order and self._turn):
            return self._order.popleft()
        key = next(iter(self._patient))
        del self._patient[key]
        return key

    def _wake(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _arm(self) -> None:
        """Be called when the next delayed key is due."""
        if not self._delayed:
            return
        due = self._delayed[0][0]
        if self._timer is not None:
            if self._timer_at <= due:
                return
            self._timer.cancel()
        self._timer_at = due
        self._timer = self._clock.call_at(due, self._due)

    def _due(self) -> None:
        self._timer = None
        # A loop calls a little before the time that was asked for, by as much as its clock resolves.
        now = max(self._clock.time(), self._timer_at)
        while self._delayed and self._delayed[0][0] <= now:
            when, _, key = heapq.heappop(self._delayed)
            if self._delayed_at.get(key) == when:
                del self._delayed_at[key]
                self.add(key)
        self._arm()
