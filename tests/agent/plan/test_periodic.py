"""When a periodic instruction is due, and what is kept of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from slipway.agent.machine import Finished
from slipway.agent.plan import periodic, unixdate
from slipway.agent.plan.periodic import Kept
from slipway.api.elemental.plan import PeriodicInstruction

NOW = datetime(2026, 11, 16, 15, 4, 5, tzinfo=UTC).timestamp()
INSTRUCTION = PeriodicInstruction("check", "true", period_seconds=60)


def ago(seconds: float) -> str:
    return unixdate.text(datetime.fromtimestamp(NOW - seconds, UTC))


@pytest.mark.parametrize(
    ("kept", "left"),
    [
        (None, 0),
        (Kept(last_successful_run_time=ago(10)), 50),
        (Kept(last_successful_run_time=ago(70)), -10),
        (Kept(last_failed_run_time=ago(10), failures=1), 20),
        (Kept(last_failed_run_time=ago(10), failures=3), 80),
        (Kept(last_failed_run_time=ago(10), failures=100), 170),
        (Kept(last_successful_run_time="yesterday"), 0),
        # A clock that was set back by a day.
        (Kept(last_successful_run_time=ago(-86400)), 0),
        (Kept(last_successful_run_time=ago(-86400), last_failed_run_time=ago(10), failures=1), 20),
    ],
)
def test_when_a_periodic_instruction_is_due(kept: Kept | None, left: float) -> None:
    assert periodic.seconds_left(INSTRUCTION, kept, NOW) == left


def test_failures_are_counted_and_a_success_begins_anew() -> None:
    once = periodic.after(INSTRUCTION, None, Finished(1, b"why"), NOW)
    twice = periodic.after(INSTRUCTION, once, Finished(1, b"why"), NOW)
    assert (twice.failures, twice.exit_code, twice.last_failed_run_time, twice.last_successful_run_time) == (2, 1, ago(0), "")
    well = periodic.after(INSTRUCTION, twice, Finished(0, b"fine"), NOW)
    assert (well.failures, well.last_failed_run_time, well.last_successful_run_time, well.stdout) == (0, "", ago(0), b"fine")


def test_what_is_kept_is_read_again_and_rubbish_is_not() -> None:
    kept = {"check": periodic.after(INSTRUCTION, None, Finished(0, b"fine"), NOW)}
    assert periodic.read(periodic.pack(kept)) == kept
    assert periodic.read(b"rubbish") == {}


def test_times_are_written_as_go_writes_them() -> None:
    """``time.Date(2026, 11, 2, 15, 4, 5, 0, time.UTC).Format(time.UnixDate)``"""
    moment = datetime(2026, 11, 2, 15, 4, 5, tzinfo=UTC)
    assert unixdate.text(moment) == "Mon Nov  2 15:04:05 UTC 2026"
    assert unixdate.parse("Mon Nov  2 15:04:05 UTC 2026") == moment
    assert unixdate.parse("Mon Nov 42 15:04:05 UTC 2026") is None
