"""The string formats and the patterns that a CustomResourceDefinition's schema may ask for, checked as apiextensions 0.35 checks them.

Any other ``format`` is ignored, as it is there: ``int32`` and ``int64`` among them.  Patterns are strangers' regular expressions on
strangers' text: RE2 reads them as Go does, and takes time in proportion to the text whatever they say.
"""

from __future__ import annotations

import base64
import binascii
import functools
import ipaddress
import re
from datetime import date
from email.utils import parseaddr
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from slipway.api.machinery.duration import Duration

if TYPE_CHECKING:
    from collections.abc import Callable

_SHORT = 256
_UUID = r"[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}"
_ANY, _VARIANT = "[0-9a-f]{4}", "[89ab][0-9a-f]{3}"
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))", re.ASCII)
_HOSTNAME_LABEL = re.compile(r"[^\W_]([^\W_]|-)*(?<!-)")
_HUMAN_DURATION = r"(?i)\d\s*(ns|nano|us|µs|micro|ms|milli|s|sec|m|min|h|hr|hour|d|day|w|wk|week)"
_CARD = (
    r"4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(0[0-5]|[68][0-9])[0-9]{11}"
    r"|(2131|1800|35\d{3})\d{11}"
)
_LONG_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"


class _Expression(Protocol):
    def search(self, text: str, /) -> object | None: ...


class PatternError(Exception):
    """A pattern that Go could not read."""


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text."""
    # The same names, types and reasons are looked at again and again, and a call of RE2 costs as much as ten of Python's re.
    return _matches_short(pattern, text) if len(text) <= _SHORT else _matches(pattern, text)


def is_pattern(pattern: str) -> bool:
    try:
        _compiled(pattern)
    except PatternError:
        return False
    return True


def _matches(pattern: str, text: str) -> bool:
    return _compiled(pattern).search(text) is not None


_matches_short = functools.lru_cache(maxsize=4096)(_matches)


@functools.lru_cache(maxsize=512)
def _compiled(pattern: str) -> _Expression:
    import re2

    options = re2.Options()
    options.never_capture = True
    options.log_errors = False
    try:
        expression: _Expression = re2.compile(pattern, options)
    except re2.error as error:
        raise PatternError(reason(error)) from None
    return expression


def reason(error: Exception) -> str:
    """Why RE2 could not read a pattern, which it says in bytes."""
    told = error.args[0] if error.args else ""
    return told.decode(errors="replace") if isinstance(told, bytes) else str(told)


def is_valid(format_: str, text: str) -> bool:
    """Whether the text is of the format; true for a format that is not checked."""
    check = _CHECKS.get(format_.replace("-", ""))
    return check is None or check(text)


def is_known(format_: str) -> bool:
    return format_.replace("-", "") in _CHECKS


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10


def _is_date_time(text: str) -> bool:
    day, separator, rest = text.lower().partition("t")
    match = _TIME.fullmatch(rest)
    return bool(separator) and _is_date(day) and match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_duration(text: str) -> bool:
    try:
        Duration.parse(text)
    except ValueError:
        return matches(_HUMAN_DURATION, text)
    return True


def _is_address(text: str, version: int) -> bool:
    # Zeros in front are taken, as the real server takes them.
    bare = ".".join(part.lstrip("0") or "0" for part in text.split(".")) if "." in text and ":" not in text else text
    try:
        return ipaddress.ip_address(bare).version == version and "%" not in text
    except ValueError:
        return False


def _is_cidr(text: str) -> bool:
    address, separator, length = text.partition("/")
    version = 4 if _is_address(address, 4) else 6 if _is_address(address, 6) else 0
    return bool(separator and version) and re.fullmatch("[0-9]{1,3}", length) is not None and int(length) <= (32 if version == 4 else 128)


def _is_uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return (bool(parts.scheme) or text.startswith("/")) and not any(ord(character) <= 32 or ord(character) == 127 for character in text)


def _is_hostname(text: str) -> bool:
    labels = text.split(".")
    if len(text) > 255 or any(len(label) > 63 or not _HOSTNAME_LABEL.fullmatch(label) for label in labels):
        return False
    return len(labels) == 1 or (len(labels[-1]) >= 2 and labels[-1].isalpha())


def _is_base64(text: str) -> bool:
    try:
        return bool(text) and bool(base64.b64decode(text, validate=True)) and len(text) % 4 == 0
    except (binascii.Error, ValueError):
        return False


def _is_email(text: str) -> bool:
    address = parseaddr(text)[1]
    return address.count("@") == 1 and not address.startswith("@") and not address.endswith("@")


def _is_isbn(text: str, digits: tuple[int, ...]) -> bool:
    bare = text.replace("-", "").replace(" ", "")
    if len(bare) not in digits:
        return False
    if len(bare) == 13:
        return bare.isdecimal() and sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(bare)) % 10 == 0
    if not re.fullmatch(r"\d{9}[\dX]", bare):
        return False
    return sum((10 if digit == "X" else int(digit)) * (10 - place) for place, digit in enumerate(bare)) % 11 == 0


def _is_card(text: str) -> bool:
    bare = re.sub(r"\D", "", text)
    if not re.fullmatch(_CARD, bare):
        return False
    doubled = [int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(bare))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _is(pattern: str) -> Callable[[str], bool]:
    expression = re.compile(pattern, re.ASCII)
    return lambda text: expression.fullmatch(text) is not None


_CHECKS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _is(r"[0-9a-fA-F]{24}"),
    "uri": _is_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": lambda text: _is_address(text, 4),
    "ipv6": lambda text: _is_address(text, 6),
    "cidr": _is_cidr,
    "mac": _is(r"([0-9A-Fa-f]{2}([:-])){5,19}[0-9A-Fa-f]{2}|([0-9A-Fa-f]{4}\.){2,9}[0-9A-Fa-f]{4}"),
    "uuid": _is("(?i:" + _UUID % (_ANY, _ANY) + ")"),
    "uuid3": _is("(?i:" + _UUID % ("3[0-9a-f]{3}", _ANY) + ")"),
    "uuid4": _is("(?i:" + _UUID % ("4[0-9a-f]{3}", _VARIANT) + ")"),
    "uuid5": _is("(?i:" + _UUID % ("5[0-9a-f]{3}", _VARIANT) + ")"),
    "isbn": lambda text: _is_isbn(text, (10, 13)),
    "isbn10": lambda text: _is_isbn(text, (10,)),
    "isbn13": lambda text: _is_isbn(text, (13,)),
    "creditcard": _is_card,
    "ssn": _is(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _is(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _is(r"rgb\(\s*(([01]?\d?\d|2[0-4]\d|25[0-5])\s*,\s*){2}([01]?\d?\d|2[0-4]\d|25[0-5])\s*\)"),
    "byte": _is_base64,
    "password": lambda text: True,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_date_time,
    "k8sshortname": lambda text: len(text) <= 63 and bool(re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", text)),
    "k8slongname": lambda text: len(text) <= 253 and bool(re.fullmatch(_LONG_NAME, text)),
}
