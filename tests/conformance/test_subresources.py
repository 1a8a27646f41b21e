"""Status and scale: apart from the rest of the object."""

from __future__ import annotations

from conformance.api import MERGE, Api, without
from conformance.widgets import GROUP, Widgets


def test_a_create_does_not_set_the_status(api: Api, namespace: str, widgets: Widgets, unique: str) -> None:
    body = api.post(widgets.path(namespace), {**widgets.manifest(unique, {"text": "a"}), "status": {"ready": True}}).ok()
    assert "status" not in body


def test_an_update_does_not_touch_the_status(api: Api, namespace: str, widgets: Widgets, unique: str) -> None:
    made = widgets.create(namespace, unique, {"text": "a"})
    made = api.put(widgets.path(namespace, unique, "status"), {**made, "status": {"ready": True}}).ok()
    body = api.put(widgets.path(namespace, unique), {**made, "spec": {"text": "b"}, "status": {"ready": False}}).ok()
    assert body["status"] == {"ready": True}
    assert body["spec"]["text"] == "b"
    body = api.patch(widgets.path(namespace, unique), {"status": {"ready": False}}).ok()
    assert body["status"] == {"ready": True}


def test_an_update_of_the_status_touches_nothing_else(api: Api, namespace: str, widgets: Widgets, unique: str) -> None:
    made = widgets.create(namespace, unique, {"text": "a"})
    changed = {**made, "spec": {"text": "b"}, "status": {"ready": True}}
    changed["metadata"] = {**made["metadata"], "labels": {"l": "v"}, "finalizers": ["example.com/x"]}
    body = api.put(widgets.path(namespace, unique, "status"), changed).ok()
    assert body["status"] == {"ready": True}
    assert body["spec"]["text"] == "a"
    assert without(body)["metadata"] == {"name": unique, "namespace": namespace, "generation": 1}
    body = api.patch(widgets.path(namespace, unique, "status"), {"spec": {"text": "b"}, "status": {"replicas": 2}}).ok()
    assert body["spec"]["text"] == "a"
    assert body["status"] == {"ready": True, "replicas": 2}


def test_the_status_is_read_with_the_whole_object(api: Api, namespace: str, widgets: Widgets, unique: str) -> None:
    widgets.create(namespace, unique, {"text": "a"})
    assert api.get(widgets.path(namespace, unique, "status")).ok() == api.get(widgets.path(namespace, unique)).ok()


def test_the_status_is_validated(api: Api, namespace: str, widgets: Widgets, unique: str) -> None:
    widgets.create(namespace, unique, {"text": "a"})
    answer = api.patch(widgets.path(namespace, unique, "status"), {"status": {"conditions": [{"type": "Ready", "status": "Maybe"}]}})
    assert answer.summary == (
        422,
        "Invalid",
        f'Widget.{GROUP} "{unique}" is invalid: status.conditions[0].status: Unsupported value: "Maybe": '
        'supported values: "True", "False", "Unknown"',
    )


def test_the_scale_of_a_custom_object(api: Api, namespace: str, widgets: Widgets, unique: str) -> None:
    made = widgets.create(namespace, unique, {"replicas": 2})
    api.patch(widgets.path(namespace, unique, "status"), {"status": {"replicas": 1, "selector": "a=b"}}).ok()
    path = widgets.path(namespace, unique, "scale")
    scale = api.get(path).ok()
    assert without(scale) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": unique, "namespace": namespace},
        "spec": {"replicas": 2},
        "status": {"replicas": 1, "selector": "a=b"},
    }
    assert scale["metadata"]["uid"] == made["metadata"]["uid"]
    scaled = api.patch(path, {"spec": {"replicas": 5}}, MERGE).ok()
    assert scaled["spec"] == {"replicas": 5}
    body = api.get(widgets.path(namespace, unique)).ok()
    assert body["spec"]["replicas"] == 5
    assert body["metadata"]["generation"] == 2
    scaled = api.put(path, {**scaled, "spec": {"replicas": 3}}).ok()
    assert api.get(widgets.path(namespace, unique)).ok()["spec"]["replicas"] == 3
    answer = api.put(path, {**scale, "spec": {"replicas": 1}})
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")


def test_the_scale_of_a_deployment(api: Api, namespace: str, unique: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    pod = {"metadata": {"labels": {"a": unique}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": unique}}, "template": pod}
    api.post(path, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": unique}, "spec": spec}).ok()
    assert api.get(f"{path}/{unique}/scale").ok()["status"] == {"replicas": 0, "selector": f"a={unique}"}
    api.patch(f"{path}/{unique}/scale", {"spec": {"replicas": 1}}).ok()
    assert api.get(f"{path}/{unique}").ok()["spec"]["replicas"] == 1
    api.delete(f"{path}/{unique}").ok()


def test_a_sub_resource_that_is_not_there(api: Api, namespace: str, widgets: Widgets, unique: str) -> None:
    widgets.create(namespace, unique)
    assert api.get(widgets.path(namespace, unique, "nope")).code == 404
