"""The machine behind an interface: files under a root, commands, addresses, the environment and the clock.

Phases know only :class:`Host`.  :class:`RealHost` is the machine; :class:`DryRunHost` reads the machine and writes into
a folder of its own, so that a dry run takes the same path through the code as a real one.  What only
some methods need is imported there: `config` reads a file through a host and must start fast.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from slipway.node.cri import ContainerRuntime


class CommandResult(msgspec.Struct, frozen=True):
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str


class Host(Protocol):
    """A machine, as far as phases need to know.  Paths are absolute and seen from the machine's own root."""

    @property
    def dry_run(self) -> bool: ...

    @property
    def environment(self) -> Mapping[str, str]: ...

    def hostname(self) -> str:
        """The name that the kernel has, as it is."""

    def now(self) -> datetime:
        """The time, in UTC."""

    def addresses(self, interface: str) -> list[str]:
        """The addresses of a network interface that is up, in the kernel's order, without prefix lengths."""

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def list_dir(self, path: str) -> list[str]:
        """The names in a folder, sorted; empty where there is none."""

    def read(self, path: str, most: int = -1) -> bytes:
        """The content, or the first bytes of it; OSError where it cannot be had."""

    def write(self, path: str, content: bytes, mode: int = 0o600) -> None:
        """Write beside and rename, so that nobody ever sees half a file; folders in between are made."""

    def make_dir(self, path: str, mode: int = 0o700) -> None: ...

    def remove(self, path: str) -> None:
        """Remove a file or a whole folder; nothing happens where there is none."""

    def rename(self, path: str, target: str) -> None:
        """Give a file or a folder another name on the same file system."""

    def mounts(self, folder: str) -> list[str]:
        """What is mounted below a folder, the folder itself not counted, the deepest first; links in its path are followed."""

    def unmount(self, path: str, flags: int = 0) -> None:
        """umount2(2); OSError where that fails."""

    def which(self, program: str) -> str | None: ...

    def run(self, *command: str) -> CommandResult: ...

    def user_id(self) -> int: ...

    def cpu_count(self) -> int:
        """How many processors this program may use."""

    def port_in_use(self, port: int) -> bool:
        """Whether something listens on a TCP port of any address."""

    def port_owner(self, port: int) -> str:
        """The name of the process that listens on a TCP port; empty where none does or it cannot be seen."""

    def kernel(self) -> tuple[str, str]:
        """The operating system and the release of its kernel: Linux, 6.1.0-18-amd64."""

    def resolve(self, name: str) -> list[str]:
        """The addresses of a host name; OSError where it has none."""

    def fetch(self, url: str, *, ca: str = "", identity: tuple[str, str] | None = None, timeout: float = 10.0) -> bytes:
        """What a web server answers; ``ca`` and ``identity`` are paths.  OSError where it does not answer."""

    def location(self, path: str) -> str:
        """Where ``path`` is written for real, to be shown to the operator."""

    def container_runtime(self, socket: str) -> ContainerRuntime:
        """A client of the runtime that listens on a socket such as ``unix:///run/containerd/containerd.sock``."""


class RealHost:
    """The machine itself; ``root`` stands for its ``/`` where ``--rootfs`` was given."""

    dry_run = False

    def __init__(self, root: str = "/", environment: Mapping[str, str] | None = None) -> None:
        self._root = root.rstrip("/")
        self.environment: Mapping[str, str] = os.environ if environment is None else environment

    def location(self, path: str) -> str:
        return self._root + path if path.startswith("/") else path

    def hostname(self) -> str:
        return os.uname().nodename

    def now(self) -> datetime:
        from datetime import UTC, datetime

        return datetime.now(UTC)

    def addresses(self, interface: str) -> list[str]:
        from slipway.node import netlink

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

    def write(self, path: str, content: bytes, mode: int = 0o600) -> None:
        target = self.location(path)
        folder, name = os.path.split(target)
        if folder:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        # Of a run that was killed here, the next one finds what it left and removes it; O_EXCL never follows what others put there.
        partial = os.path.join(folder, f".{name}.partial")
        if os.path.lexists(partial):
            os.unlink(partial)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as handle:
                handle.write(content)
                os.fchmod(handle.fileno(), mode)
            os.replace(partial, target)
        except BaseException as error:
            os.unlink(partial)
            if isinstance(error, OSError):
                # A full disk is found by a write, which does not know the name of its file.
                error.filename, error.filename2 = target, None
            raise

    def make_dir(self, path: str, mode: int = 0o700) -> None:
        os.makedirs(self.location(path), mode=mode, exist_ok=True)

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
        from slipway.node import mounts

        # Of what is under another root, the paths are shown as that root's.
        root = os.path.realpath(self._root) if self._root else ""
        return [path.removeprefix(root) for path in mounts.below(os.path.realpath(self.location(folder)))]

    def unmount(self, path: str, flags: int = 0) -> None:
        from slipway.node import mounts

        mounts.unmount(self.location(path), flags)

    def which(self, program: str) -> str | None:
        import shutil

        return shutil.which(program, path=self.environment.get("PATH"))

    def run(self, *command: str) -> CommandResult:
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
        from slipway.node import listeners

        return listeners.owner(port)

    def kernel(self) -> tuple[str, str]:
        name = os.uname()
        return name.sysname, name.release

    def resolve(self, name: str) -> list[str]:
        import socket

        return sorted({str(found[4][0]) for found in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)})

    def fetch(self, url: str, *, ca: str = "", identity: tuple[str, str] | None = None, timeout: float = 10.0) -> bytes:
        from slipway.node import fetching

        mine = (self.location(identity[0]), self.location(identity[1])) if identity is not None else None
        return fetching.fetch(url, ca=self.location(ca) if ca else "", identity=mine, timeout=timeout)

    def container_runtime(self, socket: str) -> ContainerRuntime:
        from slipway.node.cri import ContainerRuntime

        return ContainerRuntime(self.location(socket.removeprefix("unix://")))


class DryRunHost:
    """Reads a host, and writes to a folder instead of it.

    ``folders`` names the folders of the host that are collapsed into the dry-run folder, as kubeadm does it:
    ``/etc/kubernetes/pki/etcd/ca.crt`` becomes ``<folder>/etcd/ca.crt``.  What was written in this run is what is read.
    """

    dry_run = True

    def __init__(self, host: Host, folder: str, folders: tuple[str, ...]) -> None:
        self._host = host
        self.folder = folder
        # The longest prefix wins: pki and manifests are inside /etc/kubernetes.
        self._folders = tuple(sorted((path.rstrip("/") for path in folders), key=len, reverse=True))
        self._here = RealHost()
        self.environment: Mapping[str, str] = host.environment

    def location(self, path: str) -> str:
        for prefix in self._folders:
            if path == prefix or path.startswith(f"{prefix}/"):
                return self.folder + path[len(prefix) :]
        return self.folder + path

    def hostname(self) -> str:
        return self._host.hostname()

    def now(self) -> datetime:
        return self._host.now()

    def addresses(self, interface: str) -> list[str]:
        return self._host.addresses(interface)

    def exists(self, path: str) -> bool:
        return self._here.exists(self.location(path)) or self._host.exists(path)

    def is_dir(self, path: str) -> bool:
        return self._here.is_dir(self.location(path)) or self._host.is_dir(path)

    def list_dir(self, path: str) -> list[str]:
        return self._host.list_dir(path)

    def read(self, path: str, most: int = -1) -> bytes:
        redirected = self.location(path)
        return self._here.read(redirected, most) if self._here.exists(redirected) else self._host.read(path, most)

    def write(self, path: str, content: bytes, mode: int = 0o600) -> None:
        self._here.write(self.location(path), content, mode)

    def make_dir(self, path: str, mode: int = 0o700) -> None:
        """A folder is made when a file is written into it; an empty one tells nobody anything."""

    def remove(self, path: str) -> None:
        redirected = self.location(path)
        if self._here.exists(redirected):
            self._here.remove(redirected)

    def rename(self, path: str, target: str) -> None:
        """Files of this run are renamed; those of the machine are left alone."""
        if self._here.exists(self.location(path)):
            self._here.rename(self.location(path), self.location(target))

    def mounts(self, folder: str) -> list[str]:
        return self._host.mounts(folder)

    def unmount(self, path: str, flags: int = 0) -> None:
        raise AssertionError(f"a dry run must not unmount {path}")

    def which(self, program: str) -> str | None:
        return self._host.which(program)

    def run(self, *command: str) -> CommandResult:
        """Commands change the machine, so a dry run runs none; phases say what they would run."""
        raise AssertionError(f"a dry run must not run {command[0]}")

    def user_id(self) -> int:
        return self._host.user_id()

    def cpu_count(self) -> int:
        return self._host.cpu_count()

    def port_in_use(self, port: int) -> bool:
        return self._host.port_in_use(port)

    def port_owner(self, port: int) -> str:
        return self._host.port_owner(port)

    def kernel(self) -> tuple[str, str]:
        return self._host.kernel()

    def resolve(self, name: str) -> list[str]:
        return self._host.resolve(name)

    def fetch(self, url: str, *, ca: str = "", identity: tuple[str, str] | None = None, timeout: float = 10.0) -> bytes:
        return self._host.fetch(url, ca=ca, identity=identity, timeout=timeout)

    def container_runtime(self, socket: str) -> ContainerRuntime:
        """To be read from: a dry run pulls and removes nothing."""
        return self._host.container_runtime(socket)
