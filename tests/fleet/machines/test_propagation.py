"""What is wanted of an object is sent when it would change something, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.fleet.machines.propagation import covers


@pytest.mark.parametrize(
    ("current", "wanted", "expected"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({}, {"a": {}}, True),
        ({}, {"a": {"b": 1}}, False),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, True),
        ({"a": [{"k": 1, "v": 2}, {"k": 2}]}, {"a": [{"k": 1}]}, True),
        ({"a": [{"k": 2}]}, {"a": [{"k": 1}]}, False),
        ({"a": [1]}, {"a": [1, 2]}, False),
        ({"a": "x"}, {"a": ["x"]}, False),
    ],
)
def test_an_object_covers_what_it_has_all_of(current: Any, wanted: Any, expected: bool) -> None:
    assert covers(current, wanted) is expected
