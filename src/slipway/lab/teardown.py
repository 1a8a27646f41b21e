"""The end of hosts and labs: every process, cgroup, link, mount and folder that a lab has on record, and nothing else.

It works on what a killed run left behind, and when nothing is left to do.
"""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.lab.hosts import cgroups, nspawn
from slipway.lab.management import plane
from slipway.lab.network import bridge
from slipway.lab.record import notify_socket, port_name
from slipway.lab.registry import server as registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slipway.host.progress import Progress
    from slipway.lab.hosts.cgroups import Hierarchy
    from slipway.lab.processes import Process
    from slipway.lab.record import HostRecord, Lab, LabRecord, Status

_PATIENCE = 10.0


class Step(msgspec.Struct, frozen=True):
    """One thing that goes."""

    kind: Literal["process", "cgroup", "port", "socket"]
    what: str
    process: Process | None = None


def host_steps(record: LabRecord, host: HostRecord, status: Status, mounted: Sequence[Hierarchy]) -> list[Step]:
    """What takes a host off the machine: first who would start it again, then the host, then what can go only without it."""
    running = [("launcher", status.launcher), ("PID 1", status.leader), ("systemd-nspawn", status.container)]
    return [
        *(Step("process", f"{role} of {host.name}", process) for role, process in running if process is not None),
        *(Step("cgroup", folder) for folder in cgroups.folders_of(mounted, record.cgroup, host.name)),
        Step("port", port_name(record, host)),
        Step("socket", str(notify_socket(record, host))),
    ]


def end_host(lab: Lab, host: HostRecord) -> None:
    """Take a host off the machine, however it was left; its folder stays."""
    record = lab.record
    for step in host_steps(record, host, lab.status(host.name), cgroups.mounted_here()):
        match step.kind:
            case "process":
                kill(step.process)
            case "cgroup":
                cgroups.remove([step.what])
            case "port":
                bridge.remove_port(record, host)
            case "socket":
                Path(step.what).unlink(missing_ok=True)


def kill(process: Process | None, patience: float = _PATIENCE) -> None:
    """Kill a process, if it is the one on record, and see it ended."""
    if nspawn.send(process, signal.SIGKILL) and process is not None and not nspawn.ended(process, patience):
        raise OperatorError(
            f"process {process.pid} does not end, not even by SIGKILL: it hangs in the kernel, see /proc/{process.pid}/stack"
        )


def delete_host(lab: Lab, host: HostRecord) -> None:
    """Remove a host with everything that it has; its record goes last, so that a killed run can be run again."""
    end_host(lab, host)
    bridge.forget_host(lab.record, host)
    folder = lab.host_folder(host.name)
    for entry in folder.path.iterdir():
        if entry != folder.record:
            remove_tree(entry)
    remove_tree(folder.path)


def down(lab: Lab, progress: Progress) -> None:
    """Remove a lab: hosts, management plane, network, cgroups and its folder."""
    if not lab.exists:
        # A management plane needs neither hosts nor a network, so it may be all that there is.
        planes = lab.management.is_dir()
        if planes:
            plane.down(lab.management, progress, purge=True)
        _remove_remains(lab)
        progress.say(f"[lab] {lab.name}: removed" if planes else f"[lab] {lab.name}: there is no such lab at {lab.folder}")
        return
    with lab.locked():
        record = lab.record
        hosts = lab.hosts()
        for host in hosts:
            end_host(lab, host)
            progress.say(f"[lab] {lab.name}: host {host.name} is gone")
        if lab.management.is_dir():
            plane.down(lab.management, progress)
        registry.down(lab, progress)
        bridge.down(lab, hosts)
        cgroups.remove(cgroups.folders_of(cgroups.mounted_here(), record.cgroup))
        # The record goes last: as long as something is there, so is what names it.
        for entry in lab.folder.iterdir():
            if entry.name not in {lab.file.name, lab.lock.name}:
                remove_tree(entry)
        remove_tree(lab.folder)
    progress.say(f"[lab] {lab.name}: removed")


def remove_tree(path: Path) -> None:
    """Remove a file or a folder, never across a mount: what is mounted there is not the lab's to delete."""
    for mount in mounts_below(Path("/proc/self/mountinfo").read_text(), path):
        bridge.run("umount", mount)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


def mounts_below(mountinfo: str, path: Path) -> list[str]:
    """The mount points at a path and below it, the last mounted first."""
    points = (line.split()[4].encode().decode("unicode_escape") for line in mountinfo.splitlines())
    return [point for point in reversed(list(points)) if Path(point).is_relative_to(path)]


def _remove_remains(lab: Lab) -> None:
    """A folder without a record: a run was killed before it made anything, or just after it removed everything."""
    if lab.folder.is_dir() and not _foreign(lab.folder.iterdir(), lab):
        shutil.rmtree(lab.folder)


def _foreign(entries: Iterable[Path], lab: Lab) -> list[Path]:
    own = {lab.lock.name}
    return [entry for entry in entries if entry.name not in own and not entry.name.startswith(f".{lab.file.name}.")]
