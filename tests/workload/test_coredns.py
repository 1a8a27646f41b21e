"""CoreDNS: its address and its Corefile; rows of phases/addons/dns/dns_test.go (1.36.3)."""

from __future__ import annotations

import pytest

from slipway.api.machinery.errors import ConfigurationError
from slipway.workload import coredns


@pytest.mark.parametrize(
    ("subnet", "address"),
    [
        ("10.96.0.0/12", "10.96.0.10"),
        ("10.90.11.160/27", "10.90.11.170"),
        ("10.90.11.174/27", "10.90.11.170"),  # the bits of a host count for nothing
        ("fd00:30::/108", "fd00:30::a"),
        ("10.100.0.0/16,fd00:30::/108", "10.100.0.10"),
        ("fd00:30::/108,10.100.0.0/16", "fd00:30::a"),
    ],
)
def test_the_name_service_has_the_tenth_address_of_the_first_subnet(subnet: str, address: str) -> None:
    assert coredns.address(subnet) == address


@pytest.mark.parametrize("subnet", ["", "10.96.0.0/30", "ten"])
def test_a_subnet_without_a_tenth_address_is_refused(subnet: str) -> None:
    with pytest.raises(ConfigurationError, match="unable to get the DNS IP"):
        coredns.address(subnet)


@pytest.mark.parametrize(
    ("domain", "cache"),
    [
        ("foo", "    cache 30 {\n       disable success foo\n       disable denial foo\n    }\n    loop"),
        ("", "    cache 30\n    loop"),
    ],
)
def test_answers_for_the_cluster_are_not_cached(domain: str, cache: str) -> None:
    text = coredns.default_corefile(domain)
    assert cache in text
    assert f"    kubernetes {domain} in-addr.arpa ip6.arpa {{" in text
