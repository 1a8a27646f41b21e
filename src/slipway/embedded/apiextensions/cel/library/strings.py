"""The functions on strings of cel-go's extension, version 2, and the regular expressions of Kubernetes."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from slipway.api.machinery.fieldpath import quoted
from slipway.embedded.apiextensions.cel import values
from slipway.embedded.apiextensions.cel.functions import Functions, of_elements, of_first, of_pattern, traversal, twice_first
from slipway.embedded.apiextensions.cel.library.standard import to_string
from slipway.embedded.apiextensions.cel.types import DYN, INT, STRING, Type, list_of
from slipway.embedded.apiextensions.cel.values import Duration, EvaluationError, Timestamp, Uint

if TYPE_CHECKING:
    from collections.abc import Sequence

FUNCTIONS = Functions()
_add, _member = FUNCTIONS.add, FUNCTIONS.member
_PRECISION = 6
_LOWER = str.maketrans({chr(code): chr(code + 32) for code in range(65, 91)})
_UPPER = str.maketrans({chr(code): chr(code - 32) for code in range(97, 123)})
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return -1 if offset >= len(text) else text.find(part, offset)


def _last_index_of(text: str, part: str, offset: int | None = None) -> int:
    if offset is None:
        return len(text) if not part else text.rfind(part)
    if not part:
        return offset
    if not 0 <= offset < len(text):
        if offset < 0:
            raise _out_of_range(offset)
        return -1
    return text.rfind(part, 0, offset + len(part))


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        if not 0 <= start <= len(text):
            raise _out_of_range(start)
        return text[start:]
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, count if count >= 0 else -1)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    parts = list(text)
    return [*parts[: limit - 1], "".join(parts[limit - 1 :])] if 0 < limit < len(parts) else parts


def _join(parts: Any, separator: str = "") -> str:
    return separator.join(parts)


def _of_result(arguments: Sequence[Any], result: Any) -> int:
    return traversal(len(result), 0.2)


def _quote(text: str) -> str:
    escapes = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"'}
    return '"' + "".join(escapes.get(character, character) for character in text) + '"'


_member("charAt", [STRING, INT], STRING, _char_at)
for _name, _call in (("indexOf", _index_of), ("lastIndexOf", _last_index_of)):
    _member(_name, [STRING, STRING], INT, _call, of_elements)
    _member(_name, [STRING, STRING, INT], INT, _call, of_elements)
_member("join", [list_of(STRING)], STRING, _join, _of_result)
_member("join", [list_of(STRING), STRING], STRING, _join, _of_result)
_member("lowerAscii", [STRING], STRING, lambda text: text.translate(_LOWER), of_first)
_member("upperAscii", [STRING], STRING, lambda text: text.translate(_UPPER), of_first)
_member("replace", [STRING, STRING, STRING], STRING, _replace, twice_first)
_member("replace", [STRING, STRING, STRING, INT], STRING, _replace, twice_first)
_member("split", [STRING, STRING], list_of(STRING), _split, twice_first)
_member("split", [STRING, STRING, INT], list_of(STRING), _split, twice_first)
_member("substring", [STRING, INT], STRING, _substring, of_first)
_member("substring", [STRING, INT, INT], STRING, _substring, of_first)
_member("trim", [STRING], STRING, lambda text: text.strip(_SPACE), of_first)
_add("strings.quote", [STRING], STRING, _quote, of_first)


# What `format` fills in: %s, %d, %f, %e, %b, %x, %X and %o, each for some types.


def _formatted(template: str, arguments: Any) -> str:
    made: list[str] = []
    at = taken = 0
    while at < len(template):
        if template[at] != "%":
            made.append(template[at])
            at += 1
            continue
        if template[at : at + 2] == "%%":
            made.append("%")
            at += 2
            continue
        at, precision = _precision(template, at + 1)
        if at >= len(template):
            raise EvaluationError("unexpected end of string")
        if taken >= len(arguments):
            raise EvaluationError(f"index {taken} out of range")
        made.append(_clause(template[at], arguments[taken], precision))
        taken += 1
        at += 1
    return "".join(made)


def _precision(template: str, at: int) -> tuple[int, int]:
    if template[at : at + 1] != ".":
        return at, _PRECISION
    end = at + 1
    while template[end : end + 1].isdigit():
        end += 1
    if end >= len(template):
        raise EvaluationError("error while parsing precision: could not find end of precision specifier")
    return end, int(template[at + 1 : end] or "0")


def _clause(verb: str, value: Any, precision: int) -> str:
    kind = _kind(value)
    if verb == "s":
        return shown(value)
    if verb == "d":
        if kind not in ("int", "uint"):
            raise _mismatch("decimal clause can only be used on integers", kind)
        return str(int(value))
    if verb in "fe":
        if kind != "double" and value not in ("NaN", "Infinity", "-Infinity"):
            name = "fixed-point" if verb == "f" else "scientific"
            raise _mismatch(f"{name} clause can only be used on doubles", kind)
        return _floating(float(value), verb, precision)
    if verb == "b":
        if kind not in ("int", "uint", "bool"):
            raise _mismatch("only integers and bools can be formatted as binary", kind)
        return f"{int(value):b}"
    if verb in "xX":
        return _hexadecimal(value, kind, verb)
    if verb == "o":
        if kind not in ("int", "uint"):
            raise _mismatch("octal clause can only be used on integers", kind)
        return f"{int(value):o}"
    raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')


def _hexadecimal(value: Any, kind: str, verb: str) -> str:
    if kind in ("int", "uint"):
        return f"{int(value):{verb}}"
    if kind not in ("string", "bytes"):
        raise _mismatch("only integers, byte buffers, and strings can be formatted as hex", kind)
    text = (value.encode() if isinstance(value, str) else value).hex()
    return str(text.upper() if verb == "X" else text)


def _floating(number: float, verb: str, precision: int) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    if verb == "f":
        return f"{number:.{precision}f}"
    mantissa, exponent = f"{number:.{precision}e}".split("e")
    return f"{mantissa}\u202f×\u202f10{exponent[0].replace('+', '⁺').replace('-', '⁻')}{exponent[1:].translate(_RAISED)}"


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _kind(value: Any) -> str:
    kind = values.type_of(value).kind
    return {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}.get(kind, kind)


def _mismatch(rule: str, kind: str) -> EvaluationError:
    return EvaluationError(f"error during formatting: {rule}, was given {kind}")


def shown(value: Any, *, inside: bool = False) -> str:
    """A value as ``%s`` prints it; inside a list or a map as a literal of CEL."""
    if isinstance(value, values.LISTS):
        return f"[{', '.join(shown(each, inside=True) for each in value)}]"
    if isinstance(value, values.MAPS):
        entries = sorted((shown(key, inside=True), shown(value.find(key).value, inside=True)) for key in value)
        return "{" + ", ".join(f"{key}:{each}" for key, each in entries) + "}"
    if value is None:
        return "null"
    if not inside or isinstance(value, (bool, int, Uint)):
        if isinstance(value, (bool, int, float, str, bytes, Timestamp, Duration, Type)):
            return to_string(value)
        raise _mismatch(
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
            _kind(value),
        )
    if isinstance(value, float):
        return f"{value:.{_PRECISION}f}"
    if isinstance(value, (Timestamp, Duration)):
        return f"{values.type_of(value).kind}({quoted(to_string(value))})"
    return f"b{quoted(to_string(value))}" if isinstance(value, bytes) else quoted(to_string(value))


_member("format", [STRING, list_of(DYN)], STRING, _formatted, of_first)


# Regular expressions: RE2, as everywhere in the server.


@functools.lru_cache(maxsize=512)
def _expression(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise EvaluationError(f"Illegal regex: error parsing regexp: {error}") from None


def _find(text: str, pattern: str) -> str:
    found = _expression(pattern).search(text)
    return str(found.group()) if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    found: list[str] = []
    for match in _expression(pattern).finditer(text):
        found.append(match.group())
        if len(found) == limit:
            break
    return found


_member("find", [STRING, STRING], STRING, _find, of_pattern)
_member("findAll", [STRING, STRING], list_of(STRING), _find_all, of_pattern)
_member("findAll", [STRING, STRING, INT], list_of(STRING), _find_all, of_pattern)
