"""The types of the kinds that Kubernetes itself serves, as its OpenAPI documents tell them.

``builtins.json`` is made by tests/oracles/openapi_record.py from Kubernetes 1.35; it says which fields there are, which lists
are maps or sets, and which values Go writes where nothing is set.  A document that Go could not decode into its type is told so in Go's
words; a null in a list or a map becomes the zero value of its type, as in Go.
"""

from __future__ import annotations

import copy
import functools
import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from slipway.embedded.fieldmanager.types import Type

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.registry.resources import Resource

Schema = dict[str, Any]
_Value = TypeVar("_Value")

_TABLE = Path(__file__).with_name("builtins.json")
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_WORDS = {bool: "bool", str: "string", int: "number", float: "number", dict: "object", list: "array"}
_EXPECTED = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "object": (dict,), "array": (list,)}
_ZERO: dict[str, Any] = {"object": {}, "string": "", "integer": 0, "number": 0, "boolean": False, "array": []}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)\Z")
_GO_TYPES = {"string": "string", "boolean": "bool", "object": "map[string]string", "array": "[]string"}
_DEEPEST = 200
_TOO_DEEP = f"exceeded max depth: this server takes documents of at most {_DEEPEST} levels"
_SHARED = "io.k8s.apimachinery."
"""Types that every group has under its own name (DeleteOptions, WatchEvent)."""


@functools.cache
def definitions() -> dict[str, Schema]:
    """Every definition by its name (``io.k8s.api.core.v1.Pod``)."""
    table: dict[str, Schema] = msgspec.json.decode(_TABLE.read_bytes())
    return table


@functools.cache
def _names() -> dict[tuple[str, str, str], str]:
    return {
        (kind["group"], kind["version"], kind["kind"]): name
        for name, schema in definitions().items()
        if not name.startswith(_SHARED)
        for kind in schema.get("x-kubernetes-group-version-kind", [])
    }


def definition_name(group: str, version: str, kind: str) -> str:
    """The definition of a kind; empty where it is not a built-in one."""
    return _names().get((group, version, kind), "")


@functools.cache
def definition(group: str, version: str, kind: str) -> Type | None:
    """The type of a built-in kind, for apply and for unknown fields."""
    name = definition_name(group, version, kind)
    return Type(definitions()[name], definitions(), is_go=True) if name else None


def of(resource: Resource) -> Type | None:
    """The type by which the fields of a resource are owned and merged."""
    if resource.custom is not None:
        return resource.custom.schema.type
    return definition(resource.group, resource.version, resource.kind)


@functools.cache
def object_meta() -> Type:
    """The type of the metadata of custom resources."""
    return Type({"$ref": f"#/components/schemas/{_META}ObjectMeta"}, definitions())


@functools.cache
def delete_options() -> Type:
    return Type({"$ref": f"#/components/schemas/{_META}DeleteOptions"}, definitions())


def reset_fields(resource: Resource, subresource: str) -> tuple[str, ...]:
    """The top-level fields that an endpoint leaves as they are."""
    if subresource:
        return ("spec",)
    return ("status",) if resource.has_status else ()


def mismatch_of(resource: Resource, manifest: Manifest) -> str:
    """What Go says of an object that it cannot decode; of a custom resource, it has a type for the metadata alone."""
    if _is_too_deep(manifest):
        return _TOO_DEEP
    type_ = of(resource) if resource.custom is None else None
    if type_ is not None:
        return mismatch(manifest, type_, resource.kind)
    return mismatch(manifest.get("metadata"), object_meta(), "ObjectMeta")


def decode(body: bytes) -> Any:
    """JSON as strangers write it; ValueError with Go's words, or near them, where it cannot be read."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    return shallow(value) if body.count(b"{") + body.count(b"[") > _DEEPEST else value


def shallow(value: _Value) -> _Value:
    """The value; ValueError where it has more levels than what walks through it can take."""
    if _is_too_deep(value):
        raise ValueError(_TOO_DEEP)
    return value


def _is_too_deep(value: Any) -> bool:
    level = [value] if type(value) in (dict, list) else []
    for _ in range(_DEEPEST + 1):
        level = [item for parent in level for item in (parent.values() if type(parent) is dict else parent) if type(item) in (dict, list)]
        if not level:
            return False
    return True


def mismatch_of_kind(group: str, version: str, kind: str, manifest: Manifest) -> str:
    """The same for what is sent and not stored: sub-resources and reviews."""
    type_ = definition(group, version, kind)
    return "" if type_ is None else mismatch(manifest, type_, kind)


def completed(resource: Resource, manifest: Manifest) -> Manifest:
    """An object of a built-in kind as Go writes it; one of a custom kind as it is."""
    type_ = of(resource) if resource.custom is None else None
    return manifest if type_ is None else complete(manifest, type_)


def prune(manifest: Manifest, type_: Type) -> list[str]:
    """Take out what Go's type does not have, and what it holds as nothing, as decoding into it does; the paths of the former."""
    unknown: list[str] = []
    _prune(manifest, type_, "", unknown)
    return sorted(unknown)


def complete(value: Any, type_: Type) -> Any:
    """A copy with the values that Go writes for fields that are not set: structs that are not pointers, required scalars."""
    if isinstance(value, dict) and type_.map is not None:
        completed = {name: complete(item, type_.map.field(name)) if type_.map.knows(name) else item for name, item in value.items()}
        for name, field in type_.map.fields.items():
            if name not in completed and field.default is not None:
                completed[name] = complete(copy.deepcopy(field.default), field)
            elif name in type_.required and field.is_collection and not completed.get(name):
                completed[name] = None
        return completed
    if isinstance(value, list) and type_.list is not None:
        element = type_.list.element
        return [complete(item, element) for item in value]
    return value


def _is_nothing(value: Any, type_: Type, name: str) -> bool:
    """Whether Go would leave the field out: it has no null, and an empty list or map is as good as none."""
    if type_.map is None or name not in type_.map.fields:
        return False
    return value is None or (not value and type_.map.fields[name].is_collection)


def _prune(value: Any, type_: Type, path: str, unknown: list[str]) -> None:
    if isinstance(value, dict) and type_.map is not None:
        for name in list(value):
            child = f"{path}.{name}" if path else name
            if not type_.map.knows(name):
                unknown.append(child)
                del value[name]
            elif _is_nothing(value[name], type_, name):
                del value[name]
            elif isinstance(value[name], (dict, list)):
                _prune(value[name], type_.map.field(name), child, unknown)
    elif isinstance(value, list) and type_.list is not None:
        for index, item in enumerate(value):
            _prune(item, type_.list.element, f"{path}[{index}]", unknown)


def mismatch(value: Any, type_: Type, kind: str) -> str:
    """The first value of a wrong type, in Go's words; empty where there is none."""
    return _mismatch(value, type_, kind, ())


def _mismatch(value: Any, type_: Type, struct: str, path: tuple[str, ...]) -> str:
    wanted = type_.json_type
    if value is None or not wanted:
        return ""
    if not isinstance(value, _EXPECTED[wanted]) or (isinstance(value, bool) and wanted != "boolean"):
        # Go decodes 5 into an int-or-string, which OpenAPI calls a string.
        if type_.format in ("int-or-string", "byte") and isinstance(value, (int, str)):
            return ""
        found = "number" if isinstance(value, float) and wanted == "integer" else _WORDS[type(value)]
        if isinstance(value, float) and wanted == "integer":
            found = f"number {value}"
        into = f"field {struct}.{'.'.join(path)}" if path else "value"
        return f"json: cannot unmarshal {found} into Go struct {into} of type {_go_type(type_)}"
    if type_.format == "date-time" and isinstance(value, str) and not _is_time(value):
        return f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse "{value}" as "2006"'
    if isinstance(value, dict) and type_.map is not None:
        for name, item in value.items():
            known = name in type_.map.fields
            if not known and type_.map.element is None:
                continue
            if item is None and type_.map.element is not None:
                value[name] = copy.deepcopy(_ZERO.get(type_.map.element.json_type))
            found = _mismatch(item, type_.map.field(name), type_.name or struct, (*path, name) if known else path)
            if found:
                return found
    if isinstance(value, list) and type_.list is not None:
        for index, item in enumerate(value):
            if item is None:
                value[index] = copy.deepcopy(_ZERO.get(type_.list.element.json_type))
            found = _mismatch(item, type_.list.element, struct, path)
            if found:
                return found
    return ""


def _is_time(text: str) -> bool:
    try:
        return _TIME.match(text) is not None and datetime.fromisoformat(text) is not None
    except ValueError:
        return False


def _go_type(type_: Type) -> str:
    if type_.json_type in ("integer", "number"):
        return type_.format or "int32"
    if type_.name and type_.json_type == "object":
        return f"v1.{type_.name}"
    return _GO_TYPES.get(type_.json_type, "string")
