"""MachineDrainRules that are wrong: what can still be said of them, and which Pods they hold."""

from __future__ import annotations

from typing import Any

import pytest
from fleet.machines.machine.recorded import NOW

from slipway.api.cluster.core.machinedrainrule import MachineDrainRule
from slipway.api.cluster.meta import LabelSelector, decode
from slipway.fleet.machines.machine.drain import filters, rules, selectors
from slipway.fleet.machines.machine.drain.filters import Behavior

INVALID = {"matchExpressions": [{"key": "app", "operator": "Contains", "values": ["a"]}]}


def rule(name: str = "r", behavior: str = "Skip", **spec: Any) -> rules.Rule:
    return rules.parse(decode({"metadata": {"name": name}, "spec": {"drain": {"behavior": behavior}, **spec}}, MachineDrainRule))


def behavior(pod_labels: dict[str, str], *given: rules.Rule) -> Behavior:
    pod = {"metadata": {"name": "p", "namespace": "default", "labels": pod_labels}}
    chosen = rules.for_machine(given, {"pool": "a"}, {"stage": "test"})
    return filters.verdict(pod, chosen, filters.Node(namespaces={"default": {"tier": "x"}}), NOW).behavior


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(rule(pods=[{"selector": INVALID}]), Behavior.HOLD, id="its selector of Pods"),
        pytest.param(rule(pods=[{"namespaceSelector": INVALID}]), Behavior.HOLD, id="its selector of namespaces"),
        pytest.param(
            rule(pods=[{"selector": INVALID, "namespaceSelector": {"matchLabels": {"tier": "y"}}}]),
            Behavior.DRAIN,
            id="invalid, but for another namespace",
        ),
        pytest.param(
            rule(pods=[{"selector": INVALID}, {"selector": {"matchLabels": {"app": "a"}}}]),
            Behavior.SKIP,
            id="invalid beside a term that fits",
        ),
        pytest.param(rule(machines=[{"selector": INVALID}]), Behavior.HOLD, id="its selector of Machines"),
        pytest.param(
            rule(machines=[{"selector": INVALID, "clusterSelector": {"matchLabels": {"stage": "x"}}}]),
            Behavior.DRAIN,
            id="invalid, but for another Cluster",
        ),
        pytest.param(
            rule(machines=[{"selector": INVALID}], pods=[{"selector": {"matchLabels": {"app": "x"}}}]),
            Behavior.DRAIN,
            id="invalid, but for other Pods",
        ),
        pytest.param(rule(behavior="Explode"), Behavior.HOLD, id="its behavior"),
    ],
)
def test_an_invalid_rule_holds_what_it_may_be_about(given: rules.Rule, expected: Behavior) -> None:
    assert behavior({"app": "a"}, given) is expected


def test_a_rule_that_cannot_be_read_holds_what_no_rule_before_it_decides() -> None:
    lost = rules.unreadable("m", "it is no rule")
    assert behavior({"app": "a"}, lost) is Behavior.HOLD
    assert behavior({"app": "a"}, lost, rule("a", "WaitCompleted")) is Behavior.WAIT


def test_a_valid_rule_before_it_decides() -> None:
    assert behavior({"app": "a"}, rule("b", pods=[{"selector": INVALID}]), rule("a", "WaitCompleted")) is Behavior.WAIT


def test_a_valid_rule_after_it_does_not() -> None:
    assert behavior({"app": "a"}, rule("a", pods=[{"selector": INVALID}]), rule("b", "WaitCompleted")) is Behavior.HOLD


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}, "a: for 'in', 'notin' operators, values set can't be empty"),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
            "a: values set must be empty for exists and does not exist",
        ),
        ({"matchExpressions": [{"key": "a", "operator": ""}]}, '"" is not a valid label selector operator'),
        ({"matchLabels": {"a/b/c": "d"}}, "a/b/c: a valid label key"),
        ({"matchLabels": {"a": "-"}}, "a: a valid label must be"),
    ],
)
def test_what_is_wrong_with_a_selector_is_told(selector: dict[str, Any], problem: str) -> None:
    assert selectors.parse(decode(selector, LabelSelector)).problem.startswith(problem)
