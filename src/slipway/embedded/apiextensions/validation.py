"""Validation by an OpenAPI v3 schema, with the texts, the order of checks and the ratcheting of apiextensions 0.35.

A walker of our own: jsonschema-rs says that something is wrong, but not in the real server's words, and mapping its errors back
onto them would need the same walk.  Objects that are good, most of them, do not come here: see
:mod:`slipway.embedded.apiextensions.quickcheck`.  Rules in CEL (``x-kubernetes-validations``) come after it: see
:mod:`slipway.embedded.apiextensions.cel`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from slipway.api.machinery.fieldpath import quoted
from slipway.embedded import errors
from slipway.embedded.apiextensions import formats
from slipway.embedded.errors import NO_FIELD, FieldError, go_float

Schema = dict[str, Any]


class _Absent:
    """The old value where there was none, as None is a value."""


ABSENT = _Absent()


class Outcome:
    """What one value was found to be; ``matches`` counts what went well and picks the best of several alternatives."""

    __slots__ = ("errors", "matches")

    def __init__(self, *errors: FieldError) -> None:
        self.errors = list(errors)
        self.matches = 0

    def merge(self, other: Outcome) -> None:
        self.errors += other.errors
        self.matches += other.matches


def validate(value: Any, schema: Schema, path: str = "", old: Any = ABSENT) -> list[FieldError]:
    """Everything wrong with a value.  What an update leaves as it was is not looked at again: ratcheting."""
    return list(dict.fromkeys(_validate(value, schema, path, old).errors))


def _validate(value: Any, schema: Schema, path: str, old: Any) -> Outcome:
    outcome = Outcome()
    if old is not ABSENT and _same(value, old):
        return outcome
    checks = [_type(value, schema, path)]
    if value is not None:
        checks.append(_alternatives(value, schema, path, old))
        if isinstance(value, str):
            checks.append(_string(value, schema, path))
            checks.append(_format(value, schema, path))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            checks.append(_number(value, schema, path))
        elif isinstance(value, list):
            checks.append(_list(value, schema, path, old))
    checks.append(_enum(value, schema, path))
    if isinstance(value, dict):
        checks.append(_object(value, schema, path, old))
    for check in checks:
        outcome.merge(check)
        outcome.matches += 1
    return outcome


def _same(new: Any, old: Any) -> bool:
    # Python calls 1 and True equal; their JSON is not.
    return bool(new == old) and (new is old or _identity(new) == _identity(old))


def _types(schema: Schema) -> list[str]:
    if schema.get("x-kubernetes-int-or-string"):
        return ["integer", "string"]
    return [schema["type"]] if schema.get("type") else []


def _type_of(value: Any) -> tuple[str, str]:
    """The JSON type of a value, and the format that go-openapi gives it."""
    if value is None:
        return "null", ""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, int):
        return "integer", "int64"
    if isinstance(value, float):
        return "number", "float64"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object", ""


def _type(value: Any, schema: Schema, path: str) -> Outcome:
    allowed = _types(schema)
    format_ = schema.get("format") or ""
    format_ = format_ if formats.is_known(format_) else ""
    if not allowed and not format_:
        return Outcome()
    if value is None:
        return Outcome() if not allowed or schema.get("nullable") else _type_error(path, ",".join(allowed), "null")
    actual, actual_format = _type_of(value)
    fits = (
        actual in allowed
        or (actual == "integer" and "number" in allowed)
        or (actual == "number" and "integer" in allowed and float(value).is_integer())
    )
    if format_ and actual not in ("string", "array") and not fits:
        return _type_error(path, format_, actual_format)
    if format_ and actual in ("string", "array") and not {"number", "integer"} & set(allowed):
        return Outcome()
    return Outcome() if fits else _type_error(path, ",".join(allowed), actual)


def _type_error(path: str, wanted: str, actual: str) -> Outcome:
    return Outcome(FieldError.type_invalid(_field(path), actual, f"{path} in body must be of type {wanted}: {quoted(actual)}"))


def _string(value: str, schema: Schema, path: str) -> Outcome:
    if (limit := schema.get("maxLength")) is not None and len(value) > limit:
        return Outcome(FieldError.too_long(_field(path), limit))
    if (limit := schema.get("minLength")) is not None and len(value) < limit:
        return _invalid(path, value, f"should be at least {limit} chars long")
    if pattern := schema.get("pattern"):
        try:
            if not formats.matches(pattern, value):
                return _invalid(path, value, f"should match '{pattern}'")
        except formats.PatternError:
            return _invalid(path, value, f"should match '{pattern}, but pattern is invalid: error parsing regexp'")
    return Outcome()


def _format(value: str, schema: Schema, path: str) -> Outcome:
    format_ = schema.get("format") or ""
    if formats.is_valid(format_, value):
        return Outcome()
    return Outcome(FieldError.type_invalid(_field(path), value, f"{path} in body must be of type {format_}: {quoted(value)}"))


def _number(value: float, schema: Schema, path: str) -> Outcome:
    outcome = Outcome()
    if (factor := schema.get("multipleOf")) and value % factor:
        outcome.merge(_invalid(path, value, f"should be a multiple of {_bound(factor, value)}"))
    if (minimum := schema.get("minimum")) is not None:
        exclusive = bool(schema.get("exclusiveMinimum"))
        if value < minimum or (exclusive and value == minimum):
            outcome.merge(_invalid(path, value, f"should be greater than {'' if exclusive else 'or equal to '}{_bound(minimum, value)}"))
    if (maximum := schema.get("maximum")) is not None:
        exclusive = bool(schema.get("exclusiveMaximum"))
        if value > maximum or (exclusive and value == maximum):
            outcome.merge(_invalid(path, value, f"should be less than {'' if exclusive else 'or equal to '}{_bound(maximum, value)}"))
    return outcome


def _bound(bound: float, value: float) -> str:
    """A limit as Go prints it: cut to an integer beside an integer."""
    return str(int(bound)) if isinstance(value, int) else go_float(float(bound))


def _list(value: list[Any], schema: Schema, path: str, old: Any) -> Outcome:
    outcome = Outcome()
    if isinstance(items := schema.get("items"), dict):
        keys = schema.get("x-kubernetes-list-map-keys") if schema.get("x-kubernetes-list-type") == "map" else None
        before = _by_keys(old, keys) if keys and isinstance(old, list) else {}
        for index, item in enumerate(value):
            known = before.get(_keys_of(item, keys), ABSENT) if keys and before and isinstance(item, dict) else ABSENT
            outcome.merge(_validate(item, items, f"{path}[{index}]", known))
            if len(outcome.errors) >= errors.MOST:
                break
    if (limit := schema.get("minItems")) is not None and len(value) < limit:
        outcome.merge(_invalid(path, len(value), f"should have at least {limit} items"))
    if (limit := schema.get("maxItems")) is not None and len(value) > limit:
        outcome.errors.append(FieldError.too_many(_field(path), len(value), limit))
    if schema.get("uniqueItems") and len(set(map(_identity, value))) < len(value):
        outcome.merge(_invalid(path, "", "shouldn't contain duplicates"))
    return outcome


def _by_keys(items: list[Any], keys: list[str]) -> dict[bytes, Any]:
    """The elements of a list that is a map, the first of each key; elements of other lists have no identity."""
    return {_keys_of(item, keys): item for item in reversed(items) if isinstance(item, dict)}


def _keys_of(item: dict[str, Any], keys: list[str]) -> bytes:
    return _identity([item.get(key) for key in keys])


def _identity(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _enum(value: Any, schema: Schema, path: str) -> Outcome:
    allowed = schema.get("enum")
    if not allowed or (value is not None and any(_same(value, item) for item in allowed)):
        return Outcome()
    texts = [item if isinstance(item, str) else errors.shown(item) for item in allowed]
    return Outcome(FieldError.not_supported(_field(path), value, texts))


def _object(value: dict[str, Any], schema: Schema, path: str, old: Any) -> Outcome:
    outcome = Outcome()
    if (limit := schema.get("minProperties")) is not None and len(value) < limit:
        outcome.merge(_invalid(path, len(value), f"should have at least {limit} properties"))
    if (limit := schema.get("maxProperties")) is not None and len(value) > limit:
        outcome.errors.append(FieldError.too_many(_field(path), len(value), limit))
    properties: dict[str, Schema] = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    before = old if isinstance(old, dict) else {}
    for key in sorted(value):
        if len(outcome.errors) >= errors.MOST:
            break
        if key in properties:
            outcome.merge(_validate(value[key], properties[key], f"{path}.{key}" if path else key, before.get(key, ABSENT)))
        elif isinstance(additional, dict):
            outcome.merge(_validate(value[key], additional, f"{path}.{key}", before.get(key, ABSENT)))
        elif additional is False:
            outcome.merge(Outcome(FieldError.invalid(_field(path), key, f"{path}.{key} in body is a forbidden property")))
    outcome.errors += [FieldError.required(f"{path}.{key}" if path else key) for key in schema.get("required") or [] if key not in value]
    return outcome


def _alternatives(value: Any, schema: Schema, path: str, old: Any) -> Outcome:
    """allOf, anyOf, oneOf and not: where none fits, the errors of the one that came nearest."""
    outcome = Outcome()
    outcome.matches += 1
    if schema.get("anyOf"):
        best: Outcome | None = None
        for alternative in schema["anyOf"]:
            result = _validate(value, alternative, path, old)
            if not result.errors:
                outcome.merge(result)
                break
            best = result if best is None or result.matches > best.matches else best
        else:
            outcome.errors.append(_composite(f"{quoted(path)} must validate at least one schema (anyOf)"))
            outcome.merge(best or Outcome())
    if schema.get("oneOf"):
        results = [_validate(value, alternative, path, old) for alternative in schema["oneOf"]]
        valid = [result for result in results if not result.errors]
        if len(valid) == 1:
            outcome.merge(valid[0])
        else:
            found = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
            outcome.errors.append(_composite(f"{quoted(path)} must validate one and only one schema (oneOf). {found}"))
            if not valid:
                outcome.merge(max(results, key=lambda result: result.matches))
    if schema.get("allOf"):
        results = [_validate(value, alternative, path, old) for alternative in schema["allOf"]]
        for result in results:
            outcome.merge(result)
        if failed := [result for result in results if result.errors]:
            tail = ". None validated" if len(failed) == len(results) else ""
            outcome.errors.append(_composite(f"{quoted(path)} must validate all the schemas (allOf){tail}"))
    if schema.get("not") is not None and not _validate(value, schema["not"], path, old).errors:
        outcome.errors.append(_composite(f"{quoted(path)} must not validate the schema (not)"))
    return outcome


def _composite(text: str) -> FieldError:
    return FieldError.invalid(NO_FIELD, "", text)


def _invalid(path: str, value: Any, detail: str) -> Outcome:
    return Outcome(FieldError.invalid(_field(path), value, f"{path} in body {detail}"))


def _field(path: str) -> str:
    return path.removeprefix(".") or NO_FIELD
