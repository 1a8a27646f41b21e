"""An upgrade on a terminal: lines as they come, and under them how far it is, drawn anew as time passes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from slipway.fleet.overview import stages
from slipway.fleet.upgrades import events, views

if TYPE_CHECKING:
    from typing import TextIO

    from rich.console import RenderableType

    from slipway.fleet.overview.views.terminal import Terminal
    from slipway.fleet.upgrades.events import Event

_MOST_MACHINES = 8
_AT_REST = (stages.MEMBER, events.GONE)


class LiveView:
    def __init__(self, out: TextIO, terminal: Terminal) -> None:
        self._terminal = terminal
        self._console = Console(file=out, highlight=False, no_color=not terminal.colors)
        self._live: Live | None = None
        self._began = time.monotonic()
        self._progress: tuple[Event, float] | None = None
        self._machines: dict[str, tuple[Event, float]] = {}

    def begin(self) -> None:
        self._live = Live(console=self._console, get_renderable=self.picture, refresh_per_second=4, transient=True)
        self._live.start()

    def show(self, event: Event) -> None:
        now = time.monotonic()
        if event.event == events.MACHINE:
            # The bar shows those that are on their way.
            self._machines.pop(event.name, None)
            if event.stage not in _AT_REST:
                self._machines[event.name] = event, now
        if event.event == events.PROGRESS:
            self._progress = event, now
            return
        for line in views.lines(event, self._terminal):
            # A command is to be copied as it is; all else is broken between words.
            self._console.print(Text.from_ansi(line), soft_wrap=event.event == events.PATCH)

    def end(self) -> None:
        if self._live is not None:
            self._live.stop()

    def picture(self) -> RenderableType:
        """How far it is now, and the machines that are on their way."""
        now = time.monotonic()
        if self._progress is None:
            return Text(f"{views.duration(now - self._began)}  looking …", "dim")
        event, at = self._progress
        done, total = event.done or 0, event.total or 0
        left = ""
        if event.estimate_seconds is not None:
            left = f"about {views.duration(max(event.estimate_seconds - (now - at), 0))} left"
        grid = Table.grid(padding=(0, 1), expand=True)
        for ratio in (None, 1, None):
            grid.add_column(no_wrap=True, ratio=ratio)
        grid.add_row(
            f"{done}/{total}", ProgressBar(total=max(total, 1), completed=done, complete_style="green", finished_style="green"), left
        )
        head = Text(f"{event.kind} {event.name} to {event.version}  {views.duration(now - self._began)}", "bold")
        moving = [
            Text(f"  {views.machine(told)} for {views.duration(now - since)}", no_wrap=True, overflow="ellipsis")
            for told, since in list(self._machines.values())[:_MOST_MACHINES]
        ]
        return Group(head, grid, *moving)
