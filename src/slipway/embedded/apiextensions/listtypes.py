"""Lists that are sets or maps (``x-kubernetes-list-type``) hold no two equal elements or keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from slipway.embedded.fielderrors import FieldError, duplicate, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

Schema = dict[str, Any]


def validate(value: Any, schema: Schema | None, path: str = "") -> Iterator[FieldError]:
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
                yield from validate(item, properties[key], f"{path}.{key}" if path else key)
            elif isinstance(additional, dict):
                yield from validate(item, additional, f"{path}[{key}]")
    elif isinstance(value, list):
        list_type = schema.get("x-kubernetes-list-type")
        if list_type == "set":
            yield from (duplicate(f"{path}[{index}]", value[index]) for index in _repeated(value))
        elif list_type == "map":
            yield from _validate_map(value, schema.get("x-kubernetes-list-map-keys") or [], path)
        for index, item in enumerate(value):
            yield from validate(item, schema.get("items"), f"{path}[{index}]")


def _validate_map(items: list[Any], keys: list[str], path: str) -> Iterator[FieldError]:
    for index, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            yield invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")
            return
    identities = [{key: item[key] for key in keys if key in item} if item is not None else {} for item in items]
    for index in _repeated(identities):
        yield duplicate(f"{path}[{index}]", identities[index])


def _repeated(items: list[Any]) -> list[int]:
    seen: dict[bytes, int] = {}
    repeated = []
    for index, item in enumerate(items):
        identity = msgspec.json.encode(item, order="deterministic")
        seen[identity] = seen.get(identity, 0) + 1
        if seen[identity] == 2:
            repeated.append(index)
    return repeated
