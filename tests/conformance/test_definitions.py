"""CustomResourceDefinitions: served once established, with schemas that prune, default and validate, and gone with their objects."""

from __future__ import annotations

from typing import Any

import pytest
from conformance.api import Api, Manifest
from conformance.widgets import DEFINITIONS, GROUP, STRING, Widgets, definition

WRONG: Manifest = {
    "text": "12345678901",
    "version": "1",
    "mode": "Slow",
    "replicas": 101,
    "ratio": 0,
    "when": "now",
    "amount": True,
    "paused": "yes",
    "labels": {"a": "1", "b": "2", "c": "3", "d": "4"},
    "list": ["1", "2", "3", "4"],
    "set": ["a", "a"],
    "parts": [{"name": "a"}, {"name": "a"}, {"value": "x"}],
    "choice": {},
    "template": {"kind": "X"},
}
FAULTS = {
    ("<nil>", "FieldValueInvalid", 'Invalid value: "": "spec.amount" must validate at least one schema (anyOf)'),
    ("<nil>", "FieldValueInvalid", 'Invalid value: "": "spec.choice" must validate one and only one schema (oneOf). Found none valid'),
    ("spec.amount", "FieldValueTypeInvalid", 'Invalid value: "boolean": spec.amount in body must be of type integer,string: "boolean"'),
    ("spec.amount", "FieldValueTypeInvalid", 'Invalid value: "boolean": spec.amount in body must be of type integer: "boolean"'),
    ("spec.choice.a", "FieldValueRequired", "Required value"),
    ("spec.labels", "FieldValueTooMany", "Too many: 4: must have at most 3 items"),
    ("spec.list", "FieldValueTooMany", "Too many: 4: must have at most 3 items"),
    ("spec.mode", "FieldValueNotSupported", 'Unsupported value: "Slow": supported values: "Fast", "Safe"'),
    ("spec.parts[1]", "FieldValueDuplicate", 'Duplicate value: {"name":"a"}'),
    ("spec.parts[2].name", "FieldValueRequired", "Required value"),
    ("spec.paused", "FieldValueTypeInvalid", 'Invalid value: "string": spec.paused in body must be of type boolean: "string"'),
    ("spec.ratio", "FieldValueInvalid", "Invalid value: 0: spec.ratio in body should be greater than 0"),
    ("spec.replicas", "FieldValueInvalid", "Invalid value: 101: spec.replicas in body should be less than or equal to 100"),
    ("spec.set[1]", "FieldValueDuplicate", 'Duplicate value: "a"'),
    ("spec.template.apiVersion", "FieldValueRequired", "Required value"),
    ("spec.text", "FieldValueTooLong", "Too long: may not be more than 10 bytes"),
    ("spec.version", "FieldValueInvalid", "Invalid value: \"1\": spec.version in body should match '^v[0-9]+$'"),
    ("spec.when", "FieldValueTypeInvalid", 'Invalid value: "now": spec.when in body must be of type date-time: "now"'),
}


def test_everything_wrong_is_said_at_once(api: Api, widgets: Widgets, namespace: str, unique: str) -> None:
    answer = api.post(widgets.path(namespace), widgets.manifest(unique, WRONG))
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    details = answer.body["details"]
    assert (details["name"], details["group"], details["kind"]) == (unique, GROUP, "Widget")
    # The real server goes through fields in no order.
    assert {(cause["field"], cause["reason"], cause["message"]) for cause in details["causes"]} == FAULTS
    assert len(details["causes"]) == len(FAULTS)
    assert answer.body["message"].startswith(f'Widget.{GROUP} "{unique}" is invalid: [')
    for field, _, message in FAULTS:
        assert f"{field}: {message}" in answer.body["message"]


def test_one_fault_stands_alone(api: Api, widgets: Widgets, namespace: str, unique: str) -> None:
    answer = api.post(widgets.path(namespace), widgets.manifest(unique, {"mode": "Slow"}))
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'Widget.{GROUP} "{unique}" is invalid: spec.mode: Unsupported value: "Slow": supported values: "Fast", "Safe"',
        "reason": "Invalid",
        "details": {
            "name": unique,
            "group": GROUP,
            "kind": "Widget",
            "causes": [
                {
                    "reason": "FieldValueNotSupported",
                    "message": 'Unsupported value: "Slow": supported values: "Fast", "Safe"',
                    "field": "spec.mode",
                }
            ],
        },
        "code": 422,
    }


def test_defaults_pruning_and_nulls(api: Api, widgets: Widgets, namespace: str, unique: str) -> None:
    spec = {"text": None, "maybe": None, "nested": None, "unknown": 1, "free": {"x": None}, "replicas": None, "labels": {"a": None}}
    body = api.post(widgets.path(namespace), {**widgets.manifest(unique, spec), "extra": True}).ok()
    assert body["spec"] == {"free": {"x": None}, "labels": {}, "maybe": None, "nested": {"a": "x"}, "replicas": 1}
    assert "extra" not in body


def test_defaults_come_on_update_and_patch_too(api: Api, widgets: Widgets, namespace: str, unique: str) -> None:
    made = widgets.create(namespace, unique, {"replicas": 3, "nested": {"a": "own", "b": "1"}})
    assert made["spec"] == {"replicas": 3, "nested": {"a": "own", "b": "1"}}
    body = api.put(widgets.path(namespace, unique), {**made, "spec": {"nested": {"b": "2"}}}).ok()
    assert body["spec"] == {"replicas": 1, "nested": {"a": "x", "b": "2"}}
    body = api.patch(widgets.path(namespace, unique), {"spec": {"nested": None}}).ok()
    assert body["spec"] == {"replicas": 1, "nested": {"a": "x"}}


def test_embedded_objects_and_free_fields_are_kept(api: Api, widgets: Widgets, namespace: str, unique: str) -> None:
    template = {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "n", "labels": {"a": "b"}}, "anything": {"goes": [1, None]}}
    body = widgets.create(namespace, unique, {"template": template, "free": {"deep": {"er": [{}]}}, "amount": "10%"})
    assert body["spec"]["template"] == template
    assert body["spec"]["free"] == {"deep": {"er": [{}]}}
    assert body["spec"]["amount"] == "10%"


def test_a_definition_is_established_and_served(api: Api, unique: str, namespace: str) -> None:
    with Widgets.installed(api, "gadgets", "Gadget") as gadgets:
        body = api.get(f"{DEFINITIONS}/gadgets.{GROUP}").ok()
        conditions = {item["type"]: (item["status"], item["reason"], item["message"]) for item in body["status"]["conditions"]}
        assert conditions == {
            "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
            "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
        }
        assert body["status"]["storedVersions"] == ["v1"]
        assert body["status"]["acceptedNames"] == body["spec"]["names"]
        assert body["spec"]["conversion"] == {"strategy": "None"}
        gadgets.create(namespace, unique, {"text": "a"})
        api.delete(f"{DEFINITIONS}/gadgets.{GROUP}").ok()
        api.gone(f"{DEFINITIONS}/gadgets.{GROUP}")
        api.eventually(gadgets.path(namespace), lambda answer: answer.code == 404)


def test_objects_go_with_their_definition(api: Api, unique: str, namespace: str) -> None:
    with Widgets.installed(api, "gadgets", "Gadget") as gadgets:
        gadgets.create(namespace, unique)
    api.gone(f"{DEFINITIONS}/gadgets.{GROUP}")
    with Widgets.installed(api, "gadgets", "Gadget") as gadgets:
        assert api.get(gadgets.path(namespace)).ok()["items"] == []
    api.gone(f"{DEFINITIONS}/gadgets.{GROUP}")


def test_a_changed_schema_takes_effect(api: Api, unique: str, namespace: str) -> None:
    with Widgets.installed(api, "gadgets", "Gadget") as gadgets:
        path = f"{DEFINITIONS}/gadgets.{GROUP}"
        added = [{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/fresh", "value": STRING}]
        assert api.request("PATCH", path, added, content_type="application/json-patch+json").ok()["metadata"]["generation"] == 2
        spec = {"fresh": "a"}

        def keeps(answer: Any) -> bool:
            made = api.post(gadgets.path(namespace), gadgets.manifest(unique, spec), dryRun="All")
            return made.code == 201 and made.body["spec"].get("fresh") == "a"

        api.eventually(path, keeps)
    api.gone(f"{DEFINITIONS}/gadgets.{GROUP}")


def test_a_second_version_shows_the_same_objects(api: Api, unique: str, namespace: str) -> None:
    body = definition("gadgets", "Gadget")
    (version,) = body["spec"]["versions"]
    body["spec"]["versions"].append({**version, "name": "v2", "storage": False})
    api.post(DEFINITIONS, body).ok()
    try:
        gadgets = Widgets(api, "gadgets", "Gadget")
        second = gadgets.path(namespace).replace("/v1/", "/v2/")
        api.eventually(second, lambda answer: answer.code == 200)
        api.eventually(gadgets.path(namespace), lambda answer: answer.code == 200)
        made = gadgets.create(namespace, unique, {"text": "a"})
        other = api.get(f"{second}/{unique}").ok()
        assert other["apiVersion"] == f"{GROUP}/v2"
        assert other["spec"] == made["spec"]
        assert other["metadata"]["uid"] == made["metadata"]["uid"]
    finally:
        api.delete(f"{DEFINITIONS}/gadgets.{GROUP}")
        api.gone(f"{DEFINITIONS}/gadgets.{GROUP}")


def test_definitions_that_are_wrong(api: Api) -> None:
    body = definition("gadgets", "Gadget")
    answer = api.post(DEFINITIONS, {**body, "metadata": {"name": "other.example.com"}})
    assert answer.summary == (
        422,
        "Invalid",
        'CustomResourceDefinition.apiextensions.k8s.io "other.example.com" is invalid: metadata.name: Invalid value: "other.example.com": '
        'must be spec.names.plural+"."+spec.group',
    )
    answer = api.post(DEFINITIONS, definition("gadgets", "Gadget", storage=False))
    assert answer.code == 422
    assert "must have exactly one version marked as storage version" in answer.body["message"]


@pytest.mark.parametrize("verb", ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"])
def test_discovery_names_the_resource_and_its_verbs(api: Api, widgets: Widgets, verb: str) -> None:
    body = api.get(f"/apis/{GROUP}/v1").ok()
    (found,) = [item for item in body["resources"] if item["name"] == "widgets"]
    assert verb in found["verbs"]
    assert (found["kind"], found["namespaced"], found["singularName"], found["shortNames"]) == ("Widget", True, "widget", ["widx"])
    names = {item["name"] for item in body["resources"]}
    assert {"widgets/status", "widgets/scale"} <= names


def test_a_group_is_found(api: Api, widgets: Widgets) -> None:
    body = api.get("/apis").ok()
    (group,) = [item for item in body["groups"] if item["name"] == GROUP]
    assert group["preferredVersion"] == {"groupVersion": f"{GROUP}/v1", "version": "v1"}
    assert api.get(f"/apis/{GROUP}").ok()["name"] == GROUP
