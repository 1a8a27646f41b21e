"""Text made safe for HTML, JavaScript and the query of a URL, as the functions ``html``, ``js`` and ``urlquery`` do it."""

from __future__ import annotations

from slipway.api.machinery.gotemplate.quoting import encoded, is_byte

_HTML = str.maketrans({"\0": "\ufffd", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;"})
_JAVASCRIPT = {"\\": r"\\", "'": r"\'", '"': r"\"", "<": r"\u003C", ">": r"\u003E", "&": r"\u0026", "=": r"\u003D"}


def html(text: str) -> str:
    return text.translate(_HTML)


def javascript(text: str) -> str:
    return "".join(_JAVASCRIPT.get(character) or _javascript(character) for character in text)


def _javascript(character: str) -> str:
    is_plain = " " <= character < "\x80" or character.isprintable() or is_byte(character)
    return character if is_plain else f"\\u{ord(character):04X}"


def query(text: str) -> str:
    from urllib.parse import quote_plus

    return quote_plus(encoded(text))
