"""The machine itself.

What only some methods need is imported there: `config` reads a file through a host and must start fast.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from slipway.host.interface import CommandResult

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from slipway.host.cri.client import ContainerRuntime


class RealHost:
    """The machine itself; ``root`` stands for its ``/`` where ``--rootfs`` was given."""

    def __init__(self, root: str = "/", environment: Mapping[str, str] | None = None) -> None:
        self._root = root.rstrip("/")
        self.environment: Mapping[str, str] = os.environ if environment is None else environment

    def location(self, path: str) -> str:
        return self._root + path if path.startswith("/") else path

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

    def read(self, path: str) -> bytes:
        with open(self.location(path), "rb") as handle:
            return handle.read()

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
        from slipway.host import mounts

        # Of what is under another root, the paths are shown as that root's.
        root = os.path.realpath(self._root) if self._root else ""
        return [path.removeprefix(root) for path in mounts.below(os.path.realpath(self.location(folder)))]

    def unmount(self, path: str, flags: int = 0) -> None:
        from slipway.host import mounts

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
        from slipway.host import listeners

        return listeners.owner(port)

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
