"""The rollout planner goes through Cluster API's own rollouts with the same numbers at every step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fleet.machines.deployment.rollout import Rollout

from slipway.fleet.machines.deployment.planner import Goal

pytestmark = pytest.mark.recorded

GOLDEN = Path(__file__).parents[3] / "golden/clusterapi/rollouts"
TRACES: list[dict[str, Any]] = json.loads((GOLDEN / "traces.json").read_text())


def replayed(trace: dict[str, Any]) -> Rollout:
    strategy = trace["strategy"]
    goal = (
        Goal(trace["replicas"], on_delete=True)
        if strategy == "OnDelete"
        else Goal(trace["replicas"], surge=strategy["surge"], unavailable=min(strategy["unavailable"], trace["replicas"]))
    )
    rollout = Rollout(goal)
    current = next(event["current"] for event in trace["events"] if "current" in event)
    rollout.template = int(current.removeprefix("ms"))
    for name, numbers in trace["sets"].items():
        rollout.add(name, int(name.removeprefix("ms")), numbers["machines"], numbers["spec"])
    return rollout


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: f"{trace['of']}: {trace['name']}")
def test_the_planner_follows_the_trace(trace: dict[str, Any]) -> None:
    rollout = replayed(trace)
    for number, event in enumerate(trace["events"]):
        if "planned" in event:
            rollout.plan()
            assert {name: one.spec for name, one in rollout.sets.items()} == event["planned"], f"event {number}"
        elif "reconciled" in event:
            made, deleted = rollout.reconcile(event["reconciled"])
            assert (made, deleted) == (event.get("created", []), event.get("deleted", [])), f"event {number}"
        else:
            rollout.gone(event["gone"])
    final = {name: [machine.name for machine in one.machines] for name, one in rollout.sets.items()}
    assert final == {name: numbers["machines"] for name, numbers in trace["final"].items()}


def test_all_traces_are_there() -> None:
    assert len(TRACES) == 28
