"""Patches: merge, JSON, strategic."""

from __future__ import annotations

from typing import Any

import pytest
from conformance.api import APPLY, JSON_PATCH, STRATEGIC, Api
from conformance.widgets import GROUP, Widgets


@pytest.fixture
def widget(widgets: Widgets, namespace: str, unique: str) -> str:
    """The path of an object to patch."""
    spec = {"text": "a", "labels": {"x": "1", "y": "2"}, "list": ["p", "q"], "parts": [{"name": "one", "value": "1"}]}
    widgets.create(namespace, unique, spec, labels={"l": "v"})
    return widgets.path(namespace, unique)


@pytest.fixture
def config_map(api: Api, namespace: str, unique: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    api.post(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": unique}, "data": {"a": "1", "b": "2"}}).ok()
    return f"{path}/{unique}"


def test_a_merge_patch_changes_adds_and_removes(api: Api, widget: str) -> None:
    spec = api.patch(widget, {"spec": {"text": "b", "labels": {"x": None, "z": "3"}, "list": ["r"]}}).ok()["spec"]
    assert (spec["text"], spec["labels"], spec["list"]) == ("b", {"y": "2", "z": "3"}, ["r"])


def test_a_patch_that_changes_nothing_keeps_the_version(api: Api, widget: str) -> None:
    before = api.get(widget).ok()
    assert api.patch(widget, {"spec": {"text": "a"}}).ok() == before


def test_a_patch_with_a_version_is_refused_when_it_is_old(api: Api, widget: str, unique: str) -> None:
    before = api.get(widget).ok()["metadata"]["resourceVersion"]
    api.patch(widget, {"spec": {"text": "b"}}).ok()
    answer = api.patch(widget, {"metadata": {"resourceVersion": before}, "spec": {"text": "c"}})
    assert answer.summary == (
        409,
        "Conflict",
        f'Operation cannot be fulfilled on widgets.{GROUP} "{unique}": the object has been modified; '
        "please apply your changes to the latest version and try again",
    )


def test_a_patch_cannot_rename(api: Api, widget: str, unique: str) -> None:
    answer = api.patch(widget, {"metadata": {"name": "other"}})
    assert answer.summary == (400, "BadRequest", f"the name of the object (other) does not match the name on the URL ({unique})")


def test_what_a_patch_makes_is_validated(api: Api, widget: str, unique: str) -> None:
    answer = api.patch(widget, {"spec": {"text": ""}})
    assert answer.summary == (
        422,
        "Invalid",
        f'Widget.{GROUP} "{unique}" is invalid: spec.text: Invalid value: "": spec.text in body should be at least 1 chars long',
    )


def test_a_json_patch_carries_out_its_operations(api: Api, widget: str) -> None:
    operations = [
        {"op": "test", "path": "/spec/text", "value": "a"},
        {"op": "replace", "path": "/spec/text", "value": "b"},
        {"op": "add", "path": "/spec/list/-", "value": "r"},
        {"op": "remove", "path": "/spec/labels/x"},
        {"op": "add", "path": "/metadata/labels/example.com~1name", "value": "n"},
        {"op": "copy", "from": "/spec/text", "path": "/spec/labels/copied"},
        {"op": "move", "from": "/spec/labels/y", "path": "/spec/labels/moved"},
    ]
    body = api.patch(widget, operations, JSON_PATCH).ok()
    assert body["spec"]["list"] == ["p", "q", "r"]
    assert body["spec"]["labels"] == {"copied": "b", "moved": "2"}
    assert body["metadata"]["labels"] == {"l": "v", "example.com/name": "n"}


def test_a_json_patch_whose_test_fails_changes_nothing(api: Api, widget: str, unique: str) -> None:
    before = api.get(widget).ok()
    operations = [{"op": "replace", "path": "/spec/text", "value": "b"}, {"op": "test", "path": "/spec/text", "value": "c"}]
    answer = api.patch(widget, operations, JSON_PATCH)
    assert answer.summary == (422, "Invalid", "the server rejected our request due to an error in our request")
    assert api.get(widget).ok() == before


def test_a_json_patch_of_a_missing_path_is_refused(api: Api, widget: str) -> None:
    answer = api.patch(widget, [{"op": "remove", "path": "/spec/nope"}], JSON_PATCH)
    assert answer.summary == (422, "Invalid", "the server rejected our request due to an error in our request")


def test_a_json_patch_that_doubles_a_value_again_and_again_is_refused(api: Api, config_map: str) -> None:
    operations = [{"op": "add", "path": "/data", "value": {"a": "x" * 1000}}]
    operations += [{"op": "copy", "from": "/data", "path": f"/data/{number}"} for number in range(14)]
    answer = api.patch(config_map, operations, JSON_PATCH)
    assert answer.summary == (422, "Invalid", "the server rejected our request due to an error in our request")


def test_a_json_patch_has_at_most_ten_thousand_operations(api: Api, config_map: str) -> None:
    operations = [{"op": "test", "path": "/kind", "value": "ConfigMap"}] * 10_001
    answer = api.patch(config_map, operations, JSON_PATCH)
    text = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    assert answer.summary == (413, "RequestEntityTooLarge", text)


def test_a_json_patch_must_be_a_list(api: Api, widget: str) -> None:
    answer = api.patch(widget, {"op": "remove"}, JSON_PATCH)
    assert answer.code == 400
    assert answer.body["reason"] == "BadRequest"


def test_a_strategic_patch_merges_maps_and_removes_with_null(api: Api, config_map: str) -> None:
    assert api.patch(config_map, {"data": {"a": None, "c": "3"}}, STRATEGIC).ok()["data"] == {"b": "2", "c": "3"}


def test_a_strategic_patch_merges_lists_by_key(api: Api, namespace: str, unique: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    pod = {
        "metadata": {"labels": {"a": unique}},
        "spec": {"containers": [{"name": "c", "image": "i:1", "env": [{"name": "A", "value": "1"}]}]},
    }
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": unique}}, "template": pod}
    api.post(path, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": unique}, "spec": spec}).ok()
    change = {
        "spec": {"template": {"spec": {"containers": [{"name": "c", "env": [{"name": "B", "value": "2"}]}, {"name": "d", "image": "j"}]}}}
    }
    containers = api.patch(f"{path}/{unique}", change, STRATEGIC).ok()["spec"]["template"]["spec"]["containers"]
    found = {item["name"]: (item["image"], {one["name"]: one["value"] for one in item.get("env", [])}) for item in containers}
    assert found == {"c": ("i:1", {"A": "1", "B": "2"}), "d": ("j", {})}


def test_owner_references_and_finalizers_merge_strategically(api: Api, namespace: str, config_map: str, unique: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{unique}-owner"}}
    uid = api.post(f"/api/v1/namespaces/{namespace}/configmaps", body).ok()["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": f"{unique}-owner", "uid": uid}
    api.patch(config_map, {"metadata": {"finalizers": ["example.com/a"]}}, STRATEGIC).ok()
    body = api.patch(config_map, {"metadata": {"finalizers": ["example.com/b"]}}, STRATEGIC).ok()
    assert sorted(body["metadata"]["finalizers"]) == ["example.com/a", "example.com/b"]
    removal = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b"]}}
    assert "finalizers" not in api.patch(config_map, removal, STRATEGIC).ok()["metadata"]
    body = api.patch(config_map, {"metadata": {"ownerReferences": [owner]}}, STRATEGIC).ok()
    body = api.patch(config_map, {"metadata": {"ownerReferences": [{"uid": uid, "$patch": "delete"}]}}, STRATEGIC).ok()
    assert "ownerReferences" not in body["metadata"]


def test_custom_objects_have_no_strategic_patch(api: Api, widget: str) -> None:
    answer = api.patch(widget, {"spec": {}}, STRATEGIC)
    assert answer.summary == (
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
    )


def test_another_type_of_patch_is_refused(api: Api, config_map: str) -> None:
    answer = api.patch(config_map, {"data": {}}, "application/json")
    assert answer.code == 415
    assert answer.body["reason"] == "UnsupportedMediaType"


def test_a_patch_needs_an_object_unless_it_is_applied(api: Api, namespace: str, widgets: Widgets, unique: str) -> None:
    assert api.patch(widgets.path(namespace, unique), {"spec": {}}).code == 404
    assert api.patch(widgets.path(namespace, unique), [], JSON_PATCH).code == 404
    answer = api.patch(widgets.path(namespace, unique), widgets.manifest(unique, {"text": "a"}), APPLY, fieldManager="m")
    assert answer.code == 201


def test_many_patches_at_once_all_take_effect(api: Api, config_map: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def change(number: int) -> Any:
        return Api(api.connection).patch(config_map, {"data": {f"k{number}": "v"}}).ok()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(change, range(16)))
    assert len(api.get(config_map).ok()["data"]) == 18
