"""The picture for a terminal: how all stands, drawn anew when something happens, and below it what has happened last."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from slipway.fleet.overview.views.lines import line, style
from slipway.fleet.overview.views.status import status
from slipway.fleet.overview.views.terminal import Terminal

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import RenderableType

    from slipway.fleet.overview.changes import Change
    from slipway.fleet.overview.model import ClusterView, Overview

# Of a terminal's lines: for the head and the cursor, and for what has happened last.
_FIXED, _LEAST_LOG, _MOST_LOG = 3, 3, 12


class LiveView:
    """``whole``: every machine, too.  ``namespace`` is the one that is looked at; empty for all."""

    def __init__(self, terminal: Terminal, namespace: str = "", *, whole: bool = False, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, no_color=not terminal.colors)
        self._colors, self._namespace, self._whole = terminal.colors, namespace, whole
        self._log: deque[tuple[str, str]] = deque(maxlen=_MOST_LOG)
        self._live = Live(console=self._console, auto_refresh=False)

    def begin(self, view: Overview, now: datetime) -> None:
        self._live.start()
        self._live.update(self.picture(view, "", now), refresh=True)

    def show(self, view: Overview, changed: list[Change], trouble: str, now: datetime) -> None:
        terminal = Terminal(0, self._colors)
        stamp = terminal.paint(f"{now.astimezone():%H:%M:%S}", "quiet")
        self._log += [(stamp, terminal.paint(text, style(each))) for each in changed if (text := line(each))]
        self._live.update(self.picture(view, trouble, now), refresh=True)

    def end(self) -> None:
        self._live.stop()

    def picture(self, view: Overview, trouble: str, now: datetime) -> RenderableType:
        """Everything, for the size that the terminal has now; what there is no room for is counted."""
        terminal = Terminal(self._console.width, self._colors)
        ordered = type(view)(tuple(sorted(view.clusters, key=_dullness)), view.pools, view.hosts, view.problems, view.missing)
        lines = status(ordered, terminal, now, self._namespace, whole=self._whole).splitlines()
        room = max(5, self._console.height - _FIXED - min(len(self._log), max(_LEAST_LOG, self._console.height - _FIXED - len(lines))))
        if len(lines) > room:
            way = "a taller terminal shows them" if self._whole else "name a cluster to see only that"
            lines = [*lines[: room - 1], terminal.paint(f"… and {len(lines) - room + 1} more lines: {way}", "quiet")]
        head = (
            terminal.paint(f"! {trouble}: it is tried again", "bad") if trouble else terminal.paint(f"{now.astimezone():%H:%M:%S}", "quiet")
        )
        left = self._console.height - _FIXED - len(lines)
        told = list(self._log)[-left:] if left > 0 else []
        texts = [head, *lines, *([""] if told else []), *(f"{stamp}  {text}" for stamp, text in told)]
        return Group(*(Text.from_ansi(each, no_wrap=True, overflow="ellipsis") for each in texts))


def _dullness(cluster: ClusterView) -> tuple[bool, bool]:
    """What needs somebody comes first, then what is at work."""
    return not any(problem.lasting for problem in cluster.problems), cluster.rollout is None
