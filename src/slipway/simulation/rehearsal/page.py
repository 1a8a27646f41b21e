"""The report of a rehearsal for a browser: one file with the life of every host as a picture, the order, the capacity and the findings."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from slipway.fleet.overview import stages
from slipway.fleet.overview.views.drawing import Bar, Lane, document, lanes
from slipway.simulation.rehearsal.findings import FATAL
from slipway.simulation.rehearsal.report import clock, spoken, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.simulation.rehearsal.findings import Finding
    from slipway.simulation.rehearsal.report import Report

_TICKS = 6
_NEW = f"{stages.MEMBER} new"
_STYLES = (stages.MEMBER, _NEW, stages.DRAINING, stages.CLEANING, stages.PENDING, stages.REPROVISIONING, stages.BOOTING)


def page(report: Report) -> str:
    """The whole document."""
    title = f"Rehearsal of {report.cluster} to {report.to}"
    total = max((each.end for move in report.moves for each in move.stretches), default=0.0)
    body = (
        f'<header><h1>{escape(title)}</h1><p><strong class="{"ok" if report.ok else "bad"}">{escape(verdict(report))}</strong></p>'
        f"<p>The order was simulated in {report.rehearsed_in:.0f} s, by the real controllers on simulated hosts; the times are those that "
        "these hosts took in the past, or are said to be unknown.</p></header>"
    )
    if report.moves:
        body += _hosts(report, total) + _order(report) + _capacity(report)
    return document(title, body + _findings(report.findings))


def _hosts(report: Report, total: float) -> str:
    rows = [Lane(host, _bars(report, host, total)) for host in dict.fromkeys(move.host for move in report.moves if move.host)]
    ticks = [spoken(total * tick / (_TICKS - 1)) for tick in range(_TICKS)]
    before = f"a Node before {report.to}"
    legend = [(style, {stages.MEMBER: before, _NEW: f"a Node of {report.to}"}.get(style) or stages.MEANINGS[style]) for style in _STYLES]
    return lanes("Hosts", rows, total, legend, ticks)


def _bars(report: Report, host: str, total: float) -> list[Bar]:
    """What a host does, and between that what it is."""
    made: list[Bar] = []
    at, style = 0.0, stages.MEMBER
    for move in (each for each in report.moves if each.host == host):
        if move.begin > at and style:
            made.append(_bar(style, at, move.begin))
        made += [_bar(each.stage, each.begin, each.end) for each in move.stretches]
        at = move.stretches[-1].end if move.stretches else move.begin
        style = "" if move.way == "leaves" or move.end is None else (_NEW if move.version == report.to else stages.MEMBER)
    return [*made, _bar(style, at, total)] if style and total > at else made


def _bar(style: str, begin: float, end: float) -> Bar:
    return Bar(style, begin, end, f"{spoken(begin)} to {spoken(end)}: {stages.MEANINGS[style.partition(' ')[0]]}")


def _order(report: Report) -> str:
    rows = "".join(
        f"<tr><td class=number>{clock(move.begin)}</td><td class=number>{clock(move.end) if move.end is not None else 'never'}</td>"
        f"<td>{escape(move.host or '-')}</td><td>{'leaves' if move.way == 'leaves' else f'comes, {escape(move.version)}'}</td>"
        f"<td>{escape(move.group)}</td></tr>"
        for move in report.moves
    )
    head = "<tr><th class=number>Begins<th class=number>Ends<th>Host<th>What<th>Group</tr>"
    return f"<section><h2>Order</h2><table><thead>{head}</thead><tbody>{rows}</tbody></table></section>"


def _capacity(report: Report) -> str:
    rows = "".join(
        f"<tr><td>{escape(each.name)}</td><td class=number>{each.replicas}</td><td class=number>{each.lowest}</td></tr>"
        for each in report.groups
    )
    head = "<tr><th>Group<th class=number>Nodes<th class=number>Lowest</tr>"
    return f"<section><h2>Capacity</h2><table><thead>{head}</thead><tbody>{rows}</tbody></table></section>"


def _findings(found: Sequence[Finding]) -> str:
    if not found:
        return ""
    rows = "".join(
        f'<tr><td class="{"bad" if each.weight in FATAL else "word"}">{each.weight}</td><td>'
        f"{f'<strong>{escape(each.object)}</strong>: ' if each.object else ''}{escape(each.message)}"
        f"{f'<br>→ {escape(each.to_do)}' if each.to_do else ''}</td></tr>"
        for each in found
    )
    head = "<tr><th class=word>Weight<th>What</tr>"
    return f"<section><h2>Findings</h2><table><thead>{head}</thead><tbody>{rows}</tbody></table></section>"
