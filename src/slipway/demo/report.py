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
from slipway.fleet.overview import stages
from slipway.fleet.overview.views.drawing import Bar, Lane, document, lanes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.demo.board import Span, Step
    from slipway.demo.events import Check, Event
    from slipway.demo.options import Options

_TICKS = 6
_NEW = "new"


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
    return document(f"Slipway demo: {title}", body)


def _hosts(options: Options, board: Board) -> str:
    found = [
        Lane(host.name, [Bar(_class(options, span), span.begin, span.end, _told(span)) for span in host.spans]) for host in board.hosts
    ]
    ticks = [f"{board.at * tick / (_TICKS - 1):.0f} s" for tick in range(_TICKS)]
    return lanes("Hosts", found, board.at, _legend(options), ticks)


def _told(span: Span) -> str:
    version = f" {span.version}" if span.version else ""
    return f"{span.begin:.1f}–{span.end:.1f} s: {stages.MEANINGS.get(span.stage, span.stage)}{version}"


def _class(options: Options, span: Span) -> str:
    """Nodes of the version that the run ends with look another way than those before."""
    return f"{span.stage} {_NEW}" if span.stage == stages.MEMBER and options.upgrade and span.version == options.to else span.stage


def _legend(options: Options) -> list[tuple[str, str]]:
    found = []
    for stage in stages.STAGES:
        if stage == stages.MEMBER:
            before = f"a Node before {options.to}" if options.upgrade else f"a Node of {options.start}"
            found += [(stage, before), (f"{stage} {_NEW}", f"a Node of {options.to}")]
        else:
            found.append((stage, stages.MEANINGS[stage]))
    return found


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
    wanted = (events.FAULT, events.REFUSED, events.PROBLEM, events.NOTE, events.EXPLAINED)
    found = [event for event in told if event.event in wanted or (event.event == events.CONDITION and event.lasting)]
    first = next((position for position, event in enumerate(found) if event.event != events.NOTE), None)
    if first is None:
        return ""
    rows = "".join(f"<li><time>{event.at:.1f} s</time> {escape(line(event))}</li>" for event in found[first:])
    return f'<section><h2>What went wrong</h2><ol class="log">{rows}</ol></section>'


def _log(told: Sequence[Event]) -> str:
    rows = "".join(f"<li><time>{event.at:.1f} s</time> {escape(text)}</li>" for event in told if (text := line(event)))
    return f'<section><details><summary>All events</summary><ol class="log">{rows}</ol></details></section>'
