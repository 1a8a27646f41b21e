"""Steps of a rollout that upstream's traces do not have: rests, holds and the end."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.fleet.machines.deployment.planner import DEADLOCK, DISABLE_CREATE, Goal, Sized, next_step


def sizes(goal: Goal, new: Sized | None, *old: Sized) -> dict[str, int]:
    return {name: size.replicas for name, size in next_step(goal, new, old).sizes.items()}


def settled(name: str, count: int, created: str = "1", **more: Any) -> Sized:
    return Sized(name, created, count, count, count)._replace(**more)


def test_a_hold_keeps_the_machines_that_would_be_unavailable() -> None:
    goal = Goal(3, surge=0, unavailable=1)
    assert sizes(goal, Sized("new"), settled("old", 3)) == {"old": 2, "new": 0}
    assert sizes(goal._replace(held=True), Sized("new"), settled("old", 3)) == {"old": 3, "new": 0}


def test_a_hold_still_lets_go_what_is_too_much() -> None:
    goal = Goal(3, surge=1, unavailable=1, held=True)
    assert sizes(goal, Sized("new"), settled("old", 5)) == {"old": 3, "new": 0}


def test_a_hold_breaks_no_deadlock() -> None:
    sick = settled("old", 3, available=2)
    goal = Goal(3, surge=1, unavailable=0)
    assert next_step(goal, settled("new", 1), [sick]).sizes["old"].reason == DEADLOCK
    assert sizes(goal._replace(held=True), settled("new", 1), sick)["old"] == 3


def test_the_oldest_machine_set_shrinks_first() -> None:
    goal = Goal(4, surge=0, unavailable=1)
    assert sizes(goal, Sized("new"), settled("b", 2, "1"), settled("a", 2, "2")) == {"b": 1, "a": 2, "new": 0}


def test_with_on_delete_an_old_machine_set_makes_no_machines() -> None:
    step = next_step(Goal(2, on_delete=True), settled("new", 1), [settled("old", 1)])
    told = {name: size.annotations[DISABLE_CREATE] for name, size in step.sizes.items()}
    assert told == {"old": "true", "new": "false"}


def test_with_on_delete_what_was_deleted_counts_for_a_scale_down() -> None:
    # Five were wanted, two were deleted, and now three are wanted in all: nothing else goes.
    goal = Goal(3, on_delete=True)
    assert sizes(goal, Sized("new"), Sized("old", "1", spec=5, status=3, available=3)) == {"old": 3, "new": 0}


def test_empty_old_machine_sets_go_when_the_rollout_is_complete() -> None:
    new, empty = settled("new", 2, up_to_date=2), settled("old", 0)
    goal = Goal(2, surge=1)
    assert next_step(goal, new, [empty]).delete == ["old"]
    assert next_step(goal._replace(observed=False), new, [empty]).delete == ()
    assert next_step(goal, new._replace(available=1), [empty]).delete == ()
    assert next_step(goal, new, [empty._replace(observed=False)]).delete == []
    assert next_step(goal, new, [empty._replace(deleting=True)]).delete == []


@pytest.mark.parametrize(
    ("goal", "new", "old", "expected"),
    [
        pytest.param(Goal(5, paused=True), None, [settled("a", 3)], {"a": 5}, id="the only one takes all"),
        pytest.param(
            Goal(5, paused=True), None, [settled("a", 0, "1"), settled("b", 0, "2")], {"a": 0, "b": 5}, id="the youngest takes all"
        ),
        pytest.param(
            Goal(4, paused=True),
            settled("new", 4, desired_replicas=4),
            [settled("a", 2)],
            {"a": 0, "new": 4},
            id="old ones go where the new one is enough",
        ),
        pytest.param(
            Goal(20, surge=0, paused=True),
            settled("new", 4, "2", max_replicas=10),
            [settled("a", 6, "1", max_replicas=10)],
            {"a": 12, "new": 8},
            id="each grows by its share",
        ),
        pytest.param(
            Goal(5, surge=0, paused=True),
            settled("new", 4, "2", max_replicas=10),
            [settled("a", 6, "1", max_replicas=10)],
            {"a": 3, "new": 2},
            id="each shrinks by its share",
        ),
        pytest.param(
            Goal(0, surge=1, paused=True),
            settled("new", 4, "2", max_replicas=10),
            [settled("a", 6, "1", max_replicas=10)],
            {"a": 0, "new": 0},
            id="nothing is left of none",
        ),
        pytest.param(
            Goal(4, on_delete=True, paused=True), settled("new", 1, "2"), [settled("a", 2, "1")], {"a": 2, "new": 1}, id="OnDelete rests"
        ),
    ],
)
def test_a_paused_machine_deployment_is_scaled_by_shares(goal: Goal, new: Sized | None, old: list[Sized], expected: dict[str, int]) -> None:
    assert sizes(goal, new, *old) == expected
