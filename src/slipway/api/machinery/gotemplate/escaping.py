"""Text made safe for HTML, JavaScript and the query of a URL, as the functions ``html``, ``js`` and ``urlquery`` do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.machinery.gotemplate.quoting import encoded, expanded, is_byte

if TYPE_CHECKING:
    from slipway.api.machinery.gotemplate.budget import Budget

_HTML = {"\0": "\ufffd", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;"}
_JAVASCRIPT = {"\\": r"\\", "'": r"\'", '"': r"\"", "<": r"\u003C", ">": r"\u003E", "&": r"\u0026", "=": r"\u003D"}


def html(text: str, budget: Budget) -> str:
    return expanded(text, lambda character: _HTML.get(character, character), budget)


def javascript(text: str, budget: Budget) -> str:
    return expanded(text, lambda character: _JAVASCRIPT.get(character) or _javascript(character), budget)


def _javascript(character: str) -> str:
    is_plain = " " <= character < "\x80" or character.isprintable() or is_byte(character)
    return character if is_plain else f"\\u{ord(character):04X}"


def query(text: str, budget: Budget) -> str:
    return expanded(text, _query, budget)


def _query(character: str) -> str:
    if character == " ":
        return "+"
    is_plain = character.isascii() and (character.isalnum() or character in "-_.~")
    return character if is_plain else f"%{encoded(character).hex('%').upper()}"
