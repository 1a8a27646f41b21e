"""Signals that a person or a supervisor sends to a command: whatever it shows or has made is put away before it goes."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")

_TERMINATED = 143


async def heard(work: Coroutine[None, None, T]) -> T:
    """Let SIGTERM end the work in order, as Ctrl-C does; the exit code is then that of a process which SIGTERM has ended."""
    task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()
    ended = False

    def end() -> None:
        nonlocal ended
        ended = True
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, end)
    try:
        return await task
    except asyncio.CancelledError:
        if ended:
            raise SystemExit(_TERMINATED) from None
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def told_to_end() -> None:
    """Until Ctrl-C or SIGTERM, where these are an orderly end."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        await stop.wait()
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
