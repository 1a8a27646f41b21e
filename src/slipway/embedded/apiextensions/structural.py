"""What a structural schema does to an object besides validating it: pruning, defaulting, and lists that are sets or maps.

Pruning takes out what the schema does not know, and reports it; ``x-kubernetes-preserve-unknown-fields`` keeps what is not known below
it, while fields that are known are pruned by their own schemas all the same, and an embedded resource keeps its apiVersion, kind and
metadata.  A null where the schema is not nullable counts as absent: it becomes the default, or goes where there is none.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.embedded.errors import FieldError

if TYPE_CHECKING:
    from collections.abc import Iterator

Schema = dict[str, Any]

META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


def prune(value: Any, schema: Schema) -> list[str]:
    """Take out what the schema does not know; the paths of what went, sorted."""
    unknown: list[str] = []
    _prune(value, {**schema, "x-kubernetes-embedded-resource": True}, "", unknown)
    return sorted(unknown)


def _prune(value: Any, schema: Schema | None, path: str, unknown: list[str]) -> None:
    if schema is not None and schema.get("x-kubernetes-preserve-unknown-fields"):
        _descend(value, schema, path, unknown)
    elif isinstance(value, dict):
        for key in list(value):
            if schema is not None and key in META_FIELDS and schema.get("x-kubernetes-embedded-resource"):
                continue
            known, child = _known(schema, key)
            if known:
                _prune(value[key], child, _child(path, key), unknown)
            else:
                if path or key not in META_FIELDS:
                    unknown.append(_child(path, key))
                del value[key]
    elif isinstance(value, list):
        items = None if schema is None else schema.get("items")
        for index, item in enumerate(value):
            if isinstance(item, (dict, list)):
                _prune(item, items, f"{path}[{index}]", unknown)


def _descend(value: Any, schema: Schema, path: str, unknown: list[str]) -> None:
    """Below a schema that preserves: only what has a schema of its own is pruned."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in META_FIELDS and schema.get("x-kubernetes-embedded-resource"):
                continue
            known, child = _known(schema, key)
            if known:
                _prune(item, child, _child(path, key), unknown)
    elif isinstance(value, list) and isinstance(items := schema.get("items"), dict):
        for index, item in enumerate(value):
            _descend(item, items, f"{path}[{index}]", unknown)


def _known(schema: Schema | None, key: str) -> tuple[bool, Schema | None]:
    """Whether a key is known, and its schema; ``additionalProperties: true`` knows the key and nothing inside."""
    if schema is None:
        return False, None
    properties: dict[str, Schema] = schema.get("properties") or {}
    if key in properties:
        return True, properties[key]
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        return True, additional
    return bool(additional), None


def _child(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def drop_nulls(value: Any, schema: Schema | None) -> None:
    """Take out nulls that are neither allowed nor replaced by a default."""
    if isinstance(value, dict):
        for key in list(value):
            child = _schema_of(schema, key)
            if value[key] is None and child is not None and not child.get("nullable") and child.get("default") is None:
                del value[key]
            elif isinstance(value[key], (dict, list)):
                drop_nulls(value[key], child)
    elif isinstance(value, list):
        items = None if schema is None else schema.get("items")
        for item in value:
            if isinstance(item, (dict, list)):
                drop_nulls(item, items)


def default(value: Any, schema: Schema | None) -> None:
    """Fill in the defaults, from the outside in: a default object gets the defaults of its own fields."""
    if schema is None:
        return
    if isinstance(value, dict):
        properties: dict[str, Schema] = schema.get("properties") or {}
        for key, child in properties.items():
            if child.get("default") is not None and (key not in value or _is_stray_null(value[key], child)):
                value[key] = copy.deepcopy(child["default"])
        for key in value:
            child_schema = _schema_of(schema, key)
            if child_schema is None:
                continue
            if key not in properties and _is_stray_null(value[key], child_schema):
                value[key] = copy.deepcopy(child_schema.get("default"))
            default(value[key], child_schema)
    elif isinstance(value, list) and isinstance(items := schema.get("items"), dict):
        for index, item in enumerate(value):
            if _is_stray_null(item, items):
                value[index] = copy.deepcopy(items.get("default"))
            default(value[index], items)


def _is_stray_null(value: Any, schema: Schema) -> bool:
    return value is None and not schema.get("nullable")


def _schema_of(schema: Schema | None, key: str) -> Schema | None:
    if schema is None:
        return None
    properties: dict[str, Schema] = schema.get("properties") or {}
    if key in properties:
        return properties[key]
    additional = schema.get("additionalProperties")
    return additional if isinstance(additional, dict) else None


def repeated(value: Any, schema: Schema | None, path: str = "") -> Iterator[FieldError]:
    """Every second occurrence; a third of the same is not reported again."""
    if schema is None:
        return
    if isinstance(value, dict):
        properties: dict[str, Schema] = schema.get("properties") or {}
        additional = schema.get("additionalProperties")
        for key, item in value.items():
            if not isinstance(item, (dict, list)):
                continue
            if key in properties:
                yield from repeated(item, properties[key], f"{path}.{key}" if path else key)
            elif isinstance(additional, dict):
                yield from repeated(item, additional, f"{path}[{key}]")
    elif isinstance(value, list):
        list_type = schema.get("x-kubernetes-list-type")
        if list_type == "set":
            yield from (FieldError.duplicate(f"{path}[{index}]", value[index]) for index in _again(value))
        elif list_type == "map":
            yield from _repeated_keys(value, schema.get("x-kubernetes-list-map-keys") or [], path)
        for index, item in enumerate(value):
            yield from repeated(item, schema.get("items"), f"{path}[{index}]")


def _repeated_keys(items: list[Any], keys: list[str], path: str) -> Iterator[FieldError]:
    for index, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            yield FieldError.invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")
            return
    identities = [{key: item[key] for key in keys if key in item} if item is not None else {} for item in items]
    for index in _again(identities):
        yield FieldError.duplicate(f"{path}[{index}]", identities[index])


def _again(items: list[Any]) -> list[int]:
    seen: dict[bytes, int] = {}
    repeated = []
    for index, item in enumerate(items):
        identity = msgspec.json.encode(item, order="deterministic")
        seen[identity] = seen.get(identity, 0) + 1
        if seen[identity] == 2:
            repeated.append(index)
    return repeated
