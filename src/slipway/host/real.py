"""The machine itself.

What only some methods need is imported there: `config` reads a file through a host and must start fast.
"""

from __future__ import annotations

import errno
import os
from _thread import get_ident
from typing import TYPE_CHECKING

from slipway.host.interface import CommandResult, Space

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from slipway.host.cri.client import ContainerRuntime


_FOLDER_MODE = 0o700
# From <sys/mount.h>, by the names that a ResetConfiguration has for them.
UNMOUNT_FLAGS = {"MNT_FORCE": 1, "MNT_DETACH": 2, "MNT_EXPIRE": 4, "UMOUNT_NOFOLLOW": 8}


class RealHost:
    """The machine itself; ``root`` stands for its ``/`` where ``--rootfs`` was given."""

    def __init__(self, root: str = "/", environment: Mapping[str, str] | None = None) -> None:
        self._root = root.rstrip("/")
        self.environment: Mapping[str, str] = os.environ if environment is None else environment

    def location(self, path: str) -> str:
        return self._root + path if path.startswith("/") else path

    def _followed(self, path: str) -> str:
        """Where a path leads in the end: a link stays one, and what it names is written; under another root, it must not lead out."""
        target = self.location(path)
        if not os.path.islink(target):
            return target
        followed = os.path.realpath(target)
        root = os.path.realpath(self._root) if self._root else ""
        if not followed.startswith(f"{root}/"):
            raise PermissionError(errno.EPERM, f"it is a link to {followed}, which is not under {self._root}", target)
        return followed

    def shown(self, path: str) -> str:
        return path

    def keep(self, path: str, content: bytes, mode: int = 0o600) -> None:
        try:
            if self.read(path) == content:
                return
        except FileNotFoundError:
            pass
        self.write(path, content, mode)

    def include(self, path: str, mode: int = 0o600) -> None:
        """It is where the run looks for it."""

    def hostname(self) -> str:
        return os.uname().nodename

    def now(self) -> datetime:
        from datetime import UTC, datetime

        return datetime.now(UTC)

    def addresses(self, interface: str) -> list[str]:
        from slipway.host import netlink

        return netlink.addresses(interface)

    def exists(self, path: str) -> bool:
        return os.path.exists(self.location(path))

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(self.location(path))

    def list_dir(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self.location(path)))
        except FileNotFoundError:
            return []

    def read(self, path: str, most: int = -1) -> bytes:
        with open(self.location(path), "rb") as handle:
            return handle.read(most)

    def write(self, path: str, content: bytes, mode: int = 0o600, *, like: str = "") -> None:
        target, given = self._followed(path), self.location(path)
        if os.path.exists(given) and not os.path.isfile(given):
            # A device or a pipe is somebody's: it is written to, never replaced.  /dev/stdout leads to a pipe that has no other path.
            with open(given, "wb") as handle:
                handle.write(content)
            return
        folder = os.path.dirname(target)
        if folder:
            _make_dirs(folder, _FOLDER_MODE)
        owned = _status(target) or (_status(self.location(like)) if like else None)
        try:
            _write_beside(target, content, mode, owned)
        except OSError as error:
            # A full disk is found by a write, which does not know the name of its file.
            error.filename, error.filename2 = target, None
            raise

    def make_dir(self, path: str, mode: int = _FOLDER_MODE) -> None:
        _make_dirs(self.location(path), mode)

    def give(self, path: str, user: int, group: int, mode: int | None = None) -> None:
        target = self.location(path)
        os.chown(target, user, group)
        if mode is not None:
            os.chmod(target, mode)
            return
        for folder, folders, files in os.walk(target):
            for name in (*folders, *files):
                os.lchown(os.path.join(folder, name), user, group)

    def remove(self, path: str) -> None:
        target = self.location(path)
        if os.path.isdir(target) and not os.path.islink(target):
            import shutil

            shutil.rmtree(target)
        elif os.path.lexists(target):
            os.unlink(target)

    def rename(self, path: str, target: str) -> None:
        os.rename(self.location(path), self.location(target))

    def mounts(self, folder: str) -> list[str]:
        from slipway.host import procfs

        # Of what is under another root, the paths are shown as that root's.
        root = os.path.realpath(self._root) if self._root else ""
        return [path.removeprefix(root) for path in procfs.mounts_below(os.path.realpath(self.location(folder)))]

    def unmount(self, path: str, flags: int = 0) -> None:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        if libc.umount2(os.fsencode(self.location(path)), flags) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)

    def space(self, path: str) -> Space:
        found = os.statvfs(self.location(path))
        # What is kept for root is neither free nor to be used up.
        usable = found.f_blocks - found.f_bfree + found.f_bavail
        return Space(
            device=os.stat(self.location(path)).st_dev,
            total=usable * found.f_frsize,
            free=found.f_bavail * found.f_frsize,
            inodes=found.f_files,
            inodes_free=found.f_favail,
        )

    def which(self, program: str) -> str | None:
        import shutil

        folders = self.environment.get("PATH", os.defpath).split(os.pathsep)
        found = shutil.which(program, path=os.pathsep.join(self.location(folder) for folder in folders))
        return found.removeprefix(self._root) if found else None

    def run(self, *command: str) -> CommandResult:
        if self._root:
            # As kubeadm's chroot would have it, but for this: what is under the root cannot be started, and the machine is not meant.
            return CommandResult(126, "", f"{command[0]} is not run: it would act on this machine and not on what is under {self._root}")
        import subprocess

        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(self.environment))
        except FileNotFoundError as error:
            return CommandResult(127, "", str(error))
        return CommandResult(done.returncode, done.stdout, done.stderr)

    def user_id(self) -> int:
        return os.getuid()

    def cpu_count(self) -> int:
        return len(os.sched_getaffinity(0))

    def port_in_use(self, port: int) -> bool:
        import socket

        family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
        try:
            socket.create_server(("", port), family=family, dualstack_ipv6=family == socket.AF_INET6, reuse_port=False).close()
        except OSError:
            return True
        return False

    def port_owner(self, port: int) -> str:
        from slipway.host import procfs

        return procfs.listener(port)

    def kernel(self) -> tuple[str, str]:
        name = os.uname()
        return name.sysname, name.release

    def resolve(self, name: str) -> list[str]:
        import socket

        return sorted({str(found[4][0]) for found in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)})

    def fetch(self, url: str, *, ca: str = "", identity: tuple[str, str] | None = None, timeout: float = 10.0) -> bytes:
        from slipway.host import fetching

        mine = (self.location(identity[0]), self.location(identity[1])) if identity is not None else None
        return fetching.fetch(url, ca=self.location(ca) if ca else "", identity=mine, timeout=timeout)

    def fetch_public(self, url: str, *, timeout: float) -> bytes:
        from slipway.host import fetching

        return fetching.fetch_public(url, timeout=timeout)

    def container_runtime(self, socket: str) -> ContainerRuntime:
        from slipway.host.cri.client import ContainerRuntime

        return ContainerRuntime(self.location(socket.removeprefix("unix://")))


def _make_dirs(path: str, mode: int) -> None:
    """All folders of a path that are missing, each with the mode: ``os.makedirs`` leaves those in between to the umask."""
    parent, name = os.path.split(path.rstrip("/"))
    if not name or os.path.isdir(path):
        return
    if parent:
        _make_dirs(parent, mode)
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _write_beside(target: str, content: bytes, mode: int, owned: os.stat_result | None) -> None:
    """Write and rename, so that nobody ever sees half a file; owner and mode are those of ``owned``, where that is given."""
    _remove_left(target)
    partial = _partial(target, os.getpid())
    # O_EXCL never follows what others put there.
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(content)
            handle.flush()
            if owned is not None and (owned.st_uid, owned.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(handle.fileno(), owned.st_uid, owned.st_gid)
            os.fchmod(handle.fileno(), mode if owned is None else owned.st_mode & 0o7777)
        os.replace(partial, target)
    except BaseException:
        os.unlink(partial)
        raise


def _partial(target: str, process: int) -> str:
    """A name of the process's and thread's own: two that write one path at once do not take each other's file away."""
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{name}.{process}-{get_ident()}.partial")


def _remove_left(target: str) -> None:
    """What processes left that were killed in the middle of a write."""
    folder, name = os.path.split(target)
    for found in os.listdir(folder or "."):
        if found.startswith(f".{name}.") and found.endswith(".partial"):
            process, _, thread = found[len(name) + 2 : -len(".partial")].partition("-")
            if not (process.isdecimal() and thread.isdecimal()):
                continue
            mine = (int(process), int(thread)) == (os.getpid(), get_ident())
            if mine or not _is_running(int(process)):
                os.unlink(os.path.join(folder, found))


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
