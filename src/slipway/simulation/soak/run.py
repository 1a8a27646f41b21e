"""A soak from its options to its exit code: the folder of its report, what is shown meanwhile, and signals heard."""

from __future__ import annotations

import asyncio
import gc
import resource
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import msgspec

from slipway.runtime import logs
from slipway.simulation.soak import record as events
from slipway.simulation.soak.page import page
from slipway.simulation.soak.record import Record
from slipway.simulation.soak.report import Costs, Counts, Report, lines, report
from slipway.simulation.soak.soak import Soak

if TYPE_CHECKING:
    from slipway.simulation.soak.judging.watcher import Watcher
    from slipway.simulation.soak.options import Options
    from slipway.simulation.soak.record import Event

# Objects of the API have no cycles: looking for some as often as Python does takes a tenth of the run.
_COLLECT = (20_000, 50, 100)
_SHOWN = frozenset((events.STARTED, events.VIOLATION, events.REST, events.PROGRESS, events.ENDED))
_MIB = 1 << 20


def main(options: Options) -> int:
    """The exit code: 0 only if everything held."""
    options.report.mkdir(parents=True, exist_ok=True)
    gc.freeze()
    gc.set_threshold(*_COLLECT)
    with (options.report / "events.jsonl").open("w") as file, tempfile.TemporaryDirectory(prefix="slipway-soak-") as folder:
        shown = Shown(sys.stdout, file, json=options.json)
        with logs.beside_output(0):
            found = asyncio.run(_soak(options, Record(shown), Path(folder)))
        log = Path(folder) / "manager.log"
        if log.exists() and not found.ok:
            (options.report / "manager.log").write_bytes(log.read_bytes())
    (options.report / "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    (options.report / "report.html").write_text(page(found))
    if not options.json:
        for line in lines(found):
            sys.stdout.write(f"{line}\n")
        sys.stdout.write(f"The report is in {options.report}: report.html, report.json, events.jsonl\n")
    return 0 if found.ok else 1


async def _soak(options: Options, record: Record, folder: Path) -> Report:
    """What it has shown; also where it was ended before its time."""
    soak = Soak(options, record, folder)
    running = asyncio.ensure_future(soak.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        record.violation("goes-on", events.ended_early())
    except Exception as error:
        # The report is written all the same: what led to it is there.
        record.violation("goes-on", events.failed(error))
        traceback.print_exception(error)
    used = resource.getrusage(resource.RUSAGE_SELF)
    costs = Costs(round(record.now, 1), round(soak.cpu, 1), round(used.ru_utime + used.ru_stime, 1))
    # Where it failed early there is none.
    watcher: Watcher | None = getattr(soak.ground, "watcher", None)
    counts = Counts(watcher.writes, watcher.out_of_order, watcher.unjudged) if watcher is not None else Counts()
    return report(options, record, rounds=soak.rounds, kills=soak.kills, costs=costs, counts=counts)


class Shown:
    """Tells events: all of them as JSON lines in a file, and on the terminal as JSON or as what is worth a line."""

    def __init__(self, out: TextIO, file: TextIO, *, json: bool) -> None:
        self._out, self._file, self._json = out, file, json

    def __call__(self, event: Event) -> None:
        line = msgspec.json.encode(event).decode()
        self._file.write(f"{line}\n")
        self._file.flush()
        if self._json:
            self._out.write(f"{line}\n")
        elif event.event in _SHOWN:
            self._out.write(f"{told(event)}\n")
        self._out.flush()


def told(event: Event) -> str:
    """One line for people."""
    when, numbers = f"{int(event.at) // 60:3}:{int(event.at) % 60:02}", {key: int(value) for key, value in event.numbers.items()}
    if event.event == events.PROGRESS:
        counted = "  ".join(f"{key} {numbers[key]}" for key in ("round", "operations", "faults", "kills", "writes", "violations"))
        return f"{when}  {counted}  manager {numbers['resident'] // _MIB} MiB  {event.text}"
    if event.event == events.REST:
        return f"{when}  at rest: {event.text}; manager {numbers['resident'] // _MIB} MiB, {numbers.get('Machine', 0)} Machines"
    if event.event == events.VIOLATION:
        return f"{when}  VIOLATED {event.name}: {event.text}"
    return f"{when}  {event.event}: {event.text}"
