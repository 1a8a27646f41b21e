"""An upgrade as people and programs read it."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import pytest
from fleet.upgrades.rolls import BETWEEN, NEW, NEWEST, OLD, cluster, plane, workers
from rich.console import Console

from slipway.fleet.overview.groups import Member
from slipway.fleet.overview.views.terminal import Terminal
from slipway.fleet.upgrades import events, words
from slipway.fleet.upgrades.events import Check, Event
from slipway.fleet.upgrades.live import LiveView
from slipway.fleet.upgrades.steps import Goal
from slipway.fleet.upgrades.views import JsonLines, duration, lines

PLAIN = Terminal()
PROGRESS = Event(events.PROGRESS, kind="KubeadmControlPlane", name="cp", version=NEW, done=2, total=5, estimate_seconds=480)
PROBLEM = Event(events.PROBLEM, reason="PlanFailed", sentences=("One.", "Two."), to_do=("Mend it.",))


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (PROGRESS, ["KubeadmControlPlane cp to v1.35.4: 2 of 5 machines, about 8 min left"]),
        (Event(events.MACHINE, name="m", version=NEW, stage="booting", host="h"), ["m v1.35.4 boots on h"]),
        (Event(events.MACHINE, name="m", version=NEW, stage="pending", host="h"), ["m v1.35.4 waits for a host"]),
        (Event(events.MACHINE, name="m", version=NEW, stage="allocated", host="h"), ["m v1.35.4 has taken h"]),
        (Event(events.MACHINE, name="m", version=OLD, stage="cleaning", host="h"), ["m v1.34.10 leaves: h is cleaned"]),
        (Event(events.MACHINE, name="m", version=OLD, stage="draining"), ["m v1.34.10 is drained"]),
        (Event(events.MACHINE, name="m", stage=events.GONE), ["m is gone"]),
        (Event(events.PATCH, command="kubectl patch"), ["$ kubectl patch"]),
        (Event(events.NOTE, text="a tag stays"), ["note: a tag stays"]),
        (PROBLEM, ["The upgrade has stopped: PlanFailed", "  One.", "  Two.", "What to do:", "  - Mend it."]),
        (Event(events.PLANNED, text="Then this.", commands=("a",)), ["Then this."]),
        (
            Event(events.PREFLIGHT, version=NEW, checks=(Check("a", "ok", "x"), Check("b", "failed", "y"))),
            ["preflight of v1.35.4: 1 of 2 prerequisites are met", "  failed: b: y"],
        ),
    ],
    ids=lambda value: value.event if isinstance(value, Event) else "",
)
def test_each_event_is_said_in_words(event: Event, expected: list[str]) -> None:
    assert lines(event, PLAIN) == expected


def test_lines_have_the_time_and_colours_only_where_they_are_wanted() -> None:
    done = Event(events.DONE, at=datetime(2026, 5, 4, 12, 0, tzinfo=UTC), text="all")
    (plain,) = lines(done, PLAIN)
    assert plain.endswith("  all")
    assert "\x1b" not in plain
    assert "\x1b[32m" in lines(done, Terminal(80, True))[0]


def test_json_leaves_out_what_an_event_does_not_say() -> None:
    out = io.StringIO()
    JsonLines(out).show(PROGRESS)
    assert json.loads(out.getvalue()) == {
        "event": "progress", "kind": "KubeadmControlPlane", "name": "cp", "version": NEW, "done": 2, "total": 5, "estimateSeconds": 480,
    }  # fmt: skip


def test_a_terminal_shows_a_bar_and_the_machines_that_are_on_their_way() -> None:
    out = io.StringIO()
    view = LiveView(out, Terminal(100, False))
    view.show(PROGRESS)
    view.show(Event(events.MACHINE, name="a", version=NEW, stage="booting", host="h"))
    view.show(Event(events.MACHINE, name="b", version=NEW, stage="booting"))
    view.show(Event(events.MACHINE, name="b", version=NEW, stage="node"))
    console = Console(width=100, file=io.StringIO())
    with console.capture() as captured:
        console.print(view.picture())
    shown = captured.get()
    assert "2/5" in shown
    assert "about 8 min left" in shown or "about 7 min left" in shown
    assert "a v1.35.4 boots on h for 0 s" in shown
    assert "b v1.35.4" not in shown


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (3660, "1 h 1 min"), (-5, "0 s")]
)
def test_times_are_short(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_what_goes_on_without_whoever_leaves_is_told_apart_from_what_does_not() -> None:
    rolling = plane(NEW, members=(Member("a", NEW), Member("b", OLD), Member("c", OLD)))
    assert words.goes_on(cluster(rolling, workers()), Goal(NEWEST, BETWEEN)) == (
        "The KubeadmControlPlane cp goes on to v1.35.4 by itself (1 of 3 machines are done); what is not begun: "
        "KubeadmControlPlane cp from v1.35.4 to v1.36.3, then MachineDeployment w from v1.34.10 to v1.36.3. "
        "Run the same command again to go on from there"
    )
    assert words.goes_on(cluster(rolling), Goal(NEW)).endswith("and then all is done")
    assert words.goes_on(None, None).startswith("Nothing is on its way. Run the same command again")


def test_what_is_not_at_rest_is_said_to_be_waited_for_first() -> None:
    sick = workers(members=(Member("a", OLD, well=False), Member("b", OLD)))
    assert words.planned(cluster(plane(), sick), Goal(NEW), []).startswith(
        "The MachineDeployment w has 1 of 2 machines well at v1.34.10. That is waited for first."
    )
