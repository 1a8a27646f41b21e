"""Go's structs as tables: the fields of a type in order, with the key that each has in a document.

Values are dicts by those keys and have every field, with Go's zero value where nothing is set.  A type is written as in Go: ``string``,
``*int``, ``[]File``, ``Storage``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

_ZERO: dict[str, Any] = {"int": 0, "uint": 0, "bool": False}


class Field(NamedTuple):
    """A field of a struct; an ``optional`` one is not printed when it is empty, an ``embedded`` one has no place of its own in messages."""

    name: str
    type: str
    key: str
    optional: bool = False
    embedded: bool = False


class Struct:
    """A type and, through its table, the types of its fields."""

    __slots__ = ("by_key", "fields", "name", "table")

    def __init__(self, name: str, fields: list[Field], table: dict[str, Struct]) -> None:
        self.name, self.fields, self.table = name, fields, table
        self.by_key = {field.key: field for field in fields}

    def zero(self) -> dict[str, Any]:
        return {field.key: self.zero_of(field.type) for field in self.fields}

    def zero_of(self, type_: str) -> Any:
        if is_pointer(type_) or is_slice(type_):
            return None
        inner = self.table.get(type_)
        # A name that is no struct's is one for strings.
        return inner.zero() if inner is not None else _ZERO.get(type_, "")

    def printed(self, value: dict[str, Any]) -> dict[str, Any]:
        """What Go's JSON has of a value: a struct is never empty, and what is nil is null where it cannot be left out."""
        return {field.key: self._shown(field, value[field.key]) for field in self.fields if not self._left_out(field, value[field.key])}

    def _left_out(self, field: Field, value: Any) -> bool:
        if not field.optional or field.type in self.table:
            return False
        return value is None if is_pointer(field.type) else not value

    def _shown(self, field: Field, value: Any) -> Any:
        inner = self.table.get(field.type.lstrip("*[]"))
        if inner is None or value is None:
            return value
        return [inner.printed(item) for item in value] if isinstance(value, list) else inner.printed(value)


def table(text: str) -> dict[str, Struct]:
    """Types from lines: a name alone begins a struct, ``name type key`` indented is a field; ``?`` after the key makes it optional.

    ``+Name`` takes over the fields of a struct that stands above; a field whose name is that of its type is embedded, marked with ``^``.
    """
    structs: dict[str, Struct] = {}
    for line in filter(None, map(str.rstrip, text.splitlines())):
        if not line.startswith(" "):
            structs[line] = Struct(line, [], structs)
            current = structs[line]
        elif line.lstrip().startswith("+"):
            for field in structs[line.lstrip(" +")].fields:
                _add(current, field)
        else:
            name, type_, key = line.split()
            _add(current, Field(name.lstrip("^"), type_, key.rstrip("?"), key.endswith("?"), name.startswith("^")))
    return structs


def _add(struct: Struct, field: Field) -> None:
    struct.fields.append(field)
    struct.by_key[field.key] = field


def is_pointer(type_: str) -> bool:
    return type_.startswith("*")


def is_slice(type_: str) -> bool:
    return type_.startswith("[]")


def element(type_: str) -> str:
    return type_.removeprefix("[]")
