"""What the virtual address of a control plane depends on, checked: on each host, and in the ConfigMap that all of them watch."""

from __future__ import annotations

import re
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slipway.api.machinery.objects import Manifest

NAMESPACE = "kube-system"
CONFIG_MAP = "alive"
LEASE = "alive"
PORT = 6443

# What Linux takes for the name of a network device (at most 15 bytes), and keepalived for a word.
_DEVICE = re.compile(r"[A-Za-z0-9_.@-]{1,15}")
_VIP, _PEERS, _IPS = "vip", "peers", "ipvs.ips"


class ValuesError(OperatorError):
    """Values with which no virtual address can be had."""


class Values(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Those of one host."""

    vip: str
    interface: str
    """The network device that gets the address; all hosts are on one L2 segment there."""
    address: str
    """The host's own address on that device."""
    peers: tuple[str, ...]
    """The addresses of the other hosts that may hold the virtual one, sorted; never empty."""
    vrid: int
    port: int = PORT
    """Where the API servers listen: the one of the holder answers for the virtual address."""


def host_values(*, vip: str, interface: str, address: str, peers: Iterable[str], vrid: int, port: int = PORT) -> Values:
    """Checked values of a host; its own address may be among the ``peers`` that are given."""
    virtual, own = _address(vip, "the virtual address"), _address(address, "the host's address")
    others = sorted({_address(peer, "the address of a peer") for peer in peers} - {own})
    if virtual in (own, *others):
        raise ValuesError(
            f"the virtual address {virtual} is the own address of a host of the control-plane pool: "
            "choose one of the same network that nothing has"
        )
    if not others:
        raise ValuesError(
            f"the virtual address {virtual} has no host but {own}: keepalived needs a peer, so put at least two hosts "
            "(three, for etcd to survive the loss of one) into the control-plane pool, or use a load balancer of type External"
        )
    if _DEVICE.fullmatch(interface) is None:
        raise ValuesError(f"{interface!r} is not the name of a network device: at most 15 letters, digits and . _ - @")
    if not 1 <= vrid <= 255:
        raise ValuesError(f"the virtual router ID is {vrid}: choose one from 1 to 255 that nothing else on the network segment uses")
    if not 1 <= port <= 65535:
        raise ValuesError(f"{port} is not a port: the API servers listen on one from 1 to 65535")
    return Values(vip=str(virtual), interface=interface, address=str(own), peers=tuple(map(str, others)), vrid=vrid, port=port)


def encode(known: Values) -> bytes:
    """The values as the file that the side car reads at its start."""
    return msgspec.json.format(msgspec.json.encode(known), indent=2) + b"\n"


def decode(raw: bytes, source: str) -> Values:
    try:
        read = msgspec.json.decode(raw, type=Values)
        return host_values(**msgspec.structs.asdict(read))
    except msgspec.DecodeError as error:
        raise ValuesError(f"{source} does not hold the values of the virtual address: {error}") from None
    except ValuesError as error:
        raise ValuesError(f"{source}: {error.message}") from None


def config_map(*, vip: str, peers: Iterable[str], ips: Iterable[str]) -> Manifest:
    """``kube-system/alive``: all hosts that may hold the address, and those of them that are control planes at present."""
    data = {_VIP: str(_address(vip, "the virtual address")), _PEERS: _listed(peers), _IPS: _listed(ips)}
    metadata = {"name": CONFIG_MAP, "namespace": NAMESPACE, "labels": {"app": "alive"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def updated(known: Values, found: Mapping[str, Any]) -> Values:
    """The values of a host after what the ConfigMap says; ValuesError where it is not for this address or says nothing usable.

    A host that the list does not have any more keeps to it all the same: it is on its way out, and must still hear the others.
    """
    data = found.get("data") or {}
    if data.get(_VIP) != known.vip:
        raise ValuesError(f"the ConfigMap {NAMESPACE}/{CONFIG_MAP} is for {data.get(_VIP) or 'no address'}, and this host's is {known.vip}")
    peers = [peer.strip() for peer in str(data.get(_PEERS) or "").split(",") if peer.strip()]
    return host_values(**{**msgspec.structs.asdict(known), "peers": peers})


def _listed(addresses: Iterable[str]) -> str:
    return ",".join(str(address) for address in sorted({_address(text, "the address of a peer") for text in addresses}))


def _address(text: str, what: str) -> IPv4Address:
    try:
        return IPv4Address(text)
    except ValueError:
        hint = " (IPv6 needs a load balancer of type External)" if ":" in text else ""
        raise ValuesError(f"{what} must be an IPv4 address, and is {text!r}{hint}") from None
