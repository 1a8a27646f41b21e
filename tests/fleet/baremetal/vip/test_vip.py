"""Who shares the virtual address of a control plane, what each host gets for it, and what cannot work."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

import msgspec
import pytest

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.infrastructure.cluster import BaremetalCluster
from slipway.api.cluster.infrastructure.machine import BaremetalMachine
from slipway.api.cluster.infrastructure.pool import MachineInventoryPool
from slipway.api.elemental.inventory import MachineInventory
from slipway.fleet.baremetal.vip import vip
from slipway.fleet.baremetal.vip.vip import Peer, VIPError

VIP = "192.0.2.100"
NETWORK = IPv4Network("192.0.2.0/24")


def cluster(name: str = "c", created: str = "2030-01-01T00:00:00Z", **balancer: Any) -> BaremetalCluster:
    spec = {"controlPlaneLoadBalancer": {"host": VIP, "port": 6443, "type": "Internal", "vrid": 51, **balancer}}
    metadata = {"name": name, "namespace": "default", "creationTimestamp": created}
    return msgspec.convert({"metadata": metadata, "spec": spec}, BaremetalCluster)


def pool(*members: str | dict[str, str], name: str = "planes") -> MachineInventoryPool:
    entries = [member if isinstance(member, dict) else {"name": member} for member in members]
    spec = {"clusterName": "c", "machineInventories": entries}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, MachineInventoryPool)


def inventory(*addresses: str, device: str = "eth0") -> MachineInventory:
    network = {"interfaces": [{"name": "lo", "addresses": ["127.0.0.1/8"]}, {"name": device, "addresses": list(addresses)}]}
    return msgspec.convert({"spec": {"observedNetwork": network}}, MachineInventory)


def machine(host: str = "", *, pool: str = "planes", ready: bool = True, deleting: bool = False) -> BaremetalMachine:
    reference = {"machineInventoryRef": {"name": host}} if host else {}
    metadata = {"deletionTimestamp": "2030-01-01T00:00:00Z"} if deleting else {}
    spec = {"machineInventoryPoolRef": {"name": pool}}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"ready": ready, **reference}}, BaremetalMachine)


HOSTS = {f"host-{number}": inventory(f"192.0.2.1{number}/24") for number in (1, 2, 3)}
THREE = vip.peers(cluster(), [pool(*HOSTS)], [], HOSTS)


def test_all_members_of_the_pool_are_peers_whether_they_are_nodes_or_not() -> None:
    assert THREE.known == tuple(Peer(f"host-{number}", f"192.0.2.1{number}", "eth0", NETWORK) for number in (1, 2, 3))
    assert THREE.unknown == ()


def test_a_host_that_left_the_pool_is_a_peer_until_its_machine_is_gone() -> None:
    found = vip.peers(cluster(), [pool("host-2", "host-3")], [machine("host-1", deleting=True)], HOSTS)
    assert [host.name for host in found.known] == ["host-1", "host-2", "host-3"]


def test_a_control_plane_that_moves_has_the_hosts_of_both_pools() -> None:
    machines = [machine("host-1"), machine(pool="others")]
    assert vip.pool_names(machines) == ["others", "planes"]
    found = vip.peers(cluster(), [pool("host-1"), pool("host-2", name="others")], machines, HOSTS)
    assert [host.name for host in found.known] == ["host-1", "host-2"]


def test_the_virtual_address_on_a_device_is_not_the_hosts_own() -> None:
    found = vip.peers(cluster(), [pool("host-1")], [], {"host-1": inventory(f"{VIP}/32", "fe80::1/64", "192.0.2.11/24")})
    assert found.known == (Peer("host-1", "192.0.2.11", "eth0", NETWORK),)


@pytest.mark.parametrize(
    ("entry", "device"),
    [({"name": "host-1"}, "bond0"), ({"name": "host-1", "networkDevice": "eno1"}, "eno1")],
    ids=["the cluster's", "the entry's"],
)
def test_the_network_device_is_that_of_the_entry_or_of_the_cluster(entry: dict[str, str], device: str) -> None:
    base = cluster()
    base.spec.network_device = "bond0"
    found = vip.peers(base, [pool(entry)], [], {"host-1": inventory("192.0.2.11/24", device=device)})
    assert found.known[0].interface == device


@pytest.mark.parametrize(
    ("there", "sentence"),
    [
        ({}, "there is no MachineInventory host-1"),
        ({"host-1": MachineInventory()}, "host-1 has no network device eth0 (it has reported none)"),
        ({"host-1": inventory("192.0.2.11/24", device="eno1")}, "host-1 has no network device eth0 (it has lo, eno1)"),
        ({"host-1": inventory("2001:db8::1/64")}, "host-1 has no IPv4 address on its network device eth0"),
        ({"host-1": inventory("nonsense")}, "host-1 has no IPv4 address on its network device eth0"),
    ],
)
def test_a_host_without_a_known_address_holds_up_nobody_else(there: dict[str, MachineInventory], sentence: str) -> None:
    others = {name: HOSTS[name] for name in ("host-2", "host-3")}
    found = vip.peers(cluster(), [pool(*HOSTS)], [], {**others, **there})
    assert len(vip.files_for(cluster(), "host-2", found)) == 3
    with pytest.raises(VIPError) as refused:
        vip.files_for(cluster(), "host-1", found)
    assert refused.value.reason == names.VIP_PEERS_UNKNOWN_REASON
    assert sentence in refused.value.message
    assert sentence in vip.described(found)


def test_a_host_gets_its_own_address_and_all_peers() -> None:
    values, configuration, manifest = vip.files_for(cluster(), "host-2", THREE, image="registry.example/alive:1")
    assert msgspec.json.decode(values.content) == {
        "vip": VIP,
        "interface": "eth0",
        "address": "192.0.2.12",
        "peers": ["192.0.2.11", "192.0.2.13"],
        "vrid": 51,
        "port": 6443,
    }
    assert "unicast_src_ip 192.0.2.12" in configuration.content
    assert "image: registry.example/alive:1" in manifest.content


def test_external_has_no_files() -> None:
    external = cluster(type="External")
    assert vip.peers(external, [pool(*HOSTS)], [], HOSTS).known == ()
    assert vip.files_for(external, "host-1", vip.Peers()) == []
    assert vip.files_for(BaremetalCluster(), "host-1", vip.Peers()) == []


@pytest.mark.parametrize(
    ("balancer", "hosts", "reason", "sentence"),
    [
        ({"vrid": None}, ("host-1", "host-2"), names.VIP_INVALID_REASON, "controlPlaneLoadBalancer.vrid is not set"),
        ({"vrid": 0}, ("host-1", "host-2"), names.VIP_INVALID_REASON, "controlPlaneLoadBalancer.vrid is not set"),
        ({"host": "192.0.2.12"}, ("host-1", "host-2"), names.VIP_IS_HOST_ADDRESS_REASON, "is the own address of host-2"),
        ({"host": "vip.example"}, ("host-1", "host-2"), names.VIP_INVALID_REASON, "must be an IPv4 address"),
        ({}, ("host-1",), names.VIP_INVALID_REASON, "keepalived needs a peer"),
        ({}, (), names.VIP_PEERS_UNKNOWN_REASON, "no control-plane machine names a pool with hosts yet"),
    ],
)
def test_what_cannot_work_has_a_reason_and_a_sentence(balancer: dict[str, Any], hosts: tuple[str, ...], reason: str, sentence: str) -> None:
    base = cluster(**balancer)
    with pytest.raises(VIPError) as refused:
        vip.check(base, vip.peers(base, [pool(*hosts)], [], HOSTS))
    assert refused.value.reason == reason
    assert sentence in refused.value.message


def test_of_two_clusters_with_one_vrid_the_younger_is_refused() -> None:
    older, younger = cluster("older"), cluster("younger", created="2030-01-02T00:00:00Z")
    vip.check(older, THREE, [older, younger])
    with pytest.raises(VIPError) as refused:
        vip.check(younger, THREE, [older, younger])
    assert refused.value.reason == names.VRID_IN_USE_REASON
    assert "default/older" in refused.value.message


def test_a_vrid_on_another_network_segment_is_in_nobodys_way() -> None:
    elsewhere = cluster("older", host="198.51.100.9")
    younger = cluster("younger", created="2030-01-02T00:00:00Z")
    vip.check(younger, THREE, [elsewhere, younger])
    without_prefix = vip.peers(younger, [pool(*HOSTS)], [], {name: inventory("192.0.2.11") for name in HOSTS})
    with pytest.raises(VIPError):
        vip.check(younger, without_prefix, [elsewhere, younger])


def test_a_vrid_of_an_external_load_balancer_is_in_nobodys_way() -> None:
    vip.check(cluster("b"), THREE, [cluster("a", created="2029-01-01T00:00:00Z", type="External")])


def test_the_config_map_has_all_peers_and_the_nodes_of_the_present() -> None:
    machines = [machine("host-1"), machine("host-2", ready=False), machine("host-3", deleting=True)]
    data = vip.config_map_for(cluster(), THREE, machines)["data"]
    assert data == {"vip": VIP, "peers": "192.0.2.11,192.0.2.12,192.0.2.13", "ipvs.ips": "192.0.2.11"}
