"""Waiting in a test: for something to become so, and never for long.  Who waits in vain is told for what."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

SECONDS = 20.0
"""Enough for a busy machine, and short enough to tell a hang from a result."""
_PAUSE = 0.005


async def eventually(check: Callable[[], Any], what: str = "what was awaited", seconds: float = SECONDS) -> Any:
    """The first true value that ``check`` gives, be it a function or a coroutine's."""
    end = time.monotonic() + seconds
    while True:
        found = check()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        await asyncio.sleep(_PAUSE)


def eventually_blocking(
    check: Callable[[], Any], what: str | Callable[[], str] = "what was awaited", seconds: float = SECONDS, *, pause: float = 0.02
) -> Any:
    """The same where no event loop runs; ``what`` may be a function, where telling it is work."""
    end = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < end, f"not within {seconds:g} s: {what if isinstance(what, str) else what()}"
        time.sleep(pause)
    return found
