"""Which address a node's API server should be reached at: the global unicast address of the default-route interface.

The choice is that of apimachinery's util/net, so that a node detects here what it detects with the real kubeadm.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.kubeadm.addresses import Address, is_global_unicast
from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from slipway.host.interface import Host

IPV4_ROUTES = "/proc/net/route"
IPV6_ROUTES = "/proc/net/ipv6_route"
_INTERFACES = "/sys/class/net"
_LOOPBACK = "lo"
_IFF_UP, _IFF_LOOPBACK, _IFF_POINT_TO_POINT = 0x1, 0x8, 0x10


class NoDefaultRouteError(OperatorError):
    """The machine has no default route, so no interface is better than another."""


class Route(NamedTuple):
    """A default route: the interface that it leaves by, and 4 or 6."""

    interface: str
    family: int


def default_routes(host: Host) -> list[Route]:
    """The default routes of the machine, IPv4 first; NoDefaultRouteError where there is none."""
    routes = _ipv4_default_routes(host.read(IPV4_ROUTES).decode())
    if host.exists(IPV6_ROUTES):
        routes += _ipv6_default_routes(host.read(IPV6_ROUTES).decode())
    if not routes:
        raise NoDefaultRouteError(f'no default routes found in "{IPV4_ROUTES}" or "{IPV6_ROUTES}"')
    return routes


def host_address(host: Host, families: tuple[int, int] = (4, 6)) -> Address:
    """The address for a daemon that was given none, of the first family that has one."""
    if not host.exists(IPV4_ROUTES):
        return _address_of_any_interface(host, families)
    routes = default_routes(host)
    for family in families:
        for route in routes:
            if route.family == family:
                # Where interfaces have link-local addresses only (RFC 5549) the global one is on the loopback.
                found = interface_address(host, route.interface, family) or interface_address(host, _LOOPBACK, family)
                if found is not None:
                    return found
    raise OperatorError(
        "unable to select an IP from default routes: no interface with a default route has a global unicast address; "
        "name the address with --apiserver-advertise-address or localAPIEndpoint.advertiseAddress"
    )


def loopback_address(host: Host) -> Address:
    """The global unicast address on the loopback interface, IPv4 first: what a loopback address in a configuration selects."""
    found = interface_address(host, _LOOPBACK, 4) or interface_address(host, _LOOPBACK, 6)
    if found is None:
        raise OperatorError(f"unable to select an IP from {_LOOPBACK} network interface: it has no global unicast address")
    return found


def interface_address(host: Host, interface: str, family: int) -> Address | None:
    """The first global unicast address of a family on an interface that is up."""
    for text in host.addresses(interface):
        address = ip_address(text)
        if address.version == family and is_global_unicast(address):
            return address
    return None


def _ipv4_default_routes(table: str) -> list[Route]:
    rows = [line.split() for line in table.splitlines() if line.strip() and not line.startswith("Iface")]
    return [Route(row[0], 4) for row in rows if int(row[1], 16) == 0]


def _ipv6_default_routes(table: str) -> list[Route]:
    rows = [line.split() for line in table.splitlines() if line.strip()]
    # A default route without a gateway is the loopback's.
    return [Route(row[9], 6) for row in rows if int(row[0], 16) == 0 and int(row[4], 16) != 0]


def _address_of_any_interface(host: Host, families: tuple[int, int]) -> Address:
    interfaces = sorted(host.list_dir(_INTERFACES), key=lambda name: int(host.read(f"{_INTERFACES}/{name}/ifindex")))
    if not interfaces:
        raise OperatorError("no interfaces found on host")
    for family in families:
        for interface in interfaces:
            flags = int(host.read(f"{_INTERFACES}/{interface}/flags"), 16)
            if flags & _IFF_UP and not flags & (_IFF_LOOPBACK | _IFF_POINT_TO_POINT):
                found = interface_address(host, interface, family)
                if found is not None:
                    return found
    raise OperatorError("no acceptable interface with global unicast address found on host")
