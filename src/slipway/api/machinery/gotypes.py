"""Go's API types as tables: decode what a user wrote as Go would, and print it as Go would print it.

kubeadm decodes foreign objects (kubelet and kube-proxy configurations, Pods, Deployments) into the Go types of its release
and writes them back, so that unknown fields go and zero values come.  The types are not written here: the files in
``tables/`` are dumped from Go itself by tests/oracles/gotypes.

A normalised value, the result of :func:`decode`, holds what was set; :func:`encode` adds what Go prints besides.
"""

from __future__ import annotations

import io
import os
from typing import Any

import msgspec

from slipway.api.machinery.goscalars import SCALARS, BadValueError, Finding, GoType, Place, mismatch

_FAMILIES = {"KubeletConfiguration": "kubelet", "KubeProxyConfiguration": "kubeproxy", "Config": "kubeconfig"}
"""The table that holds a kind; the API objects share one."""

_Table = dict[str, dict[str, str | list[str]]]
_tables: dict[str, _Table] = {}
_structs: dict[tuple[str, str, int], Struct] = {}


def decode(value: Any, kind: str, minor: int) -> tuple[dict[str, Any], list[Finding]]:
    """The normalised form of a document, and everything in it that Go would not take.

    Unknown fields are left out and reported; so are values of the wrong type, which Go refuses as a whole.
    """
    findings: list[Finding] = []
    try:
        return struct(kind, minor).decode(value if value is not None else {}, (), findings), findings
    except BadValueError as error:
        return {}, [Finding("type", (), str(error))]


def encode(value: dict[str, Any], kind: str, minor: int) -> dict[str, Any]:
    """What Go prints for a normalised value: zero values where the type has no omitempty, nothing empty where it has."""
    return struct(kind, minor).encode(value)


def struct(kind: str, minor: int) -> Struct:
    """A type by the name of its kind, as Kubernetes 1.<minor> has it."""
    return _struct(_FAMILIES.get(kind, "objects"), kind, minor)


class Field:
    """A field of a struct: its type and its tags."""

    __slots__ = ("merge_key", "name", "omitempty", "omitzero", "strategies", "type")

    def __init__(self, name: str, type_: GoType, tags: list[str]) -> None:
        self.name, self.type = name, type_
        self.omitempty, self.omitzero = "omitempty" in tags, "omitzero" in tags
        self.strategies = tuple(_tag(tags, "patch=").split(","))
        self.merge_key = _tag(tags, "key=")


class Pointer:
    """*T: nil is null, and is empty; anything else is what T makes of it."""

    kind = "ptr"

    def __init__(self, element: GoType) -> None:
        self.element, self.name = element, element.name

    def decode(self, value: Any, place: Place, findings: list[Finding]) -> Any:
        return self.element.decode(value, place, findings)

    def null(self) -> None:
        return None

    def encode(self, value: Any) -> Any:
        return None if value is None else self.element.encode(value)

    def is_empty(self, value: Any) -> bool:
        return value is None

    is_zero = is_empty


class Slice:
    """[]T: a null element is T's zero value."""

    kind = "slice"

    def __init__(self, element: GoType) -> None:
        self.element, self.name = element, f"[]{element.name}"

    def decode(self, value: Any, place: Place, findings: list[Finding]) -> Any:
        if not isinstance(value, list):
            raise mismatch(value, self.name)
        return [_element(self.element, item, (*place, index), findings) for index, item in enumerate(value)]

    def null(self) -> None:
        return None

    def encode(self, value: Any) -> Any:
        return None if value is None else [self.element.encode(item) for item in value]

    def is_empty(self, value: Any) -> bool:
        return not value

    def is_zero(self, value: Any) -> bool:
        return value is None


class Map:
    """map[string]T."""

    kind = "map"

    def __init__(self, element: GoType) -> None:
        self.element, self.name = element, f"map[string]{element.name}"

    def decode(self, value: Any, place: Place, findings: list[Finding]) -> Any:
        if not isinstance(value, dict):
            raise mismatch(value, self.name)
        return {key: _element(self.element, item, (*place, key), findings) for key, item in value.items()}

    def null(self) -> None:
        return None

    def encode(self, value: Any) -> Any:
        return None if value is None else {key: self.element.encode(item) for key, item in value.items()}

    def is_empty(self, value: Any) -> bool:
        return not value

    def is_zero(self, value: Any) -> bool:
        return value is None


class Struct:
    """A struct; its fields are looked up when they are first needed, since types may contain themselves."""

    kind = "struct"

    def __init__(self, family: str, name: str, minor: int) -> None:
        self.name = name
        self._family, self._minor = family, minor
        self._fields: dict[str, Field] | None = None

    @property
    def fields(self) -> dict[str, Field]:
        if self._fields is None:
            self._fields = dict(self._read_fields())
        return self._fields

    def decode(self, value: Any, place: Place, findings: list[Finding]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise mismatch(value, self.name)
        decoded = {}
        for name, item in value.items():
            field = self.fields.get(name)
            if field is None:
                findings.append(Finding("unknown", (*place, name), f'unknown field "{_shown((*place, name))}"'))
                continue
            result = _element(field.type, item, (*place, name), findings)
            if item is not None and result is not None:
                decoded[name] = result
        return decoded

    def null(self) -> dict[str, Any]:
        return {}

    def encode(self, value: Any) -> dict[str, Any]:
        value = value or {}
        encoded = {}
        for name, field in self.fields.items():
            item = value.get(name)
            if not ((field.omitempty and field.type.is_empty(item)) or (field.omitzero and field.type.is_zero(item))):
                encoded[name] = field.type.encode(item)
        return encoded

    def is_empty(self, value: Any) -> bool:
        return False

    def is_zero(self, value: Any) -> bool:
        return not value or all(self.fields[name].type.is_zero(item) for name, item in value.items())

    def _read_fields(self) -> list[tuple[str, Field]]:
        fields = []
        for name, forms in _table(self._family)[self.name].items():
            for form in [forms] if isinstance(forms, str) else forms:
                expression, *tags = form.split("; ")
                if int(_tag(tags, "since=") or self._minor) <= self._minor <= int(_tag(tags, "until=") or self._minor):
                    fields.append((name, Field(name, _type(self._family, expression, self._minor), tags)))
        return fields


def _element(type_: GoType, value: Any, place: Place, findings: list[Finding]) -> Any:
    """A value inside another one; one of the wrong type is reported, and the rest is still looked at."""
    try:
        return type_.null() if value is None else type_.decode(value, place, findings)
    except BadValueError as error:
        findings.append(Finding("type", place, f"{_shown(place)}: {error}"))
        return None


def _type(family: str, expression: str, minor: int) -> GoType:
    if expression.startswith("*"):
        return Pointer(_type(family, expression[1:], minor))
    if expression.startswith("[]"):
        return Slice(_type(family, expression[2:], minor))
    if expression.startswith("map "):
        return Map(_type(family, expression[4:], minor))
    return SCALARS.get(expression) or _struct(family, expression, minor)


def _struct(family: str, name: str, minor: int) -> Struct:
    key = (family, name, minor)
    if key not in _structs:
        _structs[key] = Struct(family, name, minor)
    return _structs[key]


def _table(family: str) -> _Table:
    if family not in _tables:
        with io.FileIO(os.path.join(os.path.dirname(__file__), "tables", f"{family}.json")) as file:
            _tables[family] = msgspec.json.decode(file.readall(), type=_Table)
    return _tables[family]


def _tag(tags: list[str], prefix: str) -> str:
    return next((tag[len(prefix) :] for tag in tags if tag.startswith(prefix)), "")


def _shown(place: Place) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return text.removeprefix(".")
