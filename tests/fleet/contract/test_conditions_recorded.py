"""Mirrors, aggregates and summaries of conditions, as Cluster API 1.14.2 makes them (tests/oracles/clusterapi_status_record.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract import conditions
from slipway.fleet.contract.aggregation import Source, aggregate
from slipway.fleet.contract.conditions import Condition, Reasons
from slipway.fleet.contract.mirroring import NO_REASON_REPORTED, Fallback, InvalidConditionError, mirror

pytestmark = pytest.mark.recorded

GOLDEN = Path(__file__).parents[2] / "golden/clusterapi/conditions"


def _rows(subject: str) -> list[Any]:
    return [pytest.param(row, id=row["case"]["name"]) for row in json.loads((GOLDEN / f"{subject}.json").read_text())]


def _same(found: Condition, answer: dict[str, Any]) -> None:
    assert (found.type, found.status, found.reason, found.message) == (
        answer["type"],
        answer["status"],
        answer["reason"],
        answer["message"],
    )
    assert found.last_transition_time == (answer.get("lastTransitionTime") or "")


def _reasons(case: dict[str, Any]) -> Reasons:
    return Reasons(*case["reasons"]) if "reasons" in case else Reasons()


@pytest.mark.parametrize("row", _rows("mirror"))
def test_a_mirrored_condition(row: dict[str, Any]) -> None:
    case = row["case"]
    fallback = Fallback(**case["fallback"]) if "fallback" in case else None
    if "error" in row:
        with pytest.raises(InvalidConditionError) as caught:
            mirror(case["object"], case["type"], fallback=fallback)
        assert caught.value.message == row["error"]
    else:
        _same(mirror(case["object"], case["type"], target_type=case.get("target", ""), fallback=fallback), row["answer"])


@pytest.mark.parametrize("row", _rows("aggregate"))
def test_an_aggregated_condition(row: dict[str, Any]) -> None:
    case = row["case"]
    sources = [Source.of({**source, "status": {"conditions": source["conditions"]}}) for source in case["sources"]]
    if "error" in row:
        with pytest.raises(OperatorError):
            aggregate(sources, case["type"])
    else:
        negative = case["type"] in case.get("negative", ())
        found = aggregate(sources, case["type"], target_type=case["target"], reasons=_reasons(case), negative=negative)
        _same(found, row["answer"])


@pytest.mark.parametrize("row", _rows("summary"))
def test_a_summary(row: dict[str, Any]) -> None:
    case = row["case"]

    def harmless(condition: Condition) -> bool:
        return condition.type in case.get("harmless", ())

    def summed_up() -> Condition:
        return conditions.summary(
            case["conditions"],
            case["type"],
            case["of"],
            _reasons(case),
            negative=case.get("negative", ()),
            ignored_if_missing=case.get("ignoredIfMissing", ()),
            harmless=harmless,
        )

    if "error" in row:
        with pytest.raises(OperatorError):
            summed_up()
    else:
        _same(summed_up(), row["answer"])


def test_a_true_condition_of_yesterday_gets_the_reason_of_the_caller() -> None:
    source = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert mirror(source, "Ready").reason == NO_REASON_REPORTED
    assert mirror(source, "Ready", reason_if_true="Ready").reason == "Ready"


def test_a_condition_whose_time_is_none_is_told() -> None:
    source = {"kind": "TestCluster", "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "soon"}]}}
    with pytest.raises(InvalidConditionError, match="lastTransitionTime value: soon"):
        mirror(source, "Ready")


def test_a_condition_with_a_number_for_a_status_is_told() -> None:
    source = {"kind": "TestCluster", "status": {"conditions": [{"type": "Ready", "status": 1}]}}
    with pytest.raises(InvalidConditionError, match="status of a condition must be a string, and is 1"):
        mirror(source, "Ready")


def test_the_lines_of_a_summary_may_be_reworded() -> None:
    found = [{"type": name, "status": "False", "reason": "Broken", "message": "no disk"} for name in ("A", "B")]
    summed_up = conditions.summary(found, "Ready", ["A", "B"], reworded=lambda lines: [f"{len(lines)} are not well"])
    assert summed_up.message == "2 are not well"
