"""From legs of a simulation to the times that an upgrade would take: by tables."""

from __future__ import annotations

import pytest

from slipway.simulation.rehearsal import course
from slipway.simulation.rehearsal.course import Leg
from slipway.simulation.rehearsal.measured import Durations, Took


def hosts(**boots: float) -> dict[str, Durations]:
    """Hosts that are drained in 10 s, cleaned in 20 s, get an image in 30 s, and boot in so many seconds."""
    return {name: Durations(*(Took(float(each), "this host") for each in (10, 20, 30, boot))) for name, boot in boots.items()}


def leaves(host: str, began: float, ended: float | None, *, group: str = "workers", step: int = 1, held: float = 0.0) -> Leg:
    return Leg("leaves", f"old-{host}", group, "v1.34.10", step, began, host, ended=ended, held=held)


def comes(host: str, began: float, ended: float | None, *, group: str = "workers", step: int = 1, claimed: float | None = 0.0) -> Leg:
    return Leg("comes", f"new-{host}", group, "v1.35.4", step, began, host, claimed, ended)


def ends(found: list[course.Move]) -> dict[str, float | None]:
    return {move.machine: move.end for move in found}


def test_one_after_the_other_takes_the_sum_of_all() -> None:
    legs = [leaves("a", 0.0, 0.1), comes("a", 0.2, 0.3), leaves("b", 0.4, 0.5), comes("b", 0.6, 0.7)]
    # 10 + 20, then 30 + 100; the other host the same, with 200.
    assert ends(course.moves(legs, hosts(a=100, b=200))) == {"old-a": 30.0, "new-a": 160.0, "old-b": 190.0, "new-b": 420.0}


def test_two_at_a_time_take_as_long_as_the_slower_one() -> None:
    legs = [leaves("a", 0.0, 0.2), leaves("b", 0.1, 0.3), comes("a", 0.4, 0.6), comes("b", 0.5, 0.7)]
    found = course.moves(legs, hosts(a=100, b=200))
    assert {move.machine: move.begin for move in found} == {"old-a": 0.0, "old-b": 0.0, "new-a": 30.0, "new-b": 30.0}
    assert course.total(found) == 260.0


def test_a_step_begins_when_all_of_the_step_before_has_ended() -> None:
    legs = [
        leaves("a", 0.0, 0.1, group="planes"),
        comes("a", 0.2, 0.3, group="planes"),
        leaves("b", 0.4, 0.5, step=2),
    ]
    assert course.moves(legs, hosts(a=100, b=100))[-1].begin == 160.0


def test_groups_of_one_step_do_not_wait_for_each_other() -> None:
    legs = [leaves("a", 0.0, 0.1, group="one"), leaves("b", 0.2, 0.3, group="two")]
    assert [move.begin for move in course.moves(legs, hosts(a=100, b=100))] == [0.0, 0.0]


def test_who_comes_before_its_host_is_free_waits_for_that() -> None:
    legs = [leaves("a", 0.0, 0.5), comes("a", 0.1, 0.9, claimed=0.6)]
    (_, new) = course.moves(legs, hosts(a=100))
    assert [(each.stage, each.begin, each.end) for each in new.stretches] == [
        ("pending", 0.0, 30.0),
        ("reprovisioning", 30.0, 60.0),
        ("booting", 60.0, 160.0),
    ]


@pytest.mark.parametrize(
    ("leg", "last"),
    [
        (leaves("a", 0.0, None), "draining"),
        (comes("a", 0.0, None), "reprovisioning"),
        (comes("a", 0.0, None, claimed=None), "pending"),
    ],
)
def test_what_does_not_end_has_no_end_and_is_shown_as_far_as_it_came(leg: Leg, last: str) -> None:
    (move,) = course.moves([leg], hosts(a=100))
    assert (move.end, move.stretches[-1].stage) == (None, last)


def test_a_drain_that_is_forced_lasts_longer_by_that() -> None:
    assert ends(course.moves([leaves("a", 0.0, 0.1, held=300.0)], hosts(a=100))) == {"old-a": 330.0}


def test_the_capacity_falls_with_each_that_goes_and_rises_with_each_that_has_come() -> None:
    legs = [leaves("a", 0.0, 0.1), comes("a", 0.2, 0.3), leaves("b", 0.4, 0.5), comes("b", 0.6, 0.7)]
    found = course.levels(course.moves(legs, hosts(a=100, b=100)), {"workers": 2, "planes": 3})
    assert [(level.at, level.available["workers"]) for level in found] == [(0.0, 2), (0.0, 1), (160.0, 2), (160.0, 1), (320.0, 2)]
    assert course.lowest(found) == {"workers": 1, "planes": 3}
