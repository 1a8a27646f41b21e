"""ClusterResourceSets and their bindings between v1beta1 and v1beta2, compared with upstream's conversion there and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slipway.api.cluster.conversion import convert
from slipway.api.machinery.patches.jsonpatch import merge

pytestmark = pytest.mark.recorded

GOLDEN = Path(__file__).parents[2] / "golden/clusterapi/conversion"
CASES = [case for name in ("addons", "addons-random") for case in json.loads((GOLDEN / f"{name}.json").read_text())]
PARAMS = [pytest.param(case, id=f"{case['object']['kind']}-{case['object']['apiVersion'][-7:]}-{case['name']}") for case in CASES]


def other(api_version: str) -> str:
    group, _, version = api_version.rpartition("/")
    return f"{group}/{'v1beta1' if version == 'v1beta2' else 'v1beta2'}"


def without_nulls(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: without_nulls(value) for key, value in content.items() if value is not None}
    return [without_nulls(each) for each in content] if isinstance(content, list) else content


@pytest.mark.parametrize("case", PARAMS)
def test_an_object_becomes_what_upstream_makes_of_it(case: dict[str, Any]) -> None:
    assert convert(case["object"], other(case["object"]["apiVersion"])) == without_nulls(case["there"]["object"])


@pytest.mark.parametrize("case", PARAMS)
def test_there_and_back_is_as_with_upstream(case: dict[str, Any]) -> None:
    given = case["object"]
    there = merge(convert(given, other(given["apiVersion"])), case.get("change", {}))
    assert convert(there, given["apiVersion"]) == without_nulls(case["back"]["object"])
