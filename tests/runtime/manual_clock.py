"""A clock that a test moves: timers are called when the test lets their time come."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable


class _Timer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self._timers: list[tuple[float, int, _Timer]] = []
        self._count = 0

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], object]) -> _Timer:
        timer = _Timer(callback)
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Let time pass, and every timer whose time comes be called at its time."""
        until = self.now + seconds
        while self._timers and self._timers[0][0] <= until:
            when, _, timer = heapq.heappop(self._timers)
            self.now = max(self.now, when)
            if timer.callback is not None:
                timer.callback()
        self.now = until

    async def run_for(self, seconds: float) -> None:
        """Let time pass timer by timer, with everything that each sets off done before the next."""
        until = self.now + seconds
        await settled()
        while self._timers and self._timers[0][0] <= until:
            self.advance(self._timers[0][0] - self.now)
            await settled()
        self.now = until


async def settled() -> None:
    """Let every task run until all of them wait: none of them has more than a few steps without time passing."""
    for _ in range(50):
        await asyncio.sleep(0)
