"""The OpenAPI documents, as kubectl reads them."""

from __future__ import annotations

from typing import Any

import msgspec

from slipway.embedded.apiextensions.resources import CustomVersion
from slipway.embedded.apiextensions.schema import StructuralSchema
from slipway.embedded.endpoints import openapi
from slipway.embedded.registry import types
from slipway.embedded.registry.resources import Resource, built_in

WIDGETS = Resource(
    group="example.com",
    version="v1",
    plural="widgets",
    kind="Widget",
    namespaced=True,
    subresources=("status",),
    bucket="widgets.example.com",
    storage_version="example.com/v1",
    custom=CustomVersion(
        definition="widgets.example.com",
        schema=StructuralSchema({"type": "object", "properties": {"spec": {"type": "object", "description": "what is wanted"}}}),
        conversion={"strategy": "None"},
    ),
)


def of(group: str, version: str) -> list[Resource]:
    return [resource for resource in built_in() if (resource.group, resource.version) == (group, version)]


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*(references(item) for item in value.values()))
    return set().union(*(references(item) for item in value)) if isinstance(value, list) else set()


def test_every_version_has_its_document() -> None:
    paths = openapi.index([*built_in(), WIDGETS])["paths"]
    assert paths["api/v1"]["serverRelativeURL"].startswith("/openapi/v3/api/v1?hash=")
    assert "apis/apps/v1" in paths
    assert "apis/example.com/v1" in paths


def test_a_document_stands_alone() -> None:
    for group, version in {(resource.group, resource.version) for resource in built_in()}:
        document = openapi.v3_document(of(group, version), "v1.35.4")
        missing = {
            name for name in references(document) if name.removeprefix("#/components/schemas/") not in document["components"]["schemas"]
        }
        assert missing == set()


def test_every_built_in_resource_has_its_type() -> None:
    unknown = [resource.kind for resource in built_in() if types.definition(resource.group, resource.version, resource.kind) is None]
    assert unknown == []


def test_a_patch_says_that_fields_are_validated_and_for_which_kind() -> None:
    document = openapi.v3_document(of("", "v1"), "v1.35.4")
    patch = document["paths"]["/api/v1/namespaces/{namespace}/secrets/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Secret"}
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]
    assert "/api/v1/namespaces/{name}/status" in document["paths"]


def test_a_custom_resource_shows_its_schema_with_metadata() -> None:
    document = openapi.v3_document([WIDGETS], "v1.35.4")
    schema = document["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["properties"]["spec"]["description"] == "what is wanted"
    assert schema["properties"]["metadata"]["$ref"].endswith("meta.v1.ObjectMeta")
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "example.com", "version": "v1", "kind": "Widget"}]
    assert "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/status" in document["paths"]
    content = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"]["requestBody"]["content"]
    assert "application/strategic-merge-patch+json" not in content


def test_the_older_document_points_into_itself() -> None:
    document = openapi.v2_document([*of("", "v1"), WIDGETS], "v1.35.4")
    assert {name.removeprefix("#/definitions/") for name in references(document)} <= document["definitions"].keys()
    assert msgspec.json.encode(document)


def test_go_leaves_out_what_its_types_do_not_have() -> None:
    manifest: Any = {"metadata": {"name": "x", "labels": None}, "data": {"a": "YQ=="}, "nope": 1, "immutable": None}
    secret = types.definition("", "v1", "Secret")
    assert secret is not None
    assert types.prune(manifest, secret) == ["nope"]
    assert manifest == {"metadata": {"name": "x"}, "data": {"a": "YQ=="}}


def test_go_does_not_tell_an_empty_list_from_none() -> None:
    account = types.definition("", "v1", "ServiceAccount")
    pod = types.definition("", "v1", "Pod")
    assert account is not None
    assert pod is not None
    manifest: Any = {"metadata": {"name": "x", "labels": {}, "finalizers": []}, "secrets": []}
    types.prune(manifest, account)
    assert manifest == {"metadata": {"name": "x"}}
    manifest = {"metadata": {"name": "x"}, "spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    types.prune(manifest, pod)
    assert manifest["spec"] == {"volumes": [{"name": "v", "emptyDir": {}}]}


def test_go_writes_structs_that_nobody_set() -> None:
    namespace = types.definition("", "v1", "Namespace")
    assert namespace is not None
    assert types.complete({"metadata": {"name": "x"}}, namespace) == {"metadata": {"name": "x"}, "spec": {}, "status": {}}
