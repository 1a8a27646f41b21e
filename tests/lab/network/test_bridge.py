"""The network of a lab: what the machine is told, and what its hosts are."""

from __future__ import annotations

import json
from ipaddress import IPv4Network
from pathlib import Path

import pytest
from lab.lab_records import LAB, host

from slipway.lab.hosts import files as hostfiles
from slipway.lab.network import bridge as network
from slipway.lab.network import sysctl
from slipway.lab.network.sysctl import Holders

# What iproute2 6.1 prints, shortened to a few entries.
ADDRESSES = json.dumps(
    [
        {"ifname": "lo", "addr_info": [{"family": "inet", "local": "127.0.0.1", "prefixlen": 8}]},
        {"ifname": "eth0", "addr_info": [{"family": "inet", "local": "192.0.2.2", "prefixlen": 24}]},
        {"ifname": "tun0", "addr_info": [{"family": "inet", "local": "10.88.9.1", "address": "10.88.9.2", "prefixlen": 32}]},
        {},
    ]
)
ROUTES = json.dumps(
    [
        {"dst": "default", "gateway": "192.0.2.1", "dev": "eth0"},
        {"dst": "10.20.0.0/16", "gateway": "192.0.2.9", "dev": "eth0"},
        {"dst": "192.0.2.0/24", "dev": "eth0"},
        {"type": "local", "dst": "192.0.2.2", "dev": "eth0", "table": "local"},
        {"dst": "0.0.0.0/1", "dev": "tun0"},
    ]
)


def test_the_ranges_in_use_are_those_of_addresses_and_routes_but_not_the_default() -> None:
    used = {str(found) for found in network.used_networks(ADDRESSES, ROUTES)}
    assert used == {"127.0.0.0/8", "192.0.2.0/24", "192.0.2.2/32", "10.88.9.1/32", "10.20.0.0/16"}
    assert network.used_networks("", "") == []


def test_the_bridge_is_made_with_the_address_that_tells_whose_it_is_and_leads_to_every_host() -> None:
    assert network.bridge_commands(LAB) == [
        ["ip", "link", "add", "name", "sw-dev", "address", "02:01:23:ab:00:00", "type", "bridge"],
        ["ip", "address", "replace", "10.88.3.1/24", "dev", "sw-dev"],
        ["ip", "link", "set", "dev", "sw-dev", "up"],
    ]
    assert network.route_command(LAB, host()) == [
        "ip",
        "route",
        "replace",
        "10.130.1.0/24",
        "via",
        "10.88.3.11",
        "dev",
        "sw-dev",
        "proto",
        "static",
    ]


@pytest.mark.parametrize(
    ("rules", "drops"),
    [
        ("-P FORWARD ACCEPT\n", False),
        ("-P FORWARD DROP\n-A FORWARD -j DOCKER-USER\n", True),
        ("-P FORWARD ACCEPT\n-A FORWARD -i eth0 -j DROP\n", False),
        ("", False),
    ],
)
def test_a_policy_that_drops_is_recognised(rules: str, drops: bool) -> None:
    assert network.drops_forwarding(rules) is drops


def test_forwarding_from_and_to_the_lab_is_accepted_where_it_would_be_dropped() -> None:
    assert [rule[:3] for rule in network.firewall_rules(LAB)] == [["FORWARD", "-i", "sw-dev"], ["FORWARD", "-o", "sw-dev"]]


def test_what_comes_from_the_lab_is_routed_to_the_lab_and_nowhere_else() -> None:
    *inside, outside = network.isolation_rules(LAB)
    assert [rule[3] for rule in inside] == ["10.88.3.0/24", "10.130.0.0/16"]
    assert "unreachable" in outside
    assert all(int(rule[-1]) < int(outside[-1]) < 32766 for rule in inside)


def test_the_first_lab_remembers_the_machines_settings_and_the_last_one_restores_them(tmp_path: Path) -> None:
    forward, instances, record = tmp_path / "ip_forward", tmp_path / "max_user_instances", tmp_path / "run" / "settings.json"
    forward.write_text("0\n")
    instances.write_text("128\n")
    settings = {forward: 1, instances: 1024}
    one, two, removed = (tmp_path / name for name in ("one", "two", "removed-by-hand"))
    one.mkdir()
    two.mkdir()
    for lab in (one, one, two, removed):
        sysctl.hold(lab, settings=settings, record=record)
        assert (forward.read_text(), instances.read_text()) == ("1\n", "1024\n")
    sysctl.release(one, record=record)
    assert (forward.read_text(), instances.read_text()) == ("1\n", "1024\n")
    for _ in range(2):
        sysctl.release(two, record=record)
        assert (forward.read_text(), instances.read_text()) == ("0\n", "128\n")
        assert list(record.parent.iterdir()) == []


def test_a_machine_that_has_enough_anyway_keeps_what_it_has(tmp_path: Path) -> None:
    setting, record = tmp_path / "max_user_instances", tmp_path / "run" / "settings.json"
    setting.write_text("8192\n")
    sysctl.hold(tmp_path, settings={setting: 1024}, record=record)
    assert setting.read_text() == "8192\n"
    sysctl.release(tmp_path, record=record)
    assert setting.read_text() == "8192\n"


def test_holders_are_counted_once_each() -> None:
    first = sysctl.with_lab(None, {"ip_forward": 0}, "one")
    assert sysctl.with_lab(first, {"ip_forward": 1}, "one") == first
    both = sysctl.with_lab(first, {"ip_forward": 1}, "two")
    assert both == Holders(before={"ip_forward": 0}, labs=("one", "two"))
    assert sysctl.without_labs(both, {"one"}) == Holders(before={"ip_forward": 0}, labs=("two",))
    assert sysctl.without_labs(both, {"one", "two"}) is None


def test_pods_get_addresses_of_their_hosts_range_and_keep_them() -> None:
    conflist = json.loads(hostfiles.cni_conflist(host()))
    bridge, portmap = conflist["plugins"]
    assert (bridge["type"], bridge["isGateway"], bridge["ipMasq"]) == ("bridge", True, False)
    assert bridge["ipam"]["type"] == "host-local"
    assert bridge["ipam"]["ranges"] == [[{"subnet": "10.130.1.0/24"}]]
    assert portmap == {"type": "portmap", "capabilities": {"portMappings": True}}


def test_a_hosts_link_has_its_mac_address_and_the_machine_as_gateway() -> None:
    lines = hostfiles.networkd(LAB, host()).splitlines()
    for line in ("Name=host0", "MACAddress=02:01:23:ab:00:01", "Address=10.88.3.11/24", "Gateway=10.88.3.1", "IPForward=ipv4"):
        assert line in lines


def test_the_hosts_file_has_every_host_and_keeps_what_was_written_beside_them() -> None:
    first = host("a")
    second = host("b", first)
    once = hostfiles.hosts_file("127.0.0.1 localhost\n", first, [first])
    assert once == "127.0.0.1 localhost\n# slipway lab: hosts\n10.88.3.11 a\n# slipway lab: end of hosts\n"
    later = hostfiles.hosts_file(once + "10.0.0.1 api.example\n", first, [first, second])
    assert later.splitlines() == [
        "127.0.0.1 localhost",
        "10.0.0.1 api.example",
        "# slipway lab: hosts",
        "10.88.3.11 a",
        "10.88.3.12 b",
        "# slipway lab: end of hosts",
    ]
    assert hostfiles.hosts_file(later, first, [first, second]) == later
    assert hostfiles.hosts_file("", first, []).splitlines()[0] == "127.0.0.1 localhost"


def test_hosts_ask_no_name_server_outside_the_lab() -> None:
    made = host()
    files = {file.path: file for file in hostfiles.files(LAB, made, [made], hosts_before="")}
    assert files["/etc/resolv.conf"].content == "nameserver 10.88.3.1\n"


def test_a_host_is_told_who_it_is_in_the_files_of_a_physical_machine() -> None:
    made = host()
    files = {file.path: file for file in hostfiles.files(LAB, made, [made], hosts_before="")}
    assert files["/etc/machine-id"].content == "51235d84183a47d5b67fc04d8eef9ae1\n"
    assert files["/etc/slipway-lab/dmi/product_uuid"].content == "51235d84-183a-47d5-b67f-c04d8eef9ae1\n"
    assert files["/etc/slipway-lab/dmi/product_serial"].content == "SLIPWAY-51235D8418\n"


def test_what_a_host_changes_itself_is_written_before_its_first_boot_alone() -> None:
    made = host()
    always = {file.path for file in hostfiles.files(LAB, made, [made], hosts_before="")}
    first = {file.path: file for file in hostfiles.first_files(made, user_data=None, registration="url: x\n")}
    assert first == {
        "/etc/hostname": hostfiles.File("/etc/hostname", "a\n"),
        "/oem/registration/config.yaml": hostfiles.File("/oem/registration/config.yaml", "url: x\n", 0o600),
    }
    assert not always & first.keys()
    assert not any("cloud" in path for path in always)


def test_user_data_becomes_a_seed_that_only_root_reads() -> None:
    made = host()
    given = hostfiles.first_files(made, user_data="#cloud-config\n", registration=None)
    files = {file.path: file for file in given}
    assert files["/var/lib/cloud/seed/nocloud/user-data"] == hostfiles.File(
        "/var/lib/cloud/seed/nocloud/user-data", "#cloud-config\n", 0o600
    )
    meta_data = files["/var/lib/cloud/seed/nocloud/meta-data"].content
    assert meta_data == "instance-id: 51235d84-183a-47d5-b67f-c04d8eef9ae1\nlocal-hostname: a\n"


def test_the_pod_ranges_of_hosts_do_not_overlap_the_hosts_range() -> None:
    assert not IPv4Network(host().pod_range).overlaps(LAB.host_network)
