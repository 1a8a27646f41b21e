r"""Go's quoted text: strconv's Quote and Unquote.

Go's strings are bytes.  Here they are str, with each byte that is no UTF-8 as a lone surrogate (PEP 383), so that ``"\xff"`` keeps its
length.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.machinery.gotemplate.budget import Budget

_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
_UNESCAPES = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_REPLACEMENT = "\ufffd"
_BYTE = re.compile("[\udc80-\udcff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NOT_IN_BACKQUOTES = re.compile("[\0-\x08\n-\x1f`\x7f\ufeff\udc80-\udcff]")
# An escape as it should be, or what may not stand in quotes.
_ESCAPED = re.compile(r'\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|([abfnrtv\\"]))|["\\\n]')
# Characters that are escaped at once, between two looks at the length.
_PIECE = 1 << 16


def encoded(text: str) -> bytes:
    """The bytes of a Go string."""
    return text.encode("utf-8", "surrogateescape")


def decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(encoded(text))


def joined(text: str) -> str:
    """Text whose pieces were put together: half characters that now are whole become characters."""
    return text if text.isascii() or not _BYTE.search(text) else decoded(encoded(text))


def replaced(text: str) -> str:
    """Text for the outside, with the replacement character for every byte that is no UTF-8, as Go's JSON has it."""
    return text if text.isascii() else _SURROGATE.sub(_REPLACEMENT, text)


def is_byte(character: str) -> bool:
    """Whether it stands for a byte that is no UTF-8."""
    return "\udc80" <= character <= "\udcff"


def expanded(text: str, escape: Callable[[str], str], budget: Budget | None) -> str:
    """Text with every character replaced by what ``escape`` makes of it, piece by piece: it may become twelve times as long."""
    characters = set(text)
    if budget is not None:
        budget.scan(len(text))
        budget.step(2 * len(characters))
    table = {character: escape(character) for character in characters}
    if all(character == replacement for character, replacement in table.items()):
        return text
    pieces: list[str] = []
    length = 0
    for start in range(0, len(text), _PIECE):
        piece = "".join(map(table.__getitem__, text[start : start + _PIECE]))
        length += len(piece)
        if budget is not None:
            budget.reserve(length)
            budget.copy(len(piece))
        pieces.append(piece)
    return "".join(pieces)


def quote(text: str, *, mark: str = '"', ascii_only: bool = False, budget: Budget | None = None) -> str:
    """strconv.Quote, QuoteToASCII and, with the mark ``'``, QuoteRune."""
    if text.isprintable() and mark not in text and "\\" not in text and (text.isascii() or not ascii_only):
        return f"{mark}{text}{mark}"
    return f"{mark}{expanded(text, lambda character: _escaped(character, mark, ascii_only), budget)}{mark}"


def _escaped(character: str, mark: str, ascii_only: bool) -> str:
    code = ord(character)
    if is_byte(character):
        return f"\\x{code - 0xDC00:02x}"
    if character in (mark, "\\"):
        return "\\" + character
    if character.isprintable() and (code < 0x80 or not ascii_only):
        return character
    if character in _ESCAPES:
        return _ESCAPES[character]
    if code < 0x80:
        return f"\\x{code:02x}"
    if 0xD800 <= code <= 0xDFFF:
        return "\\ufffd"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def can_backquote(text: str) -> bool:
    return _NOT_IN_BACKQUOTES.search(text) is None


def unquote(literal: str) -> str:
    """The text of a literal in double or back quotes; ValueError with Go's words where it is none."""
    if literal[0] == "`":
        return literal[1:-1].replace("\r", "")
    return joined(_ESCAPED.sub(_unescaped, literal[1:-1]))


def _unescaped(escape: re.Match[str]) -> str:
    byte, rune, long_rune, octal, kind = escape.groups()
    if kind:
        return chr(_UNESCAPES.get(kind, ord('"')))
    if rune or long_rune:
        code = int(rune or long_rune, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise ValueError("invalid syntax")
        return chr(code)
    code = int(byte, 16) if byte else int(octal, 8) if octal else 256
    if code > 255:
        raise ValueError("invalid syntax")
    return chr(code) if code < 0x80 else chr(0xDC00 + code)


def unquote_character(text: str, mark: str) -> tuple[int, bool, str]:
    """The first character of the inside of a literal, whether it is a rune (or a byte), and the rest."""
    first = text[:1]
    if first in ("", mark, "\n"):
        raise ValueError("invalid syntax")
    if first != "\\":
        return ord(first), True, text[1:]
    kind, rest = text[1:2], text[2:]
    if kind in _HEX_DIGITS:
        count = _HEX_DIGITS[kind]
        code = _number(rest[:count], count, 16)
        if kind != "x" and (code > 0x10FFFF or 0xD800 <= code <= 0xDFFF):
            raise ValueError("invalid syntax")
        return code, kind != "x", rest[count:]
    if kind and kind in "01234567":
        code = _number(kind + rest[:2], 3, 8)
        if code > 255:
            raise ValueError("invalid syntax")
        return code, False, rest[2:]
    if kind == mark:
        return ord(kind), True, rest
    if kind not in _UNESCAPES:
        raise ValueError("invalid syntax")
    return _UNESCAPES[kind], True, rest


def _number(digits: str, count: int, base: int) -> int:
    if len(digits) != count or not (digits.isascii() and digits.isalnum()):
        raise ValueError("invalid syntax")
    try:
        return int(digits, base)
    except ValueError:
        raise ValueError("invalid syntax") from None
