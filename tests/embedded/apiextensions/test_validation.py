"""Validation by a CustomResourceDefinition's schema, in the words of apiextensions 0.35."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.embedded.apiextensions import quickcheck, validation
from slipway.embedded.apiextensions.schema import StructuralSchema
from slipway.embedded.errors import causes

ABSENT: Any = object()


def schema(field: dict[str, Any], **spec: Any) -> StructuralSchema:
    return StructuralSchema({"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": field}, **spec}}})


def texts(field: dict[str, Any], value: Any, old: Any = ABSENT) -> list[str]:
    before = None if old is ABSENT else {"spec": {"f": old}}
    return [str(error) for error in schema(field).validate({"spec": {"f": value}}, before)]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ({"type": "string"}, 1, 'spec.f: Invalid value: "integer": spec.f in body must be of type string: "integer"'),
        ({"type": "string"}, None, 'spec.f: Invalid value: "null": spec.f in body must be of type string: "null"'),
        ({"type": "integer"}, 1.5, 'spec.f: Invalid value: "number": spec.f in body must be of type integer: "number"'),
        ({"type": "object"}, [], 'spec.f: Invalid value: "array": spec.f in body must be of type object: "array"'),
        (
            {"x-kubernetes-int-or-string": True},
            True,
            'spec.f: Invalid value: "boolean": spec.f in body must be of type integer,string: "boolean"',
        ),
        ({"type": "string", "minLength": 1}, "", 'spec.f: Invalid value: "": spec.f in body should be at least 1 chars long'),
        ({"type": "string", "maxLength": 2}, "abc", "spec.f: Too long: may not be more than 2 bytes"),
        ({"type": "string", "maxLength": 1}, "abc", "spec.f: Too long: may not be more than 1 byte"),
        ({"type": "string", "pattern": "^v[0-9]+$"}, "v1\n", "spec.f: Invalid value: \"v1\\n\": spec.f in body should match '^v[0-9]+$'"),
        ({"type": "string", "enum": ["a", "b"]}, "c", 'spec.f: Unsupported value: "c": supported values: "a", "b"'),
        ({"type": "integer", "enum": [1, 2]}, 3, 'spec.f: Unsupported value: 3: supported values: "1", "2"'),
        ({"type": "integer", "minimum": 1}, 0, "spec.f: Invalid value: 0: spec.f in body should be greater than or equal to 1"),
        (
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
            1,
            "spec.f: Invalid value: 1: spec.f in body should be greater than 1",
        ),
        ({"type": "number", "maximum": 1.5}, 2.5, "spec.f: Invalid value: 2.5: spec.f in body should be less than or equal to 1.5"),
        ({"type": "integer", "multipleOf": 3}, 4, "spec.f: Invalid value: 4: spec.f in body should be a multiple of 3"),
        ({"type": "array", "minItems": 1}, [], "spec.f: Invalid value: 0: spec.f in body should have at least 1 items"),
        ({"type": "array", "maxItems": 1}, [1, 2], "spec.f: Too many: 2: must have at most 1 item"),
        ({"type": "object", "minProperties": 1}, {}, "spec.f: Invalid value: 0: spec.f in body should have at least 1 properties"),
        ({"type": "object", "maxProperties": 0}, {"a": 1}, "spec.f: Too many: 1: must have at most 0 items"),
        ({"type": "object", "required": ["x"]}, {}, "spec.f.x: Required value"),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {"a": "b"},
            'spec.f.a: Invalid value: "string": spec.f.a in body must be of type integer: "string"',
        ),
        (
            {"type": "array", "items": {"type": "string"}},
            ["a", 1],
            'spec.f[1]: Invalid value: "integer": spec.f[1] in body must be of type string: "integer"',
        ),
        ({"type": "string", "format": "date-time"}, "x", 'spec.f: Invalid value: "x": spec.f in body must be of type date-time: "x"'),
    ],
)
def test_says_what_is_wrong_as_the_real_server_does(field: dict[str, Any], value: Any, expected: str) -> None:
    assert texts(field, value) == [expected]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ({"type": "integer"}, 1.0),
        ({"type": "number"}, 1),
        ({"type": "string", "nullable": True}, None),
        ({"x-kubernetes-int-or-string": True}, "10%"),
        ({"x-kubernetes-int-or-string": True}, 10),
        ({"type": "string", "maxLength": 2}, "éé"),
        ({"type": "integer", "format": "int32"}, 1 << 40),
        ({"type": "string", "format": "no-such-format"}, "anything"),
        ({"x-kubernetes-preserve-unknown-fields": True}, {"a": [1, "b", None]}),
        ({"type": "string", "pattern": "b"}, "abc"),
        ({"type": "string", "pattern": r"^[[:alpha:]]+\z"}, "abc"),
    ],
)
def test_lets_pass_what_fits(field: dict[str, Any], value: Any) -> None:
    assert texts(field, value) == []


@pytest.mark.parametrize(
    ("format_", "good", "bad"),
    [
        ("date-time", "2026-01-02T03:04:05.678+01:00", "2026-01-02 03:04:05Z"),
        ("date-time", "2026-01-02t03:04:05z", "2026-13-02T03:04:05Z"),
        ("date", "2026-02-28", "2026-02-30"),
        ("duration", "1h30m", "soon"),
        ("duration", "2 days", ""),
        ("ipv4", "192.168.000.001", "300.1.1.1"),
        ("ipv6", "fe80::1", "1.2.3.4"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("cidr", "fd00::/8", "fd00::/129"),
        ("mac", "02:00:5e:10:00:01", "02:00:5e:10:00"),
        ("uri", "https://example.com/a?b=c", "no scheme"),
        ("email", "a@example.com", "a.example.com"),
        ("hostname", "node-1.example.com", "-node"),
        ("uuid", "123E4567-e89b-12d3-a456-426614174000", "123e4567"),
        ("uuid4", "123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
        ("byte", "aGVsbG8=", "aGVsbG8"),
        ("k8s-short-name", "a-1", "A"),
        ("k8s-long-name", "a.b-1", "a..b"),
        ("hexcolor", "#aabbcc", "#aabbc"),
        ("isbn10", "0321751043", "0321751044"),
        ("isbn13", "978-0321751041", "978-0321751042"),
    ],
)
def test_checks_the_formats_that_apiextensions_checks(format_: str, good: str, bad: str) -> None:
    field = {"type": "string", "format": format_}
    assert texts(field, good) == []
    assert len(texts(field, bad)) == 1


def test_a_field_that_is_missing_is_named_with_its_path() -> None:
    wanted = schema({"type": "string"}, required=["f", "g"])
    assert [str(error) for error in wanted.validate({"spec": {"f": "x"}})] == ["spec.g: Required value"]
    assert causes(wanted.validate({"spec": {"f": "x"}})) == [
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.g"}
    ]


def test_alternatives_tell_what_failed_and_the_nearest_one() -> None:
    field = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    one_of = {**field, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert texts(one_of, {}) == [
        '<nil>: Invalid value: "": "spec.f" must validate one and only one schema (oneOf). Found none valid',
        "spec.f.a: Required value",
    ]
    assert texts(one_of, {"a": "", "b": ""}) == [
        '<nil>: Invalid value: "": "spec.f" must validate one and only one schema (oneOf). Found 2 valid alternatives'
    ]
    any_of = {**field, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert texts(any_of, {})[0] == '<nil>: Invalid value: "": "spec.f" must validate at least one schema (anyOf)'
    assert texts(any_of, {"b": ""}) == []
    assert texts({**field, "not": {"required": ["a"]}}, {"a": ""}) == [
        '<nil>: Invalid value: "": "spec.f" must not validate the schema (not)'
    ]
    all_of = {**field, "allOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert texts(all_of, {"a": ""}) == [
        "spec.f.b: Required value",
        '<nil>: Invalid value: "": "spec.f" must validate all the schemas (allOf)',
    ]


def test_lists_that_are_sets_or_maps_hold_nothing_twice() -> None:
    items = {"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}}
    by_name = {"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    assert texts(by_name, [{"name": "a"}, {"name": "a"}, {"name": "a"}]) == ['spec.f[1]: Duplicate value: {"name":"a"}']
    by_both = {**by_name, "x-kubernetes-list-map-keys": ["name", "port"]}
    assert texts(by_both, [{"name": "a", "port": 1}, {"name": "a", "port": 2}]) == []
    assert texts(by_both, [{"name": "a", "port": 1}, {"name": "a", "port": 1}]) == ['spec.f[1]: Duplicate value: {"name":"a","port":1}']
    as_set = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    assert texts(as_set, ["a", "b", "a"]) == ['spec.f[2]: Duplicate value: "a"']


def test_an_update_is_not_held_up_by_what_it_leaves_as_it_was() -> None:
    short = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 1}, "b": {"type": "string", "maxLength": 1}}}
    assert texts(short, {"a": "too long", "b": "y"}, {"a": "too long", "b": "x"}) == []
    assert texts(short, {"a": "longer still"}, {"a": "too long"}) == ["spec.f.a: Too long: may not be more than 1 byte"]
    named = {
        "type": "array",
        "items": {"type": "object", "properties": {"name": {"type": "string"}, "v": {"type": "string", "maxLength": 1}}},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    assert texts(named, [{"name": "new", "v": "x"}, {"name": "old", "v": "long"}], [{"name": "old", "v": "long"}]) == []
    as_set = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    assert texts(as_set, ["a", "a", "b"], ["a", "a"]) == []


def test_one_and_true_are_not_the_same_value() -> None:
    assert len(texts({"type": "integer"}, True, 1)) == 1
    assert len(texts({"type": "object", "properties": {"a": {"type": "integer"}}}, {"a": True}, {"a": 1})) == 1


def test_an_embedded_resource_names_its_kind() -> None:
    field = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    assert texts(field, {"kind": "Pod"}) == ["spec.f.apiVersion: Required value"]
    assert texts(field, {"apiVersion": "v1", "kind": "Pod", "anything": 1}) == []


@pytest.mark.parametrize(
    "value", [None, True, 0, 1, 1.0, 1.5, "", "a", "abc", [], ["a"], ["a", "b", "c"], {}, {"a": 1}, {"a": "x", "b": None}]
)
@pytest.mark.parametrize(
    "field",
    [
        {"type": "string", "minLength": 1, "maxLength": 2},
        {"type": "string", "nullable": True, "enum": ["a"]},
        {"type": "string", "nullable": True, "pattern": "^a"},
        {"type": "string", "format": "date"},
        {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
        {"type": "number", "maximum": 1, "exclusiveMaximum": True},
        {"type": "integer", "enum": [1, 2]},
        {"type": "boolean"},
        {"type": "array", "items": {"type": "string", "maxLength": 1}, "minItems": 1, "maxItems": 2},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1},
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"x-kubernetes-int-or-string": True, "pattern": "^a"},
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    ],
)
def test_the_quick_check_never_passes_what_the_long_one_refuses(field: dict[str, Any], value: Any) -> None:
    if quickcheck.compiled(field)(value):
        assert validation.validate(value, field, "f") == []


def test_a_pattern_takes_time_in_proportion_to_the_text() -> None:
    schema = {"type": "string", "pattern": "^(a+)+$"}
    assert validation.validate("a" * 50_000, schema) == []
    assert len(validation.validate("a" * 50_000 + "b", schema)) == 1


def test_a_duration_takes_time_in_proportion_to_the_text() -> None:
    assert len(validation.validate("1" * 200_000, {"type": "string", "format": "duration"})) == 1


@pytest.mark.parametrize("pattern", ["(?=a)", "[[:none:]]", "a{1001}", "\\Z"])
def test_a_pattern_that_go_cannot_read_is_said(pattern: str) -> None:
    (error,) = validation.validate("a", {"type": "string", "pattern": pattern}, "spec.f")
    assert error.message.endswith(f"should match '{pattern}, but pattern is invalid: error parsing regexp'")


@pytest.mark.parametrize(
    "listed",
    [
        {"items": {"type": "integer"}, "uniqueItems": True},
        {"items": {"type": "integer", "maximum": 9}, "x-kubernetes-list-type": "set"},
    ],
)
def test_long_lists_take_time_in_proportion(listed: dict[str, Any]) -> None:
    errors = schema({"type": "array", **listed}).validate({"spec": {"f": list(range(30_000))}})
    assert len(errors) <= 1000


def test_elements_of_a_map_are_found_by_their_keys() -> None:
    field = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer", "maximum": 9}}},
    }
    old = [{"name": str(number), "size": 10} for number in range(5_000)]
    assert texts(field, [*old[::-1], {"name": "new", "size": 10}], old) == [
        "spec.f[5000].size: Invalid value: 10: spec.f[5000].size in body should be less than or equal to 9"
    ]
