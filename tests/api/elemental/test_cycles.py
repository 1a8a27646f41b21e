"""The record of a host's cycles as an annotation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from slipway.api.elemental.cycles import CYCLES_ANNOTATION, KEPT, Cycle, read, unreadable, written

AT = datetime(2026, 3, 1, 10, 0, 0, tzinfo=UTC)


def test_a_life_is_compact_json_in_whole_seconds_with_only_what_was_reached() -> None:
    cycle = Cycle(machine="m-1", cluster="demo", version="v1.34.10", claimed=AT + timedelta(microseconds=999_999))
    assert written([cycle]) == '[{"machine":"m-1","cluster":"demo","version":"v1.34.10","claimed":"2026-03-01T10:00:00Z"}]'


def test_times_of_another_zone_are_written_in_utc() -> None:
    claimed = datetime(2026, 3, 1, 18, 0, 0, tzinfo=timezone(timedelta(hours=8)))
    assert '"claimed":"2026-03-01T10:00:00Z"' in written([Cycle(machine="m", claimed=claimed)])


def test_what_was_written_is_read_again() -> None:
    cycles = (Cycle(machine="a", released=AT), Cycle(machine="b", running=AT, draining=AT))
    assert read({CYCLES_ANNOTATION: written(cycles)}) == cycles


def test_only_the_last_lives_are_kept() -> None:
    cycles = [Cycle(machine=f"m-{number}") for number in range(KEPT + 3)]
    assert [each.machine for each in read({CYCLES_ANNOTATION: written(cycles)})] == [f"m-{number}" for number in range(3, KEPT + 3)]


def test_a_host_without_the_annotation_has_no_past() -> None:
    assert (read({}), unreadable({})) == ((), "")


def test_a_field_of_a_newer_slipway_is_left_aside() -> None:
    assert read({CYCLES_ANNOTATION: '[{"machine":"m","paid":true}]'}) == (Cycle(machine="m"),)


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "{}",
        "[1]",
        '[{"cluster":"demo"}]',
        '[{"machine":"m","claimed":"yesterday"}]',
        '[{"machine":"m","claimed":"2026-03-01T10:00:00"}]',
        '[{"machine":"m"}',
        "\x00",
        "\udcff",
        "[" * 100_000,
        '[{"machine":"m","more":' + "[" * 100_000,
        '[{"machine":"m","claimed":"0001-01-01T00:00:00+12:00"}]',
        '[{"machine":"' + "m" * 254 + '"}]',
    ],
)
def test_garbage_is_no_past_and_is_told(text: str) -> None:
    annotations = {CYCLES_ANNOTATION: text}
    assert read(annotations) == ()
    assert unreadable(annotations)
