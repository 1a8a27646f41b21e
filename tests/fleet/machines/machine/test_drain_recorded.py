"""What is done with each Pod of a Node, and what is said of it, is as Cluster API's drain has it, for each recorded case."""

from __future__ import annotations

from typing import Any

import pytest
from fleet.machines.machine.recorded import NOW, rows

from slipway.api.cluster.core.machinedrainrule import MachineDrainRule
from slipway.api.cluster.meta import decode
from slipway.fleet.machines.machine.drain import drainer, evictions, filters
from slipway.fleet.machines.machine.drain import rules as drainrules
from slipway.fleet.machines.machine.drain.filters import Behavior
from slipway.kube.errors import status_failure

pytestmark = pytest.mark.recorded


def verdicts(case: dict[str, Any]) -> list[tuple[dict[str, Any], filters.Verdict]]:
    given = [decode(rule, MachineDrainRule) for rule in case.get("rules", ()) if rule["metadata"]["namespace"] == "default"]
    rules = drainrules.for_machine(
        map(drainrules.parse, given), case["machine"]["metadata"]["labels"], case["cluster"]["metadata"]["labels"]
    )
    node = filters.Node(
        {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in case["daemonSets"]},
        {each["metadata"]["name"]: each["metadata"]["labels"] for each in case["namespaces"]},
        case.get("unreachable", False),
    )
    return [(pod, filters.verdict(pod, rules, node, NOW)) for pod in case["pods"]]


def refusal(given: dict[str, Any]) -> Exception:
    reason = "NamespaceTerminating" if given["code"] == 403 else "DisruptionBudget"
    details = {"details": {"causes": [{"reason": reason, "message": cause} for cause in given["causes"]]}} if "causes" in given else {}
    return status_failure({"kind": "Status", "code": given["code"], "message": given["message"], **details}, given["code"])


@pytest.mark.parametrize(("case", "answer"), rows("drain"))
def test_pods_are_treated_as_upstream_treats_them(case: dict[str, Any], answer: dict[str, Any]) -> None:
    found = verdicts(case)
    if "error" in answer:
        # Upstream drains none of them; here only those are held that the problem is about.
        assert any(verdict.behavior is Behavior.HOLD for _, verdict in found)
        return
    said = [
        {
            "pod": evictions.name_of(pod),
            "behavior": verdict.behavior.value,
            "order": None if verdict.behavior is Behavior.SKIP else verdict.order,
            "warning": verdict.warning,
        }
        for pod, verdict in sorted(found, key=lambda each: evictions.name_of(each[0]))
    ]
    assert said == sorted(answer["verdicts"], key=lambda each: str(each["pod"]))


@pytest.mark.parametrize(("case", "answer"), [row for row in rows("drain") if "error" not in row.values[1]])
def test_a_drain_says_of_its_evictions_what_upstream_says(case: dict[str, Any], answer: dict[str, Any]) -> None:
    plan = evictions.plan(verdicts(case))
    outcome = evictions.begun(plan)
    evicted = []
    for pod in plan.now:
        name = evictions.name_of(pod)
        if name in case.get("refusals", ()):
            drainer.note_refusal(outcome, pod, refusal(case["refusals"][name]))
        else:
            outcome.going.append(pod)
            evicted.append(name)
    assert evicted == answer["evicted"]
    assert outcome.is_complete is answer["completed"]
    assert evictions.message(outcome, case["started"]) == answer["message"]
