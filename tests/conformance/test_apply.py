"""Server-side apply, and who owns which field."""

from __future__ import annotations

from typing import Any

import pytest
from conformance.api import APPLY, Api, owners
from conformance.widgets import GROUP, Widgets


class Applied:
    """One object that managers apply to."""

    def __init__(self, api: Api, widgets: Widgets, namespace: str, name: str) -> None:
        self.api, self.widgets, self.name = api, widgets, name
        self.path = widgets.path(namespace, name)

    def __call__(self, spec: Any, manager: str = "one", *, force: bool = False, metadata: Any = None) -> Any:
        return self.api.apply(self.path, self.widgets.manifest(self.name, spec, **(metadata or {})), manager, force=force)

    def get(self) -> Any:
        return self.api.get(self.path).ok()


@pytest.fixture
def applied(api: Api, widgets: Widgets, namespace: str, unique: str) -> Applied:
    return Applied(api, widgets, namespace, unique)


def spec_of(body: dict[str, Any]) -> dict[str, Any]:
    """The spec without what defaults put there."""
    return {name: value for name, value in body["spec"].items() if name not in ("replicas", "nested")}


def test_the_first_apply_makes_the_object(applied: Applied) -> None:
    answer = applied({"text": "a"}, metadata={"labels": {"l": "v"}})
    assert answer.code == 201
    (entry,) = answer.body["metadata"]["managedFields"]
    assert entry.pop("time")
    assert entry == {
        "manager": "one",
        "operation": "Apply",
        "apiVersion": f"{GROUP}/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {"f:l": {}}}, "f:spec": {"f:text": {}}},
    }


def test_applying_the_same_again_changes_nothing(applied: Applied) -> None:
    made = applied({"text": "a"}).ok()
    answer = applied({"text": "a"})
    assert answer.code == 200
    assert answer.body == made


def test_a_conflict_names_the_manager_and_the_field(applied: Applied) -> None:
    applied({"text": "a"}).ok()
    answer = applied({"text": "b"}, "two")
    assert answer.code == 409
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Apply failed with 1 conflict: conflict with "one": .spec.text',
        "reason": "Conflict",
        "details": {"causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".spec.text"}]},
        "code": 409,
    }


def test_conflicts_with_several_managers(applied: Applied) -> None:
    applied({"text": "a", "mode": "Fast"}).ok()
    applied({"parts": [{"name": "x", "value": "1"}]}, "two").ok()
    answer = applied({"text": "b", "mode": "Safe", "parts": [{"name": "x", "value": "2"}]}, "three")
    assert answer.body["message"] == (
        'Apply failed with 3 conflicts: conflicts with "one":\n- .spec.mode\n- .spec.text\n'
        'conflicts with "two":\n- .spec.parts[name="x"].value'
    )
    assert len(answer.body["details"]["causes"]) == 3


def test_a_conflict_with_an_update_names_its_version(api: Api, applied: Applied, widgets: Widgets, namespace: str) -> None:
    api.post(widgets.path(namespace), widgets.manifest(applied.name, {"text": "a"}), fieldManager="editor").ok()
    answer = applied({"text": "b"})
    assert answer.body["message"] == f'Apply failed with 1 conflict: conflict with "editor" using {GROUP}/v1: .spec.text'


def test_force_takes_the_field_over(applied: Applied) -> None:
    applied({"text": "a", "mode": "Fast"}).ok()
    body = applied({"text": "b"}, "two", force=True).ok()
    assert spec_of(body) == {"text": "b", "mode": "Fast"}
    assert owners(body) == {"one Apply": {"f:spec": {"f:mode": {}}}, "two Apply": {"f:spec": {"f:text": {}}}}


def test_the_same_value_is_owned_together_and_stays_while_one_wants_it(applied: Applied) -> None:
    applied({"text": "a", "mode": "Fast"}).ok()
    body = applied({"text": "a"}, "two").ok()
    assert owners(body) == {"one Apply": {"f:spec": {"f:mode": {}, "f:text": {}}}, "two Apply": {"f:spec": {"f:text": {}}}}
    body = applied({"mode": "Fast"}).ok()
    assert spec_of(body) == {"text": "a", "mode": "Fast"}
    body = applied({}, "two").ok()
    assert spec_of(body) == {"mode": "Fast"}


def test_what_is_applied_no_more_goes(applied: Applied) -> None:
    everything = {
        "text": "a",
        "labels": {"x": "1", "y": "2"},
        "list": ["p", "q"],
        "set": ["p", "q"],
        "parts": [{"name": "one", "value": "1"}, {"name": "two", "value": "2"}],
        "reference": {"kind": "K", "name": "n"},
    }
    body = applied(everything).ok()
    assert owners(body) == {
        "one Apply": {
            "f:spec": {
                "f:labels": {"f:x": {}, "f:y": {}},
                "f:list": {},
                "f:parts": {
                    'k:{"name":"one"}': {".": {}, "f:name": {}, "f:value": {}},
                    'k:{"name":"two"}': {".": {}, "f:name": {}, "f:value": {}},
                },
                "f:reference": {},
                "f:set": {'v:"p"': {}, 'v:"q"': {}},
                "f:text": {},
            }
        }
    }
    less = {"labels": {"y": "2"}, "list": ["q"], "set": ["q"], "parts": [{"name": "two", "value": "2"}], "reference": {"kind": "K"}}
    assert spec_of(applied(less).ok()) == less


def test_lists_of_different_managers_grow_together(applied: Applied) -> None:
    applied({"parts": [{"name": "a"}, {"name": "b"}, {"name": "c"}], "set": ["a", "b"]}).ok()
    body = applied({"parts": [{"name": "c", "value": "1"}, {"name": "d"}, {"name": "a"}], "set": ["b", "c"]}, "two").ok()
    assert body["spec"]["parts"] == [{"name": "b"}, {"name": "c", "value": "1"}, {"name": "d"}, {"name": "a"}]
    assert body["spec"]["set"] == ["a", "b", "c"]
    body = applied({}, "one").ok()
    assert body["spec"]["parts"] == [{"name": "c", "value": "1"}, {"name": "d"}, {"name": "a"}]
    assert body["spec"]["set"] == ["b", "c"]


def test_a_create_is_tracked_as_an_update(api: Api, applied: Applied, widgets: Widgets, namespace: str) -> None:
    manifest = widgets.manifest(applied.name, {"text": "a", "labels": {"x": "1"}}, labels={"l": "v"}, finalizers=["example.com/f"])
    body = api.post(widgets.path(namespace), manifest).ok()
    (entry,) = body["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("conformance", "Update", f"{GROUP}/v1")
    assert entry["fieldsV1"] == {
        "f:metadata": {"f:finalizers": {".": {}, 'v:"example.com/f"': {}}, "f:labels": {".": {}, "f:l": {}}},
        "f:spec": {
            ".": {},
            "f:labels": {".": {}, "f:x": {}},
            "f:nested": {".": {}, "f:a": {}},
            "f:replicas": {},
            "f:text": {},
        },
    }
    api.patch(applied.path, {"metadata": {"finalizers": None}}).ok()


def test_an_update_takes_what_it_changes(api: Api, applied: Applied) -> None:
    applied({"text": "a", "mode": "Fast", "labels": {"x": "1"}}).ok()
    body = api.patch(applied.path, {"spec": {"text": "b", "labels": {"y": "2"}}}, fieldManager="editor").ok()
    assert owners(body) == {
        "one Apply": {"f:spec": {"f:labels": {"f:x": {}}, "f:mode": {}}},
        "editor Update": {"f:spec": {"f:labels": {"f:y": {}}, "f:text": {}}},
    }
    body = api.patch(applied.path, {"spec": {"mode": None}}, fieldManager="remover").ok()
    assert owners(body) == {
        "one Apply": {"f:spec": {"f:labels": {"f:x": {}}}},
        "editor Update": {"f:spec": {"f:labels": {"f:y": {}}, "f:text": {}}},
    }


def test_the_status_has_owners_of_its_own(api: Api, applied: Applied, widgets: Widgets) -> None:
    applied({"text": "a"}).ok()
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    body = api.apply(f"{applied.path}/status", {**widgets.manifest(applied.name), "status": status}, "controller").ok()
    assert body["status"] == status
    condition: Any = {'k:{"type":"Ready"}': {".": {}, "f:status": {}, "f:type": {}}}
    assert owners(body) == {
        "one Apply": {"f:spec": {"f:text": {}}},
        "controller Apply status": {"f:status": {"f:conditions": condition}},
    }
    other = {"conditions": [{"type": "Healthy", "status": "True"}]}
    body = api.apply(f"{applied.path}/status", {**widgets.manifest(applied.name), "status": other}, "second").ok()
    assert [item["type"] for item in body["status"]["conditions"]] == ["Ready", "Healthy"]
    body = api.patch(f"{applied.path}/status", {"status": {"ready": True}}, fieldManager="patcher").ok()
    assert owners(body)["patcher Update status"] == {"f:status": {"f:ready": {}}}
    assert owners(applied({"text": "a"}).ok()) == owners(body)


def test_an_apply_of_the_object_does_not_touch_its_status(applied: Applied, api: Api, widgets: Widgets) -> None:
    manifest = {**widgets.manifest(applied.name, {"text": "a"}), "status": {"ready": True}}
    body = api.apply(applied.path, manifest, "one").ok()
    assert "status" not in body
    assert owners(body) == {"one Apply": {"f:spec": {"f:text": {}}}}


def test_an_apply_needs_a_manager(api: Api, applied: Applied, widgets: Widgets) -> None:
    answer = api.patch(applied.path, widgets.manifest(applied.name), APPLY)
    assert answer.summary == (
        422,
        "Invalid",
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
    )


def test_force_is_for_apply_alone(api: Api, applied: Applied) -> None:
    applied({"text": "a"}).ok()
    answer = api.patch(applied.path, {"spec": {}}, force="true")
    assert answer.summary == (
        422,
        "Invalid",
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
    )


def test_unknown_fields_are_refused(applied: Applied) -> None:
    answer = applied({"nope": 1})
    assert answer.summary == (
        500,
        "",
        f"failed to create typed patch object (/{applied.name}; {GROUP}/v1, Kind=Widget): .spec.nope: field not declared in schema",
    )


def test_managed_fields_may_not_be_applied(applied: Applied) -> None:
    applied({"text": "a"}).ok()
    answer = applied({"text": "a"}, metadata={"managedFields": []})
    assert answer.summary == (400, "BadRequest", "metadata.managedFields must be nil")


def test_the_kind_must_be_given_and_right(api: Api, applied: Applied, widgets: Widgets) -> None:
    answer = api.apply(applied.path, {"metadata": {"name": applied.name}}, "one")
    assert answer.summary == (400, "BadRequest", "invalid object type: /, Kind=")
    answer = api.apply(applied.path, {**widgets.manifest(applied.name), "kind": "Gadget"}, "one")
    assert answer.summary == (400, "BadRequest", f"invalid object type: {GROUP}/v1, Kind=Gadget")


def test_what_is_applied_is_validated(applied: Applied) -> None:
    answer = applied({"text": ""})
    assert answer.summary == (
        422,
        "Invalid",
        f'Widget.{GROUP} "{applied.name}" is invalid: spec.text: Invalid value: "": spec.text in body should be at least 1 chars long',
    )


def test_a_dry_run_of_an_apply_keeps_nothing(api: Api, applied: Applied, widgets: Widgets) -> None:
    assert api.apply(applied.path, widgets.manifest(applied.name, {"text": "a"}), "one", dryRun="All").code == 201
    assert api.get(applied.path).code == 404


def test_giving_up_managed_fields(api: Api, applied: Applied) -> None:
    made = applied({"text": "a"}).ok()
    made["metadata"]["managedFields"] = [{}]
    body = api.put(applied.path, made).ok()
    assert "managedFields" not in body["metadata"]
    body = api.patch(applied.path, {"spec": {"text": "b"}}, fieldManager="editor").ok()
    assert "managedFields" not in body["metadata"]
    answer = applied({"text": "c"})
    assert answer.body["message"] == (f'Apply failed with 1 conflict: conflict with "before-first-apply" using {GROUP}/v1: .spec.text')


def test_a_secret_is_owned_key_by_key(api: Api, namespace: str, unique: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": unique}, "data": {"a": "YQ=="}}
    body = api.post(path, manifest).ok()
    assert owners(body) == {"conformance Update": {"f:data": {".": {}, "f:a": {}}, "f:type": {}}}
    body = api.apply(f"{path}/{unique}", {**manifest, "data": {"b": "Yg=="}}, "one").ok()
    assert body["data"] == {"a": "YQ==", "b": "Yg=="}
    assert owners(body)["one Apply"] == {"f:data": {"f:b": {}}}


def test_a_config_map_and_its_owner_references(api: Api, namespace: str, unique: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/{unique}"
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u-1"}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": unique, "ownerReferences": [reference]}, "data": {"a": "1"}}
    body = api.apply(path, manifest, "one").ok()
    assert owners(body) == {
        "one Apply": {
            "f:data": {"f:a": {}},
            "f:metadata": {"f:ownerReferences": {'k:{"uid":"u-1"}': {}}},
        }
    }


def test_a_deployment_is_owned_container_by_container(api: Api, namespace: str, unique: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{unique}"
    ports = [{"containerPort": 80}]
    pod = {"metadata": {"labels": {"a": unique}}, "spec": {"containers": [{"name": "c", "image": "i", "ports": ports}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": unique}}, "template": pod}
    body = api.apply(path, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": unique}, "spec": spec}, "one").ok()
    container: Any = {
        ".": {},
        "f:image": {},
        "f:name": {},
        "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
    }
    assert owners(body)["one Apply"] == {
        "f:spec": {
            "f:replicas": {},
            "f:selector": {},
            "f:template": {
                "f:metadata": {"f:labels": {"f:a": {}}},
                "f:spec": {"f:containers": {'k:{"name":"c"}': container}},
            },
        }
    }


def test_a_lease_that_is_made_by_update(api: Api, namespace: str, unique: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    manifest = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": unique}, "spec": {"holderIdentity": "a"}}
    body = api.post(path, manifest).ok()
    assert owners(body) == {"conformance Update": {"f:spec": {"f:holderIdentity": {}}}}
