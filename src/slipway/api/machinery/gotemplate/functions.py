"""The functions that every template has.  ``and``, ``or`` and ``call`` are in execution.py: they see their arguments as they are written.

A function gets its arguments boxed or INVALID where Go's function takes a reflect.Value, and as plain values where it takes ``any``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.gotemplate import escaping
from slipway.api.machinery.gotemplate.errors import CallError
from slipway.api.machinery.gotemplate.formatting import shown, sprint, sprintln
from slipway.api.machinery.gotemplate.printf import sprintf
from slipway.api.machinery.gotemplate.quoting import byte_length, decoded, encoded
from slipway.api.machinery.gotemplate.values import INVALID, Boxed, Int, Uint8, Value, argument, is_true, type_name, unboxed

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.machinery.gotemplate.budget import Budget

NO_VALUE = "<no value>"
_SLICE_INDEXES = 3
_BAD_COMPARISON = "invalid type for comparison"


class Function(NamedTuple):
    """``parameters`` are the types of the fixed ones; ``rest`` is that of all further arguments, empty where there are none.

    Types are ``value`` (reflect.Value), ``any`` and ``string``.
    """

    call: Callable[[list[Value], Budget], Value]
    parameters: tuple[str, ...]
    rest: str = ""
    prints: bool = False


def _index_of(index: Value, limit: int) -> int:
    if isinstance(index, int) and not isinstance(index, bool):
        if not 0 <= index <= limit:
            raise CallError(f"index out of range: {int(index)}")
        return int(index)
    raise CallError(f"cannot index slice/array with {'nil' if index is INVALID else f'type {type_name(index)}'}")


def _index(arguments: list[Value], budget: Budget) -> Value:
    item = unboxed(arguments[0])
    if item is INVALID:
        raise CallError("index of untyped nil")
    for boxed in arguments[1:]:
        key = unboxed(boxed)
        item = unboxed(item)
        if item is INVALID:
            raise CallError("index of nil pointer")
        item = _element(item, key)
    return item


def _element(item: Value, key: Value) -> Value:
    if isinstance(item, dict):
        if not isinstance(key, str):
            what = "value is nil; should be of type" if key is INVALID else f"value has type {type_name(key)}; should be"
            raise CallError(f"{what} string")
        return Boxed(item.get(key))
    if not isinstance(item, (str, list)):
        raise CallError(f"can't index item of type {type_name(item)}")
    content = _bytes(item) if isinstance(item, str) else item
    position = _index_of(key, len(content))
    if position == len(content):
        raise CallError(f"reflect: {'string' if isinstance(item, str) else 'slice'} index out of range")
    found = content[position]
    if isinstance(item, str):
        return Uint8(ord(found) if isinstance(found, str) else found)
    return Boxed(found)


def _bytes(text: str) -> str | bytes:
    """The bytes of a text; those of ASCII are its characters."""
    return text if text.isascii() else encoded(text)


def _slice(arguments: list[Value], budget: Budget) -> Value:
    item, indexes = unboxed(arguments[0]), arguments[1:]
    if item is INVALID:
        raise CallError("slice of untyped nil")
    if len(indexes) > _SLICE_INDEXES:
        raise CallError(f"too many slice indexes: {len(indexes)}")
    if isinstance(item, str) and len(indexes) == _SLICE_INDEXES:
        raise CallError("cannot 3-index slice a string")
    if not isinstance(item, (str, list)):
        raise CallError(f"can't slice item of type {type_name(item)}")
    content = _bytes(item) if isinstance(item, str) else item
    bounds = [_index_of(index, len(content)) for index in indexes]
    start = bounds[0] if bounds else 0
    end = bounds[1] if len(bounds) > 1 else len(content)
    for low, high in ((start, end), (end, bounds[2] if len(bounds) == _SLICE_INDEXES else end)):
        if low > high:
            raise CallError(f"invalid slice index: {low} > {high}")
    budget.copy(end - start)
    part = content[start:end]
    part = decoded(part) if isinstance(part, bytes) else part
    budget.keep(part)
    return part


def _len(arguments: list[Value], budget: Budget) -> Value:
    item = arguments[0]
    if item is INVALID:
        raise CallError("reflect: call of reflect.Value.Type on zero Value")
    item = unboxed(item)
    if item is INVALID:
        raise CallError("len of nil pointer")
    if not isinstance(item, (str, list, dict)):
        raise CallError(f"len of type {type_name(item)}")
    return Int(byte_length(item) if isinstance(item, str) else len(item))


def _not(arguments: list[Value], budget: Budget) -> Value:
    return not is_true(arguments[0])


# Whole numbers compare whatever their types are.
_KINDS: dict[type, str] = {bool: "bool", int: "int", Int: "int", Uint8: "int", float: "float", complex: "complex", str: "string"}


def _kind(value: Value) -> str:
    """The kinds that can be compared; empty for all others."""
    return _KINDS.get(type(value), "")


def _incompatible(left: Value, right: Value) -> CallError:
    return CallError(f"incompatible types for comparison: {type_name(left)} and {type_name(right)}")


def _eq(arguments: list[Value], budget: Budget) -> Value:
    left, others = unboxed(arguments[0]), arguments[1:]
    if not others:
        raise CallError("missing argument for comparison")
    return any(_equal(left, unboxed(other), budget) for other in others)


def _equal(left: Value, right: Value, budget: Budget) -> bool:
    if left is INVALID or right is INVALID or not (_kind(left) or _kind(right)):
        return _equal_composites(left, right, budget)
    if _kind(left) != _kind(right):
        raise _incompatible(left, right)
    return bool(left == right)


def _equal_composites(left: Value, right: Value, budget: Budget) -> bool:
    """Maps and lists cannot be compared, except with nothing."""
    if left is INVALID or right is INVALID:
        return left is right
    if type(left) is not type(right):
        raise CallError(f"non-comparable types {shown(left, budget, 's')}: {type_name(left)}, {type_name(right)}: {shown(right, budget)}")
    raise CallError(f"non-comparable type {shown(right, budget, 's')}: {type_name(right)}")


def _ne(arguments: list[Value], budget: Budget) -> Value:
    return not _eq(arguments, budget)


def _less(arguments: list[Value], budget: Budget) -> bool:
    left, right = map(unboxed, arguments)
    kind = _kind(left)
    if not kind or not _kind(right):
        raise CallError(_BAD_COMPARISON)
    if kind != _kind(right):
        raise _incompatible(left, right)
    if kind in ("bool", "complex"):
        raise CallError(_BAD_COMPARISON)
    return bool(encoded(left) < encoded(right) if isinstance(left, str) else left < right)


def _le(arguments: list[Value], budget: Budget) -> Value:
    return _less(arguments, budget) or _eq(arguments, budget)


def _gt(arguments: list[Value], budget: Budget) -> Value:
    return not _le(arguments, budget)


def _ge(arguments: list[Value], budget: Budget) -> Value:
    return not _less(arguments, budget)


def _printable(arguments: list[Value], budget: Budget) -> str:
    """The arguments of the escaping functions, as text."""
    return sprint([NO_VALUE if value is None else value for value in map(argument, arguments)], budget)


def _escaping(escape: Callable[[str, Budget], str]) -> Callable[[list[Value], Budget], Value]:
    def call(arguments: list[Value], budget: Budget) -> Value:
        text = escape(_printable(arguments, budget), budget)
        budget.keep(text)
        return text

    return call


def _printf(arguments: list[Value], budget: Budget) -> Value:
    return sprintf(arguments[0], list(map(argument, arguments[1:])), budget)


def _never(arguments: list[Value], budget: Budget) -> Value:
    raise AssertionError("execution has this function")


FUNCTIONS: dict[str, Function] = {
    "and": Function(_never, ("value",), "value"),
    "call": Function(_never, ("value",), "value"),
    "html": Function(_escaping(escaping.html), (), "any", prints=True),
    "index": Function(_index, ("value",), "value"),
    "slice": Function(_slice, ("value",), "value"),
    "js": Function(_escaping(escaping.javascript), (), "any", prints=True),
    "len": Function(_len, ("value",)),
    "not": Function(_not, ("value",)),
    "or": Function(_never, ("value",), "value"),
    "print": Function(lambda arguments, budget: sprint(list(map(argument, arguments)), budget), (), "any", prints=True),
    "printf": Function(_printf, ("string",), "any", prints=True),
    "println": Function(lambda arguments, budget: sprintln(list(map(argument, arguments)), budget), (), "any", prints=True),
    "urlquery": Function(_escaping(escaping.query), (), "any", prints=True),
    "eq": Function(_eq, ("value",), "value"),
    "ge": Function(_ge, ("value", "value")),
    "gt": Function(_gt, ("value", "value")),
    "le": Function(_le, ("value", "value")),
    "lt": Function(_less, ("value", "value")),
    "ne": Function(_ne, ("value", "value")),
}
