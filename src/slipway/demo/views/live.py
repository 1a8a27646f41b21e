"""The view for a terminal: hosts with their plans and machines, what they wait for, the last events and how far it has come."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from slipway.demo import events
from slipway.demo.board import Board
from slipway.demo.record import Progress
from slipway.demo.views.plain import kept, line, page_at
from slipway.fleet.overview import stages

if TYPE_CHECKING:
    from rich.console import RenderableType

    from slipway.demo.board import Host
    from slipway.demo.events import Event
    from slipway.demo.options import Options

_STYLES = {
    stages.REGISTERED: "dim",
    stages.FREE: "cyan",
    stages.ALLOCATED: "blue",
    stages.REPROVISIONING: "yellow",
    stages.BOOTING: "bold yellow",
    stages.MEMBER: "bold green",
    stages.CLEANING: "magenta",
    stages.FAILED: "bold red",
    stages.UNAVAILABLE: "red",
}
_LOUD = {events.STEP: "bold", events.PATCH: "cyan", events.FAULT: "bold magenta", events.REFUSED: "red", events.PROBLEM: "bold red"}
# Of the table of hosts: each column's share of what is left, and from which width of the terminal on there is room for it.
_COLUMNS = (
    ("HOST", 0, 0),
    ("STAGE", 0, 0),
    ("VERSION", 0, 0),
    ("FOR", 0, 48),
    ("PLAN", 2, 64),
    ("MACHINE", 3, 90),
    ("WAITS FOR", 3, 120),
)
# Seconds between two pictures.
_REFRESH = 0.2
# Of a terminal's lines: the head, the hosts' header, and room for the cursor.
_FIXED_LINES = 7
_LEAST_LOG, _MOST_LOG = 3, 16


class LiveView:
    def __init__(self, options: Options, console: Console | None = None) -> None:
        self._options = options
        self._console = console or Console(highlight=False)
        self._board, self._progress = Board(), Progress(options)
        self._report, self._ways = "", ""
        self._began, self._drawn = time.monotonic(), 0.0
        self._live = Live(console=self._console, auto_refresh=False)
        self._live.start()

    def show(self, event: Event) -> None:
        self._board.apply(event)
        self._progress.count(event)
        if event.event == events.KEPT:
            self._ways = event.text
            self._live.console.print(event.command, soft_wrap=True)
        elif event.event == events.DASHBOARD:
            self._live.console.print(page_at(event), soft_wrap=True)
        elif event.event == events.REPORT:
            self._report = event.text
        elif event.event == events.VERIFIED and self._options.keep:
            self._live.console.print(_verification(self._board))
            self._live.console.print(kept(self._report, self._ways), soft_wrap=True)
        self.tick()

    def tick(self) -> None:
        """Draw, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self._drawn >= _REFRESH:
            self._drawn = now
            self._live.update(self.picture(now - self._began), refresh=True)

    def end(self) -> None:
        self._live.update(self.picture(time.monotonic() - self._began), refresh=True)
        self._live.stop()
        if self._board.checks and not self._options.keep:
            self._console.print(_verification(self._board))

    def picture(self, elapsed: float) -> RenderableType:
        """Everything, for the size that the terminal has now."""
        hosts = self._board.hosts
        room = self._console.height - _FIXED_LINES - len(hosts)
        number = max(_LEAST_LOG, min(_MOST_LOG, room))
        return Group(self._head(elapsed), _hosts(hosts, self._board.at, self._console.width), *self._log(number))

    def _head(self, elapsed: float) -> RenderableType:
        step = self._board.steps[-1] if self._board.steps else None
        words = Text("Slipway", "bold") + Text(f"  {elapsed:5.1f} s  ")
        words += Text(step.text if step is not None and not step.end else "", "bold")
        done = f"{self._progress.done}/{self._progress.total}"
        grid = Table.grid(padding=(0, 1), expand=True)
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1)
        bar = ProgressBar(total=self._progress.total, completed=self._progress.done, complete_style="green", finished_style="green")
        grid.add_row(done, bar)
        return Group(words, grid)

    def _log(self, number: int) -> list[RenderableType]:
        told = [(event, line(event)) for event in self._board.told[-5 * number :]]
        shown = [Text(f"{event.at:6.1f}  {text}", _style(event), no_wrap=True, overflow="ellipsis") for event, text in told if text]
        return list(shown[-number:])


def _hosts(hosts: list[Host], now: float, width: int) -> RenderableType:
    columns = [(head, ratio) for head, ratio, least in _COLUMNS if width >= least]
    table = Table(expand=True, box=None, padding=(0, 1), header_style="dim")
    for head, ratio in columns:
        table.add_column(head, no_wrap=True, ratio=ratio or None, overflow="ellipsis")
    for host in hosts:
        stage = Text(host.stage, _STYLES.get(host.stage, ""))
        cells = (host.name, stage, host.version, f"{now - host.since:.0f} s", host.plan, host.machine, Text(host.waiting, "yellow"))
        table.add_row(*cells[: len(columns)])
    return table


def _style(event: Event) -> str:
    if event.event == events.CONDITION:
        return "yellow"
    return _STYLES.get(event.stage) or _LOUD.get(event.event, "")


def _verification(board: Board) -> RenderableType:
    table = Table(title="Verification", title_justify="left", title_style="bold", box=None, padding=(0, 1), header_style="dim")
    table.add_column("")
    table.add_column("CHECK")
    table.add_column("SEEN")
    for check in board.checks:
        table.add_row(Text("ok", "green") if check.ok else Text("NOT", "bold red"), check.name, check.seen)
    return table
