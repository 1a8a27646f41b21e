"""How far an upgrade is, and when it will be over: from the nodes that are done."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from fleet.upgrades.rolls import BETWEEN, NEW, NEWEST, OLD, cluster, plane, workers

from slipway.fleet.overview.groups import Group, Member
from slipway.fleet.upgrades.estimate import Pace, pace
from slipway.fleet.upgrades.progress import Progress, progress, total
from slipway.fleet.upgrades.steps import Goal

BEGAN = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def after(minutes: float) -> datetime:
    return BEGAN + timedelta(minutes=minutes)


def rolling(*ends: float, of: int = 3, at_once: int = 1, made: float = 2) -> Group:
    """Nodes that were done so many minutes after the beginning, the others are old."""
    new = [Member(f"n{each}", NEW, made=after(each - made), since=after(each)) for each in ends]
    old = [Member(f"o{each}", OLD) for each in range(of - len(ends))]
    return plane(NEW, of, members=(*new, *old), at_once=at_once)


@pytest.mark.parametrize(
    ("group", "began", "seconds"),
    [
        (rolling(), BEGAN, None),
        (rolling(5), BEGAN, 300),
        (rolling(5, 9), BEGAN, 270),
        # Who came later does not know when it began: from one to the next.
        (rolling(5, 9), None, 240),
        # Of a single one it is known how long it took from its making on.
        (rolling(5), None, 120),
        # Two at a time are twice as many.
        (rolling(6, 6, of=4, at_once=2), BEGAN, 180),
        # What was done before is not of this rollout.
        (rolling(-60, 5), BEGAN, 300),
    ],
)
def test_the_pace_is_learned_from_the_nodes_that_are_done(group: Group, began: datetime | None, seconds: float | None) -> None:
    found = pace(group, began)
    assert (None if found is None else found.seconds) == seconds


def test_workers_that_are_replaced_two_at_a_time_are_expected_to_be_twice_as_fast() -> None:
    assert Pace(300).of(workers(replicas=4, at_once=2)) == 150
    assert Pace(150, at_once=2).of(plane()) == 300


def test_the_total_is_every_machine_that_every_step_replaces() -> None:
    assert total(cluster(plane(), workers()), Goal(NEWEST, BETWEEN)) == 3 + 3 + 2


def test_what_was_done_before_somebody_looked_counts() -> None:
    now = cluster(rolling(5, 9), workers())
    goal = Goal(NEW)
    assert total(now, goal) == 5
    # Two are done, one on its way since a minute, two workers to come: 4 + 2 * 4 minutes, less the minute.
    assert progress(5, now, goal, Pace(240), after(10)) == Progress(2, 5, 240 - 60 + 480)


def test_without_a_pace_there_is_no_estimate() -> None:
    assert progress(3, cluster(rolling()), Goal(NEW), None, after(1)) == Progress(0, 3, None)


def test_one_that_takes_longer_than_the_others_did_leaves_the_time_of_the_rest() -> None:
    assert progress(3, cluster(rolling(5)), Goal(NEW), Pace(300), after(30)).estimate == 300
