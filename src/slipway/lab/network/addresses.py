"""Which addresses a lab uses: its range on the bridge, its Pod ranges, and the names that must be free on the machine.

Only decisions: what the machine has in use comes in as values, see :mod:`slipway.lab.network.bridge`.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

HOST_RANGES = IPv4Network("10.88.0.0/16")
"""Labs take their /24 from here."""
POD_RANGES = IPv4Network("10.128.0.0/10")
"""Labs take the /16 of their Pods from here: apart from kubeadm's Service range 10.96.0.0/12 and from HOST_RANGES."""

_FIRST_HOST = 10
"""Addresses below are the machine's (.1) and free for virtual addresses of control planes."""
LAST_INDEX = 200
"""A lab's /24 holds the hosts 1 to 200; what is above stays free for load balancers."""
_LONGEST_LINK_NAME = 15


def choose_range(taken: Collection[IPv4Network], candidates: Iterable[IPv4Network], what: str) -> IPv4Network:
    """The first candidate that overlaps nothing in use."""
    for candidate in candidates:
        if not any(candidate.overlaps(used) for used in taken):
            return candidate
    raise OperatorError(f"every address range for {what} is in use on this machine: delete a lab, or name a free range")


def host_ranges() -> Iterator[IPv4Network]:
    return HOST_RANGES.subnets(new_prefix=24)


def pod_ranges() -> Iterator[IPv4Network]:
    return POD_RANGES.subnets(new_prefix=16)


def check_range(text: str, prefix: int, taken: Collection[IPv4Network], what: str) -> IPv4Network:
    """A range that the operator named, unless it is malformed or in use."""
    try:
        network = IPv4Network(text)
    except ValueError as error:
        raise OperatorError(f"{text} is not an address range for {what}: {error}; an example is 10.88.7.0/{prefix}") from error
    if network.prefixlen != prefix:
        raise OperatorError(f"the address range for {what} must be a /{prefix}, and {text} is a /{network.prefixlen}")
    for used in taken:
        if network.overlaps(used):
            raise OperatorError(f"the address range {network} for {what} is taken: this machine uses {used}; name another range")
    return network


def choose_bridge(lab: str, tag: str, taken: Collection[str]) -> str:
    """The name of the lab's bridge: readable where it fits, by the lab's tag where it does not or is taken."""
    readable = f"sw-{lab}"
    return readable if len(readable) <= _LONGEST_LINK_NAME and readable not in taken else f"sw-{tag}"


def check_bridge(name: str, taken: Collection[str]) -> str:
    """The name of a bridge that the operator chose, unless Linux refuses it or another link has it."""
    if not name or len(name) > _LONGEST_LINK_NAME or "/" in name or name.split() != [name] or name in {".", ".."}:
        raise OperatorError(
            f"{name!r} cannot be the name of a bridge: Linux takes 1 to {_LONGEST_LINK_NAME} characters without blanks and slashes"
        )
    if name in taken:
        raise OperatorError(f"the bridge name {name} is taken: this machine has a link of that name; choose another one")
    return name


def gateway(network: IPv4Network) -> IPv4Address:
    """The machine's own address on the bridge."""
    return network[1]


def host_address(network: IPv4Network, index: int) -> IPv4Address:
    return network[_FIRST_HOST + index]


def pod_range(pods: IPv4Network, index: int) -> IPv4Network:
    """The /24 of one host in the /16 of its lab."""
    return IPv4Network((int(pods.network_address) + (index << 8), 24))


def mac(tag: str, index: int) -> str:
    """A locally administered MAC address, of the bridge (index 0) or of a host."""
    digits = f"02{tag[:6]}{index:04x}"
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))


def next_index(used: Collection[int]) -> int:
    """The smallest index that no host of the lab has."""
    for index in range(1, LAST_INDEX + 1):
        if index not in used:
            return index
    raise OperatorError(f"a lab holds at most {LAST_INDEX} hosts: delete one, or make another lab")
