"""Places in a configuration (``etcd.local.extraArgs[2].name``) and what can be wrong at one.

The sentences follow the form of apimachinery's field errors, so that tools that read kubeadm's output read ours.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import listed

if TYPE_CHECKING:
    from collections.abc import Iterable

_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", '"': r"\"", "\\": r"\\"}

# The characters of a value that are shown.
_LONGEST = 8_192
_HTML = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


class Path:
    """An immutable path of field names, list indices and map keys."""

    __slots__ = ("_text",)

    def __init__(self, *names: str, _text: str = "") -> None:
        self._text = _text or ".".join(names)

    def child(self, *names: str) -> Path:
        return Path(_text=".".join([self._text, *names]) if self._text else ".".join(names))

    def index(self, position: int) -> Path:
        return Path(_text=f"{self._text}[{position}]")

    def key(self, key: str) -> Path:
        return Path(_text=f"{self._text}[{key}]")

    def __str__(self) -> str:
        return self._text or "<nil>"


class Fault(Enum):
    """The kinds of field error, with the words that introduce them."""

    REQUIRED = "Required value"
    INVALID = "Invalid value"
    NOT_SUPPORTED = "Unsupported value"
    FORBIDDEN = "Forbidden"
    DUPLICATE = "Duplicate value"
    TOO_LONG = "Too long"


class Fields(dict[str, object]):
    """A value whose fields are shown in their own order, as those of a Go struct are; the keys of other dicts are sorted."""


class FieldError(NamedTuple):
    """One thing wrong at one place."""

    path: Path
    fault: Fault
    value: object
    detail: str

    def __str__(self) -> str:
        head = f"{self.path}: {self.fault.value}"
        if self.fault not in (Fault.REQUIRED, Fault.FORBIDDEN, Fault.TOO_LONG):
            head += f": {_shown(self.value)}"
        return f"{head}: {self.detail}" if self.detail else head


def required(path: Path, detail: str) -> FieldError:
    return FieldError(path, Fault.REQUIRED, "", detail)


def invalid(path: Path, value: object, detail: str) -> FieldError:
    return FieldError(path, Fault.INVALID, value, detail)


def forbidden(path: Path, detail: str) -> FieldError:
    return FieldError(path, Fault.FORBIDDEN, "", detail)


def too_long(path: Path, limit: int) -> FieldError:
    return FieldError(path, Fault.TOO_LONG, "", f"may not be more than {limit} bytes")


def duplicate(path: Path, value: object) -> FieldError:
    return FieldError(path, Fault.DUPLICATE, value, "")


def not_supported(path: Path, value: object, allowed: Iterable[str]) -> FieldError:
    listed = ", ".join(quoted(item) for item in allowed)
    return FieldError(path, Fault.NOT_SUPPORTED, value, f"supported values: {listed}" if listed else "")


def aggregate(errors: Iterable[FieldError]) -> str:
    """All errors as one sentence, in the form ``[a, b]``; a single one stands alone; equal ones appear once."""
    texts = listed(errors)
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _shown(value: object) -> str:
    """A value as apimachinery 0.34 and later show it: text in Go's quotes, everything else as JSON.  Of a very long one the beginning."""
    if isinstance(value, str):
        return quoted(value) if len(value) <= _LONGEST else f"{quoted(value[:_LONGEST])}…"
    import json

    # An item takes two characters or more.
    if isinstance(value, list):
        value = value[:_LONGEST]
    elif isinstance(value, dict) and len(value) > _LONGEST:
        value = dict(sorted(value.items())[:_LONGEST])
    # Go's JSON is safe to embed in HTML.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=not isinstance(value, Fields)).translate(_HTML)
    return text if len(text) <= 2 * _LONGEST else f"{text[:_LONGEST]}…"


def quoted(text: str) -> str:
    """Go's ``%q``."""
    plain = text.isprintable() and '"' not in text and "\\" not in text
    return f'"{text}"' if plain else f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
