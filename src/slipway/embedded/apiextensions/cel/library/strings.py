"""The functions on strings of cel-go's extension, version 2, and the regular expressions of Kubernetes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from slipway.embedded.apiextensions import formats
from slipway.embedded.apiextensions.cel.functions import Functions, of_elements, of_first, of_pattern, traversal, twice_first
from slipway.embedded.apiextensions.cel.library import formatting
from slipway.embedded.apiextensions.cel.types import DYN, INT, STRING, list_of
from slipway.embedded.apiextensions.cel.values import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Sequence

FUNCTIONS = Functions()
_add, _member = FUNCTIONS.add, FUNCTIONS.member
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


_member("format", [STRING, list_of(DYN)], STRING, formatting.formatted, of_first)


# Regular expressions: RE2, as everywhere in the server.


@functools.lru_cache(maxsize=512)
def expression(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise EvaluationError(f"error parsing regexp: {formats.reason(error)}") from None


def _find(text: str, pattern: str) -> str:
    found = expression(pattern).search(text)
    return str(found.group()) if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    found: list[str] = []
    for match in expression(pattern).finditer(text):
        found.append(match.group())
        if len(found) == limit:
            break
    return found


_member("find", [STRING, STRING], STRING, _find, of_pattern)
_member("findAll", [STRING, STRING], list_of(STRING), _find_all, of_pattern)
_member("findAll", [STRING, STRING, INT], list_of(STRING), _find_all, of_pattern)
