"""Names, records and retention of snapshots."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.snapshots import record
from slipway.fleet.snapshots.record import Snapshot

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def snapshot(days: int = 0, revision: int = 7) -> Snapshot:
    return Snapshot(namespace="n", cluster="c", taken=NOW - timedelta(days=days), revision=revision, size=544, sha256="ab" * 32)


def files(*days: int) -> list[str]:
    return [snapshot(day).name + end for day in days for end in (".db", ".json")]


def test_a_name_says_when_and_what() -> None:
    assert snapshot().name == "20260301T120000Z-r7"
    assert record.taken_at("20260301T120000Z-r7.db") == NOW


@pytest.mark.parametrize("name", ["", "notes.txt", "20261301T120000Z-r7.db", "2026-r7"])
def test_other_names_are_none(name: str) -> None:
    assert record.taken_at(name) is None


def test_a_record_is_read_as_it_was_written() -> None:
    assert record.read(record.written(snapshot()), "here") == snapshot()


def test_what_is_no_record_gets_a_sentence() -> None:
    with pytest.raises(OperatorError, match="here is not the record of a snapshot: "):
        record.read(b'{"cluster": 5}', "here")


@pytest.mark.parametrize(
    ("found", "keep", "going"),
    [
        pytest.param([], 3, [], id="none"),
        pytest.param(files(1, 2), 2, [], id="as many as are kept"),
        pytest.param(files(1, 2, 3), 2, [snapshot(3).name + end for end in (".json", ".db")], id="the oldest goes, its record first"),
        pytest.param(["notes.txt", "README.db"], 1, [], id="what is not ours stays"),
        pytest.param([*files(1), snapshot(0).name + ".db"], 1, [], id="one that is being written"),
        pytest.param([*files(1), snapshot(3).name + ".db"], 1, [snapshot(3).name + ".db"], id="one that was interrupted"),
        pytest.param([snapshot(3).name + ".1f.part"], 1, [snapshot(3).name + ".1f.part"], id="a piece that was interrupted"),
        pytest.param([snapshot(0).name + ".1f.part"], 1, [], id="a piece that is being written"),
    ],
)
def test_the_newest_are_kept(found: list[str], keep: int, going: list[str]) -> None:
    assert record.superfluous(found, keep, NOW) == going


@given(st.sets(st.integers(0, 400), max_size=12), st.integers(1, 12))
def test_exactly_the_newest_stay_whatever_there_is(days: set[int], keep: int) -> None:
    found = files(*days)
    left = set(found) - set(record.superfluous(found, keep, NOW))
    assert left == set(files(*sorted(days)[:keep]))


def test_the_newest_is_chosen_where_none_is_named() -> None:
    known = [snapshot(2), snapshot(1)]
    assert record.chosen(known, "") == snapshot(1)
    assert record.chosen(known, snapshot(2).name) == snapshot(2)


@pytest.mark.parametrize(("known", "said"), [([], "there is no snapshot of this cluster"), ([snapshot()], 'no snapshot "other"')])
def test_one_that_is_not_there_gets_a_sentence(known: list[Snapshot], said: str) -> None:
    with pytest.raises(OperatorError, match=said):
        record.chosen(known, "other")
