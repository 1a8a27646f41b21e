"""The files that make one host of an image that all share: its name, addresses, identity and CNI configuration.

Texts only; the launcher writes them into the host's own layer before each boot.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from slipway.agent import paths
from slipway.lab.hosts import smbios
from slipway.lab.network import addresses

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.lab.record import HostRecord, LabRecord

CNI_FILE = "/etc/cni/net.d/10-slipway-lab.conflist"
IDENTITY_FOLDER = "/etc/slipway-lab/dmi"
"""What /sys/class/dmi/id is on a physical machine; a container cannot have its own."""
SMBIOS_FILE = "/etc/slipway-lab/smbios"
"""The tables that the firmware of a physical machine has; the host's ``dmidecode`` reads them."""
MAC_FILE = "/etc/slipway-lab/mac"

_BEGIN, _END = "# slipway lab: hosts", "# slipway lab: end of hosts"


class File(msgspec.Struct, frozen=True):
    """A file of a host, or a symbolic link."""

    path: str
    content: str | bytes = ""
    mode: int = 0o644
    target: str = ""
    """Where a symbolic link points to."""


def first_files(host: HostRecord, *, user_data: str | None, registration: str | None) -> list[File]:
    """What a host is given once, before its first boot, and may change itself afterwards."""
    return [
        File("/etc/hostname", f"{host.name}\n"),
        *([] if user_data is None else seed(host, user_data)),
        *([] if registration is None else [File(paths.REGISTRATION, registration, 0o600)]),
    ]


def files(record: LabRecord, host: HostRecord, everyone: Iterable[HostRecord], *, hosts_before: str) -> list[File]:
    """Everything that is written for a host before it boots; ``hosts_before`` is the /etc/hosts that it has."""
    wants = "/etc/systemd/system"
    units = "/lib/systemd/system"
    return [
        File("/etc/hosts", hosts_file(hosts_before, host, everyone)),
        File("/etc/machine-id", f"{host.machine_id}\n", 0o444),
        File("/etc/resolv.conf", f"nameserver {addresses.gateway(record.host_network)}\n"),
        File("/etc/systemd/network/10-host0.network", networkd(record, host)),
        File(f"{wants}/multi-user.target.wants/systemd-networkd.service", target=f"{units}/systemd-networkd.service"),
        File(
            f"{wants}/network-online.target.wants/systemd-networkd-wait-online.service",
            target=f"{units}/systemd-networkd-wait-online.service",
        ),
        File(CNI_FILE, cni_conflist(host)),
        *identity(host),
        File(SMBIOS_FILE, smbios.dump(record, host), 0o400),
        File(MAC_FILE, f"{host.mac}\n"),
    ]


def networkd(record: LabRecord, host: HostRecord) -> str:
    """The configuration of the host's one link; a host whose link is cut boots all the same."""
    network = record.host_network
    return f"""\
[Match]
Name=host0

[Link]
MACAddress={host.mac}
RequiredForOnline=no-carrier

[Network]
Address={host.address}/{network.prefixlen}
Gateway={addresses.gateway(network)}
ConfigureWithoutCarrier=yes
IPForward=ipv4
LinkLocalAddressing=no
IPv6AcceptRA=no
"""


def cni_conflist(host: HostRecord) -> str:
    """Pods on a bridge of their host, with addresses of the host's Pod range that are routed and not translated."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": host.pod_range}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    plugins = [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]
    return json.dumps({"cniVersion": "0.4.0", "name": "slipway-lab", "plugins": plugins}, indent=2) + "\n"


def hosts_file(before: str, host: HostRecord, everyone: Iterable[HostRecord]) -> str:
    """An /etc/hosts with the lab's hosts in a block of their own; what else was written there stays."""
    lines = before.splitlines()
    if _BEGIN in lines and _END in lines:
        lines = lines[: lines.index(_BEGIN)] + lines[lines.index(_END) + 1 :]
    lines = lines or ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    others = sorted({other.name: other for other in (*everyone, host)}.values(), key=lambda other: other.index)
    return "\n".join([*lines, _BEGIN, *(f"{other.address} {other.name}" for other in others), _END, ""])


def identity(host: HostRecord) -> list[File]:
    """Who made the host and which one it is, in files named as those of a physical machine."""
    values = {
        "sys_vendor": smbios.MANUFACTURER,
        "product_name": smbios.PRODUCT,
        "product_uuid": host.uuid,
        "product_serial": host.serial,
        "chassis_serial": host.serial,
        "board_serial": host.serial,
    }
    return [File(f"{IDENTITY_FOLDER}/{name}", f"{value}\n", 0o444) for name, value in values.items()]


def seed(host: HostRecord, user_data: str) -> list[File]:
    """The NoCloud seed of cloud-init."""
    folder = "/var/lib/cloud/seed/nocloud"
    meta_data = f"instance-id: {host.uuid}\nlocal-hostname: {host.name}\n"
    return [File(f"{folder}/meta-data", meta_data, 0o600), File(f"{folder}/user-data", user_data, 0o600)]
