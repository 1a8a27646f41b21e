"""Lives as pictures: a row of letters for any terminal, coloured where it can, and a page for a browser."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from slipway.api.machinery.duration import human_duration
from slipway.fleet.overview import stages
from slipway.fleet.overview.rollout import newest
from slipway.fleet.overview.views.drawing import Bar, Lane, document, lanes
from slipway.fleet.overview.views.status import STYLES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from slipway.fleet.overview.timeline import Row, Span
    from slipway.fleet.overview.views.terminal import Terminal

_LETTERS = {
    stages.REGISTERED: ",",
    stages.FREE: ".",
    stages.PENDING: "?",
    stages.ALLOCATED: "a",
    stages.PROVISIONING: "p",
    stages.REPROVISIONING: "r",
    stages.BOOTING: "b",
    stages.MEMBER: "-",
    stages.DRAINING: "d",
    stages.DELETING: "x",
    stages.CLEANING: "c",
    stages.FAILED: "!",
    stages.UNAVAILABLE: "u",
}
_NEW_NODE, _NEW = "=", "new"
# Where no terminal says how wide it is, and the least that is drawn.
_WIDTH, _LEAST = 120, 20
_TICKS = 6


def text(rows: Sequence[Row], begin: datetime, now: datetime, terminal: Terminal) -> str:
    """A letter is a part of the time: of what happened in it, what matters most."""
    if not rows:
        return "There are no hosts and no machines.\n"
    news = _newest(rows)
    labels = [row.name for row in rows]
    versions = [_last_version(row) for row in rows]
    margin, tail = max(map(len, labels)) + 2, max(map(len, versions)) + 2
    width = max(_LEAST, (terminal.width or _WIDTH) - margin - tail)
    lines = [" " * margin + _axis(begin, now, width)]
    for row, label, version in zip(rows, labels, versions, strict=True):
        lines.append(f"{label:<{margin}}{_bar(row, begin, now, width, news, terminal)}  {version}".rstrip())
    used = {_letter(span, row, news) for row in rows for span in row.spans}
    known = [(_LETTERS[stage], _meaning(stage), STYLES[stage]) for stage in stages.STAGES]
    known.append((_NEW_NODE, "a Node of the newest version", STYLES[stages.MEMBER]))
    legend = "   ".join(f"{terminal.paint(letter, style)} {meaning}" for letter, meaning, style in known if letter in used)
    each = (now - begin).total_seconds() / width
    scale = human_duration(round(each)) if each >= 1 else f"{each:.1f}s"
    return "\n".join(lines) + f"\n\n{legend}\none letter is {scale}\n"


def page(rows: Sequence[Row], begin: datetime, now: datetime, title: str) -> str:
    """The whole document."""
    news, total = _newest(rows), (now - begin).total_seconds()
    found = [
        Lane(
            row.name,
            [
                Bar(_class(span, row, news), (span.begin - begin).total_seconds(), (span.end - begin).total_seconds(), _told(span))
                for span in row.spans
            ],
        )
        for row in rows
    ]
    ticks = [f"{(begin + (now - begin) * tick / (_TICKS - 1)).astimezone():%H:%M:%S}" for tick in range(_TICKS)]
    legend = []
    for stage in stages.STAGES:
        legend.append((stage, _meaning(stage)))
        if stage == stages.MEMBER:
            legend.append((f"{stage} {_NEW}", "a Node of the newest version"))
    head = (
        f"<header><h1>{escape(title)}</h1><p>{len(rows)} rows, from {_time(begin)} to {_time(now)}, "
        f"{human_duration(round(total))}.</p></header>"
    )
    return document(title, head + lanes("Hosts", found, total, legend, ticks) + _table(rows))


def _table(rows: Sequence[Row]) -> str:
    cells = "".join(
        f"<tr><td>{escape(row.name)}</td><td>{escape(row.cluster)}</td><td>{escape(stages.MEANINGS[span.stage])}</td>"
        f"<td>{escape(span.version)}</td><td>{escape(span.machine)}</td><td class=number>{_time(span.begin)}</td>"
        f"<td class=number>{human_duration(round((span.end - span.begin).total_seconds()))}</td></tr>"
        for row in rows
        for span in row.spans
    )
    head = "<tr><th>Host<th>Cluster<th>Stage<th>Version<th>Machine<th class=number>From<th class=number>For</tr>"
    return f"<section><details><summary>All spans</summary><table><thead>{head}</thead><tbody>{cells}</tbody></table></details></section>"


def _bar(row: Row, begin: datetime, now: datetime, width: int, news: dict[tuple[str, str], str], terminal: Terminal) -> str:
    total = (now - begin).total_seconds() or 1.0
    cells: list[tuple[str, str]] = [(" ", "")] * width
    ranks: list[int] = [-1] * width
    for span in row.spans:
        first = int((span.begin - begin).total_seconds() / total * width)
        last = int((span.end - begin).total_seconds() / total * width)
        for at in range(max(0, first), min(width, max(last, first + 1))):
            # What is short and matters is not to vanish between two long rests.
            rank = _RANKS[span.stage]
            if rank >= ranks[at]:
                cells[at], ranks[at] = (_letter(span, row, news), STYLES[span.stage]), rank
    return "".join(terminal.paint(letter, style) for letter, style in cells)


# What matters more of two things in the same moment.
_RANKS = dict.fromkeys(stages.STAGES, 1) | {
    stages.REGISTERED: 0,
    stages.FREE: 0,
    stages.MEMBER: 0,
    stages.FAILED: 3,
    stages.UNAVAILABLE: 2,
    stages.REPROVISIONING: 2,
}


def _letter(span: Span, row: Row, news: dict[tuple[str, str], str]) -> str:
    return _NEW_NODE if _is_new(span, row, news) else _LETTERS[span.stage]


def _class(span: Span, row: Row, news: dict[tuple[str, str], str]) -> str:
    return f"{span.stage} {_NEW}" if _is_new(span, row, news) else span.stage


def _is_new(span: Span, row: Row, news: dict[tuple[str, str], str]) -> bool:
    return span.stage == stages.MEMBER and bool(span.version) and span.version == news.get((row.namespace, row.cluster))


def _newest(rows: Sequence[Row]) -> dict[tuple[str, str], str]:
    """The newest version of each cluster."""
    found: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        found.setdefault((row.namespace, row.cluster), set()).update(span.version for span in row.spans if span.version)
    return {place: newest(versions) for place, versions in found.items() if versions}


def _axis(begin: datetime, now: datetime, width: int) -> str:
    """Times above the bars, as many as there is room for."""
    form = "%H:%M:%S" if (now - begin).total_seconds() < 86400 else "%d %b %H:%M"
    size = len(f"{now.astimezone():{form}}")
    number = max(1, min(_TICKS, width // (size + 4)))
    line = ""
    for tick in range(number):
        line = line.ljust(width * tick // number) + f"{(begin + (now - begin) * tick / number).astimezone():{form}}"
    return line[:width]


def _last_version(row: Row) -> str:
    return next((span.version for span in reversed(row.spans) if span.version), "") if row.spans and row.spans[-1].version else ""


def _meaning(stage: str) -> str:
    return stages.MEANINGS[stage]


def _told(span: Span) -> str:
    version = f" {span.version}" if span.version else ""
    return f"{_time(span.begin)}–{_time(span.end)}: {stages.MEANINGS[span.stage]}{version}{f' ({span.machine})' if span.machine else ''}"


def _time(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S}"
