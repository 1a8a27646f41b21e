"""Command lines around systemd-nspawn: what boots a host, and what runs a program in one that is up."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from slipway.lab import processes
from slipway.lab.osimage import cache
from slipway.lab.processes import Process
from slipway.lab.record import machine_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.lab.record import HostFolder, HostRecord, LabRecord

# PID 1 is systemd: these are the signals that systemd(1) gives a meaning.
POWER_OFF = signal.SIGRTMIN + 4
REBOOT = signal.SIGRTMIN + 5

REBOOT_EXIT_CODE = 133
"""What systemd-nspawn with --keep-unit ends with when the host reboots."""

PERSISTENT = {
    "containerd": "/var/lib/containerd",
    "kubelet": "/var/lib/kubelet",
    "etcd": "/var/lib/etcd",
    "slipway-lab": "/var/lib/slipway-lab",
}
"""Folders of a host that are real folders of the machine: containerd cannot lay an overlay on an overlay."""

OS_CACHE = "/run/slipway-lab/os"
"""Where a host sees the layers of OS images that the machine has."""

_LEADER = "X_NSPAWN_LEADER_PID="
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def boot_command(record: LabRecord, host: HostRecord, folder: HostFolder) -> list[str]:
    """What boots a host whose root is mounted."""
    return [
        "systemd-nspawn",
        "--quiet",
        "--settings=no",
        "--register=no",
        "--keep-unit",
        f"--directory={folder.root}",
        f"--machine={machine_name(record, host)}",
        f"--hostname={host.name}",
        f"--uuid={host.uuid}",
        f"--network-bridge={record.bridge}",
        "--capability=all",
        "--system-call-filter=@known",
        "--bind=/dev/kmsg",
        *(f"--bind={_escaped(folder.persistent / name)}:{inside}" for name, inside in PERSISTENT.items()),
        f"--bind-ro={_escaped(cache.folder())}:{OS_CACHE}",
        "--resolv-conf=off",
        "--timezone=off",
        "--link-journal=no",
        "--notify-ready=yes",
        "--console=read-only",
        "--boot",
    ]


def overlay_command(layers: Sequence[str], folder: HostFolder) -> list[str]:
    """What mounts a host's root: the image's layers below, the host's own on top.

    The features that are off would record in the upper layer which lower ones it belongs to, and those are switched.
    """
    lower = ":".join(_escaped(Path(layer)) for layer in layers)
    features = "index=off,metacopy=off,redirect_dir=off"
    options = f"lowerdir={lower},upperdir={_escaped(folder.upper)},workdir={_escaped(folder.work)},{features}"
    return ["mount", "-t", "overlay", "slipway-lab", "-o", options, str(folder.root)]


def enter_command(leader: int, command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """What runs a program in a host, with an environment as a login on it would have."""
    own = {"PATH": _PATH, "HOME": "/root", "LANG": "C.UTF-8", "TERM": environment.get("TERM", "dumb")}
    return [
        "nsenter",
        "--target",
        str(leader),
        "--all",
        "env",
        "-i",
        *(f"{name}={value}" for name, value in own.items()),
        *command,
    ]


def leader_in(notification: str) -> int | None:
    """The host's PID 1 in what systemd-nspawn sends to its NOTIFY_SOCKET."""
    for line in notification.splitlines():
        if line.startswith(_LEADER):
            return int(line.removeprefix(_LEADER))
    return None


def identify(pid: int) -> Process | None:
    """The process that has a number now."""
    try:
        stat = processes.parse_stat(Path(f"/proc/{pid}/stat").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Process(pid=pid, started=stat.started, boot=processes.boot_id())


def send(process: Process | None, number: int) -> bool:
    """Send a signal to a process if it runs still; False if it does not."""
    if process is None:
        return False
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        # What is compared after the handle was opened is what the handle holds.
        if identify(process.pid) != process:
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def ended(process: Process, seconds: float) -> bool:
    """Wait for the end of a process; False where it runs on after that time."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    try:
        if identify(process.pid) != process:
            return True
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(handle)


def _escaped(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace(":", "\\:")
