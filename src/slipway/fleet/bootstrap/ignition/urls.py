"""URLs as an Ignition config has them: read and printed as Go's net/url does, and data URLs (RFC 2397) as Ignition judges them.

Errors have the words of Go and of Ignition's library.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

from slipway.api.machinery.fieldpath import quoted

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_WELL_ESCAPED = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]/%]*\Z")
_PORT = re.compile(r"(?:.*@)?(?:\[.*\]|[^:\[\]]*)(?::[0-9]*)?\Z")

_TOKEN = re.compile(r"[!#$%&'*+\-.0-9A-Z^_`a-z{|}~]*")
_TYPES = ("text", "image", "audio", "video", "application", "message", "multipart")
_QUOTED = re.compile(r'"(?:\\[\x00-\x7f]|[\x00-\x21\x23-\x5b\x5d-\x7f])*"')
_DATA = re.compile(r"[!$%&'()*+,\-./0-9:;=?@A-Z_a-z~]*\Z")
_BASE64 = re.compile(r"[A-Za-z0-9+/=\n]*\Z")
_UNESCAPED = re.compile(r"%(?![0-9A-Fa-f]{2})")


class URLError(Exception):
    """A text that is no URL; the message has Go's words."""


def split(url: str) -> tuple[str, str]:
    """The scheme and the query."""
    scheme, rest, query, _ = _parts(url)
    _check_url(url, scheme, rest)
    return scheme, query


def normal(url: str) -> str:
    """The URL as Go prints it after reading it: a lower-case scheme, and a path without characters that must be escaped."""
    scheme, rest, query, fragment = _parts(url)
    _check_url(url, scheme, rest)
    authority, path = _authority(scheme, rest)
    is_opaque = scheme and not rest.startswith("/")
    if not is_opaque and not _WELL_ESCAPED.match(path):
        path = quote(unquote_to_bytes(path), safe="$&+,/:;=@-_.~")
    has_query = query or (url.partition("#")[0].endswith("?") and url.count("?") == 1)
    return "".join([f"{scheme}:" if scheme else "", authority, path, f"?{query}" if has_query else "", f"#{fragment}" if fragment else ""])


def _parts(url: str) -> tuple[str, str, str, str]:
    before, _, fragment = url.partition("#")
    if any(character < " " or character == "\x7f" for character in before):
        raise _problem(before, "net/url: invalid control character in URL")
    if before.startswith(":"):
        raise _problem(before, "missing protocol scheme")
    match = _SCHEME.match(before)
    scheme = match[1] if match else ""
    rest, _, query = before[len(match[0]) if match else 0 :].partition("?")
    return scheme.lower(), rest, query, fragment


def _authority(scheme: str, rest: str) -> tuple[str, str]:
    if not rest.startswith("//") or (not scheme and rest.startswith("///")):
        return "", rest
    end = rest.find("/", 2)
    return (rest, "") if end < 0 else (rest[:end], rest[end:])


def _check_url(url: str, scheme: str, rest: str) -> None:
    if not rest.startswith("/"):
        if scheme:
            return
        if ":" in rest.partition("/")[0]:
            raise _problem(url, "first path segment in URL cannot contain colon")
    authority, path = _authority(scheme, rest)
    host = authority.removeprefix("//")
    if not _PORT.match(host):
        raise _problem(url, f"invalid port {quoted(':' + host.rpartition(':')[2])} after host")
    bad = _ESCAPE.search(path)
    if bad is not None:
        raise _problem(url, f"invalid URL escape {quoted(bad[0])}")


def _problem(url: str, what: str) -> URLError:
    return URLError(f"parse {quoted(url)}: {what}")


class DataURLError(Exception):
    """A text that is no data URL."""


def data_url(text: str) -> str:
    """The URL of a text; bytes that are no UTF-8 may stand in it in Python's way of carrying them."""
    return "data:," + quote(text.encode(errors="surrogateescape"), safe="-_.!~*'()")


def check_data_url(url: str) -> None:
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
