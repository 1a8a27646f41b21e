"""Types of fields as server-side apply sees them: a value is a scalar, a list or a map, and lists and maps are atomic or not.

They are read from OpenAPI schemas as kube-openapi's schemaconv reads them, and looked into only as far as a value goes, since
definitions may contain themselves.
"""

from __future__ import annotations

import functools
from typing import Any

Schema = dict[str, Any]

_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"


class ListType:
    """A list: atomic, a set (no keys), or a map by keys."""

    __slots__ = ("element", "is_atomic", "keys")

    def __init__(self, element: Type, *, is_atomic: bool = True, keys: tuple[str, ...] = ()) -> None:
        self.element, self.is_atomic, self.keys = element, is_atomic, keys


class MapType:
    """A struct (fields), a map (element), or both."""

    __slots__ = ("element", "fields", "is_atomic")

    def __init__(self, fields: dict[str, Type], element: Type | None, *, is_atomic: bool = False) -> None:
        self.fields, self.element, self.is_atomic = fields, element, is_atomic

    def knows(self, name: str) -> bool:
        return name in self.fields or self.element is not None

    def field(self, name: str) -> Type:
        """The type of a field; one that is not declared is taken for what its value shows."""
        return self.fields.get(name) or self.element or DEDUCED


class Type:
    """The type of a value, from its schema.  What the schema leaves open, the value decides."""

    def __init__(self, schema: Schema, definitions: dict[str, Schema], *, preserves: bool = False, is_go: bool = False) -> None:
        self._written, self._definitions = schema, definitions
        self._preserves = preserves
        self.is_go = is_go
        """Whether objects of the type are Go structs, which hold values that nobody set."""

    @property
    def default(self) -> Any:
        """What the field holds where it is not set."""
        return self._written.get("default")

    @functools.cached_property
    def _reference(self) -> str:
        written = self._written
        alternatives = written.get("allOf") or [{}]
        reference: str = written.get("$ref") or (alternatives[0].get("$ref", "") if len(alternatives) == 1 else "")
        return reference.rpartition("/")[2]

    @functools.cached_property
    def _schema(self) -> Schema:
        if not self._reference:
            return self._written
        schema = self._definitions[self._reference]
        # A use of a type may say that it is atomic here.
        return {**schema, "x-kubernetes-map-type": own} if (own := self._written.get("x-kubernetes-map-type")) else schema

    @functools.cached_property
    def _keeps_unknown(self) -> bool:
        # A definition of its own starts anew; what is written in place inherits.
        inherited = self._preserves and not self._reference
        return inherited or bool(self._schema.get("x-kubernetes-preserve-unknown-fields"))

    @functools.cached_property
    def _kind(self) -> str:
        kind: str = self._schema.get("type", "")
        return kind

    @property
    def json_type(self) -> str:
        """What JSON has to hold: string, integer, number, boolean, object or array; nothing where that is left open."""
        return "" if self._reference == _QUANTITY else self._kind

    @property
    def name(self) -> str:
        """The name of the definition; empty for a type that is written where it is used."""
        return self._reference.rpartition(".")[2]

    @property
    def format(self) -> str:
        return str(self._schema.get("format") or "")

    @functools.cached_property
    def scalar(self) -> bool:
        return self._kind not in ("object", "array")

    @functools.cached_property
    def required(self) -> frozenset[str]:
        """The fields that are written even when they are empty."""
        return frozenset(self._schema.get("required") or ())

    @functools.cached_property
    def is_collection(self) -> bool:
        """Whether it is a list or a map by keys, which Go does not tell from none when it is empty."""
        return self._kind == "array" or (self._kind == "object" and isinstance(self._schema.get("additionalProperties"), dict))

    @functools.cached_property
    def list(self) -> ListType | None:
        if self._reference == _QUANTITY or self._kind not in ("", "array"):
            return None
        if self._reference == _RAW_EXTENSION:
            return ListType(UNTYPED)
        schema = self._schema
        element = self._inner(schema["items"]) if isinstance(schema.get("items"), dict) else UNTYPED
        # How a list merges is said where it is used, which for a list is always in place.
        kind = schema.get("x-kubernetes-list-type")
        if kind is None and schema.get("x-kubernetes-patch-strategy", "") in ("merge", "merge,retainKeys"):
            key = schema.get("x-kubernetes-patch-merge-key")
            return ListType(element, is_atomic=False, keys=(key,) if key else ())
        keys = tuple(schema.get("x-kubernetes-list-map-keys", ())) if kind == "map" else ()
        return ListType(element, is_atomic=kind not in ("map", "set"), keys=keys)

    @functools.cached_property
    def map(self) -> MapType | None:
        if self._reference == _QUANTITY or self._kind not in ("", "object"):
            return None
        if self._reference == _RAW_EXTENSION:
            return MapType({}, UNTYPED, is_atomic=True)
        schema = self._schema
        properties: dict[str, Schema] = schema.get("properties") or {}
        additional = schema.get("additionalProperties")
        element: Type | None = None
        if isinstance(additional, dict):
            element = self._inner(additional)
        elif additional is True or (additional is None and (self._keeps_unknown or not properties)):
            element = DEDUCED
        fields = {name: self._inner(child) for name, child in properties.items()}
        return MapType(fields, element, is_atomic=schema.get("x-kubernetes-map-type") == "atomic")

    def _inner(self, schema: Schema) -> Type:
        return Type(schema, self._definitions, preserves=self._keeps_unknown)


class _Open(Type):
    """Any value: maps go field by field or are atomic, lists are atomic."""

    def __init__(self, *, is_atomic: bool) -> None:
        super().__init__({}, {})
        self._is_atomic = is_atomic

    @functools.cached_property
    def scalar(self) -> bool:
        return True

    @functools.cached_property
    def list(self) -> ListType | None:
        return ListType(UNTYPED)

    @functools.cached_property
    def map(self) -> MapType | None:
        return MapType({}, UNTYPED if self._is_atomic else DEDUCED, is_atomic=self._is_atomic)


UNTYPED: Type = _Open(is_atomic=True)
DEDUCED: Type = _Open(is_atomic=False)
