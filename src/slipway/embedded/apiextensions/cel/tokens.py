"""The tokens of CEL."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from slipway.embedded.apiextensions.cel.values import Uint


class MalformedError(Exception):
    """An expression that is none; ``position`` counts characters from its beginning."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position, self.message = position, message


class Token(NamedTuple):
    """``kind`` is "name", "literal", "end", or the operator itself."""

    kind: str
    position: int
    value: Any = None


_PATTERN = re.compile(
    r"""(?P<space>(?:[ \t\r\n\f]|//[^\n]*)+)
    |(?P<text>[bB]?[rR]?(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^\\"\n\r])*"|'(?:\\.|[^\\'\n\r])*')
        |[bB]?[rR](?:"[^"\n\r]*"|'[^'\n\r]*'))
    |(?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<int>(?:0x[0-9a-fA-F]+|\d+)[uU]?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<quoted>`[A-Za-z0-9_./\- ]+`)
    |(?P<operator>==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_RAW = re.compile(r"""[bB]?[rR](?:\"\"\".*?\"\"\"|'''.*?'''|"[^"\n\r]*"|'[^'\n\r]*')""", re.DOTALL)
_WORDS = {"true": True, "false": False, "null": None}
RESERVED = frozenset(
    {"as", "break", "const", "continue", "else", "for", "function", "if", "import"}
    | {"let", "loop", "package", "namespace", "return", "var", "void", "while"}
)
_ESCAPE = re.compile(r"\\(?:([abfnrtv\"'\\?`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_HIGHEST, _HIGHEST_UNSIGNED = 2**63, 2**64 - 1


def tokenized(text: str) -> list[Token]:
    """The tokens of an expression, with one that says where it ends."""
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = _RAW.match(text, at) or _PATTERN.match(text, at)
        if found is None:
            raise MalformedError(at, f"Syntax error: token recognition error at: '{text[at]}'")
        kind = "text" if found.re is _RAW else found.lastgroup or ""
        if kind != "space":
            tokens.append(_token(kind, found.group(), at))
        at = found.end()
    tokens.append(Token("end", len(text), "<EOF>"))
    return tokens


def _token(kind: str, text: str, at: int) -> Token:
    if kind == "operator":
        return Token(text, at, text)
    if kind == "name":
        if text in _WORDS:
            return Token("literal", at, _WORDS[text])
        return Token("in" if text == "in" else "name", at, text)
    if kind == "quoted":
        return Token("quoted", at, text[1:-1])
    if kind == "float":
        return Token("literal", at, float(text))
    if kind == "int":
        return Token("literal", at, _integer(text, at))
    return Token("literal", at, _text(text, at))


def _integer(text: str, at: int) -> int:
    """A number; the least of all integers has its sign apart, so that one more than the highest is let pass here."""
    digits = text.rstrip("uU")
    value = int(digits, 16) if digits.startswith("0x") else int(digits)
    if digits != text:
        if value > _HIGHEST_UNSIGNED:
            raise MalformedError(at, "invalid uint literal")
        return Uint(value)
    if value > _HIGHEST:
        raise MalformedError(at, "invalid int literal")
    return value


def _text(text: str, at: int) -> str | bytes:
    is_bytes = text[0] in "bB"
    text = text[is_bytes:]
    is_raw = text[0] in "rR"
    text = text[is_raw:]
    body = text[3:-3] if text[:3] in ('"""', "'''") and len(text) >= 6 else text[1:-1]
    body = body.replace("\r\n", "\n").replace("\r", "\n")
    if is_bytes:
        return body.encode() if is_raw else _unescaped_bytes(body, at)
    return body if is_raw else _ESCAPE.sub(lambda found: _character(found, at), body)


def _character(found: re.Match[str], at: int) -> str:
    simple, byte, short, long, octal, wrong = found.groups()
    if wrong is not None:
        raise MalformedError(at, f"Syntax error: token recognition error at: '{found.group()}'")
    if simple is not None:
        return _CONTROL.get(simple, simple)
    code = int(byte or short or long, 16) if octal is None else int(octal, 8)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise MalformedError(at, "invalid unicode code point")
    return chr(code)


def _unescaped_bytes(body: str, at: int) -> bytes:
    """In bytes ``\\xff`` and ``\\377`` are octets, not characters."""
    made, last = b"", 0
    for found in _ESCAPE.finditer(body):
        made += body[last : found.start()].encode()
        octet = found.group(2) or found.group(5)
        made += bytes([int(octet, 16 if found.group(2) else 8)]) if octet else _character(found, at).encode()
        last = found.end()
    return made + body[last:].encode()
