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


# What github.com/blang/semver/v4 v4.0.0 prints for ParseTolerant, which Cluster API reads versions with; None: an error.
TOLERANT = {
    "v1.35.4": "1.35.4",
    "1.35": "1.35.0",
    "v1": "1.0.0",
    "v1.35-rc.1": None,
    "v1.35+x": None,
    "v1.35.0-rc.1": "1.35.0-rc.1",
    "v1.35.0-rc.01": None,
    "1.035.04": "1.35.4",
    "v1.35.00-rc.1": "1.35.0-rc.1",
    "1.35.4+k3s1": "1.35.4+k3s1",
    "v1.35.4-rc.1+a.b": "1.35.4-rc.1+a.b",
    "vv1.35.4": None,
    "V1.35.4": None,
    " v1.35.4\n": "1.35.4",
    "1.35.4.5": None,
    "1..4": None,
    "": None,
    "v": None,
    "1.35.x": None,
    "1.35.4-": None,
    "1.35.4+": None,
    "1.35.4-a_b": None,
    "latest": None,
    "1.35.4-00": None,
    "1.35.4-0": "1.35.4-0",
    "-1.2.3": None,
    "1.2.3 4": None,
    "v 1.2.3": None,
    "1.99999999999999999999.0": None,
}


@pytest.mark.parametrize(("text", "read"), TOLERANT.items())
def test_a_version_is_read_as_tolerantly_as_cluster_api_does(text: str, read: str | None) -> None:
    try:
        found: str | None = str(Version.tolerant(text))
    except ValueError:
        found = None
    assert found == read
