"""Quantities against recorded results of apimachinery's resource package (tests/oracles/yaml)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slipway.api.machinery.quantity import QuantityError, canonical

pytestmark = pytest.mark.recorded

GOLDEN = Path(__file__).parents[2] / "golden/yaml/quantities.json"
CASES: list[dict[str, Any]] = json.loads(GOLDEN.read_text())["cases"]


@pytest.mark.parametrize("case", [case for case in CASES if "error" not in case], ids=lambda case: case["text"])
def test_prints_as_apimachinery_does(case: dict[str, Any]) -> None:
    assert canonical(case["text"]) == case["canonical"]


@pytest.mark.parametrize("case", [case for case in CASES if "error" in case], ids=lambda case: case["text"] or "empty")
def test_refuses_with_the_reason_of_apimachinery(case: dict[str, Any]) -> None:
    with pytest.raises(QuantityError) as caught:
        canonical(case["text"])
    assert str(caught.value) == case["error"]


@pytest.mark.parametrize("text", ["0" * 20_000 + "x", "1e" + "1" * 5_000, "1" * 4_290 + ".1Ei", "." * 20_000])
def test_long_texts_that_are_no_quantities_are_refused_at_once(text: str) -> None:
    with pytest.raises(QuantityError):
        canonical(text)


@pytest.mark.parametrize(("text", "wanted"), [("1e-999999999", "1e-9"), ("1e999999999", "1e999999999"), ("7" * 30 + "e-999999", "1e-9")])
def test_absurd_exponents_cost_nothing(text: str, wanted: str) -> None:
    # What Go says too, or would say if it came to an end.
    assert canonical(text) == wanted
