"""A demonstration from its options to its exit code: a temporary folder, the views, the story, the report, and signals heard."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from slipway.demo import events, faults
from slipway.demo.events import Event
from slipway.demo.record import Record
from slipway.demo.story import Story
from slipway.runtime import logs

if TYPE_CHECKING:
    from slipway.demo.options import Options
    from slipway.demo.record import View

_TERMINATED = 143


def main(options: Options, form: str, *, verbosity: int = 0) -> int:
    """The exit code: 0 only if every check holds."""
    if verbosity:
        logs.configure("text", verbosity=verbosity)
    else:
        # What a manager logs is for its operators; the timeline tells what happens.
        logging.disable(logging.CRITICAL)
    # What is imported by now lives as long as the program.
    gc.freeze()
    ok = asyncio.run(_heard(demonstrate(options, _view(options, form))))
    return 0 if ok else 1


async def demonstrate(options: Options, view: View) -> bool:
    """Whether every check holds."""
    fault = faults.made(options)
    record = Record(options, view)
    with tempfile.TemporaryDirectory(prefix="slipway-demo-") as folder:
        try:
            async with Story(options, record, Path(folder), fault) as story:
                if options.keep:
                    record.tell(Event(events.NOTE, text=f"export KUBECONFIG={story.kubeconfig}"))
                ok = await story.run()
                if options.keep:
                    record.tell(Event(events.NOTE, text="All of it stays up until Ctrl-C."))
                    await _interrupted()
        finally:
            record.end()
    return ok


def _view(options: Options, form: str) -> View:
    if form == "json":
        from slipway.demo.views.jsonlines import JsonLines

        return JsonLines(sys.stdout)
    from slipway.demo.views.plain import PlainLines

    return PlainLines(sys.stdout)


async def _heard(work: object) -> bool:
    """Let SIGTERM end the work in order, as Ctrl-C does."""
    task = asyncio.ensure_future(work)  # type: ignore[call-overload]
    ended = False

    def end() -> None:
        nonlocal ended
        ended = True
        task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
    try:
        return bool(await task)
    except asyncio.CancelledError:
        if ended:
            raise SystemExit(_TERMINATED) from None
        raise


async def _interrupted() -> None:
    """Until Ctrl-C or SIGTERM, which are an orderly end here."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        await stop.wait()
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
