"""The values of the virtual address: what is refused and with which sentence, and what the ConfigMap changes."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.workload import alive
from slipway.workload.alive import values

GOOD: dict[str, Any] = {
    "vip": "192.0.2.100",
    "interface": "eth0",
    "address": "192.0.2.11",
    "peers": ["192.0.2.11", "192.0.2.12", "192.0.2.13"],
    "vrid": 51,
}


def test_a_host_is_not_its_own_peer() -> None:
    assert alive.host_values(**GOOD).peers == ("192.0.2.12", "192.0.2.13")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"vip": "192.0.2.11"}, "the virtual address 192.0.2.11 is the own address of a host"),
        ({"vip": "192.0.2.13"}, "the virtual address 192.0.2.13 is the own address of a host"),
        ({"peers": []}, "keepalived needs a peer, so put at least two hosts"),
        ({"peers": ["192.0.2.11"]}, "keepalived needs a peer, so put at least two hosts"),
        ({"vip": "vip.example"}, "the virtual address must be an IPv4 address, and is 'vip.example'"),
        ({"vip": "2001:db8::1"}, "IPv6 needs a load balancer of type External"),
        ({"address": ""}, "the host's address must be an IPv4 address, and is ''"),
        ({"peers": ["192.0.2.12", "192.0.2.300"]}, "the address of a peer must be an IPv4 address, and is '192.0.2.300'"),
        ({"vrid": 0}, "choose one from 1 to 255"),
        ({"vrid": 256}, "choose one from 1 to 255"),
        ({"interface": "eth0 {"}, "'eth0 {' is not the name of a network device"),
        ({"interface": "a-name-that-is-too-long"}, "is not the name of a network device"),
        ({"port": 0}, "0 is not a port"),
    ],
)
def test_what_cannot_work_is_refused_with_a_sentence(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(alive.ValuesError) as refused:
        alive.host_values(**{**GOOD, **wrong})
    assert sentence in refused.value.message


def test_values_survive_their_file() -> None:
    known = alive.host_values(**GOOD)
    assert values.decode(values.encode(known), "alive.json") == known


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"vip": 3}', b'{"vip": "192.0.2.1", "other": 1}', b"\xff"])
def test_a_damaged_file_is_refused_by_its_name(raw: bytes) -> None:
    with pytest.raises(alive.ValuesError, match=r"alive\.json"):
        values.decode(raw, "alive.json")


def test_a_file_that_names_no_peers_is_refused_by_its_name() -> None:
    raw = b'{"vip": "192.0.2.100", "interface": "eth0", "address": "192.0.2.11", "peers": [], "vrid": 1}'
    with pytest.raises(alive.ValuesError, match=r"alive\.json: .*keepalived needs a peer"):
        values.decode(raw, "alive.json")


def test_the_config_map_lists_addresses_in_the_order_of_numbers() -> None:
    made = alive.config_map(vip="192.0.2.100", peers=["192.0.2.12", "192.0.2.9", "192.0.2.12"], ips=["192.0.2.9"])
    assert (made["metadata"]["namespace"], made["metadata"]["name"]) == ("kube-system", "alive")
    assert made["data"] == {"vip": "192.0.2.100", "peers": "192.0.2.9,192.0.2.12", "ipvs.ips": "192.0.2.9"}


def test_peers_follow_the_config_map() -> None:
    known = alive.host_values(**GOOD)
    found = alive.config_map(vip=known.vip, peers=["192.0.2.11", "192.0.2.14"], ips=[])
    assert values.updated(known, found).peers == ("192.0.2.14",)


def test_a_host_that_is_no_longer_listed_still_hears_the_others() -> None:
    known = alive.host_values(**GOOD)
    found = alive.config_map(vip=known.vip, peers=["192.0.2.12", "192.0.2.13"], ips=[])
    assert values.updated(known, found).peers == ("192.0.2.12", "192.0.2.13")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({}, "is for no address"),
        (None, "is for no address"),
        ({"vip": "192.0.2.99", "peers": "192.0.2.12"}, "is for 192.0.2.99, and this host's is 192.0.2.100"),
        ({"vip": "192.0.2.100", "peers": ""}, "keepalived needs a peer"),
        ({"vip": "192.0.2.100", "peers": "192.0.2.12,nonsense"}, "'nonsense'"),
    ],
)
def test_a_config_map_that_says_nothing_usable_is_refused(data: dict[str, str] | None, sentence: str) -> None:
    with pytest.raises(alive.ValuesError) as refused:
        values.updated(alive.host_values(**GOOD), {"data": data})
    assert sentence in refused.value.message
