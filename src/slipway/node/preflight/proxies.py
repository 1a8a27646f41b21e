"""Checks that connections inside the cluster do not go through a proxy that was meant for the outside world."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING

from slipway.node.preflight.check import FINE, Check, Findings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.node.host import Host


def direct(address: str) -> Check:
    """The connection to a host, such as the API server."""

    def find(host: Host) -> Findings:
        proxy = proxy_for(address, host.environment)
        if proxy is None:
            return FINE
        shown = f"[{address}]:1234" if ":" in address else address
        return Findings(
            warnings=(f'Connection to "https://{shown}" uses proxy "{proxy}". If that is not intended, adjust your proxy settings',)
        )

    return Check("HTTPProxy", find)


def direct_subnet(cidr: str) -> Check:
    """The connections to a subnet of Pods or Services, by the example of its first address."""

    def find(host: Host) -> Findings:
        if not cidr:
            return FINE
        try:
            first = ip_network(cidr, strict=False)[1]
        except (ValueError, IndexError) as error:
            return Findings(errors=(f'error parsing CIDR "{cidr}": {error}',))
        proxy = proxy_for(str(first), host.environment)
        if proxy is None:
            return FINE
        return Findings(
            warnings=(
                f'connection to "{cidr}" uses proxy "{proxy}". This may lead to malfunctional cluster setup. '
                "Make sure that Pod and Services IP ranges specified correctly as exceptions in proxy configuration",
            )
        )

    return Check("HTTPProxyCIDR", find)


def proxy_for(host: str, environment: Mapping[str, str]) -> str | None:
    """The proxy of an HTTPS connection by the rules of Go's net/http; None where the connection is direct."""
    proxy = environment.get("HTTPS_PROXY") or environment.get("https_proxy") or ""
    address = _address(host)
    if not proxy or host == "localhost" or (address is not None and address.is_loopback):
        return None
    exceptions = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if any(_exempts(entry.strip().lower(), host.lower(), address) for entry in exceptions.split(",")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _exempts(entry: str, host: str, address: IPv4Address | IPv6Address | None) -> bool:
    if entry == "*":
        return True
    if not entry:
        return False
    if address is not None:
        try:
            return address in ip_network(entry, strict=False)
        except ValueError:
            return False
    if entry.startswith("*."):
        entry = entry[1:]
    return host.endswith(entry) if entry.startswith(".") else host == entry or host.endswith(f".{entry}")


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
