"""What the simulated hosts of a rehearsal are to be, from what the objects say of the real ones.  Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.cluster.infrastructure.machine import BaremetalMachine
from slipway.api.cluster.infrastructure.names import provider_id
from slipway.api.cluster.infrastructure.pool import MachineInventoryPool
from slipway.api.cluster.kinds import BAREMETAL_CLUSTER, BAREMETAL_MACHINE, MACHINE_INVENTORY, MACHINE_INVENTORY_POOL, NODE
from slipway.api.cluster.names import CONTROL_PLANE_LABEL
from slipway.api.elemental.inventory import MachineInventory
from slipway.fleet.baremetal.plans import catalog
from slipway.fleet.baremetal.vip import vip
from slipway.fleet.bootstrap.data import data as bootstrapdata
from slipway.simulation.host.machine import Hardware, hardware
from slipway.simulation.rehearsal import measured

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.cluster.infrastructure.cluster import BaremetalCluster
    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.facts import ClusterFacts
    from slipway.simulation.rehearsal.original import Original


class Member(NamedTuple):
    """A host that is a Node."""

    host: str
    node: str
    version: str
    control_plane: bool


def members(original: Original) -> list[Member]:
    """The hosts that are Nodes, and of which version those are."""
    kubelets = {
        str(each["metadata"]["name"]): str(((each.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion") or "")
        for each in (original.workload or {}).get(NODE, ())
    }
    found = []
    for host, machine in measured.machines_by_host(original).items():
        node = str(((machine.get("status") or {}).get("nodeRef") or {}).get("name") or "")
        if not host or not node:
            continue
        version = kubelets.get(node) or kubernetes_of(str(machine["spec"].get("version") or ""))
        found.append(Member(host, node, version, CONTROL_PLANE_LABEL in (machine["metadata"].get("labels") or {})))
    return found


def kubernetes_of(version: str) -> str:
    """What the kubelet of an image says of itself, whose key may have a distribution's own mark, as in v1.33.7-2."""
    return catalog.key(version).partition("+")[0].partition("-")[0]


def known_hardware(name: str, number: int, inventory: MachineInventory, device: str, image_size: int) -> Hardware:
    """A host with the address and the space that it reports; what it does not report is made up."""
    made = hardware(name, number)._replace(interface=device)
    facts = inventory.status.host_facts
    if facts is not None and facts.free_bytes:
        # One image is on the disk already.
        made = made._replace(disk=min(facts.free_bytes.values()) + image_size)
    network = inventory.spec.observed_network
    interface = next((each for each in (network.interfaces if network is not None else ()) if each.name == device), None)
    address = next((each for each in (interface.addresses if interface is not None else ()) if _interface(each) is not None), "")
    if not address or network is None:
        return made
    gateway = next(
        (route.gateway for route in network.routes if route.destination in ("default", "0.0.0.0/0") and _is_ipv4(route.gateway)), ""
    )
    own = IPv4Interface(address)
    return made._replace(
        address=str(own), gateway=gateway or str(own.network.network_address), mac=interface.mac if interface else made.mac
    )


def devices(objects: Mapping[Kind, list[Manifest]]) -> dict[str, str]:
    """The network device of each host of which a pool says it; under an empty name that of all others."""
    found = {"": str((objects[BAREMETAL_CLUSTER][0].get("spec") or {}).get("networkDevice") or "")}
    for pool in objects[MACHINE_INVENTORY_POOL]:
        for member in pool["spec"].get("machineInventories") or ():
            if member.get("networkDevice"):
                found[str(member["name"])] = str(member["networkDevice"])
    return found


def peers(infrastructure: BaremetalCluster, objects: Mapping[Kind, list[Manifest]]) -> vip.Peers:
    machines = [
        msgspec.convert(each, BaremetalMachine, strict=False)
        for each in objects[BAREMETAL_MACHINE]
        if CONTROL_PLANE_LABEL in (each["metadata"].get("labels") or {})
    ]
    wanted = vip.pool_names(machines)
    pools = [
        msgspec.convert(each, MachineInventoryPool, strict=False)
        for each in objects[MACHINE_INVENTORY_POOL]
        if each["metadata"]["name"] in wanted
    ]
    inventories = {
        str(each["metadata"]["name"]): msgspec.convert(each, MachineInventory, strict=False) for each in objects[MACHINE_INVENTORY]
    }
    return vip.peers(infrastructure, pools, machines, inventories)


def configuration(facts: ClusterFacts, plane: Manifest, member: Member, known: Hardware) -> str:
    """kubeadm's documents, as the bootstrap provider would have written them for this Node."""
    spec = (plane.get("spec") or {}).get("kubeadmConfigSpec") or {}
    cluster = {**(spec.get("clusterConfiguration") or {}), "controlPlaneEndpoint": facts.endpoint}
    registration = {"name": member.node, "kubeletExtraArgs": [{"name": "provider-id", "value": provider_id(member.host)}]}
    own = {"nodeRegistration": registration, "localAPIEndpoint": {"advertiseAddress": known.address.partition("/")[0], "bindPort": 6443}}
    additional = bootstrapdata.AdditionalData(member.version, facts.name, facts.service_domain, facts.service_subnet, facts.pod_subnet)
    parts = (
        bootstrapdata.init_configuration(own, member.version),
        bootstrapdata.cluster_configuration(cluster, member.version, additional),
    )
    return "---\n".join(parts)


def node(member: Member) -> Manifest:
    """A Node that could not be read, as far as its Machine knows it."""
    labels = {"kubernetes.io/hostname": member.node, "kubernetes.io/os": "linux"}
    spec: Manifest = {"providerID": provider_id(member.host)}
    if member.control_plane:
        labels["node-role.kubernetes.io/control-plane"] = ""
        spec["taints"] = [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
    return {"metadata": {"name": member.node, "uid": f"node-{member.node}", "labels": labels}, "spec": spec}


def _interface(text: str) -> IPv4Interface | None:
    try:
        return IPv4Interface(text)
    except ValueError:
        return None


def _is_ipv4(text: str) -> bool:
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True
