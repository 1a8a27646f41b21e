"""Patches: from the body and its content type to the object as it should be.  Apply patches have a module of their own."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.machinery import gotypes
from slipway.api.machinery.goscalars import SCALARS, GoType
from slipway.api.machinery.patches import jsonpatch, strategicmerge
from slipway.embedded import errors
from slipway.embedded.registry import types

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.registry.resources import Resource


JSON, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"

_REFERENCE = "#/components/schemas/"
_MAX_OPERATIONS = 10_000


def accepted(resource: Resource) -> tuple[str, ...]:
    """The content types of patches that a resource takes."""
    return (JSON, MERGE, APPLY) if resource.custom is not None else (JSON, MERGE, STRATEGIC, APPLY)


def decode(content_type: str, body: bytes) -> Any:
    """The patch in a body, which is JSON."""
    try:
        patch = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise errors.bad_request(f"error decoding patch: {error}") from None
    if content_type == JSON and not isinstance(patch, list):
        word = {dict: "object", str: "string", bool: "bool"}.get(type(patch), "number")
        text = f"error decoding patch: json: cannot unmarshal {word} into Go value of type []handlers.jsonPatchOp"
        raise errors.bad_request(text)
    if content_type == JSON and len(patch) > _MAX_OPERATIONS:
        raise errors.StatusError(
            413,
            "RequestEntityTooLarge",
            f"Request entity too large: The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}, got {len(patch)}",
        )
    return patch


def apply(resource: Resource, content_type: str, patch: Any, live: Manifest) -> Manifest:
    """The object after a patch; ``live`` stays as it is."""
    try:
        if content_type == JSON:
            result = jsonpatch.apply(live, patch)
        elif content_type == MERGE:
            result = jsonpatch.merge(live, patch)
        else:
            result = strategicmerge.apply_to(live, patch, _struct_of(resource))
    except jsonpatch.PatchError as error:
        if content_type == JSON and isinstance(patch, list):
            raise errors.StatusError(422, "Invalid", "the server rejected our request due to an error in our request", {}) from None
        raise errors.bad_request(error.message) from None
    if not isinstance(result, dict):
        raise errors.bad_request("the patch does not result in an object")
    return result


def _struct_of(resource: Resource) -> GoType:
    name = types.definition_name(resource.group, resource.version, resource.kind)
    if not name:
        raise errors.unsupported_media_type(accepted(resource))
    return _struct(name)


@cache
def _struct(name: str) -> _Struct:
    return _Struct(name)


class _Struct(gotypes.Struct):
    """A Go type as its OpenAPI definition tells it: the fields, and how their lists merge."""

    def __init__(self, name: str) -> None:
        super().__init__("", name.rpartition(".")[2], 0)
        self._definition = types.definitions()[name]

    def _read_fields(self) -> list[tuple[str, gotypes.Field]]:
        return [(name, _field(name, schema)) for name, schema in (self._definition.get("properties") or {}).items()]


def _field(name: str, schema: Manifest) -> gotypes.Field:
    tags = [f"patch={schema['x-kubernetes-patch-strategy']}"] if "x-kubernetes-patch-strategy" in schema else []
    if "x-kubernetes-patch-merge-key" in schema:
        tags.append(f"key={schema['x-kubernetes-patch-merge-key']}")
    return gotypes.Field(name, _type(schema), tags)


def _type(schema: Manifest) -> GoType:
    reference = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf") or () if "$ref" in part), "")
    if reference:
        name = reference.removeprefix(_REFERENCE)
        # Times, quantities and the like are definitions too, and have no fields.
        return _struct(name) if "properties" in types.definitions().get(name, {}) else SCALARS["string"]
    if schema.get("type") == "array":
        return gotypes.Slice(_type(schema.get("items") or {}))
    if schema.get("type") == "object":
        return gotypes.Map(_type(schema.get("additionalProperties") or {}))
    return SCALARS["string"]
