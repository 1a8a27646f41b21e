"""Which connections go through an HTTP proxy, by the rules of Go's net/http."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


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
