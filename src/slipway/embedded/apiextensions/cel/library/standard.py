"""The standard functions of CEL: sizes, conversions, dates, optional values, and ``contains``, ``matches`` and their like."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from slipway.embedded.apiextensions import formats
from slipway.embedded.apiextensions.cel import times, values
from slipway.embedded.apiextensions.cel.functions import Functions, of_first, of_pattern, of_product
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
    B,
    list_of,
    map_of,
    optional_of,
    type_of,
)
from slipway.embedded.apiextensions.cel.values import NONE, Duration, EvaluationError, Maybe, Timestamp, Uint

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

FUNCTIONS = Functions()
_add, _member = FUNCTIONS.add, FUNCTIONS.member
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def double_text(number: float) -> str:
    """Go's ``%g``: the shortest text that reads back, with an exponent below 1e-4 and from 1e6 on."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    point = len(digits) + exponent - 1
    if number == 0 or -4 <= point < 6:
        return f"{number:.{max(0, -exponent)}f}"
    text = "".join(map(str, digits))
    mantissa = f"{text[0]}.{text[1:]}" if len(text) > 1 else text
    return f"{'-' if sign else ''}{mantissa}e{'-' if point < 0 else '+'}{abs(point):02d}"


def to_string(value: Any) -> str:
    """The text of a value."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float():
            return double_text(value)
        case int():
            return str(int(value))
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
        case Timestamp():
            return times.moment_text(value)
        case Duration():
            return times.duration_text(value)
    return str(value)


def _converted(text: str, target: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except ValueError:
        raise EvaluationError(f"type conversion error from 'string' to '{target}'") from None


def _boolean(text: str) -> bool:
    if text not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[text]


def _integer(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(text)
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError(text)
    return number


def _unsigned(text: str) -> Uint:
    if not re.fullmatch(r"[0-9]+", text) or int(text) >= 2**64:
        raise ValueError(text)
    return Uint(text)


def _double(text: str) -> float:
    if text != text.strip() or "_" in text:
        raise ValueError(text)
    return float(text)


def _cut(number: float, *, is_signed: bool) -> int:
    if math.isnan(number) or math.isinf(number):
        raise EvaluationError("integer overflow" if is_signed else "unsigned integer overflow")
    return signed(int(number)) if is_signed else unsigned(int(number))


def _no_duration(number: int) -> Duration:
    """cel-go declares it, and has no such conversion."""
    raise EvaluationError("type conversion error from 'int' to 'google.protobuf.Duration'")


def _moment(text: str) -> Timestamp:
    if "T" not in text:
        raise ValueError(text)
    return times.timestamp(text)


def _matches(text: str, pattern: str) -> bool:
    try:
        return formats.matches(pattern, text)
    except formats.PatternError as error:
        raise EvaluationError(f"error parsing regexp: {error}") from None


def _value(of: Maybe) -> Any:
    if not of.is_there:
        raise EvaluationError("optional.none() dereference")
    return of.value


def _non_zero(value: Any) -> Maybe:
    is_zero = len(value) == 0 if isinstance(value, (*values.LISTS, *values.MAPS)) else value in (None, False, 0, 0.0, "", b"")
    return NONE if is_zero else Maybe(value, True)


for _type in (BYTES, list_of(A), map_of(A, B), STRING):
    _add("size", [_type], INT, len)
    _member("size", [_type], INT, len)
_add("type", [A], type_of(A), values.type_of)
_add("dyn", [A], DYN, lambda value: value)
_add("bool", [BOOL], BOOL, lambda value: value)
_add("bool", [STRING], BOOL, lambda text: _converted(text, "bool", _boolean))
_add("bytes", [BYTES], BYTES, lambda value: value)
_add("bytes", [STRING], BYTES, lambda text: text.encode(), of_first)
_add("double", [DOUBLE], DOUBLE, lambda value: value)
_add("double", [INT], DOUBLE, float)
_add("double", [STRING], DOUBLE, lambda text: _converted(text, "double", _double))
_add("double", [UINT], DOUBLE, float)
_add("duration", [DURATION], DURATION, lambda value: value)
_add("duration", [INT], DURATION, _no_duration)
_add("duration", [STRING], DURATION, lambda text: _converted(text, "google.protobuf.Duration", times.duration))
_add("int", [INT], INT, lambda value: value)
_add("int", [DOUBLE], INT, lambda value: _cut(value, is_signed=True))
_add("int", [DURATION], INT, lambda value: value.nanoseconds)
_add("int", [STRING], INT, lambda text: _converted(text, "int", _integer))
_add("int", [TIMESTAMP], INT, lambda value: value.nanoseconds // 10**9)
_add("int", [UINT], INT, lambda value: signed(int(value)))
_add("string", [STRING], STRING, to_string)
_add("string", [BOOL], STRING, to_string)
_add("string", [BYTES], STRING, to_string, of_first)
for _type in (DOUBLE, DURATION, INT, TIMESTAMP, UINT):
    _add("string", [_type], STRING, to_string)
_add("timestamp", [TIMESTAMP], TIMESTAMP, lambda value: value)
_add("timestamp", [INT], TIMESTAMP, lambda seconds: times.bounded(seconds * 10**9))
_add("timestamp", [STRING], TIMESTAMP, lambda text: _converted(text, "google.protobuf.Timestamp", _moment))
_add("uint", [UINT], UINT, lambda value: value)
_add("uint", [DOUBLE], UINT, lambda value: _cut(value, is_signed=False))
_add("uint", [INT], UINT, unsigned)
_add("uint", [STRING], UINT, lambda text: _converted(text, "uint", _unsigned))

_member("contains", [STRING, STRING], BOOL, lambda text, part: part in text, of_product)
_member("endsWith", [STRING, STRING], BOOL, lambda text, part: text.endswith(part), of_first)
_member("startsWith", [STRING, STRING], BOOL, lambda text, part: text.startswith(part), of_first)
_member("matches", [STRING, STRING], BOOL, _matches, of_pattern)
_add("matches", [STRING, STRING], BOOL, _matches, of_pattern)

_PARTS: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda date: date.year,
    "getMonth": lambda date: date.month - 1,
    "getDayOfYear": lambda date: date.timetuple().tm_yday - 1,
    "getDate": lambda date: date.day,
    "getDayOfMonth": lambda date: date.day - 1,
    "getDayOfWeek": lambda date: date.isoweekday() % 7,
    "getHours": lambda date: date.hour,
    "getMinutes": lambda date: date.minute,
    "getSeconds": lambda date: date.second,
    "getMilliseconds": lambda date: date.microsecond // 1000,
}
_SPANS = {"getHours": 3600 * 10**9, "getMinutes": 60 * 10**9, "getSeconds": 10**9}


def _part(read: Callable[[datetime], int]) -> Callable[..., int]:
    return lambda moment, zone="": read(times.calendar(moment, zone))


def _count(unit: int) -> Callable[[Duration], int]:
    return lambda span: abs(span.nanoseconds) // unit * (-1 if span.nanoseconds < 0 else 1)


for _name, _read in _PARTS.items():
    _member(_name, [TIMESTAMP], INT, _part(_read))
    _member(_name, [TIMESTAMP, STRING], INT, _part(_read))
for _name, _unit in _SPANS.items():
    _member(_name, [DURATION], INT, _count(_unit))
_member("getMilliseconds", [DURATION], INT, lambda span: abs(span.nanoseconds) // 10**6 * (-1 if span.nanoseconds < 0 else 1))

_add("optional.of", [A], optional_of(A), lambda value: Maybe(value, True))
_add("optional.ofNonZeroValue", [A], optional_of(A), _non_zero)
_add("optional.none", [], optional_of(A), lambda: NONE)
_member("value", [optional_of(A)], A, _value)
_member("hasValue", [optional_of(A)], BOOL, lambda of: of.is_there)
_member("or", [optional_of(A), optional_of(A)], optional_of(A), lambda one, other: one if one.is_there else other)
_member("orValue", [optional_of(A), A], A, lambda one, other: one.value if one.is_there else other)
