"""Deletion: finalizers, the three ways to treat dependents, and the end of namespaces."""

from __future__ import annotations

from typing import Any

from conformance.api import Api
from conformance.widgets import GROUP, Widgets

Manifest = dict[str, Any]


def maps(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")


def owner_of(body: Manifest, **extra: Any) -> Manifest:
    return {
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "name": body["metadata"]["name"],
        "uid": body["metadata"]["uid"],
        **extra,
    }


def config_map(api: Api, namespace: str, name: str, *owners: Manifest, **metadata: Any) -> Manifest:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": list(owners), **metadata}}
    made: Manifest = api.post(maps(namespace), body).ok()
    return {**made, "apiVersion": "v1", "kind": "ConfigMap"}


def test_a_finalizer_holds_the_object(api: Api, namespace: str, unique: str, widgets: Widgets) -> None:
    made = widgets.create(namespace, unique, {"text": "a"}, finalizers=["example.com/a", "example.com/b"])
    path = widgets.path(namespace, unique)
    answer = api.delete(path)
    assert answer.code == 200
    assert answer.body["kind"] == "Widget"
    held = api.get(path).ok()
    assert held["metadata"]["deletionTimestamp"]
    assert held["metadata"]["deletionGracePeriodSeconds"] == 0
    assert held["metadata"]["generation"] == made["metadata"]["generation"] + 1
    assert api.patch(path, {"metadata": {"finalizers": ["example.com/b"]}}).ok()["metadata"]["finalizers"] == ["example.com/b"]
    again = api.delete(path).ok()
    assert again["metadata"]["deletionTimestamp"] == held["metadata"]["deletionTimestamp"]
    last = api.patch(path, {"metadata": {"finalizers": None}})
    assert last.code == 200
    assert api.get(path).code == 404


def test_an_object_that_goes_gets_no_new_finalizers(api: Api, namespace: str, unique: str, widgets: Widgets) -> None:
    widgets.create(namespace, unique, finalizers=["example.com/a"])
    path = widgets.path(namespace, unique)
    api.delete(path).ok()
    answer = api.patch(path, {"metadata": {"finalizers": ["example.com/a", "example.com/new"]}})
    assert answer.summary == (
        422,
        "Invalid",
        f'Widget.{GROUP} "{unique}" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being '
        'deleted, found new finalizers []string{"example.com/new"}',
    )
    api.patch(path, {"metadata": {"finalizers": None}}).ok()


def test_an_object_that_goes_can_still_be_changed(api: Api, namespace: str, unique: str, widgets: Widgets) -> None:
    widgets.create(namespace, unique, {"text": "a"}, finalizers=["example.com/a"])
    path = widgets.path(namespace, unique)
    api.delete(path).ok()
    assert api.patch(path, {"spec": {"text": "b"}}).ok()["spec"]["text"] == "b"
    assert api.patch(f"{path}/status", {"status": {"ready": True}}).ok()["status"] == {"ready": True}
    assert api.post(widgets.path(namespace), widgets.manifest(unique)).code == 409
    api.patch(path, {"metadata": {"finalizers": None}}).ok()


def test_the_watch_sees_a_deletion_that_waits(api: Api, namespace: str, unique: str) -> None:
    made = config_map(api, namespace, unique, finalizers=["example.com/a"])
    with api.watch(maps(namespace), resourceVersion=made["metadata"]["resourceVersion"]) as watch:
        api.delete(maps(namespace, unique)).ok()
        event = watch.next()
        assert event.type == "MODIFIED"
        assert event.object["metadata"]["deletionTimestamp"]
        api.patch(maps(namespace, unique), {"metadata": {"finalizers": None}}).ok()
        assert watch.take(1) == [("DELETED", unique)]


def test_dependents_go_in_the_background(api: Api, namespace: str, unique: str) -> None:
    owner = config_map(api, namespace, unique)
    child = config_map(api, namespace, f"{unique}-child", owner_of(owner))
    config_map(api, namespace, f"{unique}-grandchild", owner_of(child))
    api.delete(maps(namespace, unique), propagationPolicy="Background").ok()
    assert api.get(maps(namespace, unique)).code == 404
    api.gone(maps(namespace, f"{unique}-child"))
    api.gone(maps(namespace, f"{unique}-grandchild"))


def test_a_custom_owner_takes_its_dependents_along(api: Api, namespace: str, unique: str, widgets: Widgets) -> None:
    owner = widgets.create(namespace, unique)
    config_map(api, namespace, f"{unique}-child", owner_of(owner, controller=True, blockOwnerDeletion=True))
    api.delete(widgets.path(namespace, unique)).ok()
    api.gone(maps(namespace, f"{unique}-child"))


def test_in_the_foreground_the_owner_goes_last(api: Api, namespace: str, unique: str) -> None:
    owner = config_map(api, namespace, unique)
    config_map(api, namespace, f"{unique}-child", owner_of(owner, blockOwnerDeletion=True), finalizers=["example.com/hold"])
    answer = api.delete(maps(namespace, unique), propagationPolicy="Foreground")
    assert answer.body["metadata"]["finalizers"] == ["foregroundDeletion"]
    api.eventually(maps(namespace, f"{unique}-child"), lambda answer: "deletionTimestamp" in answer.body["metadata"])
    assert api.get(maps(namespace, unique)).ok()["metadata"]["deletionTimestamp"]
    api.patch(maps(namespace, f"{unique}-child"), {"metadata": {"finalizers": None}}).ok()
    api.gone(maps(namespace, unique))


def test_orphans_stay_without_their_owner(api: Api, namespace: str, unique: str) -> None:
    owner = config_map(api, namespace, unique)
    config_map(api, namespace, f"{unique}-child", owner_of(owner))
    api.delete(maps(namespace, unique), {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"}).ok()
    api.gone(maps(namespace, unique))
    assert "ownerReferences" not in api.get(maps(namespace, f"{unique}-child")).ok()["metadata"]


def test_a_dependent_with_another_owner_stays(api: Api, namespace: str, unique: str) -> None:
    first, second = config_map(api, namespace, f"{unique}-1"), config_map(api, namespace, f"{unique}-2")
    config_map(api, namespace, f"{unique}-child", owner_of(first), owner_of(second))
    api.delete(maps(namespace, f"{unique}-1")).ok()
    body = api.eventually(maps(namespace, f"{unique}-child"), lambda answer: len(answer.body["metadata"]["ownerReferences"]) == 1).body
    assert body["metadata"]["ownerReferences"][0]["name"] == f"{unique}-2"
    api.delete(maps(namespace, f"{unique}-2")).ok()
    api.gone(maps(namespace, f"{unique}-child"))


def test_an_object_whose_owner_never_was_goes(api: Api, namespace: str, unique: str) -> None:
    ghost = {"apiVersion": "v1", "kind": "ConfigMap", "name": "ghost", "uid": "11111111-2222-3333-4444-555555555555"}
    config_map(api, namespace, unique, ghost)
    api.gone(maps(namespace, unique))


def test_owner_references_are_checked(api: Api, namespace: str, unique: str) -> None:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "", "uid": "u"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": unique, "ownerReferences": [reference]}}
    answer = api.post(maps(namespace), body)
    assert answer.code == 422
    assert 'metadata.ownerReferences.name: Invalid value: "": must not be empty' in answer.body["message"]
    twice = [{**reference, "name": name, "uid": name, "controller": True} for name in ("a", "b")]
    answer = api.post(maps(namespace), {**body, "metadata": {"name": unique, "ownerReferences": twice}})
    assert answer.code == 422
    assert "Only one reference can have Controller set to true" in answer.body["message"]


def test_a_namespace_is_active_with_its_name_as_label(api: Api, namespace: str) -> None:
    body = api.get(f"/api/v1/namespaces/{namespace}").ok()
    assert body["status"] == {"phase": "Active"}
    assert body["spec"] == {"finalizers": ["kubernetes"]}
    assert body["metadata"]["labels"] == {"kubernetes.io/metadata.name": namespace}


def test_a_namespace_goes_with_everything_in_it(api: Api, unique: str, widgets: Widgets) -> None:
    path = f"/api/v1/namespaces/{unique}"
    api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": unique}}).ok()
    config_map(api, unique, "kept", finalizers=["example.com/hold"])
    widgets.create(unique, "inside")
    answer = api.delete(path)
    assert answer.body["status"]["phase"] == "Terminating"
    assert answer.body["metadata"]["deletionTimestamp"]
    refused = api.post(maps(unique), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}})
    assert refused.summary == (
        403,
        "Forbidden",
        f'configmaps "late" is forbidden: unable to create new content in namespace {unique} because it is being terminated',
    )
    assert refused.body["details"]["causes"] == [
        {"reason": "NamespaceTerminating", "message": f"namespace {unique} is being terminated", "field": "metadata.namespace"}
    ]
    api.gone(widgets.path(unique, "inside"))
    api.eventually(maps(unique, "kept"), lambda answer: "deletionTimestamp" in answer.body["metadata"])
    assert api.get(path).code == 200
    api.patch(maps(unique, "kept"), {"metadata": {"finalizers": None}}).ok()
    api.gone(path)


def test_namespaces_of_the_system_stay(api: Api) -> None:
    answer = api.delete("/api/v1/namespaces/default")
    assert answer.summary == (403, "Forbidden", 'namespaces "default" is forbidden: this namespace may not be deleted')
