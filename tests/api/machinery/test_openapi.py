"""Structural schemas from types."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from slipway.api.machinery.objects import Object
from slipway.api.machinery.openapi import (
    REQUIRED,
    at_least,
    between,
    default,
    descriptions,
    items,
    length,
    one_of,
    pattern,
    rule,
    rules,
    schema,
    schema_of,
)


class Item(Object):
    """A thing in a list."""

    openapi = {"minProperties": 1}  # noqa: RUF012

    name: Annotated[str, length(1, 5), pattern("^[a-z]+$"), REQUIRED] = ""
    """Its name."""
    size: Annotated[int, schema(format="int32"), between(1, 9)] | None = None


class SmallItem(Item):
    """A small thing."""

    size: Annotated[int, at_least(2)] | None = None
    """How small it is."""


class Whole(Object):
    kind: Annotated[str, one_of("a", "b"), default("a")] = ""
    by_name: Annotated[list[Item], items(1, 3, keys=("name",)), rules(rule("self.size() < 3", "too many"))] = msgspec.field(
        default_factory=list
    )
    words: Annotated[list[Annotated[str, length(None, 3)]], items(None, None, atomic=True)] = msgspec.field(default_factory=list)
    flags: dict[str, bool] = msgspec.field(default_factory=dict)
    anything: Any = None
    port: int | str = 0
    ratio: float | None = None
    small: SmallItem = msgspec.field(default_factory=SmallItem)
    """The field's own words."""
    other: SmallItem | None = None
    metadata: Annotated[dict[str, Any], msgspec.Meta(extra={"schema": {"type": "object"}})] = msgspec.field(default_factory=dict)


SIZE = {"type": "integer", "minimum": 2, "description": "How small it is."}
NAME = {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^[a-z]+$", "description": "Its name."}
SMALL = {"type": "object", "properties": {"name": NAME, "size": SIZE}, "required": ["name"], "minProperties": 1}


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("kind", {"type": "string", "enum": ["a", "b"], "default": "a"}),
        (
            "byName",
            {
                "type": "array",
                "minItems": 1,
                "maxItems": 3,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "x-kubernetes-validations": [{"rule": "self.size() < 3", "message": "too many"}],
                "items": {
                    "type": "object",
                    "description": "A thing in a list.",
                    "minProperties": 1,
                    "required": ["name"],
                    "properties": {"name": NAME, "size": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 9}},
                },
            },
        ),
        ("words", {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string", "maxLength": 3}}),
        ("flags", {"type": "object", "additionalProperties": {"type": "boolean"}}),
        ("anything", {"x-kubernetes-preserve-unknown-fields": True}),
        ("port", {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}),
        ("ratio", {"type": "number"}),
        ("small", SMALL | {"description": "The field's own words."}),
        ("other", SMALL | {"description": "A small thing."}),
        ("metadata", {"type": "object"}),
    ],
)
def test_a_field_becomes_a_property(field: str, expected: dict[str, Any]) -> None:
    whole = schema_of(Whole)
    assert whole["type"] == "object"
    assert "required" not in whole
    assert whole["properties"][field] == expected


def test_words_of_a_base_class_count_until_they_are_said_anew() -> None:
    assert descriptions(Item) == {"name": "Its name."}
    assert descriptions(SmallItem) == {"name": "Its name.", "size": "How small it is."}


class WithBytes(Object):
    data: bytes = b""


class WithUnion(Object):
    value: int | list[str] = 0


@pytest.mark.parametrize("kind", [WithBytes, WithUnion])
def test_a_type_that_a_crd_cannot_say_is_refused(kind: type[Object]) -> None:
    with pytest.raises(TypeError, match="has no form in the schema of a CRD"):
        schema_of(kind)
