"""The advertised address; routing tables and outcomes are those of apimachinery's util/net/interface_test.go."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

import pytest
from support.machine import Machine

from slipway.api.kubeadm.internal import APIEndpoint
from slipway.api.machinery.errors import OperatorError
from slipway.host import addresses as network
from slipway.host import netlink
from slipway.host.real import RealHost
from slipway.node.config import dynamicdefaults

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.upstream_table

HEADER = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
IPV4 = "eth3\t00000000\t0100FE0A\t0003\t0\t0\t1024\t00000000\t0\t0\t0\neth3\t0000FE0A\t00000000\t0001\t0\t0\t0\t0080FFFF\t0\t0\t0\n"
NO_IPV4 = "docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\nvirbr0\t007AA8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
ZERO = "0" * 32
IPV6 = (
    f"{ZERO} 00 {ZERO} 00 20010001000000000000000000000001 00000064 00000000 00000000 00000003 eth3\n"
    f"20010002000000000000000000000000 7a {ZERO} 00 {ZERO} 00000400 00000000 00000000 00200200 lo\n"
    f"{ZERO} 00 {ZERO} 00 {ZERO} ffffffff 00000001 00000000 00200200 lo\n"
)
NO_IPV6 = "\n".join(line for line in IPV6.splitlines()[1:]) + "\n"


def machine(root: Path, ipv4: str | None, ipv6: str | None, interfaces: dict[str, list[str]]) -> Machine:
    """A machine with routing tables, and addresses of its interfaces."""
    made = Machine(root)
    made.interfaces = interfaces
    for path, table in ((network.IPV4_ROUTES, None if ipv4 is None else HEADER + ipv4), (network.IPV6_ROUTES, ipv6)):
        if table is not None:
            made.put(path, table)
    return made


LOOPBACK = ["127.0.0.1", "::1"]


@pytest.mark.parametrize(
    ("ipv4", "ipv6", "addresses", "families", "expected"),
    [
        (IPV4, NO_IPV6, ["10.254.71.145"], (4, 6), "10.254.71.145"),
        (NO_IPV4, IPV6, ["2001::5"], (4, 6), "2001::5"),
        (IPV4, IPV6, ["10.254.71.145", "2001::5"], (4, 6), "10.254.71.145"),
        (IPV4, IPV6, ["2001::5", "10.254.71.145"], (4, 6), "10.254.71.145"),
        (IPV4, IPV6, ["10.254.71.145", "2001::5"], (6, 4), "2001::5"),
        (IPV4, NO_IPV6, ["10.254.71.145"], (6, 4), "10.254.71.145"),
        (NO_IPV4, IPV6, ["fe80::2f7:6fff:fe6e:2956", "2001::5"], (4, 6), "2001::5"),
        (IPV4, None, ["169.254.162.166", "10.254.71.145"], (4, 6), "10.254.71.145"),
    ],
)
def test_the_address_of_the_default_route(
    ipv4: str, ipv6: str | None, addresses: list[str], families: tuple[int, int], expected: str, tmp_path: Path
) -> None:
    host = machine(tmp_path, ipv4, ipv6, {"eth3": addresses, "lo": LOOPBACK})
    assert str(network.host_address(host, families)) == expected


def test_where_links_are_link_local_the_global_address_is_on_the_loopback(tmp_path: Path) -> None:
    host = machine(tmp_path, IPV4, None, {"eth3": ["169.254.162.166"], "lo": [*LOOPBACK, "10.1.1.1"]})
    assert str(network.host_address(host)) == "10.1.1.1"


def test_no_global_address_anywhere_is_an_error(tmp_path: Path) -> None:
    host = machine(tmp_path, IPV4, IPV6, {"eth3": ["fe80::1"], "lo": LOOPBACK})
    with pytest.raises(OperatorError, match="unable to select an IP from default routes"):
        network.host_address(host)


def test_without_default_routes_the_address_is_unknown_and_that_is_said(tmp_path: Path) -> None:
    host = machine(tmp_path, NO_IPV4, NO_IPV6, {})
    endpoint, warnings = APIEndpoint(), list[str]()
    dynamicdefaults.fill_endpoint(endpoint, host, warnings.append)
    assert endpoint.advertise_address == "0.0.0.0"
    assert [re.search(r"no default routes found in .*; using: 0\.0\.0\.0", warning) is not None for warning in warnings] == [True]


def test_without_a_routing_table_any_interface_will_do(tmp_path: Path) -> None:
    host = machine(tmp_path, None, None, {"eth0": ["fe80::1"], "eth1": ["10.2.0.1"], "lo": LOOPBACK})
    for index, (name, flags) in enumerate({"lo": 0x9, "eth0": 0x1003, "tun0": 0x11, "eth1": 0x1003, "down0": 0x1002}.items()):
        folder = tmp_path / "sys/class/net" / name
        folder.mkdir(parents=True)
        (folder / "ifindex").write_text(f"{index + 1}\n")
        (folder / "flags").write_text(f"{flags:#x}\n")
    assert str(network.host_address(host)) == "10.2.0.1"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", "10.254.71.145"),
        ("0.0.0.0", "10.254.71.145"),
        ("::", "2001::5"),
        ("127.0.0.1", "10.9.9.9"),
        ("192.0.2.9", "192.0.2.9"),
        ("2001:0DB8::1", "2001:db8::1"),
        ("192.000.002.009", "192.0.2.9"),
    ],
)
def test_what_an_address_in_a_configuration_selects(given: str, expected: str, tmp_path: Path) -> None:
    host = machine(tmp_path, IPV4, IPV6, {"eth3": ["10.254.71.145", "2001::5"], "lo": [*LOOPBACK, "10.9.9.9"]})
    endpoint = APIEndpoint(advertise_address=given)
    dynamicdefaults.fill_endpoint(endpoint, host, lambda warning: pytest.fail(warning))
    assert endpoint.advertise_address == expected


@pytest.mark.parametrize(
    ("address", "usable"),
    [("0.0.0.0", False), ("::", False), ("127.0.0.1", True), ("169.254.1.1", False), ("224.0.0.1", False), ("10.0.0.1", True), ("", False)],
)
def test_addresses_that_an_api_server_can_be_reached_at(address: str, usable: bool) -> None:
    if usable:
        dynamicdefaults.verify_bind_address(address)
    else:
        with pytest.raises(OperatorError):
            dynamicdefaults.verify_bind_address(address)


def test_the_kernel_knows_the_loopback_addresses() -> None:
    assert "127.0.0.1" in netlink.addresses("lo")
    assert all(ipaddress.ip_address(address) for address in netlink.addresses("lo"))


def test_an_interface_that_is_not_there_is_an_error() -> None:
    with pytest.raises(OSError, match="no interface with this name"):
        RealHost().addresses("no-such-if")


def test_an_address_that_an_interface_does_not_have_cannot_be_taken_away() -> None:
    # Not root: it may not.  Root: there is none.
    with pytest.raises(OSError, match=r"Operation not permitted|Cannot assign requested address"):
        netlink.remove_address("lo", "192.0.2.100", 32)
