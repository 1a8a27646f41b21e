"""The store of an informer: whatever is put in and taken out, its indices are what they would be if they were made anew."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.api.cluster.kinds import CONFIG_MAP
from slipway.runtime.cache.store import Store
from slipway.runtime.objects import Object


def made(namespace: str, name: str, keys: Iterable[str]) -> Object:
    metadata = {"namespace": namespace, "name": name, "annotations": {"keys": ",".join(keys)}}
    return Object(CONFIG_MAP, json.dumps({"metadata": metadata}).encode())


def keys_of(known: Object) -> list[str]:
    return [key for key in known.metadata.annotations["keys"].split(",") if key]


CHANGES = st.lists(
    st.tuples(st.booleans(), st.sampled_from(["n", "m"]), st.sampled_from("abc"), st.lists(st.sampled_from("xyz"), max_size=3)), max_size=40
)


@given(changes=CHANGES, late=st.integers(0, 40))
def test_an_index_is_always_what_its_function_says(changes: list[tuple[bool, str, str, list[str]]], late: int) -> None:
    store = Store()
    expected: dict[tuple[str, str], Object] = {}
    for number, (put, namespace, name, keys) in enumerate(changes):
        if number == late:
            store.add_index("keys", keys_of)
        if put:
            new = made(namespace, name, keys)
            assert store.put(new) is expected.get((namespace, name))
            expected[namespace, name] = new
        else:
            assert store.remove(made(namespace, name, ())) is expected.pop((namespace, name), None)
    if late >= len(changes):
        store.add_index("keys", keys_of)
    assert len(store) == len(expected)
    assert {known.request: known for known in store.list()} == expected
    for namespace in "nm":
        assert {known.name for known in store.list(namespace)} == {name for place, name in expected if place == namespace}
    for key in "xyz":
        assert {known.request for known in store.indexed("keys", key)} == {p for p, known in expected.items() if key in keys_of(known)}


def test_an_index_that_is_not_there_is_a_mistake() -> None:
    with pytest.raises(KeyError, match='there is no index "x"'):
        Store().indexed("x", "y")


def test_what_is_read_from_an_object_is_read_once_for_each_state_of_it() -> None:
    asked = []

    def read(known: Object) -> str:
        asked.append(known.name)
        return ",".join(keys_of(known))

    store = Store()
    for name in "ab":
        store.put(made("n", name, [name]))
    store.put(made("m", "c", ["c"]))
    assert store.facts(read, "n") == ["a", "b"]
    assert store.facts(read) == ["a", "b", "c"]
    store.put(made("n", "b", ["x"]))
    store.remove(made("n", "a", ()))
    assert store.facts(read) == ["x", "c"]
    assert asked == ["a", "b", "c", "b"]
