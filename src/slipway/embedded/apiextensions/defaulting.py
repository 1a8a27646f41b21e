"""Defaulting by a structural schema, and what happens to nulls before it.

A null where the schema is not nullable counts as absent: it becomes the default, or goes where there is none.
"""

from __future__ import annotations

import copy
from typing import Any

Schema = dict[str, Any]


def drop_nulls(value: Any, schema: Schema | None) -> None:
    """Take out nulls that are neither allowed nor replaced by a default."""
    if isinstance(value, dict):
        for key in list(value):
            child = _field(schema, key)
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
            child_schema = _field(schema, key)
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


def _field(schema: Schema | None, key: str) -> Schema | None:
    if schema is None:
        return None
    properties: dict[str, Schema] = schema.get("properties") or {}
    if key in properties:
        return properties[key]
    additional = schema.get("additionalProperties")
    return additional if isinstance(additional, dict) else None
