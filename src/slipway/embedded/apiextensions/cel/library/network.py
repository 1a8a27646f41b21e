"""URLs, IP addresses and networks."""

from __future__ import annotations

import ipaddress
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, unquote_plus

from slipway.api.machinery.fieldpath import quoted
from slipway.embedded.apiextensions.cel import values
from slipway.embedded.apiextensions.cel.functions import Functions, of_first, traversal, twice_first
from slipway.embedded.apiextensions.cel.types import BOOL, CIDR, INT, IP, STRING, URL, Type, list_of, map_of
from slipway.embedded.apiextensions.cel.values import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FUNCTIONS = Functions()
_add, _member = FUNCTIONS.add, FUNCTIONS.member
_REFERENCE = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.DOTALL)
_NO_NETWORK = "network address parse error during conversion from string"
_LINK_LOCAL_MULTICAST = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}
_HOST = re.compile(r"(?:[^@]*@)?(\[[^\]]*\]|[^:]*)(?::(\d*))?")
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True)
class Url:
    """An absolute URL, or an absolute path."""

    scheme: str
    host: str
    hostname: str
    port: str
    path: str
    query: str
    cel_type: Type = URL


@dataclass(frozen=True)
class Address:
    ip: ipaddress.IPv4Address | ipaddress.IPv6Address
    cel_type: Type = IP


@dataclass(frozen=True)
class Network:
    interface: ipaddress.IPv4Interface | ipaddress.IPv6Interface
    cel_type: Type = CIDR


def _url(text: str) -> Url:
    """As Go's url.ParseRequestURI reads it."""
    found = _REFERENCE.fullmatch(text)
    if not text or found is None or any(ord(character) < 32 or character == "\x7f" for character in text):
        raise _no_url(text, "empty url" if not text else "net/url: invalid control character in URL")
    scheme, authority, path, query = (part or "" for part in found.groups())
    if not scheme and not text.startswith("/"):
        raise _no_url(text, "invalid URI for request")
    if bad := _ESCAPE.search(path):
        raise _no_url(text, f"invalid URL escape {quoted(path[bad.start() : bad.start() + 3])}")
    place = _HOST.fullmatch(authority)
    if place is None or " " in authority:
        raise _no_url(text, "invalid character in host name")
    hostname, port = place[1].strip("[]"), place[2] or ""
    host = authority.rpartition("@")[2]
    return Url(scheme.lower(), host, hostname, port, path, query)


def _no_url(text: str, why: str) -> EvaluationError:
    return EvaluationError(f"URL parse error during conversion from string: parse {quoted(text)}: {why}")


def _query(url: Url) -> values.Map:
    made = values.Map()
    for pair in filter(None, url.query.split("&")):
        key, _, value = (unquote_plus(part) for part in pair.partition("="))
        made.put(key, [*made.find(key).value, value] if key in made else [value])
    return made


def _escaped_path(url: Url) -> str:
    from urllib.parse import quote

    return url.path if "%" in url.path else quote(unquote(url.path), safe="/$&+,:;=@!'()*~-_.")


def _ip(text: str) -> Address:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        raise EvaluationError(
            f"IP Address {quoted(text)} parse error during conversion from string: ParseAddr({quoted(text)}): unable to parse IP"
        ) from None
    if getattr(found, "scope_id", None):
        raise EvaluationError(f"IP address {quoted(text)} with zone value is not allowed")
    if getattr(found, "ipv4_mapped", None):
        raise EvaluationError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return Address(found)


def _cidr(text: str) -> Network:
    try:
        if not re.fullmatch(r"[^/%]+/(0|[1-9][0-9]*)", text):
            raise ValueError("no network")
        found = ipaddress.ip_interface(text)
    except ValueError:
        why = f"netip.ParsePrefix({quoted(text)}): no '/'" if "/" not in text else f"netip.ParsePrefix({quoted(text)})"
        raise EvaluationError(f"{_NO_NETWORK}: {_NO_NETWORK}: {why}") from None
    if getattr(found.ip, "ipv4_mapped", None):
        raise EvaluationError(f"{_NO_NETWORK}: {_NO_NETWORK}: IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return Network(found)


def _is(read: Callable[[str], Any]) -> Callable[[str], bool]:
    def holds(text: str) -> bool:
        try:
            read(text)
        except EvaluationError:
            return False
        return True

    return holds


def _contains(network: Network, other: Any) -> bool:
    if isinstance(other, str):
        other = _ip(other)
    return other.ip.version == network.interface.version and other.ip in network.interface.network


def _contains_network(network: Network, other: Any) -> bool:
    if isinstance(other, str):
        other = _cidr(other)
    mine, theirs = network.interface.network, other.interface
    return mine.version == theirs.version and theirs.ip in mine and mine.prefixlen <= theirs.network.prefixlen


def _octets(network: Network) -> int:
    return math.ceil(network.interface.network.prefixlen / 8)


def _of_network(arguments: Sequence[Any], result: Any) -> int:
    cost = traversal(2 * _octets(arguments[0]))
    return cost + traversal(len(arguments[1])) if isinstance(arguments[1], str) else cost


def _of_two_networks(arguments: Sequence[Any], result: Any) -> int:
    return _of_network(arguments, result) + traversal(_octets(arguments[0])) + 1


_add("url", [STRING], URL, _url, of_first)
_add("isURL", [STRING], BOOL, _is(_url))
_member("getScheme", [URL], STRING, lambda url: url.scheme)
_member("getHost", [URL], STRING, lambda url: url.host)
_member("getHostname", [URL], STRING, lambda url: url.hostname)
_member("getPort", [URL], STRING, lambda url: url.port)
_member("getEscapedPath", [URL], STRING, _escaped_path)
_member("getQuery", [URL], map_of(STRING, list_of(STRING)), _query)

_add("ip", [STRING], IP, _ip, of_first)
_add("isIP", [STRING], BOOL, _is(_ip), of_first)
_add("ip.isCanonical", [STRING], BOOL, lambda text: str(_ip(text).ip) == text, twice_first)
_add("string", [IP], STRING, lambda address: str(address.ip))
_member("family", [IP], INT, lambda address: address.ip.version)
_member("isUnspecified", [IP], BOOL, lambda address: address.ip.is_unspecified)
_member("isLoopback", [IP], BOOL, lambda address: address.ip.is_loopback)
_member("isLinkLocalMulticast", [IP], BOOL, lambda address: address.ip in _LINK_LOCAL_MULTICAST[address.ip.version])
_member("isLinkLocalUnicast", [IP], BOOL, lambda address: address.ip.is_link_local)
_member("isGlobalUnicast", [IP], BOOL, lambda address: _is_global_unicast(address.ip))


def _is_global_unicast(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Go's meaning: anything but the special ones, so that private addresses are."""
    if ip == ipaddress.ip_address("255.255.255.255"):
        return False
    return not (ip.is_unspecified or ip.is_loopback or ip.is_multicast or ip.is_link_local)


_add("cidr", [STRING], CIDR, _cidr, of_first)
_add("isCIDR", [STRING], BOOL, _is(_cidr), of_first)
_add("string", [CIDR], STRING, lambda network: network.interface.with_prefixlen)
_member("containsIP", [CIDR, STRING], BOOL, _contains, _of_network)
_member("containsIP", [CIDR, IP], BOOL, _contains, _of_network)
_member("containsCIDR", [CIDR, STRING], BOOL, _contains_network, _of_two_networks)
_member("containsCIDR", [CIDR, CIDR], BOOL, _contains_network, _of_two_networks)
_member("ip", [CIDR], IP, lambda network: Address(network.interface.ip))
_member("prefixLength", [CIDR], INT, lambda network: network.interface.network.prefixlen)
_member("masked", [CIDR], CIDR, lambda network: Network(ipaddress.ip_interface(str(network.interface.network))))
