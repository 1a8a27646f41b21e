"""Server-side apply and the tracking of field owners, on a custom type and on built-in ones."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slipway.embedded.apiextensions.schema import StructuralSchema
from slipway.embedded.errors import StatusError
from slipway.embedded.fieldmanager.apply import apply
from slipway.embedded.fieldmanager.managedfields import track
from slipway.embedded.fieldmanager.types import Type
from slipway.embedded.registry import types

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
STRING = {"type": "string"}
WIDGET = StructuralSchema(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "a": STRING,
                    "b": STRING,
                    "replicas": {"type": "integer"},
                    "atomic": {"type": "array", "items": STRING},
                    "set": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
                    "map": {"type": "object", "additionalProperties": STRING},
                    "whole": {"type": "object", "properties": {"x": STRING, "y": STRING}, "x-kubernetes-map-type": "atomic"},
                    "items": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {"type": "object", "properties": {"name": STRING, "value": STRING, "other": STRING}},
                    },
                },
            },
            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
        },
    }
).type


def widget(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "n", **metadata}}
    return made if spec is None else {**made, "spec": spec}


def applied(
    live: Any, config: Any, manager: str = "one", *, force: bool = False, type_: Type | None = WIDGET, later: int = 0
) -> dict[str, Any]:
    made = apply(copy.deepcopy(live), config, manager, force=force, type_=type_, now=NOW + timedelta(seconds=later))
    made["metadata"].setdefault("uid", "uid")
    return made


def owners(manifest: dict[str, Any]) -> dict[str, Any]:
    return {f"{entry['manager']} {entry['operation']}": entry["fieldsV1"] for entry in manifest["metadata"]["managedFields"]}


def test_the_first_apply_owns_what_it_says() -> None:
    made = applied(None, widget({"a": "1"}, labels={"l": "v"}))
    assert made["spec"] == {"a": "1"}
    assert made["metadata"]["managedFields"] == [
        {
            "manager": "one",
            "operation": "Apply",
            "apiVersion": "example.com/v1",
            "time": "2026-01-02T03:04:05Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:l": {}}}, "f:spec": {"f:a": {}}},
        }
    ]


def test_applying_the_same_again_changes_nothing() -> None:
    made = applied(None, widget({"a": "1"}))
    assert applied(made, widget({"a": "1"}), later=60) == made


def test_another_value_of_somebody_elses_field_is_a_conflict() -> None:
    made = applied(None, widget({"a": "1"}))
    with pytest.raises(StatusError) as refused:
        applied(made, widget({"a": "2"}), "two")
    assert refused.value.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Apply failed with 1 conflict: conflict with "one": .spec.a',
        "reason": "Conflict",
        "details": {"causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".spec.a"}]},
        "code": 409,
    }


def test_several_conflicts_are_listed_by_manager() -> None:
    made = applied(None, widget({"a": "1"}))
    made = applied(made, widget({"items": [{"name": "x", "value": "1"}]}), "two")
    with pytest.raises(StatusError) as refused:
        applied(made, widget({"a": "2", "items": [{"name": "x", "value": "2"}]}), "three")
    assert refused.value.message == (
        'Apply failed with 2 conflicts: conflicts with "one":\n- .spec.a\nconflicts with "two":\n- .spec.items[name="x"].value'
    )


def test_a_conflict_with_an_update_names_the_version() -> None:
    made = widget({"a": "1"})
    made["metadata"]["managedFields"] = track(None, made, "editor", WIDGET, now=NOW)
    with pytest.raises(StatusError, match=r'conflict with "editor" using example.com/v1: \.spec\.a'):
        applied(made, widget({"a": "2"}))


def test_the_same_value_is_owned_by_both() -> None:
    made = applied(None, widget({"a": "1"}))
    made = applied(made, widget({"a": "1", "b": "2"}), "two")
    assert owners(made) == {"one Apply": {"f:spec": {"f:a": {}}}, "two Apply": {"f:spec": {"f:a": {}, "f:b": {}}}}


def test_force_takes_the_field() -> None:
    made = applied(None, widget({"a": "1", "b": "1"}))
    made = applied(made, widget({"a": "2"}), "two", force=True)
    assert made["spec"] == {"a": "2", "b": "1"}
    assert owners(made) == {"one Apply": {"f:spec": {"f:b": {}}}, "two Apply": {"f:spec": {"f:a": {}}}}


def test_what_is_applied_no_more_goes() -> None:
    made = applied(
        None, widget({"a": "1", "b": "1", "items": [{"name": "x"}, {"name": "y"}], "set": ["p", "q"], "map": {"k": "v", "l": "w"}})
    )
    made = applied(made, widget({"a": "1", "items": [{"name": "y"}], "set": ["q"], "map": {"l": "w"}}))
    assert made["spec"] == {"a": "1", "items": [{"name": "y"}], "set": ["q"], "map": {"l": "w"}}


def test_what_somebody_else_owns_too_stays() -> None:
    made = applied(None, widget({"a": "1", "items": [{"name": "x", "value": "1"}]}))
    made = applied(made, widget({"a": "1", "items": [{"name": "x", "other": "2"}]}), "two")
    made = applied(made, widget({"b": "3"}))
    assert made["spec"] == {"a": "1", "b": "3", "items": [{"name": "x", "other": "2"}]}


def test_a_whole_struct_goes_with_its_last_field() -> None:
    made = applied(None, widget({"map": {"k": "v"}, "a": "1"}))
    made = applied(made, widget({"a": "1"}))
    assert made["spec"] == {"a": "1"}


def test_atomic_lists_and_maps_are_replaced_as_a_whole() -> None:
    made = applied(None, widget({"atomic": ["p", "q"], "whole": {"x": "1", "y": "2"}}))
    made = applied(made, widget({"atomic": ["r"], "whole": {"x": "1"}}))
    assert made["spec"] == {"atomic": ["r"], "whole": {"x": "1"}}
    with pytest.raises(StatusError, match=r"2 conflicts: conflicts with \"one\":\n- .spec.atomic\n- .spec.whole"):
        applied(made, widget({"atomic": ["s"], "whole": {"x": "2"}}), "two")


def test_lists_merge_by_key_in_the_applied_order() -> None:
    made = applied(None, widget({"items": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}))
    made = applied(made, widget({"items": [{"name": "c", "value": "1"}, {"name": "d"}, {"name": "a"}]}), "two")
    assert [item["name"] for item in made["spec"]["items"]] == ["b", "c", "d", "a"]
    assert {"name": "c", "value": "1"} in made["spec"]["items"]


def test_an_object_without_owners_belonged_to_whoever_made_it() -> None:
    made = applied(widget({"a": "1", "b": "1"}, uid="uid"), widget({"a": "1"}))
    assert owners(made)["one Apply"] == {"f:spec": {"f:a": {}}}
    assert owners(made)["before-first-apply Update"]["f:spec"] == {".": {}, "f:a": {}, "f:b": {}}


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(StatusError) as refused:
        applied(None, widget({"nope": 1}))
    assert refused.value.message == (
        "failed to create typed patch object (n/w; example.com/v1, Kind=Widget): .spec.nope: field not declared in schema"
    )


def test_a_list_element_without_its_key_is_refused() -> None:
    with pytest.raises(StatusError, match=r'element 0: associative list with keys has an element that omits all key fields \["name"\]'):
        applied(None, widget({"items": [{"value": "1"}]}))


def test_managed_fields_may_not_be_applied() -> None:
    with pytest.raises(StatusError) as refused:
        applied(None, widget({"a": "1"}, managedFields=[]))
    assert (refused.value.code, refused.value.message) == (400, "metadata.managedFields must be nil")


def test_an_update_takes_what_it_changes_and_no_more() -> None:
    made = applied(None, widget({"a": "1", "b": "1"}))
    new = copy.deepcopy(made)
    new["spec"]["a"] = "2"
    new["spec"]["map"] = {"k": "v"}
    new["metadata"]["managedFields"] = track(made, new, "editor", WIDGET, now=NOW)
    assert owners(new) == {
        "one Apply": {"f:spec": {"f:b": {}}},
        "editor Update": {"f:spec": {"f:a": {}, "f:map": {".": {}, "f:k": {}}}},
    }


def test_an_update_that_changes_nothing_is_nobodys() -> None:
    made = applied(None, widget({"a": "1"}))
    assert track(made, copy.deepcopy(made), "editor", WIDGET, now=NOW + timedelta(hours=1)) == made["metadata"]["managedFields"]


def test_a_removed_field_has_no_owner() -> None:
    made = applied(None, widget({"a": "1", "b": "1"}))
    new = copy.deepcopy(made)
    del new["spec"]["a"]
    new["metadata"]["managedFields"] = track(made, new, "editor", WIDGET, now=NOW)
    assert owners(new) == {"one Apply": {"f:spec": {"f:b": {}}}}


def test_the_status_has_owners_of_its_own() -> None:
    made = applied(None, widget({"a": "1"}))
    new = {**copy.deepcopy(made), "status": {"ready": True}}
    entries = track(made, new, "controller", WIDGET, now=NOW, subresource="status", reset=("spec",))
    assert entries[-1] == {
        "manager": "controller",
        "operation": "Update",
        "apiVersion": "example.com/v1",
        "time": "2026-01-02T03:04:05Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {".": {}, "f:ready": {}}},
        "subresource": "status",
    }


def test_an_empty_list_of_managed_fields_gives_them_up() -> None:
    made = applied(None, widget({"a": "1"}))
    assert track(made, {**made, "metadata": {**made["metadata"], "managedFields": []}}, "editor", WIDGET, now=NOW) == []


def test_more_than_ten_updaters_become_one_ancient_one() -> None:
    made = widget({"map": {}})
    made["metadata"]["managedFields"] = track(None, made, "maker", WIDGET, now=NOW)
    for number in range(12):
        new = copy.deepcopy(made)
        new["spec"]["map"][f"k{number}"] = "v"
        new["metadata"]["managedFields"] = track(made, new, f"m{number}", WIDGET, now=NOW + timedelta(minutes=number + 1))
        made = new
    names = [entry["manager"] for entry in made["metadata"]["managedFields"]]
    assert len(names) == 10
    assert names[0] == "ancient-changes"
    assert owners(made)["ancient-changes Update"]["f:spec"]["f:map"].keys() >= {"f:k0", "f:k1"}


def test_a_secret_is_owned_key_by_key() -> None:
    secret = types.definition("", "v1", "Secret")
    made: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "YQ=="}, "type": "Opaque"}
    entries = track(None, made, "kubectl-create", secret, now=NOW)
    assert [entry["fieldsV1"] for entry in entries] == [{"f:data": {".": {}, "f:a": {}}, "f:type": {}}]


def test_a_deployments_containers_merge_by_name() -> None:
    deployment = types.definition("apps", "v1", "Deployment")

    def config(*containers: Any, **spec: Any) -> dict[str, Any]:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": list(containers)}}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": template, **spec}}

    made = applied(None, config({"name": "main", "image": "x"}, replicas=1), type_=deployment)
    made = applied(made, config({"name": "side", "image": "y", "ports": [{"containerPort": 80}]}), "two", type_=deployment)
    assert [container["name"] for container in made["spec"]["template"]["spec"]["containers"]] == ["main", "side"]
    side = owners(made)["two Apply"]["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"side"}']
    assert side["f:ports"] == {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}}


def test_owner_references_merge_by_uid_and_finalizers_are_a_set() -> None:
    reference = {"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u1"}
    made = applied(None, widget({"a": "1"}, finalizers=["x/y"], ownerReferences=[reference]))
    made = applied(made, widget(finalizers=["p/q"], ownerReferences=[{**reference, "uid": "u2"}]), "two")
    assert made["metadata"]["finalizers"] == ["x/y", "p/q"]
    assert [item["uid"] for item in made["metadata"]["ownerReferences"]] == ["u1", "u2"]
    assert owners(made)["two Apply"]["f:metadata"]["f:finalizers"] == {'v:"p/q"': {}}


def test_kubectl_takes_over_what_it_applied_from_the_client() -> None:
    last = '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":{},"name":"w"},"spec":{"a":"1"}}\n'
    made = widget({"a": "1", "b": "1"}, annotations={"kubectl.kubernetes.io/last-applied-configuration": last}, uid="uid")
    made["metadata"]["managedFields"] = track(None, made, "kubectl-client-side-apply", WIDGET, now=NOW)
    taken = applied(made, widget({"a": "2"}), "kubectl")
    assert taken["spec"] == {"a": "2", "b": "1"}
    assert '"a":"2"' in taken["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    with pytest.raises(StatusError, match=r"\.spec\.b"):
        applied(made, widget({"b": "2"}), "kubectl")
