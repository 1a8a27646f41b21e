"""What an upgrade does next, as a table, and what holds whatever there is: it ends, with no step that Kubernetes forbids."""

from __future__ import annotations

import heapq

import pytest
from fleet.upgrades.rolls import BETWEEN, NEW, NEWEST, OLD, cluster, patched, plane, rolled, workers
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.fleet.overview.groups import Member, Standing
from slipway.fleet.upgrades.steps import Done, Goal, Patch, Refuse, Step, Wait, next_step, plan
from slipway.fleet.upgrades.versions import KUBELET_SKEW, minor

TO_NEW, TO_NEWEST = Goal(NEW), Goal(NEWEST, BETWEEN)


def told(step: Step) -> tuple[str, ...]:
    """A step in short."""
    if isinstance(step, Patch):
        return ("patch", step.group.name, step.version)
    if isinstance(step, Wait):
        return ("wait", step.group.name)
    return ("done",) if isinstance(step, Done) else ("refuse",)


@pytest.mark.parametrize(
    ("now", "goal", "expected"),
    [
        # The control plane first, then the workers, in their order.
        (cluster(plane(), workers()), TO_NEW, ("patch", "cp", NEW)),
        (cluster(plane(NEW, observed=False), workers()), TO_NEW, ("wait", "cp")),
        (cluster(plane(NEW, members=(Member("a", NEW), Member("b", OLD), Member("c", OLD))), workers()), TO_NEW, ("wait", "cp")),
        (cluster(plane(NEW, members=(Member("a", NEW), Member("b", NEW))), workers()), TO_NEW, ("wait", "cp")),
        (cluster(plane(NEW, members=(*plane(NEW).members[:2], Member("c", NEW, well=False))), workers()), TO_NEW, ("wait", "cp")),
        (cluster(plane(NEW, members=(*plane(NEW).members, Member("d", NEW, leaving=True))), workers()), TO_NEW, ("wait", "cp")),
        (cluster(plane(NEW, members=(*plane(NEW).members[:2], Member("c", NEW, current=False))), workers()), TO_NEW, ("wait", "cp")),
        (cluster(plane(NEW), workers()), TO_NEW, ("patch", "w", NEW)),
        (cluster(plane(NEW), workers(), workers(name="x")), TO_NEW, ("patch", "w", NEW)),
        (cluster(plane(NEW), workers(NEW, observed=False), workers(name="x")), TO_NEW, ("wait", "w")),
        (cluster(plane(NEW), workers(NEW), workers(name="x")), TO_NEW, ("patch", "x", NEW)),
        (cluster(plane(NEW), workers(NEW)), TO_NEW, ("done",)),
        (cluster(plane(NEW)), TO_NEW, ("done",)),
        # What is on its way for another reason is waited for before anything is patched.
        (cluster(plane(), workers(members=(Member("a", OLD, well=False), Member("b", OLD)))), TO_NEW, ("wait", "w")),
        # Several minors: the control plane step by step, the workers at once.
        (cluster(plane(), workers()), TO_NEWEST, ("patch", "cp", NEW)),
        (cluster(plane(NEW), workers()), TO_NEWEST, ("patch", "cp", NEWEST)),
        (cluster(plane(NEWEST), workers()), TO_NEWEST, ("patch", "w", NEWEST)),
        # Kubelets that would be too old are brought along first, as far as they may go.
        (cluster(plane(), workers("v1.31.9")), TO_NEW, ("patch", "w", OLD)),
        (cluster(plane(), workers("v1.32.9")), TO_NEW, ("patch", "cp", NEW)),
        # A control plane that walks by itself is let walk.
        (cluster(plane(NEW, heading=NEWEST), workers()), TO_NEWEST, ("wait", "cp")),
        (cluster(plane(NEW, heading=NEWEST), workers()), TO_NEW, ("refuse",)),
        # A part of it.
        (cluster(plane(NEW), workers()), Goal(NEW, workers=False), ("done",)),
        (cluster(plane(NEW), workers()), Goal(NEW, control_plane=False), ("patch", "w", NEW)),
        (cluster(plane(), workers()), Goal(NEW, control_plane=False), ("refuse",)),
        (cluster(plane(), workers("v1.31.9")), Goal(NEW, workers=False), ("refuse",)),
        (cluster(plane(NEW), workers()), Goal(OLD, control_plane=False), ("done",)),
        # There is no way back.
        (cluster(plane(NEW), workers(NEW)), Goal(OLD), ("refuse",)),
        (cluster(plane("v1.34.9"), workers("v1.34.9")), Goal("v1.34.8"), ("refuse",)),
        (cluster(plane("v1.33.7-2"), workers("v1.33.7-2")), Goal("v1.33.7-1"), ("refuse",)),
        # Another build of the same version is another version.
        (cluster(plane("v1.33.7"), workers("v1.33.7")), Goal("v1.33.7-2"), ("patch", "cp", "v1.33.7-2")),
        # Nobody to replace.
        (cluster(plane(), workers(replicas=0)), TO_NEW, ("patch", "cp", NEW)),
        (cluster(plane(NEW), workers(replicas=0)), TO_NEW, ("patch", "w", NEW)),
    ],
)
def test_the_next_step_follows_from_what_there_is(now: Standing, goal: Goal, expected: tuple[str, ...]) -> None:
    assert told(next_step(now, goal)) == expected


def test_the_plan_is_every_patch_in_order() -> None:
    found = plan(cluster(plane(), workers(), workers(name="x")), TO_NEWEST)
    assert isinstance(found, list)
    assert [told(each)[1:] for each in found] == [("cp", NEW), ("cp", NEWEST), ("w", NEWEST), ("x", NEWEST)]


def test_a_plan_of_what_is_on_its_way_already_begins_behind_it() -> None:
    found = plan(cluster(plane(NEW, observed=False), workers()), TO_NEW)
    assert isinstance(found, list)
    assert [told(each)[1:] for each in found] == [("w", NEW)]
    assert isinstance(plan(cluster(plane(NEW)), Goal(OLD)), Refuse)


_FIRST, _LAST = 28, 38


def version(of: int) -> str:
    return f"v1.{of}.1"


@st.composite
def upgrades(draw: st.DrawFn) -> tuple[Standing, Goal]:
    """Any cluster that may be, and a version that it may go to."""
    at = draw(st.integers(_FIRST + KUBELET_SKEW, _LAST))
    to = draw(st.integers(at, _LAST))
    behind = draw(st.lists(st.integers(0, KUBELET_SKEW), max_size=3))
    others = [workers(version(at - each), draw(st.integers(0, 2)), name=f"w{number}") for number, each in enumerate(behind)]
    return cluster(plane(version(at)), *others), Goal(version(to), {each: version(each) for each in range(at + 1, to)})


@given(upgrades(), st.lists(st.booleans(), max_size=60))
@settings(max_examples=150, deadline=None)
def test_every_upgrade_ends_without_a_step_that_kubernetes_forbids(given_: tuple[Standing, Goal], pauses: list[bool]) -> None:
    """``pauses`` are looks between which no manager has done anything: as often as somebody is killed and starts again."""
    now, goal = given_
    looks = iter(pauses)
    for _ in range(200):
        step = next_step(now, goal)
        if isinstance(step, Done):
            break
        if isinstance(step, Patch):
            assert all(each.settled for each in now.groups), "two things at once"
            assert minor(step.version) - minor(step.group.version) <= (1 if step.group.is_control_plane else KUBELET_SKEW)
            assert minor(step.version) >= minor(step.group.version)
            now = patched(now, step)
        else:
            assert isinstance(step, Wait)
            now = now if next(looks, False) else rolled(now)
        assert all(0 <= minor(now.plane.version) - minor(each.version) <= KUBELET_SKEW for each in now.workers), "skew"
    assert isinstance(next_step(now, goal), Done)
    assert {each.version for each in now.groups} == {goal.version}


@given(st.integers(0, KUBELET_SKEW), st.integers(0, 7))
@settings(max_examples=32, deadline=None)
def test_workers_are_replaced_as_seldom_as_the_skew_policy_allows(behind: int, ahead: int) -> None:
    at = _FIRST + KUBELET_SKEW
    to = at + ahead
    goal = Goal(version(to), {each: version(each) for each in range(at + 1, to)})
    found = plan(cluster(plane(version(at)), workers(version(at - behind))), goal)
    assert isinstance(found, list)
    assert sum(not each.group.is_control_plane for each in found) == _fewest(at, at - behind, to)


def _fewest(plane_minor: int, worker_minor: int, to: int) -> int:
    """By trying everything, the cheapest first: the control plane goes up by one, or the workers to wherever they may."""
    queue, seen = [(0, plane_minor, worker_minor)], set()
    while queue:
        cost, ours, theirs = heapq.heappop(queue)
        if (ours, theirs) == (to, to):
            return cost
        if (ours, theirs) in seen:
            continue
        seen.add((ours, theirs))
        if ours < to and ours + 1 - theirs <= KUBELET_SKEW:
            heapq.heappush(queue, (cost, ours + 1, theirs))
        for each in range(theirs + 1, ours + 1):
            heapq.heappush(queue, (cost + 1, ours, each))
    raise AssertionError
