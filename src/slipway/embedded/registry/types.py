"""The types of the kinds that Kubernetes itself serves, as its OpenAPI documents tell them.

``data/builtins.json`` is made by tests/oracles/openapi_record.py from Kubernetes 1.35; it says which fields there are, which lists
are maps or sets, and which values Go writes where nothing is set.
"""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.embedded.fieldmanager.types import Type

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest

Schema = dict[str, Any]

_TABLE = Path(__file__).with_name("builtins.json")
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
