"""The virtual address of an Internal load balancer: which hosts share it, and what each of them gets.  Pure.

All hosts of the control plane's pools are peers, whether they are nodes at present or not, and so is every host that a control-plane
machine still has: their addresses are known from what they observed when they registered.  So a host that joins is in everybody's
list before it boots, and one that leaves until it was cleaned; nobody becomes a second master that the others do not hear.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Interface, IPv4Network
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.infrastructure.cluster import DEFAULT_NETWORK_DEVICE, DEFAULT_PORT
from slipway.api.machinery.errors import OperatorError
from slipway.workload import alive

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from slipway.api.cluster.infrastructure.cluster import BaremetalCluster, ControlPlaneLoadBalancer
    from slipway.api.cluster.infrastructure.machine import BaremetalMachine
    from slipway.api.cluster.infrastructure.pool import MachineInventoryPool
    from slipway.api.elemental.inventory import MachineInventory, ObservedNetwork
    from slipway.api.machinery.objects import Manifest
    from slipway.workload.alive.pod import HostFile

_LISTED = 5
# So many of those that were read last are kept.
_ADDRESSES = 4096


class VIPError(OperatorError):
    """Why there can be no virtual address; ``reason`` is that of the condition VIPReady."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Peer(NamedTuple):
    """A host that may hold the address: the name of its inventory, and its own address on a network device."""

    name: str
    address: str
    interface: str
    network: IPv4Network | None = None
    """The network of that address; None where it is not known."""


class Stranger(NamedTuple):
    """A host of whom no address is known, and why: it cannot become a control plane."""

    name: str
    why: str


class Peers(NamedTuple):
    """The hosts of a control plane, by name."""

    known: tuple[Peer, ...] = ()
    unknown: tuple[Stranger, ...] = ()


def internal(cluster: BaremetalCluster) -> ControlPlaneLoadBalancer | None:
    """The load balancer whose address the hosts share; None where somebody else takes care of it."""
    balancer = cluster.spec.control_plane_load_balancer
    return balancer if balancer is not None and (balancer.type or names.INTERNAL) == names.INTERNAL else None


def pool_names(machines: Iterable[BaremetalMachine]) -> list[str]:
    """The pools that control-plane machines are of: two, while the control plane moves from one to the other."""
    return sorted({machine.spec.machine_inventory_pool_ref.name for machine in machines})


def peers(
    cluster: BaremetalCluster,
    pools: Iterable[MachineInventoryPool],
    machines: Iterable[BaremetalMachine],
    inventories: Mapping[str, MachineInventory],
) -> Peers:
    """The members of ``pools``, and the hosts that the control-plane ``machines`` have, those that are being cleaned included."""
    balancer = internal(cluster)
    if balancer is None:
        return Peers()
    devices = {member.name: member.network_device for pool in pools for member in pool.members}
    devices = {**dict.fromkeys(_hosts(machines), ""), **devices}
    known, unknown = [], []
    for name, device in sorted(devices.items()):
        inventory = inventories.get(name)
        try:
            known.append(peer(name, inventory, device or cluster.spec.network_device or DEFAULT_NETWORK_DEVICE, vip=balancer.host))
        except VIPError as error:
            unknown.append(Stranger(name, error.message))
    return Peers(tuple(known), tuple(unknown))


def peer(name: str, inventory: MachineInventory | None, device: str, *, vip: str) -> Peer:
    """The host with its first IPv4 address on the device; it may have held the virtual one beside its own when it registered."""
    if inventory is None:
        raise VIPError(
            names.VIP_PEERS_UNKNOWN_REASON, f"there is no MachineInventory {name}: register the host, or take it out of the pool"
        )
    network = inventory.spec.observed_network
    found = [interface for interface in (network.interfaces if network is not None else ()) if interface.name == device]
    if not found:
        raise VIPError(
            names.VIP_PEERS_UNKNOWN_REASON,
            f"{name} has no network device {device} ({_devices(network)}): name the right one in networkDevice of the BaremetalCluster "
            "or of the pool's entry, or let the host register anew",
        )
    addresses = [address for text in found[0].addresses if (address := _ipv4(text)) is not None]
    addresses = [address for address in addresses if str(address.ip) != vip] or addresses
    if not addresses:
        raise VIPError(names.VIP_PEERS_UNKNOWN_REASON, f"{name} has no IPv4 address on its network device {device}: give it one")
    own = addresses[0]
    return Peer(name, str(own.ip), device, own.network if own.network.num_addresses > 1 else None)


def check(cluster: BaremetalCluster, known: Peers, others: Iterable[BaremetalCluster] = ()) -> None:
    """VIPError where the address cannot work: ``others`` are all BaremetalClusters there are."""
    balancer = internal(cluster)
    if balancer is None:
        return
    vrid = balancer.vrid
    if not vrid:
        raise VIPError(
            names.VIP_INVALID_REASON,
            "controlPlaneLoadBalancer.vrid is not set: choose one from 1 to 255 that nothing else on the hosts' network segment uses",
        )
    if rival := _rival(cluster, vrid, known, others):
        raise VIPError(
            names.VRID_IN_USE_REASON,
            f"the vrid {vrid} is in use by the BaremetalCluster {rival}, which is older: hosts of both on one network segment would "
            "disturb each other, so choose another one from 1 to 255",
        )
    owner = next((host for host in known.known if host.address == balancer.host), None)
    if owner is not None:
        raise VIPError(
            names.VIP_IS_HOST_ADDRESS_REASON,
            f"the virtual address {balancer.host} is the own address of {owner.name}: choose one of the same network that nothing has",
        )
    if not known.known:
        raise VIPError(names.VIP_PEERS_UNKNOWN_REASON, _no_peers(known))
    _values(balancer, known, known.known[0])


def files_for(
    cluster: BaremetalCluster, inventory: str, known: Peers, *, image: str = "", others: Iterable[BaremetalCluster] = ()
) -> list[HostFile]:
    """What goes into the user-data of a control-plane host; nothing where the load balancer is External, VIPError where it cannot work."""
    balancer = internal(cluster)
    if balancer is None:
        return []
    me = next((host for host in known.known if host.name == inventory), None)
    if me is None:
        raise VIPError(
            names.VIP_PEERS_UNKNOWN_REASON,
            next((host.why for host in known.unknown if host.name == inventory), f"{inventory} is in no pool of the control plane"),
        )
    check(cluster, known, others)
    return alive.files(_values(balancer, known, me), image or alive.DEFAULT_IMAGE)


def config_map_for(cluster: BaremetalCluster, known: Peers, machines: Iterable[BaremetalMachine]) -> Manifest:
    """kube-system/alive: all peers, and as ``ipvs.ips`` those of them that are nodes at present and stay so."""
    balancer = internal(cluster)
    assert balancer is not None, "an External load balancer has no ConfigMap"
    current = _hosts(machine for machine in machines if machine.status.ready and "deletionTimestamp" not in machine.metadata)
    return alive.config_map(
        vip=balancer.host,
        peers=[host.address for host in known.known],
        ips=[host.address for host in known.known if host.name in current],
    )


def described(known: Peers) -> str:
    """What the condition says when all is well: who shares the address, and who cannot for now."""
    hosts = ", ".join(f"{host.name} ({host.address})" for host in known.known[:_LISTED])
    more = f" and {len(known.known) - _LISTED} more" if len(known.known) > _LISTED else ""
    return "; ".join([f"The address is shared by {hosts}{more}", *(f"not by {host.name}: {host.why}" for host in known.unknown[:_LISTED])])


def _values(balancer: ControlPlaneLoadBalancer, known: Peers, me: Peer) -> alive.Values:
    try:
        return alive.host_values(
            vip=balancer.host,
            interface=me.interface,
            address=me.address,
            peers=[host.address for host in known.known],
            vrid=balancer.vrid or 0,
            port=balancer.port or DEFAULT_PORT,
        )
    except alive.ValuesError as error:
        raise VIPError(names.VIP_INVALID_REASON, error.message) from None


def _rival(cluster: BaremetalCluster, vrid: int, known: Peers, others: Iterable[BaremetalCluster]) -> str:
    """The oldest other cluster with the same vrid, where it is older than this one: of two, one goes on undisturbed.

    One whose address is in no network of these hosts is on another segment, as the webhook has it too; where no network is known, nobody
    knows that either.
    """
    mine = _age(cluster)
    networks = {host.network for host in known.known if host.network is not None}
    rivals = [
        age
        for other in others
        if (balancer := internal(other)) is not None
        and balancer.vrid == vrid
        and (age := _age(other)) < mine
        and (not networks or any(_is_in(balancer.host, network) for network in networks))
    ]
    older = min(rivals, default=None)
    return "" if older is None else f"{older[1]}/{older[2]}"


def _is_in(address: str, network: IPv4Network) -> bool:
    found = _ipv4(address)
    return found is not None and found.ip in network


def _age(cluster: BaremetalCluster) -> tuple[str, str, str]:
    metadata = cluster.metadata
    return str(metadata.get("creationTimestamp") or ""), str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def _hosts(machines: Iterable[BaremetalMachine]) -> Collection[str]:
    return {machine.status.machine_inventory_ref.name for machine in machines if machine.status.machine_inventory_ref is not None}


# Every cluster looks at the addresses of all others, and to read one takes longer than all the rest of that.
@lru_cache(_ADDRESSES)
def _ipv4(text: str) -> IPv4Interface | None:
    try:
        return IPv4Interface(text)
    except ValueError:
        return None


def _devices(network: ObservedNetwork | None) -> str:
    if network is None or not network.interfaces:
        return "it has reported none"
    return "it has " + ", ".join(interface.name for interface in network.interfaces[:_LISTED])


def _no_peers(known: Peers) -> str:
    return (
        "; ".join(host.why for host in known.unknown[:_LISTED])
        or "no control-plane machine names a pool with hosts yet: the peers are those of its pool"
    )
