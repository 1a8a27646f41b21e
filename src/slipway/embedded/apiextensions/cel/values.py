"""The values that expressions compute with.

Strings, bytes, booleans, doubles, integers and null are Python's own; what Python has not, or has otherwise, is here.  Data of an object
stays as it is in the manifest, with its shape beside it: a part becomes a value when it is looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slipway.embedded.apiextensions.cel import types
from slipway.embedded.apiextensions.cel.types import Type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.embedded.apiextensions.cel.shapes import Shape


class EvaluationError(Exception):
    """An expression that has no value; ``||`` and ``&&`` may do without it."""


class CostError(Exception):
    """An expression that costs more than it may; nothing absorbs it."""


def no_such_overload() -> EvaluationError:
    return EvaluationError("no such overload")


class Uint(int):
    """An unsigned integer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A moment, in nanoseconds since 1970."""

    nanoseconds: int


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    nanoseconds: int


class Maybe:
    """An optional value."""

    __slots__ = ("is_there", "value")

    def __init__(self, value: Any = None, is_there: bool = False) -> None:
        self.value, self.is_there = value, is_there


NONE = Maybe()
ABSENT = object()


class ListData:
    """A list of an object."""

    __slots__ = ("items", "shape")

    def __init__(self, items: list[Any], shape: Shape) -> None:
        self.items, self.shape = items, shape

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self._element.value(self.items[index])

    def __iter__(self) -> Iterator[Any]:
        return map(self._element.value, self.items)

    @property
    def _element(self) -> Shape:
        assert self.shape.element is not None
        return self.shape.element

    def equals(self, other: Any) -> bool:
        """Lists that are sets or maps have no order."""
        if len(self) != len(other):
            return False
        if self.shape.list_type == "set":
            return all(any(equal(mine, yours) for mine in self) for yours in other)
        if self.shape.list_type != "map":
            return all(equal(mine, yours) for mine, yours in zip(self, other, strict=True))
        known = {self._key(item): item for item in self.items}
        for item in raw_items(other):
            if self._key(item) not in known or not equal(self._element.value(known[self._key(item)]), self._element.value(item)):
                return False
        return True

    def plus(self, other: Any) -> Any:
        """A set has what is in both, a map what the second has where both have a key."""
        added = raw_items(other)
        if self.shape.list_type == "set":
            return ListData([*self.items, *(item for item in dict.fromkeys(added) if item not in self.items)], self.shape)
        if self.shape.list_type != "map":
            return [*self, *other]
        merged = {self._key(item): item for item in self.items}
        merged.update((self._key(item), item) for item in added)
        return ListData(list(merged.values()), self.shape)

    def _key(self, item: Any) -> tuple[Any, ...]:
        return tuple((type(item.get(key)), item.get(key)) for key in self.shape.keys)


class MapData:
    """A map of an object, or an object with fields: ``shape`` knows which.

    A field has a name that CEL can read, and one that is null is absent.
    """

    __slots__ = ("fields", "shape")

    def __init__(self, fields: dict[str, Any], shape: Shape) -> None:
        self.fields, self.shape = fields, shape

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Any]:
        if self.shape.element is not None:
            yield from self.fields
            return
        for name in self.fields:
            if name in self.shape.names:
                yield self.shape.names[name]

    def field(self, name: str) -> Any:
        """The value of a field or an entry; ABSENT where there is none."""
        shape = self.shape.element
        if shape is not None:
            return shape.value(self.fields[name]) if name in self.fields else ABSENT
        raw, shape = self.shape.fields.get(name, ("", None))
        value = self.fields.get(raw)
        return ABSENT if shape is None or value is None else shape.value(value)

    def find(self, key: Any) -> Maybe:
        if not isinstance(key, str):
            raise no_such_overload()
        if self.shape.element is not None:
            return Maybe(self.shape.element.value(self.fields[key]), True) if key in self.fields else NONE
        found = self.field(key)
        return NONE if found is ABSENT else Maybe(found, True)

    def equals(self, other: Any) -> bool:
        if len(self) != len(other):
            return False
        if isinstance(other, MapData) and self.shape is other.shape and self.shape.element is None:
            for name, value in self.fields.items():
                shape = self.shape.properties.get(name)
                theirs = other.fields.get(name)
                if (value is None) != (theirs is None) or (
                    value is not None and not (value == theirs if shape is None else equal(shape.value(value), shape.value(theirs)))
                ):
                    return False
            return True
        return _same_entries(self, other)


class Map:
    """A map that an expression made; its keys are of several types, and Python takes 1, 1.0 and True for the same."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[Any, tuple[Any, Any]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._entries.values())

    def __contains__(self, key: Any) -> bool:
        return _identity(key) in self._entries

    def put(self, key: Any, value: Any) -> None:
        self._entries[_identity(key)] = key, value

    def find(self, key: Any) -> Maybe:
        found = self._entries.get(_identity(key))
        return NONE if found is None else Maybe(found[1], True)

    def equals(self, other: Any) -> bool:
        return len(self) == len(other) and _same_entries(self, other)


class JsonMap:
    """A JSON object that no schema is known of: an entry becomes a value when it is looked at, and one that is null is there."""

    __slots__ = ("_entries",)

    def __init__(self, entries: dict[str, Any]) -> None:
        self._entries = entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def find(self, key: Any) -> Maybe:
        return Maybe(of_json(self._entries[key]), True) if isinstance(key, str) and key in self._entries else NONE

    def equals(self, other: Any) -> bool:
        return len(self) == len(other) and _same_entries(self, other)


def of_json(raw: Any) -> Any:
    """JSON that no schema is known of, as a value."""
    if isinstance(raw, dict):
        return JsonMap(raw)
    return [of_json(each) for each in raw] if isinstance(raw, list) else raw


def _identity(key: Any) -> Any:
    if isinstance(key, (list, *MAPS, ListData)):
        # No key that makes sense; as in Go it is itself and nothing else.
        return "itself", id(key)
    return ("bool", key) if isinstance(key, bool) else key


def _same_entries(one: Any, other: Any) -> bool:
    for key in one:
        mine, yours = one.find(key), other.find(key)
        if mine.is_there != yours.is_there or (mine.is_there and not equal(mine.value, yours.value)):
            return False
    return True


def raw_items(values: Any) -> list[Any]:
    """The elements of a list as a manifest has them."""
    if isinstance(values, ListData):
        return values.items
    return [each.fields if isinstance(each, MapData) else each for each in values]


LISTS = (list, ListData)
MAPS = (MapData, Map, JsonMap)


def type_of(value: Any) -> Type:
    """The type of a value, as far as a value shows it."""
    kind = type(value)
    simple = _SIMPLE.get(kind)
    if simple is not None:
        return simple
    if kind in LISTS:
        return types.list_of(types.DYN)
    if kind in MAPS:
        return types.map_of(types.DYN, types.DYN)
    own = getattr(value, "cel_type", None)
    assert isinstance(own, Type), value
    return own


_SIMPLE: dict[type, Type] = {
    bool: types.BOOL,
    int: types.INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
    Timestamp: types.TIMESTAMP,
    Duration: types.DURATION,
    Maybe: types.optional_of(types.DYN),
    Type: types.TYPE,
}


_PLAIN = frozenset(_SIMPLE) - {Maybe}


def type_of_literal(value: Any) -> Type:
    return _SIMPLE[type(value)]


def type_name(value: Any) -> str:
    """The type of a value as errors name it."""
    kind = type_of(value).kind
    return {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}.get(kind, kind)


def accepts(wanted: Type, value: Any) -> bool:
    """Whether a value may be the argument of a function that wants a type."""
    return wanted.kind in ("dyn", "param") or type_of(value).kind == wanted.kind


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def equal(one: Any, other: Any) -> bool:
    """Equality of CEL: numbers of all types compare, other types are never equal to each other."""
    kind = type(one)
    if kind is type(other) and kind in _PLAIN:
        return bool(one == other)
    if is_number(one) and is_number(other):
        return bool(one == other)
    if isinstance(one, (MapData, ListData)):
        if not isinstance(other, MAPS if isinstance(one, MapData) else LISTS):
            # Data of an object compares with its like alone, other than what an expression makes.
            raise no_such_overload()
        return one.equals(other)
    if isinstance(one, (Map, JsonMap)):
        return isinstance(other, MAPS) and one.equals(other)
    if isinstance(one, list):
        if isinstance(other, ListData):
            return other.equals(one)
        return isinstance(other, list) and len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, Maybe) and isinstance(other, Maybe):
        return one.is_there == other.is_there and (not one.is_there or equal(one.value, other.value))
    return type(one) is type(other) and bool(one == other)


def compare(one: Any, other: Any) -> int:
    """Less than nothing, nothing or more, as ``one`` is less than, equal to or greater than ``other``."""
    if is_number(one) and is_number(other):
        if math.isnan(one) or math.isnan(other):
            raise EvaluationError("NaN values cannot be ordered")
    elif type(one) is not type(other) or isinstance(one, (*LISTS, *MAPS)):
        raise no_such_overload()
    elif isinstance(one, str):
        one, other = one.encode(), other.encode()
    return int(one > other) - int(one < other)


def size(value: Any) -> int:
    """How large a value is for its cost: what has a size has that, anything else counts for one."""
    if isinstance(value, _SIZED):
        return len(value)
    return size(value.value) if isinstance(value, Maybe) and value.is_there else 1


_SIZED = (str, bytes, *LISTS, *MAPS)
