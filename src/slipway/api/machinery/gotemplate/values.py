"""Values while a template runs, with as much of Go's types as shows in output and errors.

A value is one of Python's (see the package), or Boxed: what Go holds in a variable of type ``interface {}``, which is how elements of maps
and lists appear until they are used.  INVALID is no value at all: a key that a map lacks.
"""

from __future__ import annotations

from typing import Any, Final

from slipway.api.machinery.gotemplate.errors import TemplateError
from slipway.api.machinery.gotemplate.quoting import replaced

_DATA_DEPTH = 50

Value = Any


class Int(int):
    """Go's int: numbers that the template writes, lengths and positions.  Numbers of the data are plain int, Go's int64."""


class Uint8(int):
    """Go's uint8: one byte of a string."""


class Boxed:
    """A value in an ``interface {}``; None is Go's nil."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class _Invalid:
    def __repr__(self) -> str:
        return "INVALID"


INVALID: Final = _Invalid()
NIL: Final = Boxed(None)


def from_data(data: object, depth: int = 0) -> Value:
    """Data as Kubernetes' JSON decoder would have made it: whole numbers beyond 64 bits are floats, text is UTF-8."""
    if depth > _DATA_DEPTH:
        raise TemplateError(f"the data of a template is nested more than {_DATA_DEPTH} levels deep")
    if data is None or isinstance(data, (bool, float)):
        return data
    if isinstance(data, str):
        return replaced(str(data))
    if isinstance(data, int):
        return int(data) if -(1 << 63) <= data < 1 << 63 else _as_float(data)
    if isinstance(data, dict):
        return {replaced(str(key)): from_data(value, depth + 1) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [from_data(item, depth + 1) for item in data]
    raise TemplateError(f"a template cannot use data of type {type(data).__name__}: dict, list, str, int, float, bool or None is wanted")


def _as_float(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        raise TemplateError("a template cannot use a number beyond 1.8e308") from None


def unboxed(value: Value) -> Value:
    """The value in a box; INVALID for a nil."""
    if isinstance(value, Boxed):
        return INVALID if value.value is None else value.value
    return value


def argument(value: Value) -> Value:
    """What a function with a parameter of type ``any`` gets: a Python value, None for nil."""
    value = unboxed(value)
    return None if value is INVALID else value


def type_name(value: Value) -> str:
    """What Go calls the type."""
    if isinstance(value, Boxed):
        return "interface {}"
    for kind, name in _TYPES:
        if isinstance(value, kind):
            return name
    return "<nil>"


_TYPES: tuple[tuple[type, str], ...] = (
    (str, "string"),
    (bool, "bool"),
    (Int, "int"),
    (Uint8, "uint8"),
    (int, "int64"),
    (float, "float64"),
    (complex, "complex128"),
    (dict, "map[string]interface {}"),
    (list, "[]interface {}"),
)


def is_true(value: Value) -> bool:
    """Whether Go's ``if`` takes it for true: not zero and not empty."""
    value = unboxed(value)
    return value is not INVALID and bool(value)
