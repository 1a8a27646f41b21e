"""Inputs that once were too much for a parser, and the limits by which they are judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz import limits, targets

FOUND = [(name, path) for name in targets.names() for path in targets.reproducers(name)]


@pytest.mark.parametrize(("name", "path"), FOUND, ids=lambda value: value.name if isinstance(value, Path) else value)
def test_what_was_found_once_stays_mended(name: str, path: Path) -> None:
    assert limits.problem(targets.load(name).fuzz, path.read_bytes()) == ""


@pytest.mark.parametrize("name", targets.names())
def test_the_seeds_of_a_target_are_harmless(name: str) -> None:
    target = targets.load(name)
    assert [seed for seed in target.seeds if limits.problem(target.fuzz, seed)] == []


def test_every_reproducer_belongs_to_a_target() -> None:
    folders = {path.name for path in (Path(__file__).parent / "corpus").glob("*") if path.is_dir()}
    assert folders <= set(targets.names())


def crash(data: bytes) -> None:
    raise KeyError(data)


def hang(data: bytes) -> None:
    while True:
        try:
            data += b""
        except Exception:
            continue


def swell(data: bytes) -> None:
    bytearray(b"x" * (limits.MEGABYTES + 50) * 10**6)


def test_a_crash_and_a_hang_are_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.05)
    assert limits.problem(crash, b"it").splitlines()[-1] == "KeyError: b'it'"
    assert limits.problem(hang, b"") == "took more than 0.05 s"


def test_a_lot_of_memory_is_a_problem() -> None:
    assert "MB more" in limits.problem(swell, b"")
    assert limits.problem(len, b"") == ""  # type: ignore[arg-type]
