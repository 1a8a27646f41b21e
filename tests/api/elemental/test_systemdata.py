"""Hardware by all of its names: elemental-operator's own fixture (pkg/server/labeltmpl_test.go, 1.8), sent by hosts of each generation."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.api.elemental import placeholders, systemdata

pytestmark = pytest.mark.upstream_table

# Of the fixture's host: 100 bytes of memory, 300 cores and threads, two devices and two disks.
EXPECTED = {
    "Hostname": "machine-1",
    "TotalMemory": "100",
    "AvailableMemory": "90",
    "CpuTotalCores": "300",
    "CpuTotalThreads": "300",
    "NetIfacesNumber": "2",
    "NetIface0-Name": "myNic1",
    "NetIface0-MAC": "02-00-00-00-00-01",
    "NetIface0-IsVirtual": "true",
    "NetIface1-Name": "myNic2",
    "BlockDevicesNumber": "2",
    "BlockDevice0-Name": "testdisk1",
    "BlockDevice0-Size": "300",
    "BlockDevice0-Removable": "true",
    "BlockDevice1-Removable": "false",
}
TEMPLATES = {
    "up to 1.7": {
        "Hostname": "${System Data/Runtime/Hostname}",
        "TotalMemory": "${System Data/Memory/Total Physical Bytes}",
        "AvailableMemory": "${System Data/Memory/Total Usable Bytes}",
        "CpuTotalCores": "${System Data/CPU/Total Cores}",
        "CpuTotalThreads": "${System Data/CPU/Total Threads}",
        "NetIfacesNumber": "${System Data/Network/Number Interfaces}",
        "NetIface0-Name": "${System Data/Network/myNic1/Name}",
        "NetIface0-MAC": "${System Data/Network/myNic1/MacAddress}",
        "NetIface0-IsVirtual": "${System Data/Network/myNic1/IsVirtual}",
        "NetIface1-Name": "${System Data/Network/myNic2/Name}",
        "BlockDevicesNumber": "${System Data/Block Devices/Number Devices}",
        "BlockDevice0-Name": "${System Data/Block Devices/testdisk1/Name}",
        "BlockDevice0-Size": "${System Data/Block Devices/testdisk1/Size}",
        "BlockDevice0-Removable": "${System Data/Block Devices/testdisk1/Removable}",
        "BlockDevice1-Removable": "${System Data/Block Devices/testdisk2/Removable}",
    },
    "from 1.8": {
        "Hostname": "${Runtime/Hostname}",
        "TotalMemory": "${Memory/TotalPhysicalBytes}",
        "AvailableMemory": "${Memory/TotalUsableBytes}",
        "CpuTotalCores": "${CPU/TotalCores}",
        "CpuTotalThreads": "${CPU/TotalThreads}",
        "NetIfacesNumber": "${Network/TotalNICs}",
        "NetIface0-Name": "${Network/NICs/0/Name}",
        "NetIface0-MAC": "${Network/NICs/myNic1/MacAddress}",
        "NetIface0-IsVirtual": "${Network/NICs/myNic1/IsVirtual}",
        "NetIface1-Name": "${Network/NICs/1/Name}",
        "BlockDevicesNumber": "${Storage/TotalDisks}",
        "BlockDevice0-Name": "${Storage/Disks/testdisk1/Name}",
        "BlockDevice0-Size": "${Storage/Disks/testdisk1/Size}",
        "BlockDevice0-Removable": "${Storage/Disks/testdisk1/Removable}",
        "BlockDevice1-Removable": "${Storage/Disks/1/Removable}",
    },
}
# ghw's JSON, in which a disk is removable and a device virtual by these names.
GHW: dict[str, Any] = {
    "memory": {"total_physical_bytes": 100, "total_usable_bytes": 90},
    "cpu": {"total_cores": 300, "total_threads": 300, "processors": [{"vendor": "-this_is@broken", "model": "m"}]},
    "network": {
        "nics": [{"name": "myNic1", "mac_address": "02:00:00:00:00:01", "is_virtual": True}, {"name": "myNic2", "is_virtual": False}]
    },
    "block": {
        "disks": [
            {"name": "testdisk1", "size_bytes": 300, "drive_type": "ssd", "storage_controller": "scsi", "removable": True},
            {"name": "testdisk2", "size_bytes": 600, "drive_type": "hdd", "storage_controller": "scsi", "removable": False},
        ]
    },
    "runtime": {"hostname": "machine-1"},
    "gpu": None,
}
NICS = {
    "myNic1": {"Name": "myNic1", "MacAddress": "02:00:00:00:00:01", "IsVirtual": "true"},
    "myNic2": {"Name": "myNic2", "IsVirtual": "false"},
}
DISKS = {
    "testdisk1": {"Name": "testdisk1", "Size": "300", "DriveType": "SSD", "Removable": "true"},
    "testdisk2": {"Name": "testdisk2", "Size": "600", "DriveType": "HDD", "Removable": "false"},
}
HOSTS: dict[str, dict[str, Any]] = {
    "up to 1.5": systemdata.from_ghw(GHW),
    "from 1.8": {
        "Memory": {"TotalPhysicalBytes": "100", "TotalUsableBytes": "90"},
        "CPU": {"TotalCores": "300", "TotalThreads": "300", "Processor": {"Model": "m", "Vendor": "v"}},
        "Network": {"TotalNICs": "2", "NICs": {**NICS, "0": NICS["myNic1"], "1": NICS["myNic2"]}},
        "Storage": {"TotalDisks": "2", "Disks": {**DISKS, "0": DISKS["testdisk1"], "1": DISKS["testdisk2"]}},
        "Runtime": {"Hostname": "machine-1"},
    },
}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("templates", TEMPLATES)
def test_templates_of_each_generation_work_with_hosts_of_each(host: str, templates: str) -> None:
    assert placeholders.fill_labels(TEMPLATES[templates], systemdata.completed(HOSTS[host]), {}) == EXPECTED


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("System Data/CPU/Model", "m"),
        ("CPU/Processor/Model", "m"),
        ("CPU/Processors/0/Model", "m"),
        ("System Data/Block Devices/testdisk1/Drive Type", "ssd"),
        ("Storage/Disks/testdisk2/DriveType", "hdd"),
    ],
)
def test_what_is_called_otherwise_today(name: str, text: str) -> None:
    assert placeholders.render(f"${{{name}}}", systemdata.completed(HOSTS["up to 1.5"])) == text


def test_what_a_host_says_itself_stands() -> None:
    values = systemdata.completed(
        {"System Data": {"Memory": {"Total Physical Bytes": "1"}}, "Memory": {"TotalPhysicalBytes": "2"}, "x": "y"}
    )
    assert values["System Data"]["Memory"] == {"Total Physical Bytes": "1"}
    assert values["Memory"] == {"TotalPhysicalBytes": "2"}
    assert values["x"] == "y"


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"System Data": 7},
        {"System Data": {"Memory": [], "CPU": "x", "Network": {"eth0": 1}}},
        {"Memory": 1, "CPU": {"Processor": []}, "Storage": {"Disks": 3}},
    ],
)
def test_what_makes_no_sense_is_left_as_it_is(said: dict[str, Any]) -> None:
    completed = systemdata.completed(said)
    assert {name: completed[name] for name in said} == said


@pytest.mark.parametrize(
    "document", [{}, {"cpu": None, "network": {"nics": [1, None, {}]}, "block": []}, {"memory": {"total_physical_bytes": {}}}]
)
def test_a_document_of_ghw_that_makes_no_sense_gives_what_it_has(document: dict[str, Any]) -> None:
    assert set(systemdata.from_ghw(document)) == {"System Data"}
