"""Watches: from a list's version, with selectors, bookmarks and initial events, and when the version is too old."""

from __future__ import annotations

from typing import Any

import pytest
from conformance.api import Api, Event
from conformance.widgets import Widgets


@pytest.fixture
def path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def put(api: Api, path: str, name: str, **labels: str) -> dict[str, Any]:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}
    made: dict[str, Any] = api.post(path, body).ok()
    return made


def test_a_watch_goes_on_where_the_list_ended(api: Api, path: str, unique: str) -> None:
    put(api, path, f"{unique}-before", of=unique)
    version = api.get(path, labelSelector=f"of={unique}").ok()["metadata"]["resourceVersion"]
    made = put(api, path, f"{unique}-after", of=unique)
    with api.watch(path, resourceVersion=version, labelSelector=f"of={unique}") as watch:
        event = watch.next()
        assert (event.type, event.object) == ("ADDED", made)
        changed = api.patch(f"{path}/{unique}-after", {"data": {"a": "b"}}).ok()
        assert watch.next() == Event("MODIFIED", changed)
        api.delete(f"{path}/{unique}-before").ok()
        gone = watch.next()
        assert (gone.type, gone.name) == ("DELETED", f"{unique}-before")
        assert int(gone.object["metadata"]["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])


def test_a_watch_without_a_version_starts_with_what_is_there(api: Api, path: str, unique: str) -> None:
    for name in ("b", "a"):
        put(api, path, f"{unique}-{name}", of=unique)
    with api.watch(path, labelSelector=f"of={unique}") as watch:
        assert sorted(watch.take(2)) == [("ADDED", f"{unique}-a"), ("ADDED", f"{unique}-b")]
        put(api, path, f"{unique}-c", of=unique)
        assert watch.take(1) == [("ADDED", f"{unique}-c")]


def test_an_object_comes_and_goes_as_the_selector_sees_it(api: Api, path: str, unique: str) -> None:
    made = put(api, path, unique, of=unique, state="off")
    version = made["metadata"]["resourceVersion"]
    with api.watch(path, resourceVersion=version, labelSelector=f"of={unique},state=on") as watch:
        on = api.patch(f"{path}/{unique}", {"metadata": {"labels": {"state": "on"}}}).ok()
        assert watch.next() == Event("ADDED", on)
        changed = api.patch(f"{path}/{unique}", {"data": {"a": "b"}}).ok()
        assert watch.next() == Event("MODIFIED", changed)
        off = api.patch(f"{path}/{unique}", {"metadata": {"labels": {"state": "off"}}}).ok()
        event = watch.next()
        assert event.type == "DELETED"
        # The object as it was when it was last selected, with the version of the change.
        assert event.object["metadata"]["labels"]["state"] == "on"
        assert event.object["metadata"]["resourceVersion"] == off["metadata"]["resourceVersion"]


def test_one_object_is_watched_by_name(api: Api, path: str, unique: str) -> None:
    made = put(api, path, unique)
    put(api, path, f"{unique}-other")
    with api.watch(path, resourceVersion=made["metadata"]["resourceVersion"], fieldSelector=f"metadata.name={unique}") as watch:
        api.patch(f"{path}/{unique}-other", {"data": {"a": "b"}}).ok()
        api.patch(f"{path}/{unique}", {"data": {"a": "b"}}).ok()
        assert watch.take(1) == [("MODIFIED", unique)]


def test_initial_events_end_with_a_bookmark(api: Api, path: str, unique: str) -> None:
    for name in ("a", "b"):
        put(api, path, f"{unique}-{name}", of=unique)
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    with api.watch(path, labelSelector=f"of={unique}", **query) as watch:
        assert sorted(watch.take(2)) == [("ADDED", f"{unique}-a"), ("ADDED", f"{unique}-b")]
        mark = watch.next(bookmarks=True)
        assert mark.type == "BOOKMARK"
        assert mark.object["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert mark.object["kind"] == "ConfigMap"
        assert mark.object["metadata"]["resourceVersion"].isdecimal()
        put(api, path, f"{unique}-c", of=unique)
        assert watch.take(1) == [("ADDED", f"{unique}-c")]


def test_initial_events_must_be_asked_for_in_full(api: Api, path: str) -> None:
    answer = api.get(path, watch="true", sendInitialEvents="true")
    assert answer.summary == (
        422,
        "Invalid",
        'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    )


def test_a_watch_ends_after_its_time(api: Api, path: str) -> None:
    with api.watch(path, timeoutSeconds=1, labelSelector="of=nobody") as watch:
        assert watch.ended()


def test_a_version_that_is_too_old_is_gone(api: Api, path: str) -> None:
    with api.watch(path, resourceVersion="1") as watch:
        event = watch.next()
    assert event.type == "ERROR"
    assert event.object["code"] == 410
    assert event.object["reason"] in ("Expired", "Gone")
    assert event.object["kind"] == "Status"
    assert event.object["message"].startswith("too old resource version: 1 (")


def test_custom_objects_are_watched_alike(api: Api, namespace: str, unique: str, widgets: Widgets) -> None:
    made = widgets.create(namespace, unique, {"text": "a"})
    with api.watch(widgets.path(namespace), resourceVersion=made["metadata"]["resourceVersion"]) as watch:
        reported = api.patch(widgets.path(namespace, unique, "status"), {"status": {"ready": True}}).ok()
        assert watch.next() == Event("MODIFIED", reported)
        api.delete(widgets.path(namespace, unique)).ok()
        assert watch.take(1) == [("DELETED", unique)]


def test_metadata_alone_can_be_watched(api: Api, path: str, unique: str) -> None:
    made = put(api, path, unique)
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    with api.watch(path, resourceVersion=made["metadata"]["resourceVersion"], accept=accept) as watch:
        api.patch(f"{path}/{unique}", {"data": {"a": "b"}}).ok()
        event = watch.next()
    assert (event.type, event.object["kind"], event.name) == ("MODIFIED", "PartialObjectMetadata", unique)
    assert "data" not in event.object
