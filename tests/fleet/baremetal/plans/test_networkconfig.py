"""network-config of a host from what it had when it registered; PyYAML reads it as cloud-init does."""

from __future__ import annotations

import yaml

from slipway.api.elemental.inventory import ObservedInterface, ObservedNetwork, ObservedRoute
from slipway.fleet.baremetal.plans.networkconfig import network_config

# Digits alone, which YAML 1.1 would read as a number in base 60.
MAC = "52:54:00:12:34:56"
OBSERVED = ObservedNetwork(
    interfaces=[
        ObservedInterface(name="lo", mac="00:00:00:00:00:00", addresses=["127.0.0.1/8"]),
        ObservedInterface(name="eth0", mac=MAC, mtu=9000, addresses=["10.0.0.5/24", "fe80::1/64", "10.0.0.9/32"]),
        ObservedInterface(name="eth1", mac="52:54:00:AB:34:57", addresses=["fd00::5/64"]),
        ObservedInterface(name="eth2", mac="52:54:00:12:34:58"),
    ],
    routes=[
        ObservedRoute(destination="default", gateway="10.0.0.1", interface="eth0", metric=100),
        ObservedRoute(destination="10.0.0.0/24", interface="eth0"),
        ObservedRoute(destination="default", gateway="fd00::1", interface="eth1"),
    ],
    dns_servers=["10.0.0.2"],
    search_domains=["example.com"],
)


def test_what_was_observed_is_configured() -> None:
    servers = {"addresses": ["10.0.0.2"], "search": ["example.com"]}
    assert yaml.safe_load(network_config(OBSERVED, without=["10.0.0.9"])) == {
        "version": 2,
        "ethernets": {
            "eth0": {
                "match": {"macaddress": MAC},
                "set-name": "eth0",
                "dhcp4": False,
                "dhcp6": False,
                "mtu": 9000,
                "addresses": ["10.0.0.5/24"],
                "routes": [{"to": "0.0.0.0/0", "via": "10.0.0.1", "metric": 100}],
                "nameservers": servers,
            },
            "eth1": {
                "match": {"macaddress": "52:54:00:ab:34:57"},
                "set-name": "eth1",
                "dhcp4": False,
                "dhcp6": False,
                "addresses": ["fd00::5/64"],
                "routes": [{"to": "::/0", "via": "fd00::1"}],
                "nameservers": servers,
            },
        },
    }


def test_a_host_of_which_nothing_is_known_gets_no_configuration() -> None:
    assert network_config(None) == ""
    assert network_config(ObservedNetwork()) == ""
    assert network_config(ObservedNetwork(interfaces=[ObservedInterface(name="eth0", mac=MAC, addresses=["rubbish"])])) == ""


def test_a_bond_is_made_of_its_parts_again() -> None:
    bond = ObservedNetwork(
        interfaces=[
            ObservedInterface(name="eth0", mac="52:54:00:00:00:0a", master="bond0"),
            ObservedInterface(name="eth1", mac="52:54:00:00:00:0b", master="bond0"),
            ObservedInterface(name="bond0", mac="52:54:00:00:00:0a", addresses=["10.0.0.5/24"]),
        ]
    )
    found = yaml.safe_load(network_config(bond))
    assert found["bonds"]["bond0"]["interfaces"] == ["eth0", "eth1"]
    assert found["bonds"]["bond0"]["addresses"] == ["10.0.0.5/24"]
    assert {name: device["match"]["macaddress"] for name, device in found["ethernets"].items()} == {
        "eth0": "52:54:00:00:00:0a",
        "eth1": "52:54:00:00:00:0b",
    }


def test_a_vlan_stands_on_its_bond_again_though_the_bond_has_no_address() -> None:
    observed = ObservedNetwork(
        interfaces=[
            ObservedInterface(name="eth0", mac="52:54:00:00:00:0a", mtu=9000, master="bond0"),
            ObservedInterface(name="eth1", mac="52:54:00:00:00:0b", mtu=9000, master="bond0"),
            ObservedInterface(name="bond0", mac="52:54:00:00:00:0a", mtu=9000),
            ObservedInterface(name="bond0.100", mac="52:54:00:00:00:0a", addresses=["10.0.0.5/24"]),
            ObservedInterface(name="eth2", mac="52:54:00:00:00:0c"),
        ],
        routes=[ObservedRoute(destination="default", gateway="10.0.0.1", interface="bond0.100")],
    )
    nothing = {"dhcp4": False, "dhcp6": False}
    assert yaml.safe_load(network_config(observed)) == {
        "version": 2,
        "ethernets": {
            name: {"match": {"macaddress": mac}, "set-name": name, "mtu": 9000, **nothing}
            for name, mac in (("eth0", "52:54:00:00:00:0a"), ("eth1", "52:54:00:00:00:0b"))
        },
        "bonds": {"bond0": {"interfaces": ["eth0", "eth1"], "parameters": {"mode": "active-backup"}, "mtu": 9000, **nothing}},
        "vlans": {
            "bond0.100": {
                "link": "bond0",
                "id": 100,
                "addresses": ["10.0.0.5/24"],
                "routes": [{"to": "0.0.0.0/0", "via": "10.0.0.1"}],
                **nothing,
            }
        },
    }
