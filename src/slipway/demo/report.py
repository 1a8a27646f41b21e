"""The report of a run: one file that any browser shows, with the life of every host as a picture, the verification and all events.

Nothing is loaded from elsewhere.  A host's picture is stretched to the width that there is; every word stands beside it, so that it is
read on a telephone, too.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from slipway.demo import events
from slipway.demo.board import Board
from slipway.demo.views.plain import line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.demo.board import Host, Span, Step
    from slipway.demo.events import Check, Event
    from slipway.demo.options import Options

_UNITS = 1000.0
# The narrowest that a span is drawn, in units.
_LEAST = 1.5
_TICKS = 6
_NEW = "new"
_MEANINGS = {
    events.REGISTERED: "registered",
    events.FREE: "free in its pool",
    events.ALLOCATED: "taken",
    events.REPROVISIONING: "gets its image",
    events.BOOTING: "boots",
    events.MEMBER: "a Node",
    events.CLEANING: "is cleaned",
    events.FAILED: "failed",
    events.UNAVAILABLE: "unavailable",
}


def page(options: Options, told: Sequence[Event]) -> str:
    """The whole document."""
    board = Board(told)
    title = f"{options.control_planes} + {options.workers} nodes, Kubernetes {options.start}" + (
        f" → {options.to}" if options.upgrade else ""
    )
    verdict = {True: "Every check holds.", False: "Not every check holds.", None: "It was not verified."}[board.ok]
    body = (
        f"<header><h1>Slipway demo</h1><p>{escape(title)}, on {len(board.hosts)} simulated hosts, in {board.at:.1f} s. "
        f'<strong class="{"ok" if board.ok else "bad"}">{verdict}</strong></p></header>'
        + _hosts(options, board)
        + _steps(board.steps)
        + _checks(board.checks)
        + _troubles(told)
        + _log(told)
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>Slipway demo: {escape(title)}</title><style>{_STYLE}</style></head>'
        f"<body><main>{body}</main></body></html>\n"
    )


def _hosts(options: Options, board: Board) -> str:
    rows = "".join(_row(options, host, board.at) for host in board.hosts)
    used = {_class(options, span) for host in board.hosts for span in host.spans}
    legend = "".join(
        f'<li><svg class="key" viewBox="0 0 1 1" aria-hidden="true"><rect class="{name}" width="1" height="1"/></svg>{escape(text)}</li>'
        for name, text in _legend(options)
        if name in used
    )
    return (
        f'<section><h2>Hosts</h2><ul class="legend">{legend}</ul><div class="hosts">{rows}'
        f'<div class="axis"><span class="name"></span><span class="ticks">{_ticks(board.at)}</span></div></div></section>'
    )


def _row(options: Options, host: Host, total: float) -> str:
    drawn = "".join(
        f'<rect class="{_class(options, span)}" x="{_x(span.begin, total):.1f}" y="0" height="20" '
        f'width="{max(_x(span.end, total) - _x(span.begin, total), _LEAST):.1f}"><title>{escape(_told(span))}</title></rect>'
        for span in host.spans
    )
    words = "; ".join(_told(span) for span in host.spans)
    return (
        f'<div class="host"><span class="name">{escape(host.name)}</span><svg viewBox="0 0 {_UNITS:g} 20" preserveAspectRatio="none" '
        f'role="img" aria-label="{escape(f"{host.name}: {words}")}">{drawn}</svg></div>'
    )


def _told(span: Span) -> str:
    version = f" {span.version}" if span.version else ""
    return f"{span.begin:.1f}–{span.end:.1f} s: {_MEANINGS.get(span.stage, span.stage)}{version}"


def _class(options: Options, span: Span) -> str:
    """Nodes of the version that the run ends with look another way than those before."""
    return f"{span.stage} {_NEW}" if span.stage == events.MEMBER and options.upgrade and span.version == options.to else span.stage


def _legend(options: Options) -> list[tuple[str, str]]:
    found = []
    for stage in events.STAGES:
        if stage == events.MEMBER:
            before = f"a Node before {options.to}" if options.upgrade else f"a Node of {options.start}"
            found += [(stage, before), (f"{stage} {_NEW}", f"a Node of {options.to}")]
        else:
            found.append((stage, _MEANINGS[stage]))
    return found


def _ticks(total: float) -> str:
    return "".join(f"<span>{total * tick / (_TICKS - 1):.0f} s</span>" for tick in range(_TICKS))


def _x(at: float, total: float) -> float:
    return at / total * _UNITS if total else 0.0


def _steps(steps: Sequence[Step]) -> str:
    rows = "".join(
        f"<tr><td>{escape(step.text)}</td><td class=number>{step.begin:.1f} s</td>"
        f"<td class=number>{f'{step.end - step.begin:.1f} s' if step.end else 'not done'}</td></tr>"
        for step in steps
    )
    head = "<tr><th>Step<th class=number>From<th class=number>Took</tr>"
    return f"<section><h2>Steps</h2><table><thead>{head}</thead><tbody>{rows}</tbody></table></section>"


def _checks(checks: Sequence[Check]) -> str:
    if not checks:
        return ""
    rows = "".join(
        f'<tr><td class="{"ok" if check.ok else "bad"}">{"ok" if check.ok else "not"}</td><td>{escape(check.name)}</td>'
        f"<td>{escape(check.seen)}</td></tr>"
        for check in checks
    )
    return (
        "<section><h2>Verification</h2><table><thead><tr><th><th>What must hold<th>What was seen</tr></thead>"
        f"<tbody>{rows}</tbody></table></section>"
    )


def _troubles(told: Sequence[Event]) -> str:
    """What went wrong, and what mended it."""
    wanted = (events.FAULT, events.REFUSED, events.PROBLEM, events.NOTE)
    found = [event for event in told if event.event in wanted or (event.event == events.CONDITION and event.lasting)]
    if not any(event.event != events.NOTE for event in found):
        return ""
    rows = "".join(f"<li><time>{event.at:.1f} s</time> {escape(line(event))}</li>" for event in found)
    return f'<section><h2>What went wrong</h2><ol class="log">{rows}</ol></section>'


def _log(told: Sequence[Event]) -> str:
    rows = "".join(f"<li><time>{event.at:.1f} s</time> {escape(text)}</li>" for event in told if (text := line(event)))
    return f'<section><details><summary>All events</summary><ol class="log">{rows}</ol></details></section>'


_STYLE = """
:root{--ground:#fff;--ink:#1b1f24;--quiet:#5b6570;--line:#d8dee4;--ok:#13703a;--bad:#b3261e;
--registered:#c9d1d9;--free:#8fd3e8;--allocated:#7aa7f0;--reprovisioning:#f2c14e;--booting:#e8892b;
--node:#9aa8d8;--new:#2f9e5b;--cleaning:#b77fd6;--failed:#d93a32;--unavailable:#e59a95}
@media (prefers-color-scheme:dark){:root{--ground:#14181d;--ink:#e4e9ee;--quiet:#9aa5b1;--line:#323a44;--ok:#5fd08c;--bad:#ff8a80;
--registered:#48525d;--free:#2f7f96;--allocated:#3d68b8;--reprovisioning:#b98c1f;--booting:#d0701a;
--node:#5d6ba3;--new:#35a863;--cleaning:#8d58ad;--failed:#d93a32;--unavailable:#8c4440}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:72rem;margin:0 auto;padding:1rem}
h1{font-size:1.5rem;margin:.5rem 0}h2{font-size:1.1rem;margin:2rem 0 .5rem}
.ok{color:var(--ok)}.bad{color:var(--bad)}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1rem;list-style:none;margin:0 0 .75rem;padding:0;font-size:.875rem;color:var(--quiet)}
.legend li{display:flex;align-items:center;gap:.375rem}
.key{width:.875rem;height:.875rem;border-radius:2px}
.host,.axis{display:grid;grid-template-columns:6rem 1fr;align-items:center;gap:.5rem;margin:.25rem 0}
.host svg{width:100%;height:1.5rem;display:block;background:var(--line);border-radius:3px}
.name{font-variant-numeric:tabular-nums;font-weight:600;overflow-wrap:anywhere}
.ticks{display:flex;justify-content:space-between;color:var(--quiet);font-size:.8125rem;font-variant-numeric:tabular-nums}
.registered{fill:var(--registered)}.free{fill:var(--free)}.allocated{fill:var(--allocated)}.reprovisioning{fill:var(--reprovisioning)}
.booting{fill:var(--booting)}.node{fill:var(--node)}.node.new{fill:var(--new)}.cleaning{fill:var(--cleaning)}
.failed{fill:var(--failed)}.unavailable{fill:var(--unavailable)}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.375rem .75rem .375rem 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
th{color:var(--quiet);font-weight:600;font-size:.875rem}
.number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.ok,.bad{white-space:nowrap;overflow-wrap:normal}
.log{list-style:none;margin:0;padding:0;font:.8125rem/1.5 ui-monospace,monospace;overflow-wrap:anywhere}
.log li{padding:.125rem 0}
time{color:var(--quiet)}
summary{cursor:pointer;font-weight:600}
@media (max-width:36rem){.host,.axis{grid-template-columns:1fr;gap:0}.host{margin:.5rem 0}.axis .name{display:none}
td,th{padding-right:.5rem;font-size:.9375rem}}
"""
