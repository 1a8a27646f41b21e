r"""Go's quoted text: strconv's Quote and Unquote.

Go's strings are bytes.  Here they are str, with each byte that is no UTF-8 as a lone surrogate (PEP 383), so that ``"\xff"`` keeps its
length.
"""

from __future__ import annotations

_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
_UNESCAPES = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_REPLACEMENT = "\ufffd"


def encoded(text: str) -> bytes:
    """The bytes of a Go string."""
    return text.encode("utf-8", "surrogateescape")


def decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def joined(text: str) -> str:
    """Text whose pieces were put together: half characters that now are whole become characters."""
    return text if text.isascii() or not any(map(is_byte, text)) else decoded(encoded(text))


def replaced(text: str) -> str:
    """Text for the outside, with the replacement character for every byte that is no UTF-8, as Go's JSON has it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(_REPLACEMENT if 0xD800 <= ord(character) <= 0xDFFF else character for character in text)
    return text


def is_byte(character: str) -> bool:
    """Whether it stands for a byte that is no UTF-8."""
    return "\udc80" <= character <= "\udcff"


def quote(text: str, *, mark: str = '"', ascii_only: bool = False) -> str:
    """strconv.Quote, QuoteToASCII and, with the mark ``'``, QuoteRune."""
    return f"{mark}{''.join(_escaped(character, mark, ascii_only) for character in text)}{mark}"


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
    return all(character == "\t" or (character >= " " and character not in "`\x7f\ufeff" and not is_byte(character)) for character in text)


def unquote(literal: str) -> str:
    """The text of a literal in double or back quotes; ValueError with Go's words where it is none."""
    if literal[0] == "`":
        return literal[1:-1].replace("\r", "")
    data, rest = bytearray(), literal[1:]
    while rest and rest[0] != '"':
        code, is_rune, rest = unquote_character(rest, '"')
        data += encoded(chr(code)) if is_rune else bytes([code])
    if rest != '"':
        raise ValueError("invalid syntax")
    return decoded(bytes(data))


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
