"""Label and field selectors: what apimachinery reads and matches, it reads and matches alike."""

from __future__ import annotations

import pytest

from slipway.embedded.errors import StatusError
from slipway.embedded.storage import selectors

LABELS = {"x": "a", "y": "b", "n": "5"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("x=a", True),
        ("x==a", True),
        ("x=a,y=b", True),
        (" x = a , y = b ", True),
        ("x=a,y=c", False),
        ("x!=a", False),
        ("z!=a", True),
        ("x", True),
        ("z", False),
        ("!z", True),
        ("! x", False),
        ("x in (a)", True),
        ("x in (b,a)", True),
        ("x in (b, c )", False),
        ("z in (a)", False),
        ("x notin (b,c)", True),
        ("x notin (a)", False),
        ("z notin (a)", True),
        ("x in (a),!z,y", True),
        ("n>4", True),
        ("n>5", False),
        ("n<6", True),
        ("x>1", False),
        ("x=", False),
        ("z in ()", False),
        ("example.com/x=a", False),
    ],
)
def test_label_selectors(text: str, matches: bool) -> None:
    assert selectors.match_labels(selectors.parse_labels(text), LABELS) is matches


@pytest.mark.parametrize(
    "text", ["x=a||y=b", "x==a==b", "!x=a", "x<a", "x in a", "x in (a", "x=a,", ",x=a", "a b", "-x=a", "x=a b", "/x=a", "x in (=a)"]
)
def test_label_selectors_that_cannot_be_read(text: str) -> None:
    with pytest.raises(StatusError) as refused:
        selectors.parse_labels(text)
    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("x=y", True),
        ("x==y", True),
        ("x!=y", False),
        ("x=y,a=b", False),
        ("x=y,a!=b", True),
        (r"c=1\,2", True),
        (r"e=a\=b", True),
        ("missing=", True),
    ],
)
def test_field_selectors(text: str, matches: bool) -> None:
    fields = {"x": "y", "c": "1,2", "e": "a=b"}
    found = selectors.parse_fields(text)
    assert all((fields.get(requirement.field, "") == requirement.value) is requirement.equal for requirement in found) is matches


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x=y,abc", "invalid selector: 'x=y,abc'; can't understand 'abc'"),
        ("x=a=b", "invalid field selector: unescaped character in value: 61"),
        ("x=a\\b", "invalid field selector: invalid escape sequence: \\b"),
        ("x=a\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_a_field_selector_that_cannot_be_read(text: str, why: str) -> None:
    with pytest.raises(StatusError) as refused:
        selectors.parse_fields(text)
    assert refused.value.message == why


def test_an_escaped_comma_belongs_to_the_value() -> None:
    assert selectors.parse_fields(r"metadata.namespace!=x\,metadata.name\=y") == [("metadata.namespace", "x,metadata.name=y", False)]


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, True),
        ({}, True),
        ({"matchLabels": {"x": "a"}}, True),
        ({"matchLabels": {"x": "b"}}, False),
        ({"matchExpressions": [{"key": "x", "operator": "In", "values": ["a", "b"]}]}, True),
        ({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "z", "operator": "DoesNotExist"}, {"key": "x", "operator": "Exists"}]}, True),
    ],
)
def test_label_selectors_of_objects(selector: dict[str, object] | None, matches: bool) -> None:
    assert selectors.match_labels(selectors.from_label_selector(selector), LABELS) is matches
