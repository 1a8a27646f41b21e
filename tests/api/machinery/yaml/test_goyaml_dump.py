"""Writing YAML: byte for byte as recorded from Go's sigs.k8s.io/yaml (tests/oracles/yaml), and readable again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.api.machinery.yaml import goyaml

GOLDEN = Path(__file__).parents[2] / "golden/yaml/dump.json"
CASES: list[dict[str, Any]] = json.loads(GOLDEN.read_text())["cases"]

# Go loses this character on the way: its YAML reader takes it for the end of a line in the middle of a JSON string.
NEXT_LINE = '{"v": "\\u0085"}'


@pytest.mark.parametrize("case", [case for case in CASES if case["json"] != NEXT_LINE], ids=lambda case: case["json"][:60])
def test_writes_the_bytes_that_go_writes(case: dict[str, Any]) -> None:
    assert goyaml.dump(json.loads(case["json"])) == case["yaml"]


@pytest.mark.parametrize("character", ["\x7f", "\x80", "\x85", "\x9f", "\ufffe"])
def test_characters_that_go_cannot_marshal_survive(character: str) -> None:
    # json.Marshal leaves these as they are, and goyaml then refuses them, or folds the next-line character into a space.
    [document] = goyaml.load(goyaml.dump({"v": f"a{character}b"}))
    assert document.value == {"v": f"a{character}b"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [float("-inf")]}])
def test_numbers_that_json_lacks_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="JSON has no number for"):
        goyaml.dump(value)


def test_values_that_json_lacks_are_refused() -> None:
    with pytest.raises(TypeError, match="bytes is not a JSON value"):
        goyaml.dump({"a": b"x"})


def test_keys_are_sorted_alike_whatever_their_order_before() -> None:
    # goyaml's order has a cycle here: v1beta1 < v2 < v10 < v1beta1.
    keys = ["v1beta1", "v2", "v10"]
    texts = {goyaml.dump(dict.fromkeys(keys[start:] + keys[:start])) for start in range(3)}
    assert len(texts) == 1


# Lone surrogates are no text, and goyaml writes the key << without the quotes that it needs.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
KEYS = TEXT.filter(lambda key: key != "<<")
# A whole float comes back as the integer that JSON shows, which has fewer digits than the float is worth past 2**53.
FLOATS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer() or abs(number) < 2**53)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | FLOATS | TEXT
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=12)


@given(VALUES)
def test_what_is_written_is_read_again(value: object) -> None:
    [document] = goyaml.load(goyaml.dump(value))
    assert document.value == value
    assert document.duplicates == []
