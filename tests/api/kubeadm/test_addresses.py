"""Addresses, ports and URLs."""

from __future__ import annotations

import pytest

from slipway.api.kubeadm import addresses
from slipway.api.kubeadm import addresses as endpoints
from slipway.api.kubeadm.internal import APIEndpoint, InitConfiguration
from slipway.api.machinery.errors import ConfigurationError

pytestmark = pytest.mark.upstream_table


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("010.000.0.01", "10.0.0.1"),
        ("FD00:0::1", "fd00::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("10.0.0", None),
        ("10.0.0.256", None),
        ("fe80::1%eth0", None),
        ("[::1]", None),
        ("example", None),
        ("", None),
        ("3232235777", None),
    ],
)
def test_addresses_have_one_form(text: str, address: str | None) -> None:
    found = addresses.parse_ip(text)
    assert (found and str(found)) == address


# kubeadm's app/util/endpoint_test.go, TestParseHostPort
@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("foo.com", "foo.com", ""),
        ("foo.com:1234", "foo.com", "1234"),
        ("foo.com:", "foo.com", ""),
        ("1.2.3.4", "1.2.3.4", ""),
        ("1.2.3.4:1234", "1.2.3.4", "1234"),
        ("2001:db7::1", "2001:db7::1", ""),
        ("[2001:db7::1]:1234", "2001:db7::1", "1234"),
        ("[1.2.3.4]:1234", "1.2.3.4", "1234"),
    ],
)
def test_hosts_and_ports_are_split(text: str, host: str, port: str) -> None:
    assert addresses.parse_host_port(text) == (host, port)


@pytest.mark.parametrize(
    "text",
    [
        "foo.com:aaa",
        "foo.com:987654321",
        "foo.com:0",
        "1.2.3.4:aaa",
        "[2001:db7::1]",
        "[2001:db7::1]:aaa",
        "*.foo.com:1234",
        "A_B",
        "::1]:80",
        "",
    ],
)
def test_what_is_no_host_and_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="hostport"):
        addresses.parse_host_port(text)


# kubeadm's app/util/endpoint_test.go, TestGetControlPlaneEndpoint
@pytest.mark.parametrize(
    ("endpoint", "address", "port", "url"),
    [
        ("", "1.2.3.4", 1234, "https://1.2.3.4:1234"),
        ("", "2001:db8::1", 4567, "https://[2001:db8::1]:4567"),
        ("api.example", "1.2.3.4", 1234, "https://api.example:1234"),
        ("api.example:2", "1.2.3.4", 1234, "https://api.example:2"),
        ("1.2.3.4", "4.5.6.7", 4567, "https://1.2.3.4:4567"),
        ("[2001:db8::1]:80", "4.5.6.7", 4567, "https://[2001:db8::1]:80"),
        ("2001:db8::1", "4.5.6.7", 4567, "https://[2001:db8::1]:4567"),
    ],
)
def test_the_control_plane_is_reached_at_its_endpoint(endpoint: str, address: str, port: int, url: str) -> None:
    config = InitConfiguration(local_api_endpoint=APIEndpoint(advertise_address=address, bind_port=port))
    config.cluster.control_plane_endpoint = endpoint
    assert endpoints.control_plane_url(config) == url


@pytest.mark.parametrize(
    ("endpoint", "address", "port", "field"),
    [("", "1.2.34", 1234, "advertiseAddress"), ("", "1.2.3.4", 0, "bindPort"), ("bad!!", "1.2.3.4", 6443, "controlPlaneEndpoint")],
)
def test_an_unusable_endpoint_is_named(endpoint: str, address: str, port: int, field: str) -> None:
    config = InitConfiguration(local_api_endpoint=APIEndpoint(advertise_address=address, bind_port=port))
    config.cluster.control_plane_endpoint = endpoint
    with pytest.raises(ConfigurationError, match=field):
        endpoints.control_plane_url(config)


def test_another_port_than_the_api_servers_is_noticed() -> None:
    config = InitConfiguration(local_api_endpoint=APIEndpoint(advertise_address="1.2.3.4", bind_port=6443))
    assert not endpoints.overrides_bind_port(config)
    for endpoint, overrides in (("api.example", False), ("api.example:6443", False), ("api.example:443", True)):
        config.cluster.control_plane_endpoint = endpoint
        assert endpoints.overrides_bind_port(config) is overrides
