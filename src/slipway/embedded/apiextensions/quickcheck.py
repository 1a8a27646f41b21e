"""A schema as functions that say only whether a value is good: most are, and then no error needs words.

Where one says no, :mod:`slipway.embedded.apiextensions.validation` looks again and has the last word; so it may say no too often,
never too seldom.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.embedded.apiextensions import formats, validation

if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[Any], bool]

Schema = dict[str, Any]

_RARE = ("anyOf", "oneOf", "allOf", "not", "multipleOf", "uniqueItems", "dependencies")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


def compiled(schema: Schema) -> Check:
    """The check of a schema."""
    if schema.get("x-kubernetes-int-or-string"):
        plain = all(schema.get(name) is None for name in (*_RARE[1:], "enum", "pattern", "minimum", "maximum", "minLength", "maxLength"))
        if plain and schema.get("anyOf") in (None, _INT_OR_STRING):
            return lambda value: type(value) is int or type(value) is str
    if any(schema.get(name) for name in _RARE) or (schema.get("enum") and schema.get("type") != "string"):
        return lambda value: not validation.validate(value, schema)
    check = _COMPILERS.get(schema.get("type") or "", _any)(schema)
    if schema.get("nullable") and not schema.get("enum"):
        return lambda value: value is None or check(value)
    return check


def _any(schema: Schema) -> Check:
    return lambda value: not validation.validate(value, schema)


def _string(schema: Schema) -> Check:
    least, most = schema.get("minLength") or 0, schema.get("maxLength")
    allowed = frozenset(schema["enum"]) if schema.get("enum") else None
    format_ = schema.get("format") or ""
    pattern = schema.get("pattern")
    if pattern and not formats.is_pattern(pattern):
        return _any(schema)

    def check(value: Any) -> bool:
        return (
            type(value) is str
            and least <= len(value)
            and (most is None or len(value) <= most)
            and (allowed is None or value in allowed)
            and (not pattern or formats.matches(pattern, value))
            and (not format_ or formats.is_valid(format_, value))
        )

    return check


def _number(schema: Schema) -> Check:
    types = (int,) if schema["type"] == "integer" else (int, float)
    least, most = schema.get("minimum"), schema.get("maximum")
    least_itself, most_itself = not schema.get("exclusiveMinimum"), not schema.get("exclusiveMaximum")

    def check(value: Any) -> bool:
        return (
            type(value) in types
            and (least is None or value > least or (least_itself and value == least))
            and (most is None or value < most or (most_itself and value == most))
        )

    return check


def _array(schema: Schema) -> Check:
    least, most = schema.get("minItems") or 0, schema.get("maxItems")
    item = compiled(schema["items"]) if isinstance(schema.get("items"), dict) else None

    def check(value: Any) -> bool:
        if type(value) is not list or len(value) < least or (most is not None and len(value) > most):
            return False
        return item is None or all(map(item, value))

    return check


def _object(schema: Schema) -> Check:
    least, most = schema.get("minProperties") or 0, schema.get("maxProperties")
    required = tuple(schema.get("required") or ())
    fields = {name: compiled(child) for name, child in (schema.get("properties") or {}).items()}
    additional = schema.get("additionalProperties")
    other = compiled(additional) if isinstance(additional, dict) else None
    closed = additional is False

    def check(value: Any) -> bool:
        if type(value) is not dict or len(value) < least or (most is not None and len(value) > most):
            return False
        for name in required:
            if name not in value:
                return False
        for name, item in value.items():
            field = fields.get(name, other)
            if field is None:
                if closed:
                    return False
            elif not field(item):
                return False
        return True

    return check


def _boolean(schema: Schema) -> Check:
    return lambda value: type(value) is bool


_COMPILERS: dict[str, Callable[[Schema], Check]] = {
    "string": _string,
    "integer": _number,
    "number": _number,
    "array": _array,
    "object": _object,
    "boolean": _boolean,
}
