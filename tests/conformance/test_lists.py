"""Lists: pages, selectors, and the version that they show."""

from __future__ import annotations

from typing import Any

import pytest
from conformance.api import Api
from conformance.widgets import GROUP, Widgets


@pytest.fixture(scope="module")
def labelled(api: Api, namespace: str) -> str:
    """Five ConfigMaps with labels."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    labels: list[dict[str, str]] = [{"app": "a", "tier": "x"}, {"app": "b", "tier": "x"}, {"app": "a"}, {"app": "c", "tier": ""}, {}]
    for number, own in enumerate(labels):
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{number}", "labels": {**own, "suite": "lists"}}}
        api.post(path, made).ok()
    return path


def names(body: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]


def test_a_list_names_its_kind_once(api: Api, labelled: str) -> None:
    body = api.get(labelled, labelSelector="suite=lists").ok()
    assert (body["kind"], body["apiVersion"]) == ("ConfigMapList", "v1")
    assert body["metadata"].keys() == {"resourceVersion"}
    assert all("kind" not in item and "apiVersion" not in item for item in body["items"])
    assert names(body) == ["m0", "m1", "m2", "m3", "m4"]


def test_items_of_custom_lists_keep_their_kind(api: Api, namespace: str, widgets: Widgets) -> None:
    widgets.create(namespace, "listed")
    body = api.get(widgets.path(namespace)).ok()
    assert (body["kind"], body["apiVersion"]) == ("WidgetList", f"{GROUP}/v1")
    assert [(item["kind"], item["apiVersion"]) for item in body["items"]] == [("Widget", f"{GROUP}/v1")]


def test_an_empty_list_is_a_list(api: Api, namespace: str) -> None:
    assert api.get(f"/api/v1/namespaces/{namespace}/pods").ok()["items"] == []
    assert api.get("/api/v1/namespaces/no-such-namespace/pods").ok()["items"] == []


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=a", "m0 m2"),
        ("app==a", "m0 m2"),
        ("app!=a", "m1 m3 m4"),
        ("app in (a,b)", "m0 m1 m2"),
        ("app notin (a, b)", "m3 m4"),
        ("tier", "m0 m1 m3"),
        ("!tier", "m2 m4"),
        ("app=a,tier=x", "m0"),
        ("tier=", "m3"),
        ("app in (a),!tier", "m2"),
        ("app=nobody", ""),
    ],
)
def test_label_selectors(api: Api, labelled: str, selector: str, expected: str) -> None:
    assert names(api.get(labelled, labelSelector=f"suite=lists,{selector}").ok()) == expected.split()


def test_a_selector_that_cannot_be_read_is_refused(api: Api, labelled: str) -> None:
    answer = api.get(labelled, labelSelector="app in (a")
    assert answer.code == 400
    assert answer.body["reason"] == "BadRequest"
    assert answer.body["message"].startswith("unable to parse requirement: ")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [("metadata.name=m1", "m1"), ("metadata.name!=m1,metadata.name!=m4", "m0 m2 m3"), ("metadata.name=nobody", "")],
)
def test_field_selectors(api: Api, labelled: str, selector: str, expected: str) -> None:
    assert names(api.get(labelled, labelSelector="suite=lists", fieldSelector=selector).ok()) == expected.split()


def test_a_field_selector_by_namespace(api: Api, labelled: str, namespace: str) -> None:
    everywhere = "/api/v1/configmaps"
    assert names(api.get(everywhere, labelSelector="suite=lists", fieldSelector=f"metadata.namespace={namespace}").ok())[:1] == ["m0"]
    assert names(api.get(everywhere, labelSelector="suite=lists", fieldSelector="metadata.namespace=elsewhere").ok()) == []


def test_fields_that_cannot_be_selected_by(api: Api, namespace: str, labelled: str, widgets: Widgets) -> None:
    answer = api.get(labelled, fieldSelector="data.a=b")
    assert answer.summary == (400, "BadRequest", '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"')
    answer = api.get(widgets.path(namespace), fieldSelector="spec.text=b")
    assert answer.summary == (400, "BadRequest", "field label not supported: spec.text")


def test_secrets_are_selected_by_type(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    for name, kind in (("one", "example.com/a"), ("two", "example.com/b")):
        api.post(path, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": kind}).ok()
    assert names(api.get(path, fieldSelector="type=example.com/b").ok()) == ["two"]


def test_pages_follow_each_other(api: Api, labelled: str) -> None:
    first = api.get(labelled, labelSelector="suite=lists", limit=2).ok()
    assert names(first) == ["m0", "m1"]
    assert first["metadata"]["continue"]
    second = api.get(labelled, labelSelector="suite=lists", limit=2, **{"continue": first["metadata"]["continue"]}).ok()
    third = api.get(labelled, labelSelector="suite=lists", limit=2, **{"continue": second["metadata"]["continue"]}).ok()
    assert names(second) + names(third) == ["m2", "m3", "m4"]
    assert "continue" not in third["metadata"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_a_page_says_how_many_remain(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    for name in "abcd":
        api.post(path, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": f"page-{name}"}}).ok()
    total = len(api.get(path).ok()["items"])
    assert api.get(path, limit=1).ok()["metadata"]["remainingItemCount"] == total - 1


def test_later_pages_show_the_list_as_it_was(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/leases".replace("/api/v1", "/apis/coordination.k8s.io/v1")
    for name in ("a", "b", "c"):
        api.post(path, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}).ok()
    first = api.get(path, limit=1).ok()
    api.delete(f"{path}/b").ok()
    api.post(path, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "aa"}}).ok()
    rest = api.get(path, limit=5, **{"continue": first["metadata"]["continue"]}).ok()
    assert names(rest) == ["b", "c"]


def test_a_continue_token_that_is_none_is_refused(api: Api, labelled: str) -> None:
    answer = api.get(labelled, limit=1, **{"continue": "bm9uZQ"})
    assert answer.code == 400
    assert answer.body["reason"] == "BadRequest"
    assert answer.body["message"].startswith("invalid continue token: continue key is not valid: ")


def test_a_list_at_least_as_new_as_a_version(api: Api, labelled: str) -> None:
    version = api.get(labelled).ok()["metadata"]["resourceVersion"]
    body = api.get(labelled, labelSelector="suite=lists", resourceVersion=version, resourceVersionMatch="NotOlderThan").ok()
    assert int(body["metadata"]["resourceVersion"]) >= int(version)
    assert len(names(body)) == 5


def test_only_metadata_can_be_asked_for(api: Api, labelled: str) -> None:
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    body = api.request("GET", labelled, accept=accept, labelSelector="suite=lists").ok()
    assert (body["kind"], body["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert names(body)[0] == "m0"
    assert all("data" not in item for item in body["items"])
    one = api.request("GET", f"{labelled}/m0", accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").ok()
    assert one["kind"] == "PartialObjectMetadata"
