"""Checks that connections inside the cluster do not go through a proxy that was meant for the outside world."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING

from slipway.kube.proxies import proxy_for, redacted
from slipway.node.preflight.check import FINE, Check, Findings

if TYPE_CHECKING:
    from slipway.host.interface import Host


def direct(address: str) -> Check:
    """The connection to a host, such as the API server."""

    def find(host: Host) -> Findings:
        proxy = proxy_for(address, host.environment)
        if proxy is None:
            return FINE
        shown = f"[{address}]:1234" if ":" in address else address
        return Findings(
            warnings=(
                f'Connection to "https://{shown}" uses proxy "{redacted(proxy)}". If that is not intended, adjust your proxy settings',
            )
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
                f'connection to "{cidr}" uses proxy "{redacted(proxy)}". This may lead to malfunctional cluster setup. '
                "Make sure that Pod and Services IP ranges specified correctly as exceptions in proxy configuration",
            )
        )

    return Check("HTTPProxyCIDR", find)
