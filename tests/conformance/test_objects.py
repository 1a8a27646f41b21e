"""Objects are made, read, replaced and deleted; what is refused is refused in the same words."""

from __future__ import annotations

import re
from typing import Any

import pytest
from conformance.api import Api, without
from conformance.widgets import GROUP, Widgets

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def config_map(name: str = "", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name} if name else {}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, **fields.pop("metadata", {})}, **fields}


def maps(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")


def test_a_new_object_gets_what_the_server_decides(api: Api, namespace: str, unique: str) -> None:
    sent = config_map(unique, data={"a": "b"}, metadata={"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z"})
    answer = api.post(maps(namespace), sent)
    assert answer.code == 201
    made = answer.body
    assert without(made) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": unique, "namespace": namespace},
        "data": {"a": "b"},
    }
    assert re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made["metadata"]["uid"])
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", made["metadata"]["creationTimestamp"])
    assert not made["metadata"]["creationTimestamp"].startswith("2001")
    assert made["metadata"]["resourceVersion"].isdecimal()
    assert api.get(maps(namespace, unique)).body == made


def test_a_name_is_taken_once(api: Api, namespace: str, unique: str) -> None:
    api.post(maps(namespace), config_map(unique)).ok()
    answer = api.post(maps(namespace), config_map(unique))
    assert answer.code == 409
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'configmaps "{unique}" already exists',
        "reason": "AlreadyExists",
        "details": {"name": unique, "kind": "configmaps"},
        "code": 409,
    }


def test_what_is_not_there_is_not_found(api: Api, namespace: str, widgets: Widgets) -> None:
    answer = api.get(maps(namespace, "nobody"))
    assert answer.code == 404
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "nobody" not found',
        "reason": "NotFound",
        "details": {"name": "nobody", "kind": "configmaps"},
        "code": 404,
    }
    custom = api.get(widgets.path(namespace, "nobody"))
    assert custom.body["message"] == f'widgets.{GROUP} "nobody" not found'
    assert custom.body["details"] == {"name": "nobody", "group": GROUP, "kind": "widgets"}
    assert api.delete(maps(namespace, "nobody")).body == answer.body
    assert api.put(maps(namespace, "nobody"), config_map("nobody")).body == answer.body
    assert api.patch(maps(namespace, "nobody"), {"data": {}}).body == answer.body


def test_a_path_that_is_not_served_is_not_found(api: Api) -> None:
    answer = api.get("/apis/no.such.group/v1/things")
    assert answer.code == 404


def test_a_name_can_be_made_up_by_the_server(api: Api, namespace: str) -> None:
    made = api.post(maps(namespace), config_map(metadata={"generateName": "made-"})).ok()
    assert re.fullmatch("made-[bcdfghjklmnpqrstvwxz2456789]{5}", made["metadata"]["name"])
    assert made["metadata"]["generateName"] == "made-"


def test_an_object_needs_a_name(api: Api, namespace: str) -> None:
    answer = api.post(maps(namespace), config_map())
    assert answer.summary == (
        422,
        "Invalid",
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
    )
    assert answer.body["details"] == {
        "kind": "ConfigMap",
        "causes": [
            {"reason": "FieldValueRequired", "message": "Required value: name or generateName is required", "field": "metadata.name"}
        ],
    }


def test_a_name_has_a_form(api: Api, namespace: str) -> None:
    answer = api.post(maps(namespace), config_map("Not_Good"))
    assert answer.code == 422
    assert answer.body["message"].startswith(
        'ConfigMap "Not_Good" is invalid: metadata.name: Invalid value: "Not_Good": a lowercase RFC 1123 subdomain'
    )


def test_labels_have_a_form(api: Api, namespace: str, unique: str) -> None:
    answer = api.post(maps(namespace), config_map(unique, metadata={"labels": {"a": "not good"}}))
    assert answer.code == 422
    assert answer.body["message"].startswith(
        f'ConfigMap "{unique}" is invalid: metadata.labels: Invalid value: "not good": a valid label must be'
    )


def test_the_namespace_of_path_and_object_agree(api: Api, namespace: str, unique: str) -> None:
    answer = api.post(maps(namespace), config_map(unique, metadata={"namespace": "other"}))
    assert answer.summary == (400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request")


def test_the_name_of_path_and_object_agree(api: Api, namespace: str, unique: str) -> None:
    api.post(maps(namespace), config_map(unique)).ok()
    answer = api.put(maps(namespace, unique), config_map("other"))
    assert answer.summary == (400, "BadRequest", f"the name of the object (other) does not match the name on the URL ({unique})")


def test_an_object_is_made_only_where_its_namespace_is(api: Api, unique: str) -> None:
    answer = api.post(maps("no-such-namespace"), config_map(unique))
    assert answer.summary == (404, "NotFound", 'namespaces "no-such-namespace" not found')


def test_the_kind_must_be_that_of_the_path(api: Api, namespace: str, unique: str, widgets: Widgets) -> None:
    wrong = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": unique}}
    answer = api.post(maps(namespace), wrong)
    assert answer.code == 400
    assert answer.summary == (
        400,
        "BadRequest",
        'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion',
    )
    answer = api.post(widgets.path(namespace), {**widgets.manifest(unique), "kind": "Gadget"})
    assert answer.summary == (422, "Invalid", f'Gadget.{GROUP} "{unique}" is invalid: kind: Invalid value: "Gadget": must be Widget')
    answer = api.post(widgets.path(namespace), {**widgets.manifest(unique), "apiVersion": "other/v1"})
    assert answer.summary == (
        400,
        "BadRequest",
        f"the API version in the data (other/v1) does not match the expected API version ({GROUP}/v1)",
    )


def test_a_body_that_is_not_json_is_refused(api: Api, namespace: str) -> None:
    answer = api.post(maps(namespace), b"{nope")
    assert answer.code == 400
    assert answer.body["reason"] == "BadRequest"


def test_yaml_is_read_too(api: Api, namespace: str, unique: str) -> None:
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {unique}\ndata:\n  a: b\n".encode()
    made = api.request("POST", maps(namespace), text, content_type="application/yaml").ok()
    assert made["data"] == {"a": "b"}


def test_an_update_replaces_and_bumps_the_version(api: Api, namespace: str, unique: str) -> None:
    made = api.post(maps(namespace), config_map(unique, data={"a": "1"}, metadata={"labels": {"l": "v"}})).ok()
    changed = api.put(maps(namespace, unique), {**made, "data": {"b": "2"}}).ok()
    assert changed["data"] == {"b": "2"}
    assert int(changed["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]
    assert "generation" not in changed["metadata"]


def test_an_update_that_changes_nothing_keeps_the_version(api: Api, namespace: str, unique: str) -> None:
    made = api.post(maps(namespace), config_map(unique, data={"a": "1"})).ok()
    assert api.put(maps(namespace, unique), made).ok() == made


def test_an_update_of_an_old_version_is_a_conflict(api: Api, namespace: str, unique: str, widgets: Widgets) -> None:
    made = api.post(maps(namespace), config_map(unique)).ok()
    api.put(maps(namespace, unique), {**made, "data": {"a": "1"}}).ok()
    answer = api.put(maps(namespace, unique), {**made, "data": {"a": "2"}})
    assert answer.code == 409
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'Operation cannot be fulfilled on configmaps "{unique}": {MODIFIED}',
        "reason": "Conflict",
        "details": {"name": unique, "kind": "configmaps"},
        "code": 409,
    }
    custom = widgets.create(namespace, unique, {"text": "a"})
    api.put(widgets.path(namespace, unique), {**custom, "spec": {"text": "b"}}).ok()
    answer = api.put(widgets.path(namespace, unique), custom)
    assert answer.summary == (409, "Conflict", f'Operation cannot be fulfilled on widgets.{GROUP} "{unique}": {MODIFIED}')


def test_an_update_without_a_version_overwrites_a_built_in_object(api: Api, namespace: str, unique: str) -> None:
    api.post(maps(namespace), config_map(unique, data={"a": "1"})).ok()
    assert api.put(maps(namespace, unique), config_map(unique, data={"a": "2"})).ok()["data"] == {"a": "2"}


def test_an_update_of_a_custom_object_needs_a_version(api: Api, namespace: str, unique: str, widgets: Widgets) -> None:
    widgets.create(namespace, unique, {"text": "a"})
    answer = api.put(widgets.path(namespace, unique), widgets.manifest(unique, {"text": "b"}))
    assert answer.summary == (
        422,
        "Invalid",
        f'widgets.{GROUP} "{unique}" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update',
    )


def test_a_uid_that_is_not_the_objects_is_a_conflict(api: Api, namespace: str, unique: str) -> None:
    made = api.post(maps(namespace), config_map(unique)).ok()
    made["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555"
    answer = api.put(maps(namespace, unique), made)
    assert answer.code == 409
    assert "Precondition failed: UID in precondition: 11111111-2222-3333-4444-555555555555" in answer.body["message"]


def test_the_generation_counts_changes_of_what_is_wanted(api: Api, namespace: str, unique: str, widgets: Widgets) -> None:
    made = widgets.create(namespace, unique, {"text": "a"})
    assert made["metadata"]["generation"] == 1
    path = widgets.path(namespace, unique)
    labelled = api.patch(path, {"metadata": {"labels": {"a": "b"}}}).ok()
    assert labelled["metadata"]["generation"] == 1
    changed = api.patch(path, {"spec": {"text": "b"}}).ok()
    assert changed["metadata"]["generation"] == 2
    reported = api.patch(f"{path}/status", {"status": {"ready": True}}).ok()
    assert reported["metadata"]["generation"] == 2
    assert int(reported["metadata"]["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])


def test_a_dry_run_answers_and_keeps_nothing(api: Api, namespace: str, unique: str) -> None:
    answer = api.post(maps(namespace), config_map(unique, data={"a": "1"}), dryRun="All")
    assert answer.code == 201
    assert answer.body["metadata"]["uid"]
    assert api.get(maps(namespace, unique)).code == 404
    made = api.post(maps(namespace), config_map(unique, data={"a": "1"})).ok()
    assert api.patch(maps(namespace, unique), {"data": {"a": "2"}}, dryRun="All").ok()["data"] == {"a": "2"}
    assert api.put(maps(namespace, unique), {**made, "data": {"a": "3"}}, dryRun="All").ok()["data"] == {"a": "3"}
    api.delete(maps(namespace, unique), dryRun="All").ok()
    assert api.get(maps(namespace, unique)).ok() == made


def test_a_delete_answers_with_what_became_of_it(api: Api, namespace: str, unique: str, widgets: Widgets) -> None:
    made = api.post(maps(namespace), config_map(unique)).ok()
    answer = api.delete(maps(namespace, unique))
    assert answer.code == 200
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": unique, "kind": "configmaps", "uid": made["metadata"]["uid"]},
    }
    custom = widgets.create(namespace, unique)
    answer = api.delete(widgets.path(namespace, unique))
    assert answer.body["details"] == {"name": unique, "group": GROUP, "kind": "widgets", "uid": custom["metadata"]["uid"]}


def test_a_delete_can_ask_for_one_version(api: Api, namespace: str, unique: str) -> None:
    made = api.post(maps(namespace), config_map(unique)).ok()
    uid, version = made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    wrong = "11111111-2222-3333-4444-555555555555"
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": wrong}}
    answer = api.delete(maps(namespace, unique), options)
    assert answer.code == 409
    assert answer.body["message"] == (
        f'Operation cannot be fulfilled on ConfigMap "{unique}": the UID in the precondition ({wrong}) does not match the '
        f"UID in record ({uid}). The object might have been deleted and then recreated"
    )
    answer = api.delete(maps(namespace, unique), {**options, "preconditions": {"resourceVersion": "1"}})
    assert answer.code == 409
    assert answer.body["message"] == (
        f'Operation cannot be fulfilled on ConfigMap "{unique}": the ResourceVersion in the precondition (1) does not match the '
        f"ResourceVersion in record ({version}). The object might have been modified"
    )
    api.delete(maps(namespace, unique), {**options, "preconditions": {"uid": uid, "resourceVersion": version}}).ok()
    assert api.get(maps(namespace, unique)).code == 404


def test_a_whole_collection_is_deleted_by_selector(api: Api, namespace: str, unique: str) -> None:
    for number in range(3):
        api.post(maps(namespace), config_map(f"{unique}-{number}", metadata={"labels": {"of": unique, "n": str(number)}})).ok()
    answer = api.delete(maps(namespace), labelSelector=f"of={unique},n!=1")
    assert answer.code == 200
    assert answer.body["kind"] == "ConfigMapList"
    left = api.get(maps(namespace), labelSelector=f"of={unique}").ok()["items"]
    assert [item["metadata"]["name"] for item in left] == [f"{unique}-1"]


@pytest.mark.parametrize("validation", ["Strict", "Warn", "Ignore"])
def test_unknown_fields_are_handled_as_asked(api: Api, namespace: str, unique: str, validation: str, widgets: Widgets) -> None:
    answer = api.post(maps(namespace), config_map(unique, nope=1), fieldValidation=validation)
    custom = api.post(widgets.path(namespace), widgets.manifest(unique, {"nope": 1}), fieldValidation=validation)
    if validation == "Strict":
        assert answer.summary == (
            400,
            "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "nope"',
        )
        assert custom.summary == (
            400,
            "BadRequest",
            'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.nope"',
        )
    else:
        assert "nope" not in answer.ok()
        assert "nope" not in custom.ok()["spec"]
        warning = '299 - "unknown field \\"nope\\""' if validation == "Warn" else ""
        assert answer.headers.get("warning", "") == warning
        warning = '299 - "unknown field \\"spec.nope\\""' if validation == "Warn" else ""
        assert custom.headers.get("warning", "") == warning
