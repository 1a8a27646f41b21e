"""What a host says of itself when it registers: its board, its hardware, its operating system and its network."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.agent import hostfacts, paths
from slipway.api.elemental import smbios

if TYPE_CHECKING:
    from slipway.agent.machine import Machine
    from slipway.host.interface import Host

_DMI = "/sys/class/dmi/id"
_INTERFACES = "/sys/class/net"
# Of containers and clusters: they come and go, and say nothing of the host.
_NOT_THE_HOSTS = (
    "lo", "veth", "cali", "cni", "flannel", "docker", "kube-", "lxc", "tunl", "vxlan", "nerdctl", "cilium", "antrea", "ovn-", "weave",
    "nodelocaldns", "virbr",
)  # fmt: skip
_RESOLVERS = ("/run/systemd/resolve/resolv.conf", "/etc/resolv.conf")
_OS_FIELDS = {
    "NAME": "name", "VERSION": "version", "VERSION_ID": "version-id", "ID": "id", "PRETTY_NAME": "pretty-name", "IMAGE": "image",
    "CPE_NAME": "cpe-name",
}  # fmt: skip
# Where dmidecode is not there: its names for what the kernel has of the same tables.
_DMI_FILES = {
    "BIOS Information": {"Vendor": "bios_vendor", "Version": "bios_version", "Release Date": "bios_date"},
    "System Information": {
        "Manufacturer": "sys_vendor", "Product Name": "product_name", "Version": "product_version", "Serial Number": "product_serial",
        "UUID": "product_uuid", "SKU Number": "product_sku", "Family": "product_family",
    },
    "Base Board Information": {
        "Manufacturer": "board_vendor", "Product Name": "board_name", "Version": "board_version", "Serial Number": "board_serial",
        "Asset Tag": "board_asset_tag",
    },
    "Chassis Information": {
        "Manufacturer": "chassis_vendor", "Version": "chassis_version", "Serial Number": "chassis_serial", "Asset Tag": "chassis_asset_tag",
    },
}  # fmt: skip


def board(host: Host) -> dict[str, Any]:
    """SMBIOS data by dmidecode's names: of dmidecode, or of the kernel's files; empty where the firmware has none, as in a container."""
    output = b""
    for kind in smbios.TYPES:
        done = host.run("dmidecode", "-t", str(kind))
        if done.code != 0:
            return _from_files(host)
        output += done.stdout.encode() + b"\n"
    try:
        return smbios.parse(output) or _from_files(host)
    except smbios.SmbiosError:
        # What the kernel makes of the same firmware may be better, and is short in any case.
        return _from_files(host)


def _from_files(host: Host) -> dict[str, Any]:
    read = {title: {name: _line(host, f"{_DMI}/{file}") for name, file in fields.items()} for title, fields in _DMI_FILES.items()}
    found = {title: {name: value for name, value in fields.items() if value} for title, fields in read.items()}
    return {title: fields for title, fields in found.items() if fields}


def system_uuid(host: Host) -> str:
    found = _line(host, f"{_DMI}/product_uuid") or str(board(host).get("System Information", {}).get("UUID", ""))
    return found.lower()


def system_data(machine: Machine) -> dict[str, Any]:
    """Hardware as the operating system sees it, by the names that elemental-register has for it; every value is text."""
    host = machine.host
    devices = interfaces(machine)
    disks = [name for name in host.list_dir("/sys/block") if not name.startswith(("loop", "ram", "dm-", "zram"))]
    return {
        "System Data": {
            "Memory": _memory(host),
            "CPU": _processors(host),
            "Network": {
                "Number Interfaces": str(len(devices)),
                **{each["name"]: {"Name": each["name"], "MacAddress": each["mac"]} for each in devices},
            },
            "Block Devices": {"Number Devices": str(len(disks)), **{name: _disk(host, name) for name in disks}},
            "Runtime": {"Hostname": host.hostname()},
        }
    }


def tags(host: Host, *, auth: str, version: str, address: str, managed: bool) -> dict[str, str]:
    fields = hostfacts.os_release(host)
    told = {"auth": auth, "reg-version": version, "registration-ip": address}
    if not managed:
        told["os.unmanaged"] = "true"
    return told | {f"os.{name}": fields[key] for key, name in _OS_FIELDS.items() if fields.get(key)}


def network(machine: Machine) -> dict[str, Any]:
    """The network as it is: what a reprovisioned host is to have again."""
    host = machine.host
    servers, domains = _resolver(host)
    return {"interfaces": interfaces(machine), "routes": routes(host), "dnsServers": servers, "searchDomains": domains}


class _Alive(msgspec.Struct):
    vip: str = ""


def interfaces(machine: Machine) -> list[dict[str, Any]]:
    host = machine.host
    virtual = _virtual_address(host)
    found = []
    for name in host.list_dir(_INTERFACES):
        if name.startswith(_NOT_THE_HOSTS) or not host.is_dir(f"{_INTERFACES}/{name}"):
            continue
        mtu = _line(host, f"{_INTERFACES}/{name}/mtu")
        device: dict[str, Any] = {
            "name": name,
            # A part of a bond has the bond's address, until the next boot.
            "mac": _line(host, f"{_INTERFACES}/{name}/bonding_slave/perm_hwaddr") or _line(host, f"{_INTERFACES}/{name}/address"),
            "mtu": int(mtu) if mtu.isdigit() else 0,
        }
        own = [each for each in _networks(machine, name) if not each.startswith("fe80:")]
        device["addresses"] = [each for each in own if each.partition("/")[0] != virtual]
        if master := _uevent(host, f"{_INTERFACES}/{name}/master/uevent").get("INTERFACE"):
            device["master"] = master
        found.append(device)
    return found


def _virtual_address(host: Host) -> str:
    """That of the control plane: a host has it today, and another one tomorrow."""
    try:
        return msgspec.json.decode(_text(host, paths.VIRTUAL_ADDRESS), type=_Alive).vip
    except msgspec.MsgspecError:
        return ""


def routes(host: Host) -> list[dict[str, Any]]:
    """Of IPv4, those that lead somewhere by a gateway and the networks on the link; of IPv6 by a gateway."""
    found = []
    for row in (line.split() for line in _text(host, "/proc/net/route").splitlines()[1:]):
        if len(row) >= 8 and not row[0].startswith(_NOT_THE_HOSTS):
            destination, gateway, mask = (ipaddress.IPv4Address(int(word, 16).to_bytes(4, "little")) for word in (row[1], row[2], row[7]))
            found.append(_route(f"{destination}/{mask}", str(gateway) if int(gateway) else "", row[0], int(row[6])))
    for row in (line.split() for line in _text(host, "/proc/net/ipv6_route").splitlines()):
        if len(row) == 10 and not row[9].startswith(_NOT_THE_HOSTS) and int(row[4], 16):
            destination6, gateway6 = (ipaddress.IPv6Address(int(word, 16)) for word in (row[0], row[4]))
            found.append(_route(f"{destination6}/{int(row[1], 16)}", str(gateway6), row[9], min(int(row[5], 16), 2**31 - 1)))
    return found


def _route(destination: str, gateway: str, interface: str, metric: int) -> dict[str, Any]:
    written = str(ipaddress.ip_network(destination, strict=False))
    told = {"destination": "default" if written in ("0.0.0.0/0", "::/0") else written, "interface": interface, "metric": metric}
    return {**told, "gateway": gateway} if gateway else told


def _resolver(host: Host) -> tuple[list[str], list[str]]:
    servers: list[str] = []
    domains: list[str] = []
    for path in _RESOLVERS:
        for words in (line.split() for line in _text(host, path).splitlines()):
            if len(words) > 1 and words[0] == "nameserver" and not words[1].startswith("127."):
                servers.append(words[1])
            elif len(words) > 1 and words[0] in ("search", "domain"):
                domains += [word for word in words[1:] if word != "."]
        if servers:
            break
    return list(dict.fromkeys(servers)), list(dict.fromkeys(domains))


def _networks(machine: Machine, name: str) -> list[str]:
    try:
        return machine.networks(name)
    except OSError:
        # It went away since its name was read.
        return []


def _memory(host: Host) -> dict[str, str]:
    for words in (line.split() for line in _text(host, "/proc/meminfo").splitlines()):
        if len(words) >= 2 and words[0] == "MemTotal:":
            size = str(int(words[1]) * 1024)
            return {"Total Physical Bytes": size, "Total Usable Bytes": size}
    return {}


def _processors(host: Host) -> dict[str, str]:
    pairs = [line.partition(":") for line in _text(host, "/proc/cpuinfo").splitlines() if ":" in line]
    fields = [(name.strip(), value.strip()) for name, _, value in pairs]
    first = dict(reversed(fields))
    threads = sum(1 for name, _ in fields if name == "processor")
    sockets = {value for name, value in fields if name == "physical id"} or {"0"}
    cores = int(first["cpu cores"]) * len(sockets) if first.get("cpu cores", "").isdigit() else threads
    told = {"Total Cores": str(cores), "Total Threads": str(threads)}
    return told | {name: first[key] for name, key in (("Model", "model name"), ("Vendor", "vendor_id")) if first.get(key)}


def _disk(host: Host, name: str) -> dict[str, str]:
    sectors = _line(host, f"/sys/block/{name}/size")
    rotates = _line(host, f"/sys/block/{name}/queue/rotational")
    return {
        "Name": name,
        "Size": str(int(sectors) * 512) if sectors.isdigit() else "0",
        "Drive Type": "HDD" if rotates == "1" else "SSD",
        "Removable": "true" if _line(host, f"/sys/block/{name}/removable") == "1" else "false",
    }


def _uevent(host: Host, path: str) -> dict[str, str]:
    return {key: value for key, _, value in (line.partition("=") for line in _text(host, path).splitlines())}


def _line(host: Host, path: str) -> str:
    return _text(host, path).partition("\n")[0].strip()


def _text(host: Host, path: str) -> str:
    try:
        return host.read(path, 1 << 20).decode(errors="replace")
    except OSError:
        return ""
