"""Text for whoever reads it: colours on a terminal that wants them, tables that fit its width, everything whole for files and pipes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.duration import human_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from typing import TextIO

# Select Graphic Rendition, by what the words mean.
_STYLES = {
    "": "",
    "title": "1",
    "quiet": "2",
    "good": "32",
    "bad": "1;31",
    "wait": "33",
    "free": "36",
    "taken": "34",
    "work": "33",
    "boot": "1;33",
    "node": "1;32",
    "leave": "35",
    "lost": "31",
}
_APART = 3


class Terminal(NamedTuple):
    """Where text goes."""

    width: int = 0
    """In characters; 0 where lines may be as long as they are."""
    colors: bool = False

    def paint(self, text: str, style: str) -> str:
        code = _STYLES[style]
        return f"\x1b[{code}m{text}\x1b[0m" if self.colors and code and text else text

    def cut(self, text: str, taken: int = 0) -> str:
        """As much of one line as there is room for beside so many characters."""
        room = self.width - taken
        return text if not self.width or len(text) <= room else text[: max(room - 1, 0)] + "…"


def terminal_of(out: TextIO, environment: Mapping[str, str]) -> Terminal:
    """NO_COLOR: https://no-color.org.  A terminal that knows nothing but letters gets no more."""
    if not out.isatty():
        return Terminal()
    plain = bool(environment.get("NO_COLOR")) or environment.get("TERM", "dumb") == "dumb"
    return Terminal(shutil.get_terminal_size().columns, not plain)


class Cell(NamedTuple):
    text: str
    style: str = ""


class Column(NamedTuple):
    head: str
    drop: int = 0
    """Which goes first where there is no room: the highest number; 0 stays."""


def table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], terminal: Terminal, *, margin: str = "") -> str:
    """Columns by the width of what is in them; the last one, and the whole line, are cut where the terminal ends."""
    widths = [
        max(len(column.head), *(len(row[index].text) for row in rows)) if rows else len(column.head) for index, column in enumerate(columns)
    ]
    # A column in which there is nothing tells nothing.
    shown = [index for index in range(len(columns)) if not columns[index].drop or any(row[index].text for row in rows)]
    while terminal.width and len(margin) + sum(widths[index] + _APART for index in shown) - _APART > terminal.width:
        optional = [index for index in shown if columns[index].drop]
        if not optional:
            break
        shown.remove(max(optional, key=lambda index: columns[index].drop))
    lines = [_line([Cell(column.head, "quiet") for column in columns], shown, widths, terminal, margin)]
    lines += [_line(row, shown, widths, terminal, margin) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def _line(row: Sequence[Cell], shown: Sequence[int], widths: Sequence[int], terminal: Terminal, margin: str) -> str:
    line, at = margin, len(margin)
    for place, index in enumerate(shown):
        text = terminal.cut(" ".join(row[index].text.split()) if "\n" in row[index].text else row[index].text, at)
        line += terminal.paint(text, row[index].style)
        at += len(text)
        if place < len(shown) - 1:
            gap = widths[index] - len(text) + _APART
            line, at = line + " " * gap, at + gap
        if terminal.width and at >= terminal.width:
            break
    return line.rstrip(" ")


def ago(since: datetime | None, now: datetime) -> str:
    """How long something lasts, as kubectl shows ages."""
    return "" if since is None else human_duration(max(0, int((now - since).total_seconds())))


def wrapped(text: str, terminal: Terminal, margin: str) -> str:
    """Every line of a text behind a margin, and where the terminal has a width, broken between words."""
    import textwrap

    lines = []
    for line in text.splitlines():
        lines += (
            textwrap.wrap(line, max(20, terminal.width - len(margin)), subsequent_indent="  " if line.startswith("* ") else "")
            if terminal.width
            else [line]
        )
    return "".join(f"{margin}{line}\n" for line in lines if line.strip())
