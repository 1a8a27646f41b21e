"""Pictures of lives, for a browser: a page that needs nothing from elsewhere, and a lane of coloured bars for each host.

A lane is stretched to the width that there is; every word stands beside it, so that it is read on a telephone, and aloud, too.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_UNITS = 1000.0
# The narrowest that a bar is drawn, in units.
_LEAST = 1.5
# Of the names beside the lanes, in characters.
_NARROWEST, _WIDEST = 9, 30


class Bar(NamedTuple):
    style: str
    """Its classes: the stage, and ``new`` for a node that is as it should be."""
    begin: float
    end: float
    """Seconds since the picture begins."""
    told: str


class Lane(NamedTuple):
    name: str
    bars: Sequence[Bar]


def document(title: str, body: str) -> str:
    """The whole page."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)}</title><style>{_STYLE}</style></head>'
        f"<body><main>{body}</main></body></html>\n"
    )


def lanes(title: str, found: Sequence[Lane], total: float, legend: Sequence[tuple[str, str]], ticks: Sequence[str]) -> str:
    """A section with a lane a host, over ``total`` seconds.  ``legend`` has the meaning of each style; those that are used are told."""
    used = {bar.style for lane in found for bar in lane.bars}
    keys = "".join(
        f'<li><svg class="key" viewBox="0 0 1 1" aria-hidden="true"><rect class="{style}" width="1" height="1"/></svg>{escape(text)}</li>'
        for style, text in legend
        if style in used
    )
    width = min(max((len(lane.name) for lane in found), default=0), _WIDEST) + 1
    names = f' style="--names:{width}ch"' if width > _NARROWEST else ""
    rows = "".join(_lane(lane, total) for lane in found)
    axis = "".join(f"<span>{escape(tick)}</span>" for tick in ticks)
    return (
        f'<section><h2>{escape(title)}</h2><ul class="legend">{keys}</ul><div class="hosts"{names}>{rows}'
        f'<div class="axis"><span class="name"></span><span class="ticks">{axis}</span></div></div></section>'
    )


def _lane(lane: Lane, total: float) -> str:
    drawn = "".join(
        f'<rect class="{bar.style}" x="{_x(bar.begin, total):.1f}" y="0" height="20" '
        f'width="{max(_x(bar.end, total) - _x(bar.begin, total), _LEAST):.1f}"><title>{escape(bar.told)}</title></rect>'
        for bar in lane.bars
    )
    words = "; ".join(bar.told for bar in lane.bars)
    return (
        f'<div class="host"><span class="name">{escape(lane.name)}</span><svg viewBox="0 0 {_UNITS:g} 20" preserveAspectRatio="none" '
        f'role="img" aria-label="{escape(f"{lane.name}: {words}")}">{drawn}</svg></div>'
    )


def _x(at: float, total: float) -> float:
    return at / total * _UNITS if total else 0.0


_STYLE = """
:root{--ground:#fff;--ink:#1b1f24;--quiet:#5b6570;--line:#d8dee4;--ok:#13703a;--bad:#b3261e;
--registered:#c9d1d9;--free:#8fd3e8;--allocated:#7aa7f0;--reprovisioning:#f2c14e;--booting:#e8892b;
--node:#9aa8d8;--new:#2f9e5b;--cleaning:#b77fd6;--failed:#d93a32;--unavailable:#e59a95;--pending:#b9b3a4;--draining:#d9a7e8}
@media (prefers-color-scheme:dark){:root{--ground:#14181d;--ink:#e4e9ee;--quiet:#9aa5b1;--line:#323a44;--ok:#5fd08c;--bad:#ff8a80;
--registered:#48525d;--free:#2f7f96;--allocated:#3d68b8;--reprovisioning:#b98c1f;--booting:#d0701a;
--node:#5d6ba3;--new:#35a863;--cleaning:#8d58ad;--failed:#d93a32;--unavailable:#8c4440;--pending:#5f5a4e;--draining:#6d4480}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:72rem;margin:0 auto;padding:1rem}
h1{font-size:1.5rem;margin:.5rem 0}h2{font-size:1.1rem;margin:2rem 0 .5rem}
.ok{color:var(--ok)}.bad{color:var(--bad)}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1rem;list-style:none;margin:0 0 .75rem;padding:0;font-size:.875rem;color:var(--quiet)}
.legend li{display:flex;align-items:center;gap:.375rem}
.key{width:.875rem;height:.875rem;border-radius:2px}
.host,.axis{display:grid;grid-template-columns:var(--names,6rem) 1fr;align-items:center;gap:.5rem;margin:.25rem 0}
.host svg{width:100%;height:1.5rem;display:block;background:var(--line);border-radius:3px}
.name{font-variant-numeric:tabular-nums;font-weight:600;overflow-wrap:anywhere}
.ticks{display:flex;justify-content:space-between;color:var(--quiet);font-size:.8125rem;font-variant-numeric:tabular-nums}
.registered{fill:var(--registered)}.free{fill:var(--free)}.allocated{fill:var(--allocated)}.reprovisioning{fill:var(--reprovisioning)}
.booting{fill:var(--booting)}.node{fill:var(--node)}.node.new{fill:var(--new)}.cleaning{fill:var(--cleaning)}
.pending{fill:var(--pending)}.provisioning{fill:var(--reprovisioning)}.draining,.deleting{fill:var(--draining)}
.failed{fill:var(--failed)}.unavailable{fill:var(--unavailable)}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.375rem .75rem .375rem 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
th{color:var(--quiet);font-weight:600;font-size:.875rem}
.number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
td.ok,td.bad,.word{white-space:nowrap;overflow-wrap:normal}
.log{list-style:none;margin:0;padding:0;font:.8125rem/1.5 ui-monospace,monospace;overflow-wrap:anywhere}
.log li{padding:.125rem 0}
time{color:var(--quiet)}
details{margin-top:1.5rem}summary{cursor:pointer;font-weight:600}
@media (max-width:36rem){.host,.axis{grid-template-columns:1fr;gap:0}.host{margin:.5rem 0}.axis .name{display:none}
td,th{padding-right:.5rem;font-size:.9375rem}}
"""
