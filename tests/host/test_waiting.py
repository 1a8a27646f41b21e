"""Waiting with a limit."""

from __future__ import annotations

import pytest

from slipway.api.machinery.duration import Duration
from slipway.host import waiting
from slipway.host.waiting import TimedOutError


def test_what_is_true_at_once_is_not_waited_for() -> None:
    assert waiting.until(lambda: "", timeout=0) < 1


def test_it_ends_when_nothing_is_missing_any_more() -> None:
    missing = ["three", "two", "one", ""]
    waiting.until(lambda: missing.pop(0), timeout=60, interval=0.001)
    assert missing == []


def test_the_last_thing_that_was_missing_is_told() -> None:
    answers = iter(["the kubelet", *["the API server"] * 1000])
    with pytest.raises(TimedOutError, match=r"^the API server \(gave up after 20ms\)$"):
        waiting.until(lambda: next(answers), timeout=0.02, interval=0.005)


@pytest.mark.parametrize(("seconds", "text"), [(240, "4m0s"), (2.3456, "2.346s"), (0.5, "500ms"), (0, "0s")])
def test_times_are_shown_as_kubeadm_shows_them(seconds: float, text: str) -> None:
    assert waiting.shown(seconds) == text


def test_a_timeout_that_is_not_set_has_a_default() -> None:
    assert waiting.seconds(None, 240) == 240
    assert waiting.seconds(Duration.of(minutes=1), 240) == 60
