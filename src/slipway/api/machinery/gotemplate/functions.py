"""The functions that every template has.  ``and``, ``or`` and ``call`` are in execution.py: they see their arguments as they are written.

A function gets its arguments boxed or INVALID where Go's function takes a reflect.Value, and as plain values where it takes ``any``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.gotemplate import escaping
from slipway.api.machinery.gotemplate.errors import CallError
from slipway.api.machinery.gotemplate.formatting import shown, sprint, sprintln
from slipway.api.machinery.gotemplate.printf import sprintf
from slipway.api.machinery.gotemplate.quoting import decoded, encoded
from slipway.api.machinery.gotemplate.values import INVALID, Boxed, Int, Uint8, Value, argument, is_true, type_name, unboxed

if TYPE_CHECKING:
    from collections.abc import Callable

NO_VALUE = "<no value>"
_SLICE_INDEXES = 3
_BAD_COMPARISON = "invalid type for comparison"


class Function(NamedTuple):
    """``parameters`` are the types of the fixed ones; ``rest`` is that of all further arguments, empty where there are none.

    Types are ``value`` (reflect.Value), ``any`` and ``string``.
    """

    call: Callable[[list[Value]], Value]
    parameters: tuple[str, ...]
    rest: str = ""
    prints: bool = False


def _index_of(index: Value, limit: int) -> int:
    if isinstance(index, int) and not isinstance(index, bool):
        if not 0 <= index <= limit:
            raise CallError(f"index out of range: {int(index)}")
        return int(index)
    raise CallError(f"cannot index slice/array with {'nil' if index is INVALID else f'type {type_name(index)}'}")


def _index(arguments: list[Value]) -> Value:
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
    content = encoded(item) if isinstance(item, str) else item
    position = _index_of(key, len(content))
    if position == len(content):
        raise CallError(f"reflect: {'string' if isinstance(item, str) else 'slice'} index out of range")
    return Uint8(content[position]) if isinstance(item, str) else Boxed(content[position])


def _slice(arguments: list[Value]) -> Value:
    item, indexes = unboxed(arguments[0]), arguments[1:]
    if item is INVALID:
        raise CallError("slice of untyped nil")
    if len(indexes) > _SLICE_INDEXES:
        raise CallError(f"too many slice indexes: {len(indexes)}")
    if isinstance(item, str) and len(indexes) == _SLICE_INDEXES:
        raise CallError("cannot 3-index slice a string")
    if not isinstance(item, (str, list)):
        raise CallError(f"can't slice item of type {type_name(item)}")
    content = encoded(item) if isinstance(item, str) else item
    bounds = [_index_of(index, len(content)) for index in indexes]
    start = bounds[0] if bounds else 0
    end = bounds[1] if len(bounds) > 1 else len(content)
    for low, high in ((start, end), (end, bounds[2] if len(bounds) == _SLICE_INDEXES else end)):
        if low > high:
            raise CallError(f"invalid slice index: {low} > {high}")
    part = content[start:end]
    return decoded(part) if isinstance(part, bytes) else part


def _len(arguments: list[Value]) -> Value:
    item = arguments[0]
    if item is INVALID:
        raise CallError("reflect: call of reflect.Value.Type on zero Value")
    item = unboxed(item)
    if item is INVALID:
        raise CallError("len of nil pointer")
    if not isinstance(item, (str, list, dict)):
        raise CallError(f"len of type {type_name(item)}")
    return Int(len(encoded(item)) if isinstance(item, str) else len(item))


def _not(arguments: list[Value]) -> Value:
    return not is_true(arguments[0])


def _kind(value: Value) -> str:
    """The kinds that can be compared; empty for all others.  Whole numbers compare whatever their types are."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    return next((name for kind, name in ((float, "float"), (complex, "complex"), (str, "string")) if isinstance(value, kind)), "")


def _incompatible(left: Value, right: Value) -> CallError:
    return CallError(f"incompatible types for comparison: {type_name(left)} and {type_name(right)}")


def _eq(arguments: list[Value]) -> Value:
    left, others = unboxed(arguments[0]), arguments[1:]
    if not others:
        raise CallError("missing argument for comparison")
    return any(_equal(left, unboxed(other)) for other in others)


def _equal(left: Value, right: Value) -> bool:
    if INVALID in (left, right) or not (_kind(left) or _kind(right)):
        return _equal_composites(left, right)
    if _kind(left) != _kind(right):
        raise _incompatible(left, right)
    return bool(left == right)


def _equal_composites(left: Value, right: Value) -> bool:
    """Maps and lists cannot be compared, except with nothing."""
    if left is INVALID or right is INVALID:
        return left is right
    if type(left) is not type(right):
        raise CallError(f"non-comparable types {shown(left, 's')}: {type_name(left)}, {type_name(right)}: {shown(right)}")
    raise CallError(f"non-comparable type {shown(right, 's')}: {type_name(right)}")


def _ne(arguments: list[Value]) -> Value:
    return not _eq(arguments)


def _less(arguments: list[Value]) -> bool:
    left, right = map(unboxed, arguments)
    kind = _kind(left)
    if not kind or not _kind(right):
        raise CallError(_BAD_COMPARISON)
    if kind != _kind(right):
        raise _incompatible(left, right)
    if kind in ("bool", "complex"):
        raise CallError(_BAD_COMPARISON)
    return bool(encoded(left) < encoded(right) if isinstance(left, str) else left < right)


def _le(arguments: list[Value]) -> Value:
    return _less(arguments) or _eq(arguments)


def _gt(arguments: list[Value]) -> Value:
    return not _le(arguments)


def _ge(arguments: list[Value]) -> Value:
    return not _less(arguments)


def _printable(arguments: list[Value]) -> str:
    """The arguments of the escaping functions, as text."""
    return sprint([NO_VALUE if value is None else value for value in map(argument, arguments)])


def _never(arguments: list[Value]) -> Value:
    raise AssertionError("execution has this function")


FUNCTIONS: dict[str, Function] = {
    "and": Function(_never, ("value",), "value"),
    "call": Function(_never, ("value",), "value"),
    "html": Function(lambda arguments: escaping.html(_printable(arguments)), (), "any", prints=True),
    "index": Function(_index, ("value",), "value"),
    "slice": Function(_slice, ("value",), "value"),
    "js": Function(lambda arguments: escaping.javascript(_printable(arguments)), (), "any", prints=True),
    "len": Function(_len, ("value",)),
    "not": Function(_not, ("value",)),
    "or": Function(_never, ("value",), "value"),
    "print": Function(lambda arguments: sprint(list(map(argument, arguments))), (), "any", prints=True),
    "printf": Function(lambda arguments: sprintf(arguments[0], list(map(argument, arguments[1:]))), ("string",), "any", prints=True),
    "println": Function(lambda arguments: sprintln(list(map(argument, arguments))), (), "any", prints=True),
    "urlquery": Function(lambda arguments: escaping.query(_printable(arguments)), (), "any", prints=True),
    "eq": Function(_eq, ("value",), "value"),
    "ge": Function(_ge, ("value", "value")),
    "gt": Function(_gt, ("value", "value")),
    "le": Function(_le, ("value", "value")),
    "lt": Function(_less, ("value", "value")),
    "ne": Function(_ne, ("value", "value")),
}
