"""Which connections go through an HTTP proxy, by the rules of Go's net/http, and how the proxy is reached and named."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Proxy(NamedTuple):
    """Where a proxy is, and what it is told about who asks."""

    host: str
    port: int
    headers: Mapping[str, str]
    shown: str
    """Its URL without user name and password, for messages."""


def parse(url: str, server: str) -> Proxy:
    """The proxy at a URL; errors name it, and the ``server`` to which it leads."""
    from urllib.parse import urlsplit

    shown = redacted(url)
    through = f'connections to {server} go through the proxy "{shown}"'
    try:
        # An error of urlsplit may tell a password that was taken for a port or an address.
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        raise OperatorError(f"{through}, which is not a URL of the form http://host:port") from None
    if parts.scheme != "http" or not host:
        raise OperatorError(f"{through}, and only http:// proxies are supported")
    return Proxy(host, port, _credentials(parts.username, parts.password), shown)


def redacted(url: str) -> str:
    """A URL as messages may show it.  All before the last @ goes, since a password may hold whatever ends a well-formed one."""
    before, at, host = url.rpartition("@")
    if not at:
        return url
    scheme, separator, _ = before.partition("://")
    return f"{scheme}{separator}xxxxx@{host}" if separator else f"xxxxx@{host}"


def proxy_for(host: str, environment: Mapping[str, str], port: int = 443) -> str | None:
    """The proxy of an HTTPS connection; None where the connection is direct."""
    proxy = environment.get("HTTPS_PROXY") or environment.get("https_proxy") or ""
    address = _address(host)
    if not proxy or host == "localhost" or (address is not None and address.is_loopback):
        return None
    exceptions = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if any(_exempts(*_split_port(entry.strip().lower()), host.lower(), address, port) for entry in exceptions.split(",")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _credentials(user: str | None, password: str | None) -> dict[str, str]:
    if user is None:
        return {}
    from base64 import b64encode
    from urllib.parse import unquote

    return {"Proxy-Authorization": "Basic " + b64encode(f"{unquote(user)}:{unquote(password or '')}".encode()).decode()}


def _exempts(entry: str, only_port: str, host: str, address: IPv4Address | IPv6Address | None, port: int) -> bool:
    if entry == "*":
        return True
    if not entry or (only_port and only_port != str(port)):
        return False
    if address is not None:
        try:
            return address in ip_network(entry, strict=False)
        except ValueError:
            return False
    if entry.startswith("*."):
        entry = entry[1:]
    return host.endswith(entry) if entry.startswith(".") else host == entry or host.endswith(f".{entry}")


def _split_port(entry: str) -> tuple[str, str]:
    """``host:port`` and ``[address]:port`` exempt one port only; an IPv6 address has colons of its own."""
    if entry.startswith("["):
        inner, _, rest = entry[1:].partition("]")
        return inner, rest.removeprefix(":")
    if entry.count(":") == 1:
        host, _, port = entry.partition(":")
        return host, port
    return entry, ""


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
