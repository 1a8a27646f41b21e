"""Lists and sets: the functions of Kubernetes' own library, of cel-go's lists (version 3) and of its sets."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

from slipway.embedded.apiextensions.cel import values
from slipway.embedded.apiextensions.cel.functions import Functions, of_elements
from slipway.embedded.apiextensions.cel.library.operators import signed, unsigned
from slipway.embedded.apiextensions.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    Type,
    list_of,
    optional_of,
)
from slipway.embedded.apiextensions.cel.values import NONE, Duration, EvaluationError, Maybe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FUNCTIONS = Functions()
_add, _member = FUNCTIONS.add, FUNCTIONS.member
_ORDERED = (INT, UINT, DOUBLE, BOOL, STRING, DURATION, TIMESTAMP, BYTES)
_ZEROS: dict[Type, Any] = {INT: 0, UINT: unsigned(0), DOUBLE: 0.0, DURATION: Duration(0)}
_NEW_LIST = 11
_sorted_by = functools.cmp_to_key(values.compare)


def _is_sorted(items: Any) -> bool:
    listed = list(items)
    return all(values.compare(one, other) <= 0 for one, other in itertools.pairwise(listed))


def _sum(zero: Any) -> Callable[[Any], Any]:
    def of(items: Any) -> Any:
        if isinstance(zero, Duration):
            return Duration(signed(sum(item.nanoseconds for item in items)))
        total = sum(items, zero)
        return total if isinstance(zero, float) else signed(int(total)) if type(zero) is int else unsigned(int(total))

    return of


def _extreme(name: str, sign: int) -> Callable[[Any], Any]:
    def of(items: Any) -> Any:
        if len(items) == 0:
            raise EvaluationError(f"{name} called on empty list")
        found = items[0]
        for item in items:
            found = item if values.compare(item, found) * sign > 0 else found
        return found

    return of


def _index_of(items: Any, wanted: Any) -> int:
    return next((index for index, item in enumerate(items) if values.equal(item, wanted)), -1)


def _last_index_of(items: Any, wanted: Any) -> int:
    return max((index for index, item in enumerate(items) if values.equal(item, wanted)), default=-1)


def _sort(items: Any) -> list[Any]:
    return sorted(items, key=_sorted_by)


def _slice(items: Any, start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items)[start:end]


def _flattened(items: Any, depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    made: list[Any] = []
    for item in items:
        if isinstance(item, values.LISTS) and depth > 0:
            made += _flattened(item, depth - 1)
        else:
            made.append(item)
    return made


def _distinct(items: Any) -> list[Any]:
    made: list[Any] = []
    for item in items:
        if not any(values.equal(item, other) for other in made):
            made.append(item)
    return made


def _range(count: int) -> list[int]:
    if count > 1_000_000:
        raise values.CostError
    return list(range(count))


def _contains(items: Any, wanted: Any) -> bool:
    return all(any(values.equal(item, each) for item in items) for each in wanted)


def _size_of_result(arguments: Sequence[Any], result: Any) -> int:
    return _NEW_LIST + values.size(result)


def _flattening(arguments: Sequence[Any], result: Any) -> int:
    depth = arguments[1] if len(arguments) == 2 else 1
    return int(_NEW_LIST + depth * values.size(arguments[0]))


def _self_comparison(arguments: Sequence[Any], result: Any) -> int:
    """Every element with every other, and strings cost more."""
    items = arguments[0]
    factor = 2.1 if len(items) and isinstance(items[0], (str, bytes)) else 2.0
    return _NEW_LIST + int(factor * len(items) ** 2)


def _product(factor: int) -> Callable[[Sequence[Any], Any], int]:
    return lambda arguments, result: 1 + values.size(arguments[0]) * values.size(arguments[1]) * factor


for _type in _ORDERED:
    _member("isSorted", [list_of(_type)], BOOL, _is_sorted, of_elements)
    _member("max", [list_of(_type)], _type, _extreme("max", 1), of_elements)
    _member("min", [list_of(_type)], _type, _extreme("min", -1), of_elements)
    _member("sort", [list_of(_type)], list_of(_type), _sort, _self_comparison)
for _type, _zero in _ZEROS.items():
    _member("sum", [list_of(_type)], _type, _sum(_zero), of_elements)
_member("indexOf", [list_of(A), A], INT, _index_of, of_elements)
_member("lastIndexOf", [list_of(A), A], INT, _last_index_of, of_elements)
_member("slice", [list_of(A), INT, INT], list_of(A), _slice, _size_of_result)
_member("flatten", [list_of(list_of(A))], list_of(A), _flattened, _flattening)
_member("flatten", [list_of(DYN), INT], list_of(DYN), _flattened, _flattening)
_member("reverse", [list_of(A)], list_of(A), lambda items: list(items)[::-1], _size_of_result)
_member("distinct", [list_of(A)], list_of(A), _distinct, _self_comparison)
_member("first", [list_of(A)], optional_of(A), lambda items: Maybe(items[0], True) if len(items) else NONE)
_member("last", [list_of(A)], optional_of(A), lambda items: Maybe(items[len(items) - 1], True) if len(items) else NONE)
_add("optional.unwrap", [list_of(optional_of(A))], list_of(A), lambda items: [item.value for item in items if item.is_there])
_member("unwrapOpt", [list_of(optional_of(A))], list_of(A), lambda items: [item.value for item in items if item.is_there])
_add("lists.range", [INT], list_of(INT), _range, _size_of_result)
_add("sets.contains", [list_of(A), list_of(A)], BOOL, _contains, _product(1))
_add("sets.equivalent", [list_of(A), list_of(A)], BOOL, lambda one, other: _contains(one, other) and _contains(other, one), _product(2))
_add("sets.intersects", [list_of(A), list_of(A)], BOOL, lambda one, other: any(values.equal(a, b) for a in one for b in other), _product(1))
