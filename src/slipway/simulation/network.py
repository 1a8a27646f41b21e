"""The network segment of simulated hosts: who holds a virtual address, by the rules of VRRP without preemption."""

from __future__ import annotations

import re
from collections import Counter
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from slipway.simulation.host.machine import Machine

CONFIGURATION = "/etc/keepalived/keepalived.conf"
_VIP = re.compile(r"virtual_ipaddress\s*\{\s*([0-9.]+)")
_PEERS = re.compile(r"unicast_peer\s*\{([^}]*)\}")
_PRIORITY = re.compile(r"\bpriority\s+(\d+)")


class Keepalived(NamedTuple):
    """What one host's keepalived was configured with."""

    vip: str
    peers: frozenset[str]
    priority: int


def configured(machine: Machine) -> Keepalived | None:
    """What keepalived reads at its start; None where it does not run."""
    if machine.faults.keepalived_fails or machine.running("keepalived") is None or not machine.tree.exists(CONFIGURATION):
        return None
    text = machine.tree.file(CONFIGURATION).content.decode()
    vip, peers, priority = _VIP.search(text), _PEERS.search(text), _PRIORITY.search(text)
    if vip is None or peers is None:
        return None
    return Keepalived(vip[1], frozenset(re.findall(r"[0-9.]+", peers[1])), int(priority[1]) if priority else 100)


class Segment:
    """``ready`` says whether the API server of a host answers to its own check."""

    def __init__(self, ready: Callable[[Machine], bool]) -> None:
        self._ready = ready
        self.takeovers: Counter[str] = Counter()
        """How often each address went to another host."""
        self.doubled: list[str] = []
        """Addresses that two hosts had at once, each time that it was seen."""

    def holders(self, vip: str, machines: Iterable[Machine]) -> list[Machine]:
        """Everybody on the segment who has the address on an interface."""
        return [
            machine
            for machine in machines
            if machine.powered
            and not machine.faults.cut_off
            and any(held.partition("/")[0] == vip for held in machine.addresses.get(machine.hardware.interface, ()))
        ]

    def settle(self, machines: list[Machine]) -> None:
        """Let those who fail let go, and one that may take over do so."""
        for machine in machines:
            if machine.faults.keepalived_fails:
                machine.addresses[machine.hardware.interface] = [machine.hardware.address]
        running = {machine.hardware.name: known for machine in machines if machine.powered and (known := configured(machine)) is not None}
        by_name = {machine.hardware.name: machine for machine in machines}
        for vip in {known.vip for known in running.values()}:
            members = [by_name[name] for name, known in running.items() if known.vip == vip]
            able = [machine for machine in members if self._ready(machine) and not machine.faults.cut_off]
            for machine in members:
                if machine not in able:
                    release(machine, vip)
            holders = self.holders(vip, machines)
            if not holders and able:
                chosen = max(able, key=lambda machine: (running[machine.hardware.name].priority, -_number(machine)))
                chosen.addresses[chosen.hardware.interface].append(f"{vip}/32")
                self.takeovers[vip] += 1
            elif len(holders) > 1:
                self.doubled.append(vip)


def release(machine: Machine, vip: str) -> None:
    held = machine.addresses.get(machine.hardware.interface)
    if held is not None:
        held[:] = [address for address in held if address.partition("/")[0] != vip]


def _number(machine: Machine) -> int:
    return int(IPv4Address(machine.hardware.address.partition("/")[0]))
