"""The planner decides what Cluster API's own code decides about the same control plane, but for what :data:`ON_PURPOSE` lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from fleet.controlplane.planes import plane
from fleet.controlplane.recordings import names, rows

from slipway.fleet.controlplane.planner import (
    MEMBER_RETRY,
    CreateFirst,
    Nothing,
    Plan,
    Release,
    Remediate,
    RemoveMember,
    ScaleDown,
    ScaleUp,
    Wait,
    next_step,
)

pytestmark = pytest.mark.recorded

ROWS = rows("steps")

NOBODY_LEFT = (
    "waiting for a person: it has no Machine left that others could join; "
    "slipway.io/remediate-single-control-plane starts it anew, with no data"
)

# What differs, with what is done instead and why.
ON_PURPOSE: dict[str, dict[str, Any]] = {
    # Upstream looks for members of etcd, finds none, and defers for ever.
    "remediate, external etcd": {"step": "remediate", "machine": "a", "retries": 0},
    # Upstream waits for the replacement of one, which waits for the other: for ever.
    "remediate, one is in progress": {"step": "remediate", "machine": "a", "retries": 0, "leader": "node-b"},
    # Upstream makes a Machine that is told to join, and nobody is there.
    "initialized, and no Machine left": {"step": "wait", "seconds": 30.0, "blocked": [NOBODY_LEFT], "problems": []},
}


def told(plan: Plan, offered: list[str]) -> dict[str, Any]:
    """The plan in the form of the recordings."""
    match plan.step:
        case Nothing():
            return {"step": "nothing"}
        case RemoveMember(member):
            return {"step": "remove member", "member": member.id, "seconds": MEMBER_RETRY}
        case Release(machine, member, leaders):
            removed = {} if member is None else {"member": member.id}
            return {"step": "release", "machine": machine, **removed, **_leader(leaders)}
        case Remediate(machine, started, leaders):
            return {"step": "remediate", "machine": machine, "retries": started.retries, **_leader(leaders)}
        case CreateFirst():
            return {"step": "create first", "domains": sorted(offered)}
        case ScaleUp():
            return {"step": "scale up", "domains": sorted(offered)}
        case ScaleDown(machine, leaders):
            return {"step": "scale down", "machine": machine, **_leader(leaders)}
        case Wait(_, seconds, blocked):
            return {"step": "wait", "seconds": seconds, "blocked": blocked.messages, "problems": _of_machines(blocked.problems)}
    raise AssertionError(plan)


def _of_machines(problems: Sequence[str]) -> list[str]:
    """What is said of a single Machine; the other sentences are in other words."""
    return sorted(problem for problem in problems if problem.startswith("Machine "))


def _leader(leaders: Sequence[str]) -> dict[str, str]:
    return {"leader": leaders[0]} if leaders else {}


def _plan(case: dict[str, Any], place: int) -> tuple[Plan, dict[str, Any]]:
    """The plan with this one of equally good failure domains, as it is and in the form of the recordings."""
    offered: list[str] = []

    def choose(domains: Sequence[str]) -> str:
        offered[:] = domains
        return domains[place % len(domains)]

    plan = next_step(plane(case), choose)
    return plan, told(plan, offered or [""])


@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_decides_as_upstream_does(row: dict[str, Any]) -> None:
    if row["name"] in ON_PURPOSE:
        _, found = _plan(row["case"], 0)
        assert found == ON_PURPOSE[row["name"]] != row["answer"]
        return
    # Where upstream takes any of several failure domains, its answer must be one of ours.
    plans = [_plan(row["case"], place) for place in range(1 + len(row["case"].get("domains", ())))]
    wanted = dict(row["answer"])
    verdict, older, error = wanted.pop("verdict", None), wanted.pop("older", None), wanted.pop("error", None)
    if wanted["step"] == "wait":
        wanted = {"blocked": [], **wanted, "problems": _of_machines(wanted.get("problems", ()))}
        if error is not None:
            # What is an error there, tried again soon, is a wait here that says what for.
            wanted["seconds"] = plans[0][1].get("seconds")
    plan, found = next(((plan, found) for plan, found in plans if found == wanted), plans[0])
    assert found == wanted
    if verdict is not None:
        assert plan.verdict is not None
        assert [plan.verdict.machine, plan.verdict.reason, plan.verdict.message] == verdict
        assert plan.verdict.older == older[2]
