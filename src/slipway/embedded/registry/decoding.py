"""Whether a document could be decoded into the Go type of its kind, and what Go says where it could not.

A null in a list or a map becomes the zero value of its type, as in Go.
"""

from __future__ import annotations

import re
from copy import deepcopy
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slipway.embedded.fieldmanager.types import Type

_WORDS = {bool: "bool", str: "string", int: "number", float: "number", dict: "object", list: "array"}
_EXPECTED = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "object": (dict,), "array": (list,)}
_ZERO: dict[str, Any] = {"object": {}, "string": "", "integer": 0, "number": 0, "boolean": False, "array": []}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)\Z")
_GO_TYPES = {"string": "string", "boolean": "bool", "object": "map[string]string", "array": "[]string"}


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
                value[name] = deepcopy(_ZERO.get(type_.map.element.json_type))
            found = _mismatch(item, type_.map.field(name), type_.name or struct, (*path, name) if known else path)
            if found:
                return found
    if isinstance(value, list) and type_.list is not None:
        for index, item in enumerate(value):
            if item is None:
                value[index] = deepcopy(_ZERO.get(type_.list.element.json_type))
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
