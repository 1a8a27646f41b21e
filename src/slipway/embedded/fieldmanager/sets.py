"""Sets of fields, and their form in ``metadata.managedFields`` (FieldsV1).

A step of a path is kept as FieldsV1 writes it: ``f:name`` for a field, ``k:{"type":"Ready"}`` for an element of a list by its keys,
``v:"x"`` for an element of a set, ``i:0`` for a position.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.embedded.errors import go_float

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from slipway.embedded.fieldmanager.types import ListType, Type

Path = tuple[str, ...]
Fields = dict[str, Any]

_HTML = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
_ORDER = {"f": 0, "k": 1, "v": 2, "i": 3}


class FieldSet:
    """A set of paths: a path is a member where it is itself set, not where only something below it is."""

    __slots__ = ("children", "members")

    def __init__(self, members: set[str] | None = None, children: dict[str, FieldSet] | None = None) -> None:
        self.members = members if members is not None else set()
        self.children = children if children is not None else {}

    @classmethod
    def of(cls, paths: Iterable[Path]) -> FieldSet:
        made = cls()
        for path in paths:
            made.insert(path)
        return made

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> FieldSet:
        """Read FieldsV1; unknown kinds of steps are skipped, as readers must."""
        made = cls()
        for step, below in fields.items():
            if step == "." or step[:1] not in _ORDER or step[1:2] != ":":
                continue
            step = _canonical(step)
            if not below or "." in below:
                made.members.add(step)
            child = cls.from_fields(below)
            if not child.is_empty():
                made.children[step] = child
        return made

    def to_fields(self) -> Fields:
        """FieldsV1, in the order in which the real server writes it."""
        fields: Fields = {}
        for step in sorted(self.members | self.children.keys(), key=_sort_key):
            below = self.children[step].to_fields() if step in self.children else {}
            fields[step] = {".": {}, **below} if below and step in self.members else below
        return fields

    def insert(self, path: Path) -> None:
        if path:
            current = self
            for step in path[:-1]:
                current = current.children.setdefault(step, FieldSet())
            current.members.add(path[-1])

    def is_empty(self) -> bool:
        return not self.members and all(child.is_empty() for child in self.children.values())

    def has(self, path: Path) -> bool:
        current = self
        for step in path[:-1]:
            if step not in current.children:
                return False
            current = current.children[step]
        return bool(path) and path[-1] in current.members

    def below(self, step: str) -> FieldSet:
        return self.children.get(step) or FieldSet()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and self.to_fields() == other.to_fields()

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[Path]:
        """Every path, members first, as the real server goes through them."""
        for step in sorted(self.members, key=_sort_key):
            yield (step,)
        for step in sorted(self.children, key=_sort_key):
            for rest in self.children[step]:
                yield (step, *rest)

    def __or__(self, other: FieldSet) -> FieldSet:
        children = dict(self.children)
        for step, child in other.children.items():
            children[step] = children[step] | child if step in children else child
        return FieldSet(self.members | other.members, children)

    def __and__(self, other: FieldSet) -> FieldSet:
        both = {step: child & other.children[step] for step, child in self.children.items() if step in other.children}
        return FieldSet(self.members & other.members, {step: child for step, child in both.items() if not child.is_empty()})

    def __sub__(self, other: FieldSet) -> FieldSet:
        """Without the members of another; what is below a member stays."""
        left = {step: child - other.children[step] if step in other.children else child for step, child in self.children.items()}
        return FieldSet(self.members - other.members, {step: child for step, child in left.items() if not child.is_empty()})

    def without(self, steps: Iterable[str]) -> FieldSet:
        """Without whole branches of the object's own fields."""
        gone = {f"f:{step}" for step in steps}
        return FieldSet(self.members - gone, {step: child for step, child in self.children.items() if step not in gone})

    def with_named_fields(self, type_: Type) -> FieldSet:
        """With every declared field a member that has something below it: a struct is there when one of its fields is."""
        members, children = set(self.members), {}
        for step, child in self.children.items():
            if step[0] == "f":
                if type_.map is not None and step[2:] in type_.map.fields:
                    members.add(step)
                inner = type_.map.field(step[2:]) if type_.map is not None else type_
            else:
                inner = type_.list.element if type_.list is not None else type_
            children[step] = child.with_named_fields(inner)
        return FieldSet(members, children)


def element_step(list_type: ListType, item: Any) -> str:
    """The step to an element of a list that is a map or a set; ValueError where the element cannot be one."""
    if not list_type.keys:
        if isinstance(item, (dict, list)) or item is None:
            kind = "an explicit null" if item is None else "a map type" if isinstance(item, dict) else "a list"
            raise ValueError(f"associative list without keys has an element that's {kind}")
        return f"v:{_json(item)}"
    if not isinstance(item, dict):
        raise ValueError(f"associative list with keys may not have {'a null element' if item is None else 'non-map elements'}")
    fields = list_type.element.map.fields if list_type.element.map is not None else {}
    keys = {}
    for key in list_type.keys:
        if key in item:
            keys[key] = item[key]
        elif key in fields and fields[key].default is not None:
            keys[key] = fields[key].default
    if not keys:
        listed = " ".join(json.dumps(key) for key in list_type.keys)
        raise ValueError(
            f"associative list with keys has an element that omits all key fields [{listed}] "
            "(and doesn't have default values for any key fields)"
        )
    return f"k:{_json(keys)}"


def path_text(path: Path) -> str:
    """A path as messages show it: ``.spec.list[name="a"].value``."""
    return "".join(_step_text(step) for step in path)


def _step_text(step: str) -> str:
    kind, text = step[0], step[2:]
    if kind == "f":
        return f".{text}"
    if kind == "i":
        return f"[{text}]"
    if kind == "v":
        return f"[={_value_text(json.loads(text))}]"
    keys: dict[str, Any] = json.loads(text)
    return "[" + ",".join(f"{key}={_value_text(keys[key])}" for key in sorted(keys)) + "]"


def _value_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    """JSON as Go's encoder writes it: sorted, compact, safe inside HTML, whole numbers without a fraction."""
    if isinstance(value, float):
        return go_float(value)
    return msgspec.json.encode(value, order="sorted").decode().translate(_HTML)


def _canonical(step: str) -> str:
    return f"{step[:2]}{_json(json.loads(step[2:]))}" if step[0] in "kv" else step


@functools.lru_cache(maxsize=8192)
def _sort_key(step: str) -> tuple[int, Any]:
    kind, text = step[0], step[2:]
    if kind == "k":
        keys: dict[str, Any] = json.loads(text)
        return 1, tuple((key, *_value_key(keys[key])) for key in sorted(keys))
    if kind == "v":
        return 2, _value_key(json.loads(text))
    return _ORDER[kind], int(text) if kind == "i" else text


def _value_key(value: Any) -> tuple[int, Any]:
    """Values of unlike types in the order of structured-merge-diff: numbers, text, booleans, null."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, (int, float)):
        return 0, value
    return (1, value) if isinstance(value, str) else (3, "")
