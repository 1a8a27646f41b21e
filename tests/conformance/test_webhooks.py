"""Admission webhooks: in which version an object is shown to them, and what of it when it is written through its scale."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conformance.api import MERGE, Api
from conformance.gauges import PLURAL, Asked, gauge, kind_of, resource_of
from conformance.widgets import GROUP


def test_an_object_is_shown_in_the_version_that_a_rule_names(api: Api, asked: Asked, gauges: Callable[..., str], unique: str) -> None:
    with asked.about(PLURAL) as seen:
        api.post(gauges("v1"), gauge("v1", unique, size=1)).ok()
        api.patch(gauges("v1", unique), {"spec": {"size": 2}}, MERGE).ok()
        api.delete(gauges("v1", unique)).ok()
    assert [each["operation"] for each in seen] == ["CREATE", "UPDATE", "DELETE"]
    widths = [[(each[part] or {"spec": {}})["spec"].get("width") for part in ("oldObject", "object")] for each in seen]
    assert widths == [[None, 1], [1, 2], [2, None]]
    for each in seen:
        assert (each["kind"], each["resource"]) == (kind_of("v2"), resource_of("v2"))
        assert (each["requestKind"], each["requestResource"]) == (kind_of("v1"), resource_of("v1"))


def test_what_a_webhook_changes_in_another_version_is_converted_back(
    api: Api, asked: Asked, gauges: Callable[..., str], unique: str
) -> None:
    asked.patches({"op": "replace", "path": "/spec/width", "value": 7}, {"op": "add", "path": "/spec/unit", "value": "mm"})
    with asked.about(PLURAL, kind="mutating"):
        made = api.post(gauges("v1"), gauge("v1", unique, size=1)).ok()
    assert (made["apiVersion"], made["spec"]) == (f"{GROUP}/v1", {"replicas": 1, "size": 7, "unit": "mm"})
    assert api.get(gauges("v1", unique)).ok()["spec"]["size"] == 7


def test_a_refusal_in_another_version_refuses(api: Api, asked: Asked, gauges: Callable[..., str], unique: str) -> None:
    asked.answers({"allowed": False, "status": {"message": "too wide", "code": 422, "reason": "Invalid"}})
    with asked.about(PLURAL):
        answer = api.post(gauges("v1"), gauge("v1", unique, size=1))
    assert answer.summary == (422, "Invalid", f'admission webhook "asked.{GROUP}" denied the request: too wide')


def test_with_the_policy_exact_other_versions_are_not_shown(api: Api, asked: Asked, gauges: Callable[..., str], unique: str) -> None:
    with asked.about(PLURAL, matchPolicy="Exact") as seen:
        api.post(gauges("v1"), gauge("v1", unique, size=1)).ok()
        api.patch(gauges("v2", unique), {"spec": {"width": 2}}, MERGE).ok()
    assert [each["object"]["apiVersion"] for each in seen] == [f"{GROUP}/v2"]


def test_the_version_of_the_request_comes_before_others(api: Api, asked: Asked, gauges: Callable[..., str], unique: str) -> None:
    with asked.about(PLURAL, versions=("v2", "v1")) as seen:
        api.post(gauges("v1"), gauge("v1", unique, size=1)).ok()
    assert [each["object"]["apiVersion"] for each in seen] == [f"{GROUP}/v1"]


def test_a_status_is_shown_in_the_version_that_a_rule_names(api: Api, asked: Asked, gauges: Callable[..., str], unique: str) -> None:
    api.post(gauges("v1"), gauge("v1", unique, size=3)).ok()
    with asked.about(f"{PLURAL}/status") as seen:
        api.patch(gauges("v1", unique, "status"), {"status": {"replicas": 1}}, MERGE).ok()
    (review,) = seen
    assert (review["subResource"], review["kind"]) == ("status", kind_of("v2"))
    assert (review["object"]["spec"]["width"], review["object"]["status"]) == (3, {"replicas": 1})


def test_a_scale_is_no_business_of_who_judges_objects(api: Api, asked: Asked, gauges: Callable[..., str], unique: str) -> None:
    api.post(gauges("v1"), gauge("v1", unique)).ok()
    with asked.about(PLURAL, versions=("v1", "v2")) as seen:
        api.patch(gauges("v1", unique, "scale"), {"spec": {"replicas": 2}}, MERGE).ok()
    assert seen == []


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_scale_is_shown_as_a_scale(api: Api, asked: Asked, gauges: Callable[..., str], unique: str, version: str) -> None:
    api.post(gauges("v1"), gauge("v1", unique)).ok()
    with asked.about(f"{PLURAL}/scale", versions=(version,)) as seen:
        api.patch(gauges("v1", unique, "scale"), {"spec": {"replicas": 2}}, MERGE).ok()
    (review,) = seen
    scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert (review["operation"], review["subResource"], review["name"]) == ("UPDATE", "scale", unique)
    assert (review["kind"], review["requestKind"], review["resource"]) == (scale, scale, resource_of(version))
    assert [review[part]["spec"] for part in ("oldObject", "object")] == [{"replicas": 1}, {"replicas": 2}]
    assert (review["object"]["apiVersion"], review["object"]["kind"]) == ("autoscaling/v1", "Scale")


def test_what_a_webhook_makes_of_a_scale_is_what_is_scaled_to(api: Api, asked: Asked, gauges: Callable[..., str], unique: str) -> None:
    api.post(gauges("v1"), gauge("v1", unique)).ok()
    asked.patches({"op": "replace", "path": "/spec/replicas", "value": 5})
    with asked.about(f"{PLURAL}/scale", kind="mutating", versions=("v1",)):
        assert api.patch(gauges("v1", unique, "scale"), {"spec": {"replicas": 2}}, MERGE).ok()["spec"] == {"replicas": 5}
    assert api.get(gauges("v1", unique)).ok()["spec"]["replicas"] == 5
