"""The OpenAPI documents that kubectl reads: to explain kinds, to know that the server validates fields, and to build patches.

``/openapi/v3`` names one document for every group and version; ``/openapi/v2`` is one small document for clients that know no
other.  Built-in kinds come from the table of :mod:`slipway.embedded.registry.types`, which has no descriptions; custom resources from
their CustomResourceDefinitions.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.embedded.registry import types

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.registry.resources import Resource


_SCHEMAS = "#/components/schemas/"
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
_PATCH = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch"
_STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"


def index(resources: Iterable[Resource]) -> Manifest:
    """What ``/openapi/v3`` answers: where each document is, with a hash of its contents in the address."""
    versions: dict[tuple[str, str], list[Resource]] = {}
    for resource in resources:
        versions.setdefault((resource.group, resource.version), []).append(resource)
    paths = {}
    for (group, version), members in versions.items():
        path = f"apis/{group}/{version}" if group else f"api/{version}"
        facts = [(member.plural, id(member.custom.schema) if member.custom is not None else 0) for member in members]
        digest = hashlib.sha256(repr(facts).encode()).hexdigest().upper()
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


def v3_document(resources: Iterable[Resource], server_version: str) -> Manifest:
    """The document of one group and version, whose resources these are."""
    paths: Manifest = {}
    schemas: Manifest = {}
    for resource in resources:
        name, schema = _definition(resource)
        schemas[name] = schema
        paths |= _paths(resource, name)
    schemas |= _reached([*schemas.values(), *({"$ref": f"{_SCHEMAS}{name}"} for name in (_DELETE_OPTIONS, _PATCH, _STATUS))])
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": server_version},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def v2_document(resources: Iterable[Resource], server_version: str) -> Manifest:
    """One document for all kinds, in the older form: the definitions and, for every kind, where patches say what they take."""
    definitions: Manifest = {}
    paths: Manifest = {}
    for resource in resources:
        name, schema = _definition(resource)
        definitions[name] = schema
        operation = {
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": _kind(resource),
            "consumes": list(_PATCH_TYPES),
            "parameters": [{"name": parameter, "in": "query", "type": "string"} for parameter in _WRITE_PARAMETERS],
            "responses": {"200": {"description": "OK", "schema": {"$ref": f"#/definitions/{name}"}}},
        }
        paths[_collection_path(resource) + "/{name}"] = {"patch": operation}
    definitions |= _reached(definitions.values())
    document = {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": server_version},
        "paths": paths,
        "definitions": definitions,
    }
    written: Manifest = msgspec.json.decode(msgspec.json.encode(document).replace(_SCHEMAS.encode(), b"#/definitions/"))
    return written


def _definition(resource: Resource) -> tuple[str, Manifest]:
    """The name and the schema of a kind."""
    if resource.custom is None:
        name = types.definition_name(resource.group, resource.version, resource.kind)
        if name:
            return name, types.definitions()[name]
    name = ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])
    schema = resource.custom.schema.published if resource.custom is not None else {"type": "object"}
    return name, {**schema, "x-kubernetes-group-version-kind": [_kind(resource)]}


def _kind(resource: Resource) -> Manifest:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _collection_path(resource: Resource) -> str:
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    return f"{root}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"


def _paths(resource: Resource, definition: str) -> Manifest:
    collection = _collection_path(resource)
    verbs = set(resource.verbs)
    found: Manifest = {
        collection: _operations(resource, definition, {"list": "get", "create": "post", "deletecollection": "delete"}, verbs)
    }
    one = {"get": "get", "update": "put", "patch": "patch", "delete": "delete"}
    if verbs & one.keys():
        found[f"{collection}/{{name}}"] = _operations(resource, definition, one, verbs)
    if resource.has_status:
        writes = {"get": "get", "update": "put", "patch": "patch"}
        found[f"{collection}/{{name}}/status"] = _operations(resource, definition, writes, set(writes))
    return found


def _operations(resource: Resource, definition: str, methods: dict[str, str], verbs: set[str]) -> Manifest:
    """The operations of one path, by their HTTP method."""
    reference = {"$ref": f"{_SCHEMAS}{definition}"}
    operations: Manifest = {}
    for verb, method in methods.items():
        if verb not in verbs:
            continue
        operation: Manifest = {
            "x-kubernetes-action": {"create": "post", "update": "put"}.get(verb, verb),
            "x-kubernetes-group-version-kind": _kind(resource),
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}},
        }
        if verb in ("create", "update", "patch"):
            parameters = (*_WRITE_PARAMETERS, "force") if verb == "patch" else _WRITE_PARAMETERS
            operation["parameters"] = [_parameter(name) for name in parameters]
            types: tuple[str, ...] = _PATCH_TYPES if verb == "patch" else ("application/json",)
            if resource.custom is not None:
                types = tuple(type_ for type_ in types if "strategic" not in type_)
            schema = {"$ref": f"{_SCHEMAS}{_PATCH}"} if verb == "patch" else reference
            operation["requestBody"] = {"content": {type_: {"schema": schema} for type_ in types}}
        operations[method] = operation
    return operations


def _parameter(name: str) -> Manifest:
    return {"name": name, "in": "query", "schema": {"type": "boolean" if name == "force" else "string"}}


def _reached(schemas: Iterable[Manifest]) -> Manifest:
    """Every definition that the schemas lead to."""
    known = types.definitions()
    found: Manifest = {}
    waiting = [name for schema in schemas for name in _references(schema)]
    while waiting:
        name = waiting.pop()
        if name not in found and name in known:
            found[name] = known[name]
            waiting += _references(known[name])
    return found


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            if name == "$ref" and isinstance(item, str):
                yield item.removeprefix(_SCHEMAS)
            else:
                yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)
