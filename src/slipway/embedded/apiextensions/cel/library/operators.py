"""The operators: arithmetic that overflows as Go's integers do, comparisons, ``in``, indexes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn

from slipway.embedded.apiextensions.cel import times, values
from slipway.embedded.apiextensions.cel.functions import Functions, of_both, of_smaller
from slipway.embedded.apiextensions.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    B,
    list_of,
    map_of,
    optional_of,
)
from slipway.embedded.apiextensions.cel.values import NONE, EvaluationError, ListData, Maybe, Uint

if TYPE_CHECKING:
    from collections.abc import Sequence

FUNCTIONS = Functions()


def signed(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise EvaluationError("integer overflow")
    return number


def unsigned(number: int) -> Uint:
    if not 0 <= number < 2**64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(number)


def _whole(one: int, other: int) -> int:
    """Go's division cuts towards zero."""
    if other == 0:
        raise EvaluationError("division by zero")
    return abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)


def _rest(one: int, other: int) -> int:
    if other == 0:
        raise EvaluationError("modulus by zero")
    return one - other * _whole(one, other)


def _ratio(one: float, other: float) -> float:
    if other == 0:
        return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, one) * math.copysign(1, other)
    return one / other


def plus(one: Any, other: Any) -> Any:
    return one.plus(other) if isinstance(one, ListData) else [*one, *other]


def _index(of: Any, key: Any) -> Any:
    found = find(of, key)
    return found.value if found.is_there else missing(of, key)


def missing(of: Any, key: Any) -> NoReturn:
    """What is said of an element or an entry that is not there."""
    if isinstance(of, values.LISTS):
        raise EvaluationError(f"index out of bounds: {key}")
    raise EvaluationError(f"no such key: {_shown(key)}")


def find(of: Any, key: Any) -> Maybe:
    """The element of a list or the entry of a map."""
    if isinstance(of, Maybe):
        return find(of.value, key) if of.is_there else NONE
    if isinstance(of, values.MAPS):
        return of.find(key)
    if not isinstance(of, values.LISTS):
        return NONE
    if not values.is_number(key) or key != int(key):
        raise EvaluationError(f"unsupported index value {key} in list")
    return Maybe(of[int(key)], True) if 0 <= key < len(of) else NONE


def _shown(key: Any) -> str:
    return {True: "true", False: "false"}[key] if isinstance(key, bool) else str(key)


def _in_list(element: Any, within: Any) -> bool:
    return any(values.equal(element, each) for each in within)


def _in_map(key: Any, within: Any) -> bool:
    found: Maybe = within.find(key)
    return found.is_there


def _length_of_second(arguments: Sequence[Any], result: Any) -> int:
    return values.size(arguments[1])


def _inserted(into: Any, *entry: Any) -> Any:
    made = values.Map()
    for key in into:
        made.put(key, into.find(key).value)
    pairs = [entry] if len(entry) == 2 else [(key, entry[0].find(key).value) for key in entry[0]]
    for key, value in pairs:
        if key in made:
            raise EvaluationError(f"insert failed: key {_shown(key)} already exists")
        made.put(key, value)
    return made


_add, _member = FUNCTIONS.add, FUNCTIONS.member

for _name in ("_&&_", "_||_"):
    _add(_name, [BOOL, BOOL], BOOL, lambda *_: None)
_add("_?_:_", [BOOL, A, A], A, lambda *_: None)
_add("!_", [BOOL], BOOL, lambda value: not value)
_add("@not_strictly_false", [BOOL], BOOL, lambda value: value)
_add("_==_", [A, A], BOOL, values.equal, of_smaller)
_add("_!=_", [A, A], BOOL, lambda one, other: not values.equal(one, other), of_smaller)

_add("_+_", [BYTES, BYTES], BYTES, lambda one, other: one + other, of_both)
_add("_+_", [DOUBLE, DOUBLE], DOUBLE, lambda one, other: one + other)
_add("_+_", [DURATION, DURATION], DURATION, lambda one, other: times.span(one.nanoseconds + other.nanoseconds))
_add("_+_", [DURATION, TIMESTAMP], TIMESTAMP, lambda one, other: times.bounded(one.nanoseconds + other.nanoseconds))
_add("_+_", [TIMESTAMP, DURATION], TIMESTAMP, lambda one, other: times.bounded(one.nanoseconds + other.nanoseconds))
_add("_+_", [INT, INT], INT, lambda one, other: signed(one + other))
_add("_+_", [list_of(A), list_of(A)], list_of(A), plus)
_add("_+_", [STRING, STRING], STRING, lambda one, other: one + other, of_both)
_add("_+_", [UINT, UINT], UINT, lambda one, other: unsigned(int(one) + int(other)))
_add("_-_", [DOUBLE, DOUBLE], DOUBLE, lambda one, other: one - other)
_add("_-_", [DURATION, DURATION], DURATION, lambda one, other: times.span(one.nanoseconds - other.nanoseconds))
_add("_-_", [INT, INT], INT, lambda one, other: signed(one - other))
_add("_-_", [TIMESTAMP, DURATION], TIMESTAMP, lambda one, other: times.bounded(one.nanoseconds - other.nanoseconds))
_add("_-_", [TIMESTAMP, TIMESTAMP], DURATION, lambda one, other: times.span(one.nanoseconds - other.nanoseconds))
_add("_-_", [UINT, UINT], UINT, lambda one, other: unsigned(int(one) - int(other)))
_add("_*_", [DOUBLE, DOUBLE], DOUBLE, lambda one, other: one * other)
_add("_*_", [INT, INT], INT, lambda one, other: signed(one * other))
_add("_*_", [UINT, UINT], UINT, lambda one, other: unsigned(int(one) * int(other)))
_add("_/_", [DOUBLE, DOUBLE], DOUBLE, _ratio)
_add("_/_", [INT, INT], INT, lambda one, other: signed(_whole(one, other)))
_add("_/_", [UINT, UINT], UINT, lambda one, other: unsigned(_whole(int(one), int(other))))
_add("_%_", [INT, INT], INT, lambda one, other: signed(_rest(one, other)))
_add("_%_", [UINT, UINT], UINT, lambda one, other: unsigned(_rest(int(one), int(other))))
_add("-_", [DOUBLE], DOUBLE, lambda value: -value)
_add("-_", [INT], INT, lambda value: signed(-value))
_add("-_", [DURATION], DURATION, lambda value: times.span(-value.nanoseconds))

for _name, _holds in (
    ("_<_", lambda one, other: values.compare(one, other) < 0),
    ("_<=_", lambda one, other: values.compare(one, other) <= 0),
    ("_>_", lambda one, other: values.compare(one, other) > 0),
    ("_>=_", lambda one, other: values.compare(one, other) >= 0),
):
    for _type in (BOOL, INT, UINT, DOUBLE, TIMESTAMP, DURATION):
        _add(_name, [_type, _type], BOOL, _holds)
    for _type in (STRING, BYTES):
        _add(_name, [_type, _type], BOOL, _holds, of_smaller)
    for _one in (INT, UINT, DOUBLE):
        for _other in (INT, UINT, DOUBLE):
            if _one != _other:
                _add(_name, [_one, _other], BOOL, _holds)

_add("@in", [A, list_of(A)], BOOL, _in_list, _length_of_second)
_add("@in", [A, map_of(A, B)], BOOL, _in_map)
_add("_[_]", [list_of(A), INT], A, _index)
_add("_[_]", [map_of(A, B), A], B, _index)
_add("_[_]", [optional_of(list_of(A)), INT], optional_of(A), find)
_add("_[_]", [optional_of(map_of(A, B)), A], optional_of(B), find)
_add("_[?_]", [list_of(A), INT], optional_of(A), find)
_add("_[?_]", [map_of(A, B), A], optional_of(B), find)
_add("_[?_]", [optional_of(list_of(A)), INT], optional_of(A), find)
_add("_[?_]", [optional_of(map_of(A, B)), A], optional_of(B), find)
_add("cel.@mapInsert", [map_of(A, B), A, B], map_of(A, B), _inserted)
_add("cel.@mapInsert", [map_of(A, B), map_of(A, B)], map_of(A, B), _inserted)
