"""Versions against recorded results of apimachinery's version package (tests/oracles/yaml)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slipway.api.machinery.version import Version

pytestmark = pytest.mark.recorded

GOLDEN = Path(__file__).parents[2] / "golden/yaml/versions.json"
CASES: list[dict[str, Any]] = json.loads(GOLDEN.read_text())["cases"]
TEXTS = {text: canonical for case in CASES for text, canonical in zip(case["texts"], case["canonical"], strict=True)}


@pytest.mark.parametrize(("text", "canonical"), [(text, canonical) for text, canonical in TEXTS.items() if canonical])
def test_prints_without_the_v(text: str, canonical: str) -> None:
    assert str(Version.parse(text)) == canonical


@pytest.mark.parametrize("text", [text for text, canonical in TEXTS.items() if not canonical])
def test_refuses_what_is_no_semantic_version(text: str) -> None:
    with pytest.raises(ValueError, match=r"^could not parse "):
        Version.parse(text)


@pytest.mark.parametrize("case", [case for case in CASES if "compare" in case], ids=lambda case: " ".join(case["texts"]))
def test_is_ordered_as_in_go(case: dict[str, Any]) -> None:
    first, second = (Version.parse(text) for text in case["texts"])
    assert (first > second) - (first < second) == case["compare"]
    assert (first == second) == (case["compare"] == 0)
    assert (first <= second, first >= second) == (case["compare"] <= 0, case["compare"] >= 0)
    assert case["compare"] != 0 or hash(first) == hash(second)
