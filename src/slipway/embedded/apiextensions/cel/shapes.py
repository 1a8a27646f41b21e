"""What a structural schema tells about data: its type in CEL, and how to make values of it.

A part that has no type of its own (``x-kubernetes-preserve-unknown-fields``) is not there for expressions.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from slipway.embedded.apiextensions.cel import times, types
from slipway.embedded.apiextensions.cel.tokens import RESERVED
from slipway.embedded.apiextensions.cel.types import DYN, Type
from slipway.embedded.apiextensions.cel.values import EvaluationError, ListData, MapData

Schema = dict[str, Any]

_STRING: Schema = {"type": "string"}
_META: Schema = {"type": "object", "properties": {"name": _STRING, "generateName": _STRING}}
_KEYWORDS = RESERVED | {"true", "false", "null", "in"}
_ESCAPED = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_NAME = re.compile(r"[A-Za-z_./\-][A-Za-z0-9_./\-]*")
_SCALARS = {"boolean": types.BOOL, "integer": types.INT, "number": types.DOUBLE, "string": types.STRING}
_FORMATS = {"byte": types.BYTES, "duration": types.DURATION, "date": types.TIMESTAMP, "date-time": types.TIMESTAMP}


def escaped(name: str) -> str:
    """The name of a field as an expression writes it; nothing where it cannot."""
    if not _NAME.fullmatch(name):
        return ""
    if name in _KEYWORDS:
        return f"__{name}__"
    return re.sub(r"__|[./\-]", lambda found: _ESCAPED[found.group()], name)


class Shape:
    """One node of a schema."""

    def __init__(self, schema: Schema, name: str, *, is_resource: bool = False) -> None:
        if is_resource or schema.get("x-kubernetes-embedded-resource"):
            schema = with_metadata(schema)
        self.name = name
        """Of its type, in messages."""
        self.kind: str = "" if schema.get("x-kubernetes-int-or-string") else schema.get("type") or ""
        self.is_int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
        self.format: str = schema.get("format") or ""
        self.nullable = bool(schema.get("nullable"))
        self.list_type: str = schema.get("x-kubernetes-list-type") or ""
        self.keys: list[str] = schema.get("x-kubernetes-list-map-keys") or []
        self.element: Shape | None = None
        """Of a list, or of a map."""
        self.properties: dict[str, Shape] = {}
        self.fields: dict[str, tuple[str, Shape]] = {}
        """By the names that expressions use: the name in the manifest, and the shape."""
        self.names: dict[str, str] = {}
        """From names in the manifest to names in expressions."""
        self._is_plain = self.kind in ("boolean", "integer") or (self.kind == "string" and self.format not in _FORMATS)
        self.type = self._typed(schema, name)
        """None where expressions cannot see it."""

    def _typed(self, schema: Schema, name: str) -> Type | None:
        if self.is_int_or_string:
            return DYN
        if self.kind == "array":
            if not isinstance(schema.get("items"), dict):
                return None
            self.element = Shape(schema["items"], f"{name}.@idx")
            return None if self.element.type is None else types.list_of(self.element.type)
        if self.kind == "object":
            additional = schema.get("additionalProperties")
            if isinstance(additional, dict) and not schema.get("properties"):
                self.element = Shape(additional, f"{name}.@elem")
                return None if self.element.type is None else types.map_of(types.STRING, self.element.type)
            for field, child in (schema.get("properties") or {}).items():
                self._add_field(field, Shape(child, f"{name}.{field}"))
            return Type("object", name=name)
        if self.kind == "string":
            return _FORMATS.get(self.format, types.STRING)
        return _SCALARS.get(self.kind)

    def _add_field(self, name: str, shape: Shape) -> None:
        self.properties[name] = shape
        readable = escaped(name)
        if shape.type is not None and readable:
            self.fields[readable] = name, shape
            self.names[name] = readable

    def declared(self) -> dict[str, dict[str, Type]]:
        """The fields of every object type in here, by the type's name."""
        found: dict[str, dict[str, Type]] = {}
        if self.type is not None and self.type.kind == "object":
            found[self.type.name] = {name: shape.type for name, (_, shape) in self.fields.items() if shape.type is not None}
        for _, shape in self.fields.values():
            found |= shape.declared()
        return found | self.element.declared() if self.element is not None else found

    def value(self, raw: Any) -> Any:
        """A value of data."""
        if self._is_plain and raw is not None:
            return raw
        if raw is None:
            if self.nullable:
                return None
            raise EvaluationError("invalid data, got null for schema with nullable=false")
        if isinstance(raw, dict):
            return MapData(raw, self)
        if isinstance(raw, list):
            return ListData(raw, self)
        if self.kind == "number":
            return float(raw)
        return self._formatted(raw) if self.kind == "string" and self.format in _FORMATS else raw

    def _formatted(self, text: str) -> Any:
        try:
            if self.format == "byte":
                return base64.b64decode(text, validate=True)
            return times.duration(text) if self.format == "duration" else times.timestamp(text)
        except (ValueError, binascii.Error) as error:
            raise EvaluationError(f"Invalid {self.format} formatted string {text}: {error}") from None


def with_metadata(schema: Schema) -> Schema:
    """The schema of a resource, whose kind, apiVersion and names can always be read."""
    properties = schema.get("properties") or {}
    return {**schema, "properties": {**properties, "kind": _STRING, "apiVersion": _STRING, "metadata": _META}}
