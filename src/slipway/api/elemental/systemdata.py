"""What hosts say of their hardware, by all of the names that templates know it by.

Elemental has had three generations of it.  Hosts up to 1.5 send the program ghw's own document; hosts up to 1.7 a tree below
``System Data``, whose names have spaces; later ones trees of their own: ``Memory``, ``CPU``, ``Network``, ``Storage``,
``Runtime``.  A template of either kind is to work with a host of any: what is there by one name is given the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Tree = dict[str, Any]

_MEMORY = {"Total Physical Bytes": "TotalPhysicalBytes", "Total Usable Bytes": "TotalUsableBytes"}
_PROCESSORS = {"Total Cores": "TotalCores", "Total Threads": "TotalThreads"}
_PROCESSOR = ("Model", "Vendor")
_DISK = {"Drive Type": "DriveType", "Storage Controller": "StorageController"}
_DEPTH = 4
"""Of the deepest name: ``System Data/Network/eth0/Name``."""


def completed(values: Mapping[str, Any]) -> Tree:
    """The values with the names of both generations; what the host says itself stands."""
    old = _mapping(values, "System Data")
    return _merged(_older(values), _merged(_newer(old), dict(values)))


def from_ghw(document: Mapping[str, Any]) -> Tree:
    """The tree of a host of the first generation, whose document has numbers and lists."""
    memory, processors, network, block = (_mapping(document, name) for name in ("memory", "cpu", "network", "block"))
    first = next((each for each in _items(processors, "processors") if isinstance(each, Mapping)), {})
    system = {
        "Memory": _texts(memory, {"Total Physical Bytes": "total_physical_bytes", "Total Usable Bytes": "total_usable_bytes"}),
        # ghw does not count on every architecture, and then says 0.
        "CPU": {
            **{
                name: text
                for name, text in _texts(processors, {"Total Cores": "total_cores", "Total Threads": "total_threads"}).items()
                if text != "0"
            },
            **_texts(first, {"Model": "model", "Vendor": "vendor"}),
        },
        "Network": _listed(network, "nics", "Number Interfaces", {"Name": "name", "MacAddress": "mac_address", "IsVirtual": "is_virtual"}),
        "Block Devices": _listed(
            block,
            "disks",
            "Number Devices",
            {
                "Name": "name",
                "Size": "size_bytes",
                "Drive Type": "drive_type",
                "Storage Controller": "storage_controller",
                "Removable": "removable",
            },
        ),
        "Runtime": _texts(_mapping(document, "runtime"), {"Hostname": "hostname"}),
    }
    return {"System Data": {name: tree for name, tree in system.items() if tree}}


def _newer(old: Mapping[str, Any]) -> Tree:
    """What is below ``System Data``, by the names of today."""
    processors, network, block = (_mapping(old, name) for name in ("CPU", "Network", "Block Devices"))
    processor = {name: processors[name] for name in _PROCESSOR if name in processors}
    interfaces = _members(network)
    disks = {name: _renamed(disk, _DISK) for name, disk in _members(block).items()}
    return _pruned(
        {
            "Memory": _renamed(_mapping(old, "Memory"), _MEMORY, only=True),
            "CPU": {
                **_renamed(processors, _PROCESSORS, only=True),
                **({"Processor": processor, "Processors": {"0": processor}} if processor else {}),
            },
            "Network": {"TotalNICs": network.get("Number Interfaces"), "NICs": _numbered(interfaces)},
            "Storage": {"TotalDisks": block.get("Number Devices"), "Disks": _numbered(disks)},
            "Runtime": dict(_mapping(old, "Runtime")),
        }
    )


def _older(values: Mapping[str, Any]) -> Tree:
    """What is known by the names of today, below ``System Data``."""
    memory, processors, network, storage = (_mapping(values, name) for name in ("Memory", "CPU", "Network", "Storage"))
    processor = _mapping(processors, "Processor")
    tree = _pruned(
        {
            "Memory": _renamed(memory, _turned(_MEMORY), only=True),
            "CPU": {
                **_renamed(processors, _turned(_PROCESSORS), only=True),
                **{name: processor[name] for name in _PROCESSOR if name in processor},
            },
            "Network": {"Number Interfaces": network.get("TotalNICs"), **_named(_mapping(network, "NICs"))},
            "Block Devices": {
                "Number Devices": storage.get("TotalDisks"),
                **{name: _renamed(disk, _turned(_DISK)) for name, disk in _named(_mapping(storage, "Disks")).items()},
            },
            "Runtime": dict(_mapping(values, "Runtime")),
        }
    )
    return {"System Data": tree} if tree else {}


def _merged(under: Mapping[str, Any], over: Mapping[str, Any], depth: int = _DEPTH) -> Tree:
    """Both trees; where both have a value, that of ``over``."""
    out = dict(under)
    for name, value in over.items():
        below = out.get(name)
        if depth > 1 and isinstance(below, Mapping) and isinstance(value, Mapping):
            value = _merged(below, value, depth - 1)
        out[name] = value
    return out


def _members(tree: Mapping[str, Any]) -> Tree:
    """The devices beside their count."""
    return {name: value for name, value in tree.items() if isinstance(value, Mapping)}


def _named(devices: Mapping[str, Any]) -> Tree:
    """The devices by their names and not by their numbers."""
    return {name: device for name, device in _members(devices).items() if not name.isdigit()}


def _numbered(devices: Tree) -> Tree:
    """The devices by their names, and by their numbers as well."""
    return {**{str(number): device for number, device in enumerate(devices.values())}, **devices}


def _renamed(tree: Mapping[str, Any], names: Mapping[str, str], *, only: bool = False) -> Tree:
    return {names.get(name, name): value for name, value in tree.items() if name in names or not only}


def _turned(names: Mapping[str, str]) -> dict[str, str]:
    return {new: old for old, new in names.items()}


def _pruned(tree: Tree) -> Tree:
    """The parts of the tree without what is not there.  No deeper: what hosts say may be as deep as they like."""
    kept = {part: {name: value for name, value in values.items() if value not in (None, {})} for part, values in tree.items()}
    return {part: values for part, values in kept.items() if values}


def _listed(tree: Mapping[str, Any], name: str, count: str, names: Mapping[str, str]) -> Tree:
    """A list of devices as a tree by their names, and how many there are."""
    devices = [_texts(each, names) for each in _items(tree, name) if isinstance(each, Mapping)]
    return {count: str(len(devices)), **{device["Name"]: device for device in devices if device.get("Name")}} if name in tree else {}


def _texts(tree: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, str]:
    found = {name: tree.get(key) for name, key in names.items()}
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in found.items()
        if isinstance(value, str | int | bool)
    }


def _items(tree: Mapping[str, Any], name: str) -> list[Any]:
    found = tree.get(name)
    return found if isinstance(found, list) else []


def _mapping(tree: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = tree.get(name)
    return found if isinstance(found, Mapping) else {}
