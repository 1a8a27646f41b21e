"""Regular expressions of schemas: Go's RE2 syntax, carried out by Python's ``re``.

The two agree on what schemas use, with a few differences that are translated here: ``$`` and ``\\z`` mean the very end of the
text, POSIX classes are spelt out, and ``\\d``, ``\\w`` and ``\\s`` know ASCII only.
"""

from __future__ import annotations

import functools
import re

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7F",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1F\\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


@functools.lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str] | None:
    """The expression, or nothing where Python cannot read it: the caller says so in its own words."""
    try:
        return re.compile(_translated(pattern), re.ASCII)
    except re.error:
        return None


def _translated(pattern: str) -> str:
    parts: list[str] = []
    position, in_class = 0, False
    while position < len(pattern):
        character = pattern[position]
        if character == "\\" and position + 1 < len(pattern):
            following = pattern[position + 1]
            parts.append("\\Z" if following == "z" and not in_class else character + following)
            position += 2
            continue
        if in_class and character == "[" and (name := re.match(r"\[:(\^?)(\w+):\]", pattern[position:])) and not name[1]:
            parts.append(_POSIX.get(name[2], name[0]))
            position += len(name[0])
            continue
        if character == "[" and not in_class:
            in_class = True
            # A bracket that stands first in its class is a member of it.
            head = re.match(r"\[\^?\]?", pattern[position:])
            text = head[0] if head else "["
            parts.append(text.replace("]", "\\]"))
            position += len(text)
            continue
        if character == "]" and in_class:
            in_class = False
        parts.append("\\Z" if character == "$" and not in_class else "\\[" if character == "[" else character)
        position += 1
    return "".join(parts)
