"""Time as the runtime sees it: something that tells it and calls back.  An event loop is one; a test has one that it moves by hand."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """The part of an event loop that tells the time: seconds from some moment on, never backwards."""

    def time(self) -> float: ...

    def call_at(self, when: float, callback: Callable[[], object]) -> Timer: ...


async def sleep(clock: Clock, seconds: float) -> None:
    woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not woken.done():
            woken.set_result(None)

    timer = clock.call_at(clock.time() + seconds, wake)
    try:
        await woken
    finally:
        timer.cancel()


class Backoff:
    """Delays that double with every failure in a row, each with jitter: many clients of a server that was away do not return at once."""

    def __init__(
        self, first: float = 0.8, longest: float = 30.0, *, jitter: float = 1.0, random: Callable[[], float] = random.random
    ) -> None:
        self._first, self._longest, self._jitter, self._random = first, longest, jitter, random
        self.failures = 0

    def next(self) -> float:
        delay: float = min(self._first * 2.0 ** min(self.failures, 64), self._longest)
        self.failures += 1
        return delay * (1 + self._jitter * self._random())

    def reset(self) -> None:
        self.failures = 0
