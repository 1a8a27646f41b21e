"""What ``format`` makes of a template: %s, %d, %f, %e, %b, %x, %X and %o, each for values of some types."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.machinery.fieldpath import quoted
from slipway.embedded.apiextensions.cel import values
from slipway.embedded.apiextensions.cel.library.standard import to_string
from slipway.embedded.apiextensions.cel.types import Type
from slipway.embedded.apiextensions.cel.values import Duration, EvaluationError, Timestamp, Uint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PRECISION = 6
_PLAIN = frozenset(("string", "bool", "bytes", "int", "uint", "double", "map", "list", "type", "duration", "timestamp", "null_type"))
_WHOLE = frozenset(("int", "uint"))
_FLOATING = frozenset(("double",))
_STRINGS = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
_HEX = _WHOLE | {"string", "bytes"}, "only integers, byte buffers, and strings can be formatted as hex"
_CLAUSES = {
    "s": (_PLAIN, _STRINGS),
    "d": (_WHOLE, "decimal clause can only be used on integers"),
    "f": (_FLOATING, "fixed-point clause can only be used on doubles"),
    "e": (_FLOATING, "scientific clause can only be used on doubles"),
    "b": (_WHOLE | {"bool"}, "only integers and bools can be formatted as binary"),
    "x": _HEX,
    "X": _HEX,
    "o": (_WHOLE, "octal clause can only be used on integers"),
}
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_NAMES = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}


class _Clause(NamedTuple):
    verb: str
    precision: int


class FormatFault(NamedTuple):
    """What is wrong with a template, or with the argument of this number."""

    message: str
    argument: int | None = None


def formatted(template: str, arguments: Any) -> str:
    """The template with its arguments filled in."""
    made: list[str] = []
    taken = 0
    for part in _parts(template):
        if isinstance(part, str):
            made.append(part)
            continue
        if taken >= len(arguments):
            raise EvaluationError(f"index {taken} out of range")
        made.append(_filled(part, arguments[taken]))
        taken += 1
    return "".join(made)


def problem(template: str, types: Sequence[Type]) -> FormatFault | None:
    """What is wrong with a template for arguments of these types, as far as types tell."""
    taken = 0
    try:
        for part in _parts(template):
            if isinstance(part, str):
                continue
            if taken >= len(types):
                return FormatFault(f"index {taken} out of range")
            kind = types[taken].kind
            unclear = kind in ("dyn", "object") or (part.verb in "fe" and kind == "string")
            if not unclear and kind not in _CLAUSES[part.verb][0]:
                return FormatFault(_mismatch(part.verb, kind), taken)
            taken += 1
    except EvaluationError as error:
        return FormatFault(str(error))
    return None


def _parts(template: str) -> Iterator[str | _Clause]:
    at = 0
    while at < len(template):
        if template[at] != "%":
            end = template.find("%", at)
            end = len(template) if end < 0 else end
            yield template[at:end]
            at = end
        elif template[at : at + 2] == "%%":
            yield "%"
            at += 2
        else:
            at, precision = _precision(template, at + 1)
            if at >= len(template):
                raise EvaluationError("unexpected end of string")
            if template[at] not in _CLAUSES:
                raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{template[at]}"')
            yield _Clause(template[at], precision)
            at += 1


def _precision(template: str, at: int) -> tuple[int, int]:
    if template[at : at + 1] != ".":
        return at, _PRECISION
    end = at + 1
    while template[end : end + 1].isdigit():
        end += 1
    if end >= len(template):
        raise EvaluationError("error while parsing precision: could not find end of precision specifier")
    return end, int(template[at + 1 : end] or "0")


def _filled(clause: _Clause, value: Any) -> str:
    verb, kind = clause.verb, values.type_of(value).kind
    if kind not in _CLAUSES[verb][0] and not (verb in "fe" and value in _NO_NUMBERS):
        raise EvaluationError(_mismatch(verb, kind))
    if verb == "s":
        return shown(value)
    if verb in "fe":
        return _floating(float(value), verb, clause.precision)
    if verb in "xX" and isinstance(value, (str, bytes)):
        text = (value.encode() if isinstance(value, str) else value).hex()
        return text.upper() if verb == "X" else text
    return f"{int(value):{verb}}"


def _mismatch(verb: str, kind: str) -> str:
    return f"error during formatting: {_CLAUSES[verb][1]}, was given {_NAMES.get(kind, kind)}"


def _floating(number: float, verb: str, precision: int) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    if verb == "f":
        return f"{number:.{precision}f}"
    mantissa, exponent = f"{number:.{precision}e}".split("e")
    return f"{mantissa}\u202f×\u202f10{exponent[0].replace('+', '⁺').replace('-', '⁻')}{exponent[1:].translate(_RAISED)}"


def shown(value: Any, *, inside: bool = False) -> str:
    """A value as ``%s`` prints it; inside a list or a map as a literal of CEL."""
    if isinstance(value, values.LISTS):
        return f"[{', '.join(shown(each, inside=True) for each in value)}]"
    if isinstance(value, values.MAPS):
        entries = sorted((shown(key, inside=True), shown(value.find(key).value, inside=True)) for key in value)
        return "{" + ", ".join(f"{key}:{each}" for key, each in entries) + "}"
    if value is None:
        return "null"
    if not inside or isinstance(value, (bool, int, Uint, Type)):
        return to_string(value)
    if isinstance(value, float):
        return f"{value:.{_PRECISION}f}"
    if isinstance(value, (Timestamp, Duration)):
        return f"{values.type_of(value).kind}({quoted(to_string(value))})"
    return f"b{quoted(to_string(value))}" if isinstance(value, bytes) else quoted(to_string(value))
