"""URLs as Go's net/url reads and prints them, as far as an Ignition config has them: the scheme, the query, and the text again."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

from slipway.api.machinery.fieldpath import quoted

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_WELL_ESCAPED = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]/%]*\Z")
_PORT = re.compile(r"(?:.*@)?(?:\[.*\]|[^:\[\]]*)(?::[0-9]*)?\Z")


class URLError(Exception):
    """A text that is no URL; the message has Go's words."""


def split(url: str) -> tuple[str, str]:
    """The scheme and the query."""
    scheme, rest, query, _ = _parts(url)
    _check(url, scheme, rest)
    return scheme, query


def normal(url: str) -> str:
    """The URL as Go prints it after reading it: a lower-case scheme, and a path without characters that must be escaped."""
    scheme, rest, query, fragment = _parts(url)
    _check(url, scheme, rest)
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


def _check(url: str, scheme: str, rest: str) -> None:
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
