"""The forms that texts in a configuration must have, with the words that apimachinery and Go have for what is wrong."""

from __future__ import annotations

import re
from typing import NamedTuple

from slipway.api.kubeadm.addresses import DNS_SUBDOMAIN

_WILDCARD = rf"\*\.{DNS_SUBDOMAIN}"
_DOMAIN = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_DOMAIN}(?:\.{_DOMAIN})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*"
_TOKEN = r"[a-z0-9]{6}\.[a-z0-9]{16}"
_GROUP = r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]"


class URL(NamedTuple):
    """As much of a URL as validation looks at."""

    scheme: str
    host: str


def dns_subdomain_faults(text: str) -> list[str]:
    faults = [] if len(text.encode()) <= 253 else ["must be no more than 253 characters"]
    if not re.fullmatch(DNS_SUBDOMAIN, text):
        faults.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
            f"with an alphanumeric character (e.g. 'example.com', regex used for validation is '{DNS_SUBDOMAIN}')"
        )
    return faults


def wildcard_subdomain_faults(text: str) -> list[str]:
    faults = [] if len(text.encode()) <= 253 else ["must be no more than 253 characters"]
    if not re.fullmatch(_WILDCARD, text):
        faults.append(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case "
            "alphanumeric characters, '-' or '.' and end with an alphanumeric character "
            f"(e.g. '*.example.com', regex used for validation is '{_WILDCARD}')"
        )
    return faults


def is_token(text: str) -> bool:
    return re.fullmatch(_TOKEN, text) is not None


def group_fault(name: str) -> str:
    """What is wrong with the name of a group for the bearers of a bootstrap token."""
    if re.fullmatch(_GROUP, name):
        return ""
    return f'bootstrap group "{name}" is invalid (must match \\A{_GROUP}\\z)'


def is_image_repository(text: str) -> bool:
    """Whether ``<text>/name:tag`` is a reference to an image."""
    return re.fullmatch(rf"(?:{_HOST}/)?{_COMPONENT}(?:/{_COMPONENT})*", f"{text}/name") is not None


def hex_fault(text: str) -> str:
    """What Go's hex decoder says of a text; empty for hexadecimal digits in pairs."""
    wrong = re.search(r"[^0-9a-fA-F]", text)
    if wrong is not None:
        # Go counts bytes: of a character outside ASCII it names the first byte.
        byte = wrong.group().encode()[0]
        return f"encoding/hex: invalid byte: U+{byte:04X} '{chr(byte)}'"
    return "encoding/hex: odd length hex string" if len(text) % 2 else ""


def parse_url(text: str) -> URL:
    """Scheme and host of a URL; ValueError where Go's ``url.Parse`` refuses it, with its words."""
    text, _, fragment = text.partition("#")

    def wrong(reason: str) -> ValueError:
        return ValueError(f'parse "{text}": {reason}')

    if re.search(r"[\x00-\x1f\x7f]", text):
        raise wrong("net/url: invalid control character in URL")
    scheme, rest = "", text
    if text.startswith(":"):
        raise wrong("missing protocol scheme")
    match = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]*):", text)
    if match is not None:
        scheme, rest = match.group(1).lower(), text[match.end() :]
    rest = rest.partition("?")[0]
    host = ""
    if not rest.startswith("/"):
        if scheme:
            return URL(scheme, "")
        if ":" in rest.partition("/")[0]:
            raise wrong("first path segment in URL cannot contain colon")
    elif rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, at, host = authority.rpartition("@")
        if at and re.search(r"[^A-Za-z0-9\-._:~!$&'()*+,;=%@]", user):
            raise wrong("net/url: invalid userinfo")
        reason = _host_fault(host)
        if reason:
            raise wrong(reason)
    escape = re.search(r"%(?![0-9a-fA-F]{2}).{0,2}", rest + fragment)
    if escape is not None:
        raise wrong(f'invalid URL escape "{escape.group()}"')
    return URL(scheme, host)


def _host_fault(host: str) -> str:
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            return "missing ']' in host"
        port = host[end + 1 :]
    elif host.rfind("[") > 0:
        return "invalid IP-literal"
    else:
        colon = host.rfind(":")
        port = host[colon:] if colon >= 0 else ""
    if port and not re.fullmatch(r":[0-9]*", port):
        return f'invalid port "{port}" after host'
    strange = re.search(r"[ \"<>\\^`{|}]", host)
    if strange is not None:
        return f'invalid character "{_quoted(strange.group())}" in host name'
    return ""


def _quoted(character: str) -> str:
    return {'"': '\\"', "\\": "\\\\"}.get(character, character)
