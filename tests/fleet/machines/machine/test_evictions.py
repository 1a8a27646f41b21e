"""Whatever Pods a Node has: each is in one place of the plan, and none goes before its turn."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from slipway.fleet.machines.machine.drain import evictions
from slipway.fleet.machines.machine.drain.filters import Behavior, Verdict


def pod(name: str, *, going: bool) -> dict[str, Any]:
    times = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if going else {}
    return {"metadata": {"name": name, "namespace": "default", **times}}


@given(st.lists(st.tuples(st.sampled_from(list(Behavior)), st.integers(-3, 3), st.booleans()), max_size=12))
def test_no_pod_goes_before_its_turn(given_pods: list[tuple[Behavior, int, bool]]) -> None:
    pods = [
        (pod(f"p{number}", going=going), Verdict(behavior, order, problem="x" if behavior is Behavior.HOLD else ""))
        for number, (behavior, order, going) in enumerate(given_pods)
    ]
    plan = evictions.plan(pods)
    places = [
        *plan.now,
        *plan.later,
        *plan.going,
        *plan.skipped,
        *plan.waited_for,
        *plan.waited_for_later,
        *(each for each, _ in plan.held),
    ]
    assert sorted(map(evictions.name_of, places)) == sorted(evictions.name_of(each) for each, _ in pods)

    orders = {evictions.name_of(each): verdict.order for each, verdict in pods}
    left = [verdict.order for _, verdict in pods if verdict.behavior in (Behavior.DRAIN, Behavior.WAIT)]
    assert all(orders[evictions.name_of(each)] == min(left) for each in (*plan.now, *plan.waited_for))
    assert not any(each["metadata"].get("deletionTimestamp") for each in plan.now)

    outcome = evictions.begun(plan)
    outcome.going.extend(plan.now)
    assert outcome.is_complete is (not left and not plan.held)
    assert bool(evictions.message(outcome, "now")) is not outcome.is_complete
