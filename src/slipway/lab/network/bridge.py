"""The network of a lab: a bridge of the machine with its hosts on it, the machine being their router.

Each host has its own Pod range, and the machine a route to it through the host: Pods reach each other across hosts
without an overlay and with their own addresses.  What comes from the lab is routed within the lab and nowhere else, so
that no test of a cluster ever sends a packet to somebody else's network.  What the machine must have is decided from the
records and carried out with ``ip``; doing it again changes nothing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.lab.network import addresses, sysctl
from slipway.lab.record import port_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slipway.lab.record import HostRecord, Lab, LabRecord

_LINKS = Path("/sys/class/net")
# Before the main table, which is at 32766; the way in comes before the wall.
_INSIDE, _OUTSIDE = "10880", "10881"


def bridge_commands(record: LabRecord) -> list[list[str]]:
    """What makes the bridge.  Its MAC address is set as it is made, and tells whose bridge it is."""
    return [
        ["ip", "link", "add", "name", record.bridge, "address", record.bridge_mac, "type", "bridge"],
        *bridge_upkeep_commands(record),
    ]


def bridge_upkeep_commands(record: LabRecord) -> list[list[str]]:
    """What a bridge that is there must have."""
    network = record.host_network
    return [
        ["ip", "address", "replace", f"{addresses.gateway(network)}/{network.prefixlen}", "dev", record.bridge],
        ["ip", "link", "set", "dev", record.bridge, "up"],
    ]


def route_command(record: LabRecord, host: HostRecord) -> list[str]:
    """The way to a host's Pods."""
    return ["ip", "route", "replace", host.pod_range, "via", host.address, "dev", record.bridge, "proto", "static"]


def isolation_rules(record: LabRecord) -> list[list[str]]:
    """Rules for ``ip rule``, without the verb: what comes from the lab may go to its hosts and Pods, and nowhere else."""
    inside = [["iif", record.bridge, "to", network, "lookup", "main", "priority", _INSIDE] for network in (record.hosts, record.pods)]
    return [*inside, ["iif", record.bridge, "unreachable", "priority", _OUTSIDE]]


def firewall_rules(record: LabRecord) -> list[list[str]]:
    """Rules for iptables, without the verb, for a machine whose policy drops what it forwards (Docker sets that)."""
    comment = ["-m", "comment", "--comment", f"slipway lab {record.name}"]
    return [["FORWARD", direction, record.bridge, *comment, "-j", "ACCEPT"] for direction in ("-i", "-o")]


def drops_forwarding(rules: str) -> bool:
    """Whether the output of ``iptables -S FORWARD`` has a policy that drops."""
    return any(line.split()[:2] == ["-P", "FORWARD"] and line.split()[2] != "ACCEPT" for line in rules.splitlines())


def used_networks(addresses_json: str, routes_json: str) -> list[IPv4Network]:
    """The ranges in use, from ``ip -json -4 address`` and ``ip -json -4 route show table all``; defaults do not count."""
    found = [
        IPv4Network(f"{address['local']}/{address['prefixlen']}", strict=False)
        for link in json.loads(addresses_json or "[]")
        for address in link.get("addr_info", [])
        if "local" in address
    ]
    found += [IPv4Network(route["dst"], strict=False) for route in json.loads(routes_json or "[]") if route["dst"] != "default"]
    return [network for network in dict.fromkeys(found) if network.prefixlen > 1]  # two halves are a default, too


def machine_networks() -> list[IPv4Network]:
    """The address ranges that this machine uses."""
    return used_networks(run("ip", "-json", "-4", "address"), run("ip", "-json", "-4", "route", "show", "table", "all"))


def machine_links() -> set[str]:
    return {entry.name for entry in _LINKS.iterdir()}


def filters_bridges() -> bool:
    """Whether frames between Pods on one bridge pass iptables, which kube-proxy counts on to translate answers back."""
    return Path("/proc/sys/net/bridge").exists()


def up(lab: Lab) -> None:
    """Make of the lab's network what is not there: the bridge, forwarding, a route for each host."""
    record = lab.record
    sysctl.hold(lab.folder)
    if not (_LINKS / record.bridge).exists():
        commands = bridge_commands(record)
    elif is_own_bridge(record):
        commands = bridge_upkeep_commands(record)
    else:
        raise OperatorError(
            f'the bridge name {record.bridge} of the lab "{lab.name}" is taken by a link that the lab did not make: '
            "remove that link, or make the lab again with another bridge name"
        )
    for command in [*commands, *(route_command(record, host) for host in lab.hosts())]:
        run(*command)
    if _rules_of(record) != len(isolation_rules(record)):
        _remove_isolation(record)
        for isolation in isolation_rules(record):
            run("ip", "rule", "add", *isolation)
    for rule in _missing_rules(record):
        run("iptables", "-w", "-I", *rule)


def down(lab: Lab, hosts: Iterable[HostRecord]) -> None:
    """Remove what :func:`up` made; what is not there, or not the lab's, stays so."""
    record = lab.record
    for host in hosts:
        remove_port(record, host)
    for rule in _present_rules(record):
        run("iptables", "-w", "-D", *rule)
    _remove_isolation(record)
    if is_own_bridge(record):
        run("ip", "link", "delete", "dev", record.bridge)  # its address and the routes through it go with it
    sysctl.release(lab.folder)


def forget_host(record: LabRecord, host: HostRecord) -> None:
    """Remove the route to a host's Pods."""
    routes = json.loads(run("ip", "-json", "-4", "route", "show", host.pod_range) or "[]")
    if any(route.get("dev") == record.bridge for route in routes):
        run("ip", "route", "delete", host.pod_range, "via", host.address, "dev", record.bridge)


def set_link(record: LabRecord, host: HostRecord, *, up: bool) -> None:
    """Drop or restore the link of a running host; one that is off has none."""
    if _is_own_port(record, host):
        run("ip", "link", "set", "dev", port_name(record, host), "up" if up else "down")


def remove_port(record: LabRecord, host: HostRecord) -> None:
    """The link goes with the host's network namespace; one that outlives it is removed."""
    if _is_own_port(record, host):
        # The namespace's own end may come between the question and the command.
        done = subprocess.run(["ip", "link", "delete", "dev", port_name(record, host)], capture_output=True, text=True, check=False)
        if done.returncode != 0 and _is_own_port(record, host):
            raise OperatorError(f"the link {port_name(record, host)} cannot be removed: {done.stderr.strip()}")


def is_own_bridge(record: LabRecord) -> bool:
    link = _LINKS / record.bridge
    return (link / "bridge").exists() and (link / "address").read_text().strip() == record.bridge_mac


def _is_own_port(record: LabRecord, host: HostRecord) -> bool:
    master = _LINKS / port_name(record, host) / "master"
    return master.exists() and master.resolve().name == record.bridge


def _rules_of(record: LabRecord) -> int:
    """How many routing rules there are for what comes from the lab's bridge."""
    return sum(rule.get("iif") == record.bridge for rule in json.loads(run("ip", "-json", "rule", "show") or "[]"))


def _remove_isolation(record: LabRecord) -> None:
    for _ in range(_rules_of(record)):
        run("ip", "rule", "delete", "iif", record.bridge)


def _missing_rules(record: LabRecord) -> list[list[str]]:
    if shutil.which("iptables") is None:
        return []
    if not drops_forwarding(run("iptables", "-w", "-S", "FORWARD")):
        return []
    return [rule for rule in firewall_rules(record) if not _has_rule(rule)]


def _present_rules(record: LabRecord) -> list[list[str]]:
    if shutil.which("iptables") is None:
        return []
    return [rule for rule in firewall_rules(record) if _has_rule(rule)]


def _has_rule(rule: Sequence[str]) -> bool:
    return subprocess.run(["iptables", "-w", "-C", *rule], capture_output=True, check=False).returncode == 0


def run(*command: str) -> str:
    """Run a command that must succeed; its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OperatorError(f"`{' '.join(command)}` failed: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout
