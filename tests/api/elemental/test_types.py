"""Elemental's objects as its users write them are read to the last field."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.api.cluster.infrastructure.cluster import BaremetalCluster, Endpoint
from slipway.api.cluster.infrastructure.machine import BaremetalMachine
from slipway.api.cluster.infrastructure.pool import MachineInventoryPool, MachineInventoryPoolStatus
from slipway.api.cluster.infrastructure.template import BaremetalMachineTemplate
from slipway.api.cluster.meta import Type, decode, manifest
from slipway.api.elemental.inventory import MachineInventory
from slipway.api.elemental.registration import MachineRegistration
from slipway.api.elemental.seedimage import SeedImage

POOL = {"machineInventoryPoolRef": {"name": "cp-pool"}, "allocationPolicy": "Ordered"}


@pytest.mark.parametrize(
    ("into", "spec"),
    [
        (
            MachineRegistration,
            {
                "token": "my-hosts",
                "machineName": "m-${System Information/UUID}",
                "machineInventoryLabels": {"manufacturer": "${System Information/Manufacturer}"},
                "machineInventoryAnnotations": {"a": "b"},
                "config": {
                    "cloud-config": {"users": [{"name": "root", "passwd": "x"}]},
                    "elemental": {
                        "install": {"device": "/dev/sda", "reboot": True, "device-selector": [{"key": "Name", "values": ["/dev/vda"]}]},
                        "reset": {"enabled": True, "reset-persistent": True, "reset-oem": True, "reboot": True},
                        "registration": {"auth": "tpm", "emulate-tpm": True, "emulated-tpm-seed": -1},
                        "system-agent": {"secret-namespace": "fleet-default"},
                    },
                    "network": {"configurator": "nmc", "config": {"interfaces": []}, "ipAddresses": {"inventory-ip": {"kind": "Pool"}}},
                },
            },
        ),
        (
            MachineInventory,
            {
                "tpmHash": "a" * 64,
                "machineHash": "b" * 64,
                "network": {"configurator": "none", "ipAddresses": {"a": "192.0.2.1"}},
                "observedNetwork": {
                    "interfaces": [{"name": "eth0", "mac": "02:00:00:00:00:01", "mtu": 1500, "addresses": ["192.0.2.1/24"]}],
                    "routes": [{"destination": "0.0.0.0/0", "gateway": "192.0.2.254", "interface": "eth0", "metric": 100}],
                    "dnsServers": ["192.0.2.53"],
                    "searchDomains": ["example.com"],
                },
            },
        ),
        (
            SeedImage,
            {
                "type": "iso",
                "baseImage": "registry.example.com/base-iso:1",
                "registrationRef": {"name": "hosts", "namespace": "n", "apiVersion": "elemental.cattle.io/v1beta1"},
                "cleanupAfterMinutes": 60,
                "size": "6Gi",
                "cloud-config": {"a": 1},
                "targetPlatform": "linux/x86_64",
            },
        ),
        (
            BaremetalCluster,
            {
                "controlPlaneEndpoint": {"host": "192.0.2.100", "port": 6443},
                "controlPlaneLoadBalancer": {"host": "192.0.2.100", "port": 6443, "type": "Internal", "vrid": 51},
                "networkType": "kube-ovn",
                "networkDevice": "eth0",
            },
        ),
        (BaremetalMachine, {**POOL, "providerID": "baremetal:///host-1"}),
        (BaremetalMachineTemplate, {"template": {"spec": POOL}}),
        (
            MachineInventoryPool,
            {"clusterName": "c", "machineInventories": [{"name": "a", "hostname": "cp-1", "networkDevice": "bond0.329"}, {"name": "b"}]},
        ),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_what_is_written_comes_back_as_it_was(into: type[Type], spec: dict[str, Any]) -> None:
    whole = {"apiVersion": "x/v1beta1", "kind": into.__name__, "metadata": {"name": "a"}, "spec": spec}
    assert {key: value for key, value in manifest(decode(whole, into)).items() if key != "status"} == whole


def test_counters_of_a_pool_are_printed_though_they_are_0() -> None:
    counted = {"total", "available", "allocated", "preparing", "reprovisioning", "unavailable"}
    assert manifest(MachineInventoryPoolStatus()) == dict.fromkeys(counted, 0)


def test_an_endpoint_is_written_as_addresses_are() -> None:
    assert str(Endpoint(host="192.0.2.1", port=6443)) == "192.0.2.1:6443"
    assert str(Endpoint(host="2001:db8::1", port=6443)) == "[2001:db8::1]:6443"
