"""The table of faults is held by tests that exist, tells what they tell, and is what docs/faults.md says."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
from faulttable import FAULTS, Fault, held_by, table

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "faults.md"


@cache
def functions_of(place: str) -> frozenset[str]:
    tree = ast.parse((TESTS / place).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@cache
def support() -> str:
    """What tests on the simulation say in common."""
    return "\n".join(path.read_text() for path in (TESTS / "simulation").glob("*.py") if not path.name.startswith("test_"))


@pytest.mark.parametrize("row", FAULTS, ids=lambda row: row.name)
def test_a_fault_is_provoked_by_tests_that_exist(row: Fault) -> None:
    assert row.tests, f"nothing provokes it: {row.name}"
    for each in row.tests:
        place, _, name = each.partition("::")
        assert (TESTS / place).exists(), f"there is no {place}"
        assert name in functions_of(place), f"{place} has no {name}"


@pytest.mark.parametrize("row", FAULTS, ids=lambda row: row.name)
def test_what_operators_are_told_is_what_its_tests_wait_for(row: Fault) -> None:
    texts = [(TESTS / each.partition("::")[0]).read_text() for each in row.tests]
    for reason in row.tells:
        assert reason in row.seen
        assert any(reason in text for text in (*texts, support())), f"no test of {row.name} looks for {reason}"


@pytest.mark.parametrize("made", [table, held_by], ids=["faults", "tests"])
def test_the_page_is_the_table(made: object) -> None:
    assert made() in PAGE.read_text(), "run tools/faults.py"  # type: ignore[operator]


def test_every_fault_has_a_name_of_its_own() -> None:
    assert len({row.name for row in FAULTS}) == len(FAULTS)
