"""What a lab has on record: its names and ranges, its hosts, and what runs of them.

One folder a lab, ``lab.json`` and ``hosts/<name>/`` in it.  Everything that a lab makes on the machine follows from
these records, and they are written first, so that a run that was killed leaves nothing that is not on record.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from contextlib import contextmanager
from datetime import datetime  # noqa: TC003 - msgspec reads it
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.host.real import RealHost
from slipway.lab.network import addresses
from slipway.lab.processes import Process  # noqa: TC001 - msgspec reads it

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Iterator
    from contextlib import AbstractContextManager

DEFAULT_ROOT = Path("/var/lib/slipway/labs")
RUN_FOLDER = Path("/run/slipway")
"""For what does not outlive the machine's start."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST_LAB_NAME = 32
_LONGEST_HOST_NAME = 63

Phase = Literal["off", "starting", "booting", "running", "stopping"]


class LabRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What distinguishes a lab from the others of the machine."""

    name: str
    tag: str
    """Eight hexadecimal digits that stand for the lab where names must be short."""
    bridge: str
    hosts: str
    """The address range on the bridge."""
    pods: str
    """The range that the Pod ranges of the hosts are cut from."""
    created: datetime

    @property
    def host_network(self) -> IPv4Network:
        return IPv4Network(self.hosts)

    @property
    def pod_network(self) -> IPv4Network:
        return IPv4Network(self.pods)

    @property
    def bridge_mac(self) -> str:
        return addresses.mac(self.tag, 0)

    @property
    def cgroup(self) -> str:
        """The lab's folder in every cgroup hierarchy."""
        return f"slipway-{self.name}-{self.tag}"


class ImageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The OS image that a host boots: read-only folders, top first."""

    digest: str
    version: str
    layers: tuple[str, ...]


class HostRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A host's identity and what it boots."""

    name: str
    index: int
    address: str
    mac: str
    uuid: str
    serial: str
    pod_range: str
    image: ImageRecord
    cut: bool = False
    """Whether its network link is dropped; a cable that was cut stays so through reboots."""
    fallback: ImageRecord | None = None
    """What it booted before, while the image that it was switched to has not come up yet."""

    @property
    def machine_id(self) -> str:
        return self.uuid.replace("-", "")


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What runs of a host, written by its launcher."""

    phase: Phase = "off"
    launcher: Process | None = None
    container: Process | None = None
    """systemd-nspawn, or the shell that becomes it."""
    leader: Process | None = None
    """The host's PID 1, as the machine numbers it."""
    boots: int = 0
    boot_seconds: float = 0.0
    """From the start of systemd-nspawn to multi-user.target."""
    message: str = ""
    """Why it is off, or what a reboot could not do."""


class HostFolder:
    """Where one host's things are."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.record = path / "host.json"
        self.status = path / "status.json"
        self.user_data = path / "user-data"
        self.registration = path / "registration.yaml"
        self.upper = path / "upper"
        self.work = path / "work"
        self.root = path / "root"
        self.persistent = path / "persistent"
        self.exchange = self.persistent / "slipway-lab"
        self.launcher_log = path / "launcher.log"
        self.console = path / "console.log"
        self.journal = self.upper / "var" / "log" / "journal"


Record = TypeVar("Record", LabRecord, HostRecord, Status)


class Lab:
    """A lab and its records on disk."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = check_name(name, "lab", _LONGEST_LAB_NAME)
        self.folder = folder
        self.file = folder / "lab.json"
        self.lock = folder / ".lock"
        self.management = folder / "management"
        """Where the lab's management plane keeps its things."""

    @property
    def exists(self) -> bool:
        return self.file.exists()

    @property
    def record(self) -> LabRecord:
        found = _load(self.file, LabRecord)
        if found is None:
            raise OperatorError(f'there is no lab named "{self.name}" at {self.folder}: create it first with `slipway lab up`')
        return found

    def require(self) -> None:
        """Refuse a lab that is not there."""
        _ = self.record

    def locked(self) -> AbstractContextManager[None]:
        """Hold this while records change.  Two runs on one lab then come one after the other."""
        self.require()
        return locked(self.lock)

    def host_folder(self, name: str) -> HostFolder:
        return HostFolder(self.folder / "hosts" / name)

    def host_names(self) -> list[str]:
        """Every host that has a folder, whole or half-made."""
        folder = self.folder / "hosts"
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []

    def hosts(self) -> list[HostRecord]:
        """The hosts on record, in the order of their addresses."""
        self.require()
        found = (_load(self.host_folder(name).record, HostRecord) for name in self.host_names())
        return sorted((host for host in found if host is not None), key=lambda host: host.index)

    def host(self, name: str) -> HostRecord:
        found = _load(self.host_folder(check_name(name, "host", _LONGEST_HOST_NAME)).record, HostRecord)
        if found is None:
            known = ", ".join(host.name for host in self.hosts()) or "none"
            raise OperatorError(f'the lab "{self.name}" has no host named "{name}"; its hosts: {known}')
        return found

    def save_host(self, host: HostRecord) -> None:
        _save(self.host_folder(host.name).record, host)

    def status(self, name: str) -> Status:
        return _load(self.host_folder(name).status, Status) or Status()

    def save_status(self, name: str, status: Status) -> None:
        _save(self.host_folder(name).status, status)

    def save(self, record: LabRecord) -> None:
        _save(self.file, record)


def check_name(name: str, what: str, longest: int) -> str:
    """A name that can be part of host names, links and folders."""
    if len(name) > longest or not _NAME.fullmatch(name):
        raise OperatorError(
            f'"{name}" cannot be the name of a {what}: use at most {longest} lower-case letters, digits and dashes, not at its ends'
        )
    return name


def labs(root: Path = DEFAULT_ROOT) -> list[Lab]:
    """Every lab on record under ``root``."""
    if not root.is_dir():
        return []
    found = (Lab(entry.name, entry) for entry in sorted(root.iterdir()) if entry.is_dir() and _NAME.fullmatch(entry.name))
    return [lab for lab in found if lab.exists]


def tag_of(folder: Path) -> str:
    """Eight hexadecimal digits for a lab, the same whenever it is made again in its folder."""
    return hashlib.sha256(str(folder).encode()).hexdigest()[:8]


def new_lab(
    lab: Lab,
    *,
    links: Collection[str],
    networks: Collection[IPv4Network],
    now: datetime,
    bridge: str | None = None,
    hosts: str | None = None,
    pods: str | None = None,
) -> LabRecord:
    """The record of a lab that is about to be made, given what the machine has in use."""
    tag = tag_of(lab.folder)
    host_what, pod_what = "the hosts", "their Pods"
    host_network = (
        addresses.check_range(hosts, 24, networks, host_what)
        if hosts is not None
        else addresses.choose_range(networks, addresses.host_ranges(), host_what)
    )
    used = [*networks, host_network]
    pod_network = (
        addresses.check_range(pods, 16, used, pod_what)
        if pods is not None
        else addresses.choose_range(used, addresses.pod_ranges(), pod_what)
    )
    return LabRecord(
        name=lab.name,
        tag=tag,
        bridge=addresses.check_bridge(bridge, links) if bridge is not None else addresses.choose_bridge(lab.name, tag, links),
        hosts=str(host_network),
        pods=str(pod_network),
        created=now,
    )


def new_host(record: LabRecord, existing: Collection[HostRecord], name: str, image: ImageRecord, identity: uuid.UUID) -> HostRecord:
    """The record of a host that is about to be made."""
    check_name(name, "host", _LONGEST_HOST_NAME)
    index = addresses.next_index({host.index for host in existing})
    return HostRecord(
        name=name,
        index=index,
        address=str(addresses.host_address(record.host_network, index)),
        mac=addresses.mac(record.tag, index),
        uuid=str(identity),
        serial=f"SLIPWAY-{identity.hex[:10].upper()}",
        pod_range=str(addresses.pod_range(record.pod_network, index)),
        image=image,
    )


def machine_name(record: LabRecord, host: HostRecord) -> str:
    """What systemd-nspawn calls the host: at most 12 characters, so that the name of its link is not shortened."""
    return f"{record.tag}-{host.index}"


def port_name(record: LabRecord, host: HostRecord) -> str:
    """The host's link on the bridge, as systemd-nspawn names it."""
    return f"vb-{machine_name(record, host)}"


def notify_socket(record: LabRecord, host: HostRecord) -> Path:
    """Where systemd-nspawn reports; not in the lab's folder, because the path of a socket may not exceed 107 characters."""
    return RUN_FOLDER / f"{machine_name(record, host)}.notify"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock ``path`` in a folder that is there; the file stays, unless the holder removes it, as it may with all the folder."""
    while True:
        with path.open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            # A holder that removed the file let go of something that nobody else will lock.
            if path.exists() and os.path.samestat(os.fstat(handle.fileno()), path.stat()):
                yield
                return


def _load(path: Path, kind: type[Record]) -> Record | None:
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        raise OperatorError(f"{path} is not a record of this lab: {error}; remove the file if it was edited by hand") from error


def _save(path: Path, record: LabRecord | HostRecord | Status) -> None:
    """Beside and renamed: a reader sees the old record or the new one."""
    RealHost().write(str(path), msgspec.json.format(msgspec.json.encode(record)) + b"\n", 0o600)
