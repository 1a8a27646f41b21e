"""Field errors against recorded texts of apimachinery's field package (tests/oracles/yaml)."""

from __future__ import annotations

import json
from pathlib import Path as File
from typing import Any

import pytest

from slipway.api.machinery.fieldpath import FieldError, Path, aggregate, duplicate, forbidden, invalid, not_supported, required

pytestmark = pytest.mark.recorded

GOLDEN = File(__file__).parents[2] / "golden/yaml/fielderrors.json"
CASES: list[dict[str, Any]] = json.loads(GOLDEN.read_text())["cases"]


def path_of(steps: list[str | int | list[str]]) -> Path:
    path = Path()
    for step in steps:
        path = path.child(step) if isinstance(step, str) else path.index(step) if isinstance(step, int) else path.key(step[0])
    return path


def error_of(case: dict[str, Any]) -> FieldError:
    path, value, detail = path_of(case["path"]), case["value"], case["detail"]
    match case["fault"]:
        case "required":
            return required(path, detail)
        case "forbidden":
            return forbidden(path, detail)
        case "duplicate":
            return duplicate(path, value)
        case "not_supported":
            return not_supported(path, value, case.get("allowed", []))
    return invalid(path, value, detail)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['fault']}-{case['value']!r}")
def test_reads_as_in_apimachinery(case: dict[str, Any]) -> None:
    assert str(error_of(case)) == case["text"]


def test_one_error_stands_alone_and_equal_ones_appear_once() -> None:
    one, two = required(Path("a"), "is missing"), invalid(Path("b", "c"), 1, "is odd")
    assert aggregate([one]) == "a: Required value: is missing"
    assert aggregate([one, two, one]) == "[a: Required value: is missing, b.c: Invalid value: 1: is odd]"
    assert aggregate([one, one]) == "a: Required value: is missing"
