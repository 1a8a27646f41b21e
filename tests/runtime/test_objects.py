"""Objects as a cache keeps them: without what nobody reads, and with what many do."""

from __future__ import annotations

import tracemalloc

import msgspec
import pytest

from slipway.api.cluster.kinds import CONFIG_MAP
from slipway.api.machinery.errors import OperatorError
from slipway.runtime.objects import Object, OwnerReference, without_managed_fields

MANAGED = [{"manager": "x", "operation": "Apply", "fieldsV1": {"f:data": {"f:a": {}}}}]


@pytest.mark.parametrize(
    "kept",
    [
        {"metadata": {"name": "a", "resourceVersion": "7", "labels": {"x": "y"}}, "data": {"a": "b", "n": "1.0"}},
        {"metadata": {"name": "a"}, "data": {"managedFields": "of somebody else"}},
        {"metadata": {"annotations": {"a": '{"managedFields": []}'}, "name": "ä"}, "spec": {"metadata": {"managedFields": [1]}}},
    ],
)
def test_an_object_is_kept_without_who_wrote_what_and_is_otherwise_the_same(kept: dict[str, object]) -> None:
    metadata = kept["metadata"]
    assert isinstance(metadata, dict)
    sent = {**kept, "metadata": {**metadata, "managedFields": MANAGED}}
    for each in (kept, sent):
        assert msgspec.json.decode(without_managed_fields(msgspec.Raw(msgspec.json.encode(each)))) == kept


def test_an_object_that_is_kept_takes_no_more_than_its_bytes() -> None:
    sent = msgspec.Raw(msgspec.json.encode({"metadata": {"name": "a", "managedFields": MANAGED}, "data": {"text": "x" * 3000}}))
    without_managed_fields(sent)
    tracemalloc.start()
    try:
        kept = [without_managed_fields(sent) for _ in range(100)]
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken < 1.2 * sum(map(len, kept))


def test_what_is_known_of_an_object_is_asked_for_once_and_a_refusal_each_time() -> None:
    found = Object(CONFIG_MAP, b'{"metadata": {"name": "a"}}')
    asked = []

    def name(each: Object) -> str:
        asked.append(each)
        if len(asked) == 1:
            raise OperatorError("it cannot be read")
        return each.name

    with pytest.raises(OperatorError):
        found.known(name)
    assert [found.known(name), found.known(name)] == ["a", "a"]
    assert len(asked) == 2


def test_what_several_functions_say_of_an_object_is_told_apart() -> None:
    found, asked = Object(CONFIG_MAP, b'{"metadata": {"name": "a"}}'), list[Object]()

    class Asking:
        def name(self, each: Object) -> str:
            asked.append(each)
            return each.name

        def length(self, each: Object) -> int:
            return len(each.known(self.name))

    asking = Asking()
    assert [(found.known(asking.length), found.known(asking.name)) for _ in range(2)] == [(1, "a")] * 2
    assert len(asked) == 1


def test_what_has_no_metadata_is_left_to_who_decodes_it() -> None:
    assert without_managed_fields(msgspec.Raw(b'{"managedFields": []}')) == b'{"managedFields": []}'


def labelled(name: str) -> Object:
    owner = {"kind": "K", "name": "o", "uid": "1", "controller": True}
    metadata = {"name": name, "namespace": "n", "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["f"]}
    return Object(CONFIG_MAP, msgspec.json.encode({"metadata": {**metadata, "ownerReferences": [owner]}}))


def test_metadata_has_all_that_was_sent() -> None:
    metadata = labelled("a").metadata
    assert (metadata.labels, metadata.annotations, metadata.finalizers) == ({"a": "b"}, {"c": "d"}, ["f"])
    assert metadata.owner_references == [OwnerReference(kind="K", name="o", uid="1", controller=True)]
    bare = Object(CONFIG_MAP, b'{"metadata": {"name": "a"}}').metadata
    assert (bare.labels, bare.annotations, bare.finalizers, bare.owner_references) == ({}, {}, [], [])


def test_objects_share_what_is_the_same() -> None:
    one, other = (labelled(name).metadata for name in ("a", "b"))
    assert one.labels is other.labels
    assert one.owner_references is other.owner_references
    assert one.namespace is other.namespace


@pytest.mark.parametrize("wrong", ['"labels": {"a": 5}', '"annotations": []', '"finalizers": "f"', '"ownerReferences": [5]', '"name": 5'])
def test_metadata_that_is_wrong_is_refused_at_once(wrong: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        Object(CONFIG_MAP, f'{{"metadata": {{{wrong}}}}}'.encode())
