"""The report of a soak for a browser: one file that needs nothing from elsewhere."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from slipway.fleet.overview.views.drawing import document
from slipway.simulation.soak.operations import MEANINGS
from slipway.simulation.soak.report import FAULT_TEXTS, lines, memory_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slipway.simulation.soak.record import Sample
    from slipway.simulation.soak.report import Report

_WIDTH, _HEIGHT = 1000, 200
_MIB = 1 << 20


def page(report: Report) -> str:
    verdict = "Everything held" if report.ok else f"{len(report.violations)} violations"
    body = [
        f"<header><h1>Soak of {report.clusters} clusters</h1>",
        f'<p><strong class="{"ok" if report.ok else "bad"}">{escape(verdict)}</strong></p>',
        f"<p>{escape(lines(report)[0])}</p></header>",
    ]
    if report.violations:
        rows = ((f"{each.at:.1f} s", each.name, each.text, ", ".join(each.objects)) for each in report.violations)
        body.append(_table("Violations", ("when", "invariant", "what was", "objects"), rows))
    body.append(_chart(report))
    body.append(
        _table(
            "What was rolled",
            ("operation", "what it is", "times"),
            ((name, MEANINGS.get(name, ""), number) for name, number in report.operations.items()),
        )
    )
    body.append(
        _table(
            "What went wrong",
            ("fault", "what it is", "times", "ended well"),
            ((kind, FAULT_TEXTS.get(kind, ""), each.occurred, each.ended_well) for kind, each in report.faults.items()),
        )
    )
    body.append(_table("What the operator had to do", ("act", "times"), report.acts.items()))
    body.append(
        _table(
            "What must hold",
            ("invariant", "what holds", "looked at", "violated"),
            ((each.name, each.text, each.checked, each.violated) for each in report.invariants),
        )
    )
    body.append(_table("Objects at the last rest", ("kind", "number"), report.census.items()))
    return document(f"Soak of {report.clusters} clusters", "".join(body))


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    shown = "".join(
        "<tr>" + "".join(f"<td{' class=number' if isinstance(cell, int) else ''}>{escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    body = f"<table><thead><tr>{head}</tr></thead><tbody>{shown}</tbody></table>" if shown else "<p>Nothing.</p>"
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _chart(report: Report) -> str:
    """The memory of the manager over time: a line a life, a dot a rest."""
    samples = report.memory.samples
    told = memory_text(report.memory)
    if not samples:
        return f"<section><h2>Memory of the manager</h2><p>{escape(told)}</p></section>"
    longest = max(each.at for each in samples) or 1.0
    highest = max(each.resident for each in samples) * 1.1

    def point(each: Sample) -> str:
        return f"{each.at / longest * _WIDTH:.1f},{_HEIGHT - each.resident / highest * _HEIGHT:.1f}"

    lives: dict[int, list[Sample]] = {}
    for each in samples:
        lives.setdefault(each.life, []).append(each)
    drawn = "".join(
        f'<polyline fill="none" stroke="currentColor" stroke-width="1.5" points="{" ".join(point(each) for each in life)}"/>'
        for life in lives.values()
    )
    dots = "".join(
        f'<circle cx="{point(each).partition(",")[0]}" cy="{point(each).partition(",")[2]}" r="4"><title>at rest after {each.at:.0f} s: '
        f"{each.resident / _MIB:.1f} MiB</title></circle>"
        for each in samples
        if each.at_rest
    )
    scale = (
        f'<text x="4" y="14">{highest / _MIB:.0f} MiB</text><text x="4" y="{_HEIGHT - 4}">0</text>'
        f'<text x="{_WIDTH - 4}" y="{_HEIGHT - 4}" text-anchor="end">{longest / 60:.1f} min</text>'
    )
    return (
        f"<section><h2>Memory of the manager</h2><p>{escape(told)}; a line is one manager, a dot a rest.</p>"
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" style="width:100%;height:auto;color:var(--new)" role="img" aria-label="{escape(told)}">'
        f'<g fill="var(--quiet)" font-size="14">{scale}</g>{drawn}<g fill="var(--booting)">{dots}</g></svg></section>'
    )
