"""Durations against recorded results of Go's time package (tests/oracles/yaml)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.api.machinery.duration import Duration, human_duration

pytestmark = pytest.mark.recorded

GOLDEN = Path(__file__).parents[2] / "golden/yaml/durations.json"
CASES: list[dict[str, Any]] = json.loads(GOLDEN.read_text())["cases"]


@pytest.mark.parametrize("case", [case for case in CASES if "error" not in case], ids=lambda case: case["text"])
def test_reads_and_prints_as_go_does(case: dict[str, Any]) -> None:
    duration = Duration.parse(case["text"])
    assert (int(duration), str(duration)) == (case["nanoseconds"], case["canonical"])


@pytest.mark.parametrize("case", [case for case in CASES if "error" in case], ids=lambda case: case["text"][:20] or "empty")
def test_refuses_with_the_text_of_go(case: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^time: ") as caught:
        Duration.parse(case["text"])
    assert str(caught.value) == case["error"]


@given(st.integers(-(2**63), 2**63 - 1))
def test_what_is_printed_is_read_again(nanoseconds: int) -> None:
    duration = Duration(nanoseconds)
    # Past 2**53 Go itself computes fractions of a second with a float64, but a fraction has nine digits at most.
    assert Duration.parse(str(duration)) == duration


def test_is_made_of_hours_minutes_and_seconds() -> None:
    assert str(Duration.of(hours=1, minutes=2, seconds=3)) == "1h2m3s"
    assert Duration.of(seconds=90).seconds == 90.0
    assert repr(Duration.of(minutes=5)) == "Duration('5m0s')"


def test_many_terms_take_linear_time() -> None:
    assert Duration.parse("1ns" * 200_000) == 200_000


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (1, "1s"),
        (70, "70s"),
        (119, "119s"),
        (120, "2m"),
        (190, "3m10s"),
        (599, "9m59s"),
        (70 * 60, "70m"),
        (179 * 60 + 59, "179m"),
        (47 * 3600, "47h"),
        (49 * 3600, "2d1h"),
        (3 * 3600, "3h"),
        (7 * 3600 + 31 * 60, "7h31m"),
        (8 * 86400 + 2 * 3600, "8d"),
        (367 * 86400, "367d"),
        (729 * 86400, "729d"),
        (2 * 365 * 86400, "2y"),
        (2 * 365 * 86400 + 2 * 86400, "2y2d"),
        (8 * 365 * 86400 + 2 * 86400, "8y"),
    ],
)
def test_spans_are_shown_with_two_or_three_figures(seconds: int, text: str) -> None:
    assert human_duration(seconds) == text
