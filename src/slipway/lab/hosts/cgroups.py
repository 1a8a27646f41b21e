"""A host's own place in every cgroup hierarchy, on cgroup v1, v2 and the hybrid of both.

With v1, and the hybrid, systemd-nspawn gives a container no place of its own: it would share each hierarchy's root with
the machine, and several kubelets would remove each other's Pods.  So each host gets one folder in every hierarchy,
which becomes the root that it sees.  With v2 alone one folder is enough, systemd-nspawn does the rest.
"""

from __future__ import annotations

import errno
import os
import shlex
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_UNIFIED_ROOT = "/sys/fs/cgroup"
_INHERITED = ("cpuset.cpus", "cpuset.mems")
_PATIENCE = 10.0


class Hierarchy(msgspec.Struct, frozen=True):
    """A mounted cgroup hierarchy."""

    path: str
    version: Literal[1, 2]
    controllers: tuple[str, ...] = ()
    """Of v1; a v2 hierarchy tells them in a file."""


class Setting(msgspec.Struct, frozen=True):
    """A file of a folder that must be written before a process can enter; ``source`` is the file to copy from."""

    path: str
    source: str = ""
    value: str = ""


class Place(msgspec.Struct, frozen=True):
    """A host's folders in the hierarchies, what to write there, and how a process makes them its own."""

    folders: tuple[str, ...]
    """Outermost first."""
    settings: tuple[Setting, ...]
    entry: str
    """A shell script that enters the folders and executes its arguments."""


def hierarchies(mountinfo: str) -> list[Hierarchy]:
    """The hierarchies in a text like /proc/self/mountinfo, each once."""
    found: dict[str, Hierarchy] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        path = before.split()[4]
        if kind == "cgroup":
            found[path] = Hierarchy(path, 1, tuple(name for name in options.split(",") if name not in {"rw", "ro"}))
        elif kind == "cgroup2":
            found[path] = Hierarchy(path, 2)
    return list(found.values())


def place(mounted: Sequence[Hierarchy], lab: str, host: str, controllers: str = "") -> Place:
    """Where a host goes; ``controllers`` is the content of the v2 root's ``cgroup.controllers``."""
    folders: list[str] = []
    settings: list[Setting] = []
    own = folders_of(mounted, lab, host)
    for hierarchy, folder in zip(mounted, own, strict=True):
        outer = f"{hierarchy.path}/{lab}"
        folders += [outer, folder]
        if "cpuset" in hierarchy.controllers:
            # A new cpuset has no processors and no memory, and nothing can enter it until it has.
            settings += [Setting(f"{outer}/{name}", source=f"{hierarchy.path}/{name}") for name in _INHERITED]
            settings += [Setting(f"{folder}/{name}", source=f"{outer}/{name}") for name in _INHERITED]
    if [hierarchy.path for hierarchy in mounted] == [_UNIFIED_ROOT]:
        # A controller works in a folder only where every folder above it hands it down.
        enabled = " ".join(f"+{name}" for name in controllers.split())
        settings += [
            Setting(f"{path}/cgroup.subtree_control", value=enabled) for path in (_UNIFIED_ROOT, f"{_UNIFIED_ROOT}/{lab}") if enabled
        ]
        return Place(tuple(folders), tuple(settings), _script(own, [], 'exec "$@"'))
    binds = [(folder, hierarchy.path) for hierarchy, folder in zip(mounted, own, strict=True)]
    # systemd-nspawn reads its place from /proc, relative to the namespace's root, and looks for it below the mount points:
    # both must mean the host's folder, or it makes folders of its own in the machine's root.
    return Place(tuple(folders), tuple(settings), _script(own, binds, 'exec unshare --cgroup -- "$@"'))


def folders_of(mounted: Iterable[Hierarchy], *names: str) -> list[str]:
    """The folder of a lab, or of a host in it, in each hierarchy."""
    return ["/".join((hierarchy.path, *names)) for hierarchy in mounted]


def _script(procs: Sequence[str], binds: Sequence[tuple[str, str]], last: str) -> str:
    lines = ["set -e"]
    lines += [f"echo $$ > {shlex.quote(folder)}/cgroup.procs" for folder in procs]
    lines += [f"mount --bind {shlex.quote(source)} {shlex.quote(target)}" for source, target in binds]
    return "\n".join([*lines, last, ""])


def mounted_here() -> list[Hierarchy]:
    found = hierarchies(Path("/proc/self/mountinfo").read_text())
    if not found:
        raise OperatorError("no cgroup hierarchy is mounted on this machine: mount cgroup2 at /sys/fs/cgroup")
    return found


def make(lab: str, host: str) -> Place:
    """Make the host's folders anew, empty as a machine's are when it boots."""
    mounted = mounted_here()
    remove(folders_of(mounted, lab, host))
    controllers = Path(_UNIFIED_ROOT, "cgroup.controllers")
    wanted = place(mounted, lab, host, controllers.read_text() if controllers.exists() else "")
    for folder in wanted.folders:
        os.makedirs(folder, exist_ok=True)
    for setting in wanted.settings:
        value = Path(setting.source).read_text() if setting.source else setting.value
        try:
            Path(setting.path).write_text(value)
        except OSError as error:
            raise OperatorError(
                f"cannot write {value.strip()!r} to {setting.path}, which the host's cgroup needs: {error.strerror}"
            ) from error
    return wanted


def members(folders: Iterable[str]) -> set[int]:
    """The processes in some folders and in all below."""
    found: set[int] = set()
    for top in folders:
        for folder, _, _ in os.walk(top):
            try:
                found.update(int(line) for line in Path(folder, "cgroup.procs").read_text().split())
            except OSError as error:
                if error.errno not in {errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP}:  # gone meanwhile, or threaded
                    raise
    return found - {0}  # 0 stands for a process of another PID namespace


def remove(folders: Sequence[str], patience: float = _PATIENCE) -> None:
    """Kill what is left in some folders, and remove them with all that a kubelet made below."""
    deadline = time.monotonic() + patience
    while True:
        _kill_members(folders)
        left = [folder for folder in folders if not _removed(folder)]
        if not left:
            return
        if time.monotonic() > deadline:
            raise OperatorError(f"the cgroup {left[0]} cannot be removed: processes in it do not end, see its cgroup.procs")
        time.sleep(0.02)  # the end of a network namespace keeps its processes for some milliseconds


def _kill_members(folders: Sequence[str]) -> None:
    handles: dict[int, int] = {}
    try:
        for pid in members(folders):
            with suppress(ProcessLookupError):
                handles[pid] = os.pidfd_open(pid)
        # A number that passed to a stranger before its handle was opened is no longer among the members.
        for pid in handles.keys() & members(folders):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handles[pid], signal.SIGKILL)
    finally:
        for handle in handles.values():
            os.close(handle)


def _removed(top: str) -> bool:
    for folder, _, _ in os.walk(top, topdown=False):
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno not in {errno.EBUSY, errno.ENOTEMPTY}:
                raise
            return False
    return True
