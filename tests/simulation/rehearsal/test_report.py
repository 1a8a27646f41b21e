"""The report of a rehearsal, as people and programs read it."""

from __future__ import annotations

import json

import pytest

from slipway.simulation.rehearsal import course
from slipway.simulation.rehearsal.course import Leg
from slipway.simulation.rehearsal.findings import EVICTION, PREREQUISITE, Finding
from slipway.simulation.rehearsal.measured import Durations, Took
from slipway.simulation.rehearsal.page import page
from slipway.simulation.rehearsal.report import Group, Report, as_json, as_text, clock, spoken


def report(*found: Finding) -> Report:
    known = {"host-1": Durations(Took(60, "unknown"), Took(60, "this host"), Took(120, "this host"), Took(240, "other hosts"))}
    legs = [
        Leg("leaves", "old", "workers", "v1.34.10", 1, 0.0, "host-1", ended=0.1),
        Leg("comes", "new", "workers", "v1.35.4", 1, 0.2, "host-1", 0.3, 0.4),
    ]
    moves = course.moves(legs, known)
    return Report(
        namespace="cpaas-system",
        cluster="prod",
        versions=("v1.34.10",),
        to="v1.35.4",
        ok=all(each.weight not in ("stops", "holds") for each in found),
        seconds=course.total(moves),
        rehearsed_in=12.3,
        groups=(Group("workers", "MachineDeployment", 2, 1),),
        moves=tuple(moves),
        levels=tuple(course.levels(moves, {"workers": 2})),
        findings=found,
        durations=known,
    )


BLOCKED = Finding(
    EVICTION, "stops", "the drain of host-1 would wait for web-1", "PodDisruptionBudget shop/<web>", "Give it one more replica."
)

UNMET = Finding(PREREQUISITE, "holds", "not met: the registry of hosts is known: nobody says it")
OTHER = Finding(PREREQUISITE, "holds", "not met: maxSurge is 0 everywhere: workers has 1")


def test_the_text_says_how_it_would_end_in_which_order_and_how_sure_the_times_are() -> None:
    text = as_text(report())
    first, *_ = text.splitlines()
    # 60 + 60 to leave, 120 + 240 to come.
    assert first == "cpaas-system/prod from v1.34.10 to v1.35.4: would end well, in about 8 min."
    rows = [line.split() for line in text.splitlines()]
    assert ["0:00", "2:00", "host-1", "leaves", "workers", "old"] in rows
    assert ["2:00", "8:00", "host-1", "comes,", "v1.35.4", "workers", "new"] in rows
    assert ["workers", "2", "1"] in rows
    assert "2 were measured on the very host, 1 on other hosts of the cluster, 1 are assumed" in text


def test_what_stops_it_is_said_first_and_with_what_to_do() -> None:
    text = as_text(report(BLOCKED))
    assert "would NOT end well" in text.splitlines()[0]
    assert (
        "STOPS    PodDisruptionBudget shop/<web>: the drain of host-1 would wait for web-1\n         → Give it one more replica.\n" in text
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([UNMET], "would NOT begin: 1 prerequisite is not met. With that mended it would end well, in about 8 min."),
        ([UNMET, OTHER], "would NOT begin: 2 prerequisites are not met. With those mended it would end well, in about 8 min."),
        (
            [BLOCKED, UNMET],
            "would NOT end well after about 8 min: 1 thing would stop it; and it would not begin, as 1 prerequisite is not met.",
        ),
    ],
)
def test_an_upgrade_that_would_be_refused_is_no_good_end(found: list[Finding], said: str) -> None:
    assert as_text(report(*found)).splitlines()[0] == f"cpaas-system/prod from v1.34.10 to v1.35.4: {said}"


def test_json_has_all_of_it() -> None:
    found = json.loads(as_json(report(BLOCKED)))
    assert (found["ok"], found["seconds"], found["rehearsedIn"]) == (False, 480, 12.3)
    assert [(each["way"], each["host"], each["end"]) for each in found["moves"]] == [("leaves", "host-1", 120), ("comes", "host-1", 480)]
    assert found["groups"] == [{"name": "workers", "kind": "MachineDeployment", "replicas": 2, "lowest": 1}]
    assert found["durations"]["host-1"]["boot"] == {"seconds": 240, "source": "other hosts"}
    assert [each["kind"] for each in found["findings"]] == ["eviction-blocked"]


def test_the_page_draws_every_host_and_takes_nothing_for_markup() -> None:
    text = page(report(BLOCKED))
    assert 'aria-label="host-1: ' in text
    assert "2 min to 4 min: gets its image" in text
    assert "shop/&lt;web&gt;" in text


@pytest.mark.parametrize(("seconds", "words"), [(0, "0 s"), (99, "99 s"), (100, "2 min"), (3600, "60 min"), (11_100, "3 h 5 min")])
def test_times_are_said_as_people_say_them(seconds: float, words: str) -> None:
    assert spoken(seconds) == words


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0:00"), (83.6, "1:24"), (3723, "1:02:03")])
def test_moments_are_those_of_a_stopwatch(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown
