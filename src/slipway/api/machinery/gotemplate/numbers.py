"""Numbers as the text of a template writes them: ``42``, ``0x2A``, ``1_000``, ``1e3``, ``'a'``, ``1+2i``."""

from __future__ import annotations

import re

from slipway.api.machinery.gotemplate.quoting import quote, unquote_character

_INTEGER = re.compile(r"[+-]?(?:0[xX](?P<hex>[0-9a-fA-F_]+)|0[bB](?P<bin>[01_]+)|0[oO]?(?P<oct>[0-7_]+)|(?P<dec>[0-9][0-9_]*))\Z")
_DECIMAL = re.compile(r"[+-]?[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9][0-9_]*)?\Z")
_HEXADECIMAL = re.compile(r"[+-]?0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?[pP][+-]?[0-9][0-9_]*\Z")
# The sign between the parts of a complex number is the last one that belongs to no exponent.
_COMPLEX = re.compile(r"(?P<real>.+)(?<![eEpP])(?P<imaginary>[+-].+)i\Z")
_FLOAT_WORD = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?|[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]*)?)\Z",
)
_BASES = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
# Underscores stand between digits, or between the prefix of the base and a digit.
_BAD_UNDERSCORE = re.compile(r"(?:^|[^0-9])_|_(?:$|[^0-9])")
_BAD_UNDERSCORE_IN_HEXADECIMAL = re.compile(r"(?:^|[^0-9a-fA-F])_|_(?:$|[^0-9a-fA-F])")
_PREFIX = re.compile(r"[+-]?(?:0([xXoObB]))?")


def character(text: str) -> int:
    """A character constant; ValueError with Go's words."""
    code, is_rune, rest = unquote_character(text[1:], "'")
    if rest != "'":
        raise ValueError(f"malformed character constant: {text}")
    return code if not is_rune or not 0xD800 <= code <= 0xDFFF else 0xFFFD


def number(text: str) -> int | float | complex | None:
    """A number; None for one of 64 bits without a sign that Go's int cannot hold; ValueError with Go's words."""
    if text.endswith("i"):
        imaginary = _float(text[:-1])
        if imaginary is not None:
            return complex(0, imaginary)
    whole = _integer(text)
    if whole is not None and -(1 << 63) <= whole < 1 << 63:
        return whole
    if whole is not None and 0 <= whole < 1 << 64 and text[0] not in "+-":
        return None
    value = _float(text)
    if value is None:
        raise ValueError(f"illegal number syntax: {quote(text)}")
    if not any(mark in text for mark in ".eEpP"):
        raise ValueError(f"integer overflow: {quote(text)}")
    return value


def complex_number(text: str) -> complex:
    match = _COMPLEX.match(text)
    if match is None or not all(map(_FLOAT_WORD.match, match.groups())):
        raise ValueError("syntax error scanning complex number")
    values = []
    for part in match.groups():
        value = _float(part)
        if value is None:
            raise ValueError(f"strconv.ParseFloat: parsing {quote(part)}: invalid syntax")
        values.append(value)
    return complex(*values)


def _integer(text: str) -> int | None:
    match = _INTEGER.match(text)
    if match is None or _has_bad_underscore(text):
        return None
    kind = match.lastgroup or "dec"
    digits = match[kind].replace("_", "")
    # A leading zero means octal, so 08 is no number.
    if not digits or (kind == "dec" and digits[0] == "0" and digits != "0"):
        return None
    value = int(digits, _BASES[kind])
    return -value if text[0] == "-" else value


def _float(text: str) -> float | None:
    if _has_bad_underscore(text):
        return None
    plain = text.replace("_", "")
    try:
        if _HEXADECIMAL.match(text):
            return float.fromhex(plain)
        value = float(plain) if _DECIMAL.match(text) else None
    except (ValueError, OverflowError):
        return None
    return None if value in (float("inf"), float("-inf")) else value


def _has_bad_underscore(text: str) -> bool:
    prefix = _PREFIX.match(text)
    if "_" not in text or prefix is None:
        return False
    pattern = _BAD_UNDERSCORE_IN_HEXADECIMAL if prefix[1] in ("x", "X") else _BAD_UNDERSCORE
    # The prefix counts as a digit.
    return pattern.search(("0" if prefix[1] else "") + text[prefix.end() :]) is not None
