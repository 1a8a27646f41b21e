"""Pruning: what a structural schema does not know is taken out of an object, and reported.

``x-kubernetes-preserve-unknown-fields`` keeps what is not known below it; fields that are known are pruned by their own schemas
all the same.  An embedded resource keeps its apiVersion, kind and metadata.
"""

from __future__ import annotations

from typing import Any

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
            known, child = _field(schema, key)
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
            known, child = _field(schema, key)
            if known:
                _prune(item, child, _child(path, key), unknown)
    elif isinstance(value, list) and isinstance(items := schema.get("items"), dict):
        for index, item in enumerate(value):
            _descend(item, items, f"{path}[{index}]", unknown)


def _field(schema: Schema | None, key: str) -> tuple[bool, Schema | None]:
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
