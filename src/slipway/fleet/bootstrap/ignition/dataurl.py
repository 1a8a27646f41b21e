"""Data URLs (RFC 2397) as Ignition judges them, in the words of its library; and texts as data URLs."""

from __future__ import annotations

import re
from urllib.parse import quote

_TOKEN = re.compile(r"[!#$%&'*+\-.0-9A-Z^_`a-z{|}~]*")
_TYPES = ("text", "image", "audio", "video", "application", "message", "multipart")
_QUOTED = re.compile(r'"(?:\\[\x00-\x7f]|[\x00-\x21\x23-\x5b\x5d-\x7f])*"')
_DATA = re.compile(r"[!$%&'()*+,\-./0-9:;=?@A-Z_a-z~]*\Z")
_BASE64 = re.compile(r"[A-Za-z0-9+/=\n]*\Z")
_UNESCAPED = re.compile(r"%(?![0-9A-Fa-f]{2})")


class DataURLError(Exception):
    """A text that is no data URL."""


def data_url(text: str) -> str:
    """The URL of a text; bytes that are no UTF-8 may stand in it in Python's way of carrying them."""
    return "data:," + quote(text.encode(errors="surrogateescape"), safe="-_.!~*'()")


def check(url: str) -> None:
    """Raise DataURLError with what is wrong, if something is."""
    rest = url.removeprefix("data:")
    if not rest:
        raise DataURLError("missing comma before data")
    if rest[0] not in ";,":
        rest = _after_media_type(rest)
    is_base64 = False
    while rest[0] == ";" and not is_base64:
        rest, is_base64 = _after_parameter(rest[1:])
    if is_base64:
        _check_base64(rest[1:])
    else:
        _check_data(rest[1:])


def _after_media_type(text: str) -> str:
    is_extension = text[:2] in ("x-", "X-")
    kind, rest = _token(text)
    if not kind:
        raise DataURLError("invalid character after data prefix")
    if not rest:
        raise DataURLError("missing media type slash")
    if rest[0] != "/":
        raise DataURLError("invalid character for media type")
    if not is_extension and not kind.startswith(_TYPES):
        raise DataURLError("invalid media type")
    _, rest = _token(rest[1:])
    if not rest:
        raise DataURLError("incomplete media type")
    if rest[0] not in ";,":
        raise DataURLError("invalid character for media subtype")
    return rest


def _after_parameter(text: str) -> tuple[str, bool]:
    """What follows a parameter, and whether it was the word that the data are in base64."""
    name, rest = _token(text)
    if not rest or (not name and rest[0] in "=,"):
        raise DataURLError("unterminated parameter sequence")
    if rest[0] == ",":
        if name != "base64":
            raise DataURLError(f"expected base64, got {name}")
        return rest, True
    if rest[0] != "=":
        raise DataURLError("invalid character for parameter attribute")
    return _after_value(rest[1:]), False


def _after_value(text: str) -> str:
    if text.startswith('"'):
        match = _QUOTED.match(text)
        if match is None:
            raise DataURLError("unclosed quoted string" if text.isascii() else "invalid character for parameter value")
        rest, wrong = text[match.end() :], "expected semicolon or comma"
    else:
        value, rest = _token(text)
        wrong = "invalid character for parameter value"
        if not value and rest:
            raise DataURLError(wrong)
    if not rest:
        raise DataURLError("missing comma before data")
    if rest[0] not in ";,":
        raise DataURLError(wrong)
    return rest


def _check_data(data: str) -> None:
    if not _DATA.match(data):
        raise DataURLError("invalid data character")
    bad = _UNESCAPED.search(data)
    if bad is not None:
        # Fewer than two characters, all of them digits, are an escape that is cut off.
        ends = re.fullmatch("[0-9A-Fa-f]?", data[bad.end() :]) is not None
        raise DataURLError("rfc2396: unexpected end of unescape sequence" if ends else "rfc2396: invalid char 0x25 in unescape sequence")


def _check_base64(data: str) -> None:
    if not _BASE64.match(data):
        raise DataURLError("invalid data character")
    digits = [index for index, character in enumerate(data) if character != "\n"]
    body = "".join(data[index] for index in digits)
    match = re.match(r"(?:[^=]{4})*(?:[^=]{2}==|[^=]{3}=)?", body)
    end = match.end() if match else 0
    if end < len(body):
        padding = body.find("=", end)
        raise DataURLError(f"illegal base64 data at input byte {digits[end if padding < 0 else padding]}")


def _token(text: str) -> tuple[str, str]:
    match = _TOKEN.match(text)
    end = match.end() if match else 0
    return text[:end], text[end:]
