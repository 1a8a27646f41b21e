"""Sets of fields and FieldsV1, the form in which managedFields keeps them."""

from __future__ import annotations

from slipway.embedded.fieldmanager.sets import FieldSet, element_step, path_text
from slipway.embedded.fieldmanager.types import Type

FIELDS = {
    "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
    "f:spec": {"f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:status": {}}}, "f:names": {'v:"x"': {}}},
}


def test_fields_v1_is_read_and_written_back() -> None:
    read = FieldSet.from_fields(FIELDS)
    assert read.to_fields() == FIELDS
    assert read.has(("f:metadata", "f:labels"))
    assert not read.has(("f:metadata",))
    assert read.has(("f:spec", "f:conditions", 'k:{"type":"Ready"}', "f:status"))


def test_keys_are_one_whatever_their_order_and_spacing() -> None:
    read = FieldSet.from_fields({"f:ports": {'k:{"protocol": "TCP", "port": 80}': {}}})
    assert read.has(("f:ports", 'k:{"port":80,"protocol":"TCP"}'))


def test_difference_keeps_what_is_below_a_member() -> None:
    one = FieldSet.of([("f:a",), ("f:a", "f:b"), ("f:c",)])
    assert list(one - FieldSet.of([("f:a",)])) == [("f:c",), ("f:a", "f:b")]
    assert list(one - FieldSet.of([("f:a", "f:b")])) == [("f:a",), ("f:c",)]
    assert list(one.without(["a"])) == [("f:c",)]


def test_union_and_intersection() -> None:
    one, other = FieldSet.of([("f:a",), ("f:a", "f:b")]), FieldSet.of([("f:a", "f:b"), ("f:d",)])
    assert list(one & other) == [("f:a", "f:b")]
    assert list(one | other) == [("f:a",), ("f:d",), ("f:a", "f:b")]
    assert (one & FieldSet.of([("f:a", "f:x")])).is_empty()


def test_a_step_to_a_list_element_uses_defaults_for_missing_keys() -> None:
    ports = Type(
        {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {"type": "object", "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}}},
        },
        {},
    )
    assert ports.list is not None
    assert element_step(ports.list, {"port": 80}) == 'k:{"port":80,"protocol":"TCP"}'


def test_paths_read_as_messages_show_them() -> None:
    assert path_text(("f:spec", "f:list", 'k:{"name":"a","port":1}', "f:x")) == '.spec.list[name="a",port=1].x'
    assert path_text(("f:metadata", "f:finalizers", 'v:"x/y"')) == '.metadata.finalizers[="x/y"]'
