"""A demonstration from its options to its exit code: a temporary folder, the views, the story, the report, and signals heard."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.demo import events, faults
from slipway.demo.events import Event
from slipway.demo.options import CLUSTER
from slipway.demo.record import Record
from slipway.demo.report import page
from slipway.demo.story import Story
from slipway.runtime import logs
from slipway.runtime.signals import heard, told_to_end
from slipway.simulation.plane import collect_seldom

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.demo.options import Options
    from slipway.demo.record import View
    from slipway.runtime.manager import Manager

_TICK = 0.25


def main(options: Options, form: str, *, verbosity: int = 0, dashboard: Callable[[Manager, int], None] | None = None) -> int:
    """The exit code: 0 only if every check holds.  ``dashboard`` lets the manager serve its page on a port."""
    # What is wrong is told before anything starts.
    faults.made(options)
    report = _report_file(options.report)
    collect_seldom()
    record = Record(options, _view(options, form))
    record.tell(Event(events.REPORT, text=str(report)))
    try:
        with logs.beside_output(verbosity):
            ok = asyncio.run(heard(demonstrate(options, record, report, dashboard)))
    finally:
        record.end()
    if form != "json" and not options.keep:
        sys.stdout.write(f"The report is in {report}\n")
    return 0 if ok else 1


async def demonstrate(options: Options, record: Record, report: Path, dashboard: Callable[[Manager, int], None] | None = None) -> bool:
    """Whether every check holds."""
    with tempfile.TemporaryDirectory(prefix="slipway-demo-") as folder:
        ticking = asyncio.create_task(_tick(record))
        try:
            async with Story(options, record, Path(folder), faults.made(options), dashboard) as story:
                if dashboard is not None:
                    record.tell(Event(events.DASHBOARD, text=story.plane.dashboard_url()))
                if options.keep:
                    access = f"export KUBECONFIG={story.kubeconfig}"
                    record.tell(Event(events.KEPT, text="\n".join([access, *_ways(options)]), command=access))
                try:
                    ok = await story.run()
                except OSError:
                    # Nobody reads what is shown: nothing is left behind.
                    raise
                except Exception as error:
                    # An error of the program; what led to it is in the report.
                    record.tell(Event(events.PROBLEM, text=f"{type(error).__name__}: {error}"))
                    _write(report, page(options, record.events))
                    raise
                _write(report, page(options, record.events))
                if options.keep:
                    await told_to_end()
        finally:
            ticking.cancel()
    return ok


def _ways(options: Options) -> list[str]:
    """What somebody can do with a demonstration that stays up."""
    called = sys.argv[0] if Path(sys.argv[0]).name == "slipway" else f"{sys.executable} -m slipway"
    program = "slipway" if shutil.which("slipway") else called
    looks = ["kubectl get machines,baremetalmachines", f"{program} fleet status", f"{program} fleet timeline"]
    trying = [f"{program} fleet {command} {CLUSTER} --to {options.to}" for command in ("rehearse", "upgrade")]
    return looks if options.upgrade else [*looks, *trying]


async def _tick(record: Record) -> None:
    while True:
        await asyncio.sleep(_TICK)
        record.tick()


def _report_file(wanted: str) -> Path:
    """Where the report goes: what is not writable is told before anything starts."""
    if not wanted:
        return Path(tempfile.gettempdir()) / f"slipway-demo-report-{secrets.token_hex(4)}" / "report.html"
    path = Path(wanted)
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OperatorError(f"the report cannot be written to {wanted}: it is to be a file in a folder that can be written to")
    return path


def _write(report: Path, text: str) -> None:
    report.parent.mkdir(mode=0o700, exist_ok=True)
    report.write_text(text)


def _view(options: Options, form: str) -> View:
    if form == "json":
        from slipway.demo.views.jsonlines import JsonLines

        return JsonLines(sys.stdout)
    if sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        from slipway.demo.views.live import LiveView

        return LiveView(options)
    from slipway.demo.views.plain import PlainLines

    return PlainLines(sys.stdout)
