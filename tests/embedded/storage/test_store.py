"""The store: one counter for all writes, an order of keys, a bounded history, and watchers that see every change once."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.embedded.storage.store import ADDED, DELETED, MODIFIED, Change, ConflictError, ForgottenError, Store

Manifest = dict[str, Any]


def thing(name: str, namespace: str = "n", **fields: Any) -> Manifest:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": name, "namespace": namespace, "uid": f"u-{name}"}, **fields}


def names(store: Store, namespace: str = "", start: str = "") -> list[str]:
    return [stored.key for stored in store.bucket("things").within(namespace, start)]


def test_every_write_of_any_resource_has_a_version_of_its_own() -> None:
    store = Store()
    versions = [
        store.put("things", thing("a"), 0).version,
        store.put("others", thing("a"), 0).version,
        store.put("things", thing("b"), 0).version,
    ]
    assert versions == sorted(set(versions))
    assert store.version == versions[-1]


def test_the_encoded_object_carries_its_version() -> None:
    stored = Store().put("things", thing("a", spec=1), 0)
    assert stored.manifest()["metadata"]["resourceVersion"] == str(stored.version)
    assert stored.raw.startswith(b'{"apiVersion":"v1","kind":"Thing",')


@pytest.mark.parametrize("expected", [0, 99])
def test_a_write_from_another_version_is_a_conflict(expected: int) -> None:
    store = Store()
    first = store.put("things", thing("a"), 0)
    with pytest.raises(ConflictError) as conflict:
        store.put("things", thing("a"), expected)
    assert conflict.value.found == first.version
    with pytest.raises(ConflictError):
        store.delete("things", thing("a"), expected)


def test_objects_are_in_the_order_of_their_keys() -> None:
    store = Store()
    for namespace, name in (("b", "x"), ("a", "z"), ("a-b", "y"), ("a", "b")):
        store.put("things", thing(name, namespace), 0)
    assert names(store) == sorted(names(store))
    assert names(store, "a") == ["a/b", "a/z"]
    assert names(store, "a", "a/b\0") == ["a/z"]


def test_watchers_and_listeners_see_what_was_and_what_is() -> None:
    store = Store()
    seen: list[Change] = []
    store.bucket("things").watchers.add(seen.append)
    heard: list[tuple[str, int]] = []
    store.listen(lambda resource, change: heard.append((resource, change.version)), "things")
    store.put("others", thing("b"), 0)
    first = store.put("things", thing("a"), 0)
    second = store.put("things", thing("a", spec=1), first.version)
    store.delete("things", second.manifest(), second.version)
    assert [(change.type, change.previous) for change in seen] == [(ADDED, None), (MODIFIED, first), (DELETED, second)]
    assert seen[-1].current.version == store.version > second.version
    assert heard == [("things", change.version) for change in seen]


def test_followers_see_who_is_owned_and_who_goes() -> None:
    store = Store()
    seen: list[str] = []
    store.follow(lambda _, change: seen.append(f"{change.type} {change.current.name}"))
    free = store.put("things", thing("free"), 0)
    store.put("things", thing("free", spec=1), free.version)
    owned = thing("owned")
    owned["metadata"]["ownerReferences"] = [{"uid": "u"}]
    first = store.put("things", owned, 0)
    second = store.put("things", thing("owned"), first.version)
    third = store.put("things", thing("owned", spec=1), second.version)
    store.delete("things", third.manifest(), third.version)
    assert seen == ["ADDED owned", "MODIFIED owned", "DELETED owned"]


def test_an_object_is_found_by_its_uid_while_it_is_there() -> None:
    store = Store()
    made = thing("a")
    made["metadata"]["uid"] = "u"
    stored = store.put("things", made, 0)
    assert store.by_uid("u") == ("things", stored)
    store.delete("things", stored.manifest(), stored.version)
    assert store.by_uid("u") is None


def test_changes_since_a_version() -> None:
    store = Store()
    versions = [store.put("things", thing(str(number)), 0).version for number in range(5)]
    assert [change.version for change in store.since("things", versions[2])] == versions[3:]
    assert store.since("things", store.version) == []


def test_the_history_is_bounded_and_says_from_where_it_goes() -> None:
    store = Store(history=3)
    versions = [store.put("things", thing(str(number)), 0).version for number in range(5)]
    assert [change.version for change in store.since("things", versions[1])] == versions[2:]
    with pytest.raises(ForgottenError) as forgotten:
        store.since("things", versions[0])
    assert forgotten.value.oldest == versions[1]


def test_a_forgotten_history_is_forgotten_for_resources_that_come_later() -> None:
    store = Store()
    store.put("things", thing("a"), 0)
    store.compact()
    with pytest.raises(ForgottenError):
        store.since("others", store.version - 1)
    assert store.since("others", store.version) == []


def test_the_past_can_be_listed() -> None:
    store = Store()
    first = store.put("things", thing("a", spec=1), 0)
    gone = store.put("things", thing("b"), 0)
    then = store.version
    store.put("things", thing("a", spec=2), first.version)
    store.delete("things", gone.manifest(), gone.version)
    store.put("things", thing("c"), 0)
    past = store.at("things", then)
    assert [stored.manifest().get("spec") for stored in past.within("")] == [1, None]
    assert [stored.name for stored in past.within("n")] == ["a", "b"]
    assert names(store) == ["n/a", "n/c"]


def test_a_store_goes_on_after_its_former_life() -> None:
    former = Store()
    stored = former.put("things", thing("a"), 0)
    store = Store()
    store.restore("things", stored.raw, stored.version)
    store.resume(100)
    assert store.put("things", thing("a"), stored.version).version == 101
    with pytest.raises(ForgottenError):
        store.since("things", stored.version)
