"""YAML as sigs.k8s.io/yaml marshals it, byte for byte: the choices of goyaml v2's emitter.

Keys are sorted in its natural order, a sequence is not indented under its key, lines are folded at the first space past
column 80, and the style of a scalar depends on its text alone.
"""

from __future__ import annotations

import re
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from slipway.api.machinery.yaml.scalar import format_float, json_number, needs_quotes

_WIDTH = 80
_SIMPLE_KEY_BYTES = 128

# What goyaml takes for the end of a line; of these it can print the last three.
_LINE_ENDS = "\r\x85\n\u2028\u2029"
_BREAKS = "\n\u2028\u2029"
_INDICATOR = re.compile(r"(?:---|\.\.\.|[#,\[\]{}&*!|>'\"%@`]|[?:-](?: |\Z))|.*?(?::(?: |\Z)| #)", re.DOTALL)
_ESCAPES = {
    "\0": "0", "\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r", "\x1b": "e",
    '"': '"', "\\": "\\", "\x85": "N", "\xa0": "_", "\u2028": "L", "\u2029": "P",
}  # fmt: skip


def dump(value: Any) -> str:
    """The YAML document of a JSON value."""
    out: list[str] = []
    _item(out, value, -2, 0)
    return "".join(out)


def _item(out: list[str], value: Any, indent: int, column: int) -> None:
    """Write what stands at ``column``, at the start of a document or after ``- ``, ``? `` or ``: ``, inside a block at ``indent``."""
    if isinstance(value, dict) and value:
        _mapping(out, value, indent + 2, inline=True)
    elif isinstance(value, (list, tuple)) and value:
        _sequence(out, value, indent + 2, inline=True)
    else:
        _end_line(out, _scalar(value, max(indent + 2, 2), column))


def _mapping(out: list[str], mapping: dict[str, Any], indent: int, *, inline: bool) -> None:
    margin = " " * indent
    for key in _sorted(mapping):
        if inline:
            inline = False
        else:
            out.append(margin)
        value = mapping[key]
        if len(key.encode()) > _SIMPLE_KEY_BYTES or _has_line_end(key):
            out.append("? ")
            _item(out, key, indent, indent + 2)
            out.append(f"{margin}: ")
            _item(out, value, indent, indent + 2)
            continue
        label = _string(key, indent + 2, 0, simple_key=True)
        if isinstance(value, dict) and value:
            out.append(f"{label}:\n")
            _mapping(out, value, indent + 2, inline=False)
        elif isinstance(value, (list, tuple)) and value:
            out.append(f"{label}:\n")
            _sequence(out, value, indent, inline=False)
        else:
            out.append(f"{label}: ")
            _end_line(out, _scalar(value, indent + 2, indent + len(label) + 2))


def _sequence(out: list[str], items: list[Any] | tuple[Any, ...], indent: int, *, inline: bool) -> None:
    margin = " " * indent
    for item in items:
        out.append("- " if inline else f"{margin}- ")
        inline = False
        _item(out, item, indent, indent + 2)


def _end_line(out: list[str], text: str) -> None:
    out.append(text if text[-1] in _BREAKS else f"{text}\n")


def _scalar(value: Any, indent: int, column: int) -> str:
    if isinstance(value, str):
        return _string(value, indent, column)
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        # Go has no integer outside these bounds: it would be a float there.
        return str(int(value)) if -(2**63) <= value < 2**64 else format_float(float(value))
    if isinstance(value, float):
        number = json_number(value)
        text = str(number) if isinstance(number, int) else format_float(number)
        if text in (".nan", ".inf", "-.inf"):
            raise ValueError(f"JSON has no number for {text}")
        return text
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, (list, tuple)):
        return "[]"
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _string(text: str, indent: int, column: int, *, simple_key: bool = False) -> str:
    """Choose the style: literal for several lines, else plain, else single quotes, else double quotes."""
    quoted_double = needs_quotes(text)
    multiline = _has_line_end(text)
    printable = (text.isascii() and text.isprintable()) or all(map(_is_printable, set(text)))
    space_break = multiline and any(f" {mark}" in text for mark in _BREAKS)
    if "\n" in text:
        if printable and not space_break and text[-1] != " " and not simple_key:
            return _literal(text, indent)
        quoted_double = True
    if not quoted_double and printable and not space_break:
        if not multiline and text[0] != " " and text[-1] != " " and _INDICATOR.match(text) is None:
            return text if simple_key or column + len(text) <= _WIDTH else _fold_plain(text, indent, column)
        if not multiline or (not simple_key and not any(f"{mark} " in text for mark in _BREAKS)):
            return _single_quoted(text, indent, column, fold=not simple_key)
    return _double_quoted(text, indent, column, fold=not simple_key)


def _literal(text: str, indent: int) -> str:
    hint = "2" if text[0] == " " or text[0] in _BREAKS else ""
    if text[-1] not in _BREAKS:
        hint += "-"
    elif len(text) == 1 or text[-2] in _BREAKS:
        hint += "+"
    margin = " " * indent
    body = text if text[0] in _BREAKS else margin + text
    for mark in _BREAKS:
        first, *lines = body.split(mark)
        body = mark.join([first, *(margin + line if line and line[0] not in _BREAKS else line for line in lines)])
    return f"|{hint}\n{body}"


def _fold_plain(text: str, indent: int, column: int) -> str:
    parts = text.split(" ")
    out = [parts[0]]
    column += len(parts[0])
    for before, part in pairwise(parts):
        # A run of spaces is never broken.
        if column > _WIDTH and before and part:
            out.append("\n" + " " * indent + part)
            column = indent + len(part)
        else:
            out.append(" " + part)
            column += 1 + len(part)
    return "".join(out)


def _single_quoted(text: str, indent: int, column: int, *, fold: bool) -> str:
    margin = " " * indent
    out = ["'"]
    column += 1
    last = len(text) - 1
    previous = ""
    for position, character in enumerate(text):
        if character == " " and fold and previous != " " and column > _WIDTH and 0 < position < last and text[position + 1] != " ":
            out.append("\n" + margin)
            column = indent
        elif character in _BREAKS:
            out.append(character)
            column = 0
        else:
            if previous and previous in _BREAKS:
                out.append(margin)
                column = indent
            piece = "''" if character == "'" else character
            out.append(piece)
            column += len(piece)
        previous = character
    out.append("'")
    return "".join(out)


def _double_quoted(text: str, indent: int, column: int, *, fold: bool) -> str:
    # goyaml looks for a byte order mark at the start of the text for every character: one there escapes them all.
    escape_all = text[:1] == "\ufeff"
    out = ['"']
    column += 1
    last = len(text) - 1
    after_space = False
    for position, character in enumerate(text):
        if escape_all or character in '"\\' or character in _BREAKS or not _is_printable(character):
            piece = _escape(character)
            after_space = False
        elif character == " ":
            if fold and not after_space and column > _WIDTH and 0 < position < last:
                piece = "\n" + " " * indent + ("\\" if text[position + 1] == " " else "")
                column = -1
            else:
                piece = " "
            after_space = True
        else:
            piece = character
            after_space = False
        out.append(piece)
        column += len(piece)
    out.append('"')
    return "".join(out)


def _has_line_end(text: str) -> bool:
    return not text.isprintable() and any(mark in text for mark in _LINE_ENDS)


def _is_printable(character: str) -> bool:
    """Whether goyaml prints a character as it is: no tab, no control character, nothing past the basic plane."""
    if character <= "\x7e":
        return character >= " " or character == "\n"
    return "\xa0" <= character <= "\ud7ff" or ("\ue000" <= character <= "\ufffd" and character != "\ufeff")


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return "\\" + _ESCAPES[character]
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _sorted(mapping: dict[str, Any]) -> list[str]:
    every = "".join(mapping)
    # Among ASCII letters alone the natural order is the order of the characters.
    if every.isascii() and every.isalpha():
        return sorted(mapping)
    # The natural order has cycles (v1beta1 < v2 < v10 < v1beta1), where Go's output is left to chance; ours is not.
    return sorted(sorted(mapping), key=cmp_to_key(_compare))


def _compare(a: str, b: str) -> int:
    """goyaml's natural order: other characters before letters, runs of digits by their value."""
    for position, (left, right) in enumerate(zip(a, b, strict=False)):
        if left == right:
            continue
        left_letter, right_letter = left.isalpha(), right.isalpha()
        if left_letter and right_letter:
            return -1 if left < right else 1
        if left_letter or right_letter:
            return -1 if right_letter else 1
        start = 0
        if left == "0" or right == "0":
            before = position - 1
            while before >= 0 and a[before].isdecimal():
                if a[before] != "0":
                    start = 1
                    break
                before -= 1
        left_number, left_end = _digits(a, position, start)
        right_number, right_end = _digits(b, position, start)
        if left_number != right_number:
            return -1 if left_number < right_number else 1
        if left_end != right_end:
            return -1 if left_end < right_end else 1
        return -1 if left < right else 1
    return len(a) - len(b)


def _digits(text: str, position: int, number: int) -> tuple[int, int]:
    while position < len(text) and text[position].isdecimal():
        # As in Go, a number that is too long wraps around.
        number = (number * 10 + ord(text[position]) - ord("0") + 2**63) % 2**64 - 2**63
        position += 1
    return number, position
