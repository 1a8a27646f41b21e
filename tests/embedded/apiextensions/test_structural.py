"""Pruning and defaulting by a structural schema, and what becomes of nulls."""

from __future__ import annotations

from typing import Any

from slipway.embedded.apiextensions.schema import StructuralSchema

STRING = {"type": "string"}


def schema(**properties: Any) -> StructuralSchema:
    return StructuralSchema({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})


def test_unknown_fields_go_and_are_reported() -> None:
    manifest: Any = {
        "apiVersion": "example.com/v1",
        "kind": "Example",
        "metadata": {"name": "x", "labels": {"a": "b"}},
        "spec": {"known": "a", "unknown": {"b": 1}, "list": [{"known": "c", "other": "d"}]},
        "extra": 1,
    }
    known = schema(known=STRING, list={"type": "array", "items": {"type": "object", "properties": {"known": STRING}}})
    assert known.prune(manifest) == ["extra", "spec.list[0].other", "spec.unknown"]
    assert manifest == {
        "apiVersion": "example.com/v1",
        "kind": "Example",
        "metadata": {"name": "x", "labels": {"a": "b"}},
        "spec": {"known": "a", "list": [{"known": "c"}]},
    }


def test_preserved_fields_stay_and_known_ones_below_are_still_pruned() -> None:
    preserving = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"strict": {"type": "object", "properties": {"a": STRING}}},
    }
    manifest: Any = {"spec": {"free": {"x": {"y": 1}, "strict": {"a": "1", "b": "2"}}}}
    schema(free=preserving).prune(manifest)
    assert manifest == {"spec": {"free": {"x": {"y": 1}, "strict": {"a": "1"}}}}


def test_maps_keep_their_keys() -> None:
    values = {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": STRING}}}
    manifest: Any = {"spec": {"map": {"any": {"a": "1", "b": "2"}}}}
    assert schema(map=values).prune(manifest) == ["spec.map.any.b"]
    assert manifest == {"spec": {"map": {"any": {"a": "1"}}}}


def test_an_embedded_resource_keeps_its_metadata() -> None:
    embedded = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"spec": {"type": "object", "properties": {"a": STRING}}},
    }
    manifest: Any = {
        "spec": {"template": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {"a": "1", "b": "2"}, "c": 3}}
    }
    assert schema(template=embedded).prune(manifest) == ["spec.template.c", "spec.template.spec.b"]
    assert manifest["spec"]["template"] == {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {"a": "1"}}


def test_without_a_schema_everything_stays() -> None:
    manifest: Any = {"spec": {"a": 1}, "more": []}
    assert StructuralSchema(None).prune(manifest) == []
    assert manifest == {"spec": {"a": 1}, "more": []}


def test_defaults_come_from_the_outside_in() -> None:
    inner = {"type": "object", "default": {"a": "own"}, "properties": {"a": {**STRING, "default": "x"}, "b": {**STRING, "default": "y"}}}
    manifest: Any = {"spec": {}}
    schema(inner=inner, list={"type": "array", "items": inner}).default(manifest)
    assert manifest == {"spec": {"inner": {"a": "own", "b": "y"}}}
    manifest = {"spec": {"inner": {"b": "mine"}, "list": [{}, {"a": "1"}]}}
    schema(inner=inner, list={"type": "array", "items": inner}).default(manifest)
    assert manifest == {"spec": {"inner": {"a": "x", "b": "mine"}, "list": [{"a": "x", "b": "y"}, {"a": "1", "b": "y"}]}}


def test_a_default_does_not_make_its_parent() -> None:
    manifest: Any = {"spec": {}}
    schema(outer={"type": "object", "properties": {"a": {**STRING, "default": "x"}}}).default(manifest)
    assert manifest == {"spec": {}}


def test_a_default_of_false_or_zero_is_one() -> None:
    manifest: Any = {"spec": {}}
    schema(a={"type": "boolean", "default": False}, b={"type": "integer", "default": 0}).default(manifest)
    assert manifest == {"spec": {"a": False, "b": 0}}


def test_nulls_become_the_default_or_go_unless_they_are_allowed() -> None:
    manifest: Any = {"spec": {"gone": None, "defaulted": None, "nullable": None, "both": None}}
    known = schema(
        gone=STRING,
        defaulted={**STRING, "default": "x"},
        nullable={**STRING, "nullable": True},
        both={**STRING, "nullable": True, "default": "x"},
    )
    known.default(manifest)
    assert manifest == {"spec": {"defaulted": "x", "nullable": None, "both": None}}


def test_a_default_is_copied_for_every_object() -> None:
    known = schema(map={"type": "object", "default": {"list": []}, "x-kubernetes-preserve-unknown-fields": True})
    first: Any = {"spec": {}}
    second: Any = {"spec": {}}
    known.default(first)
    first["spec"]["map"]["list"].append(1)
    known.default(second)
    assert second == {"spec": {"map": {"list": []}}}
