"""A machine that is read and not changed: what a run would write goes into a folder of its own.

A dry run takes the same path through the code as a real one, because only the host differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.host.real import RealHost

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from slipway.host.cri.client import ContainerRuntime
    from slipway.host.interface import CommandResult, Host, Space


class DryRunHost:
    """Reads a host, and writes to a folder instead of it.

    ``folders`` names the folders of the host that are collapsed into the dry-run folder, as kubeadm does it:
    ``/etc/kubernetes/pki/etcd/ca.crt`` becomes ``<folder>/etcd/ca.crt``.  What was written in this run is what is read.
    """

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

    def shown(self, path: str) -> str:
        return self.location(path)

    def keep(self, path: str, content: bytes, mode: int = 0o600) -> None:
        self.write(path, content, mode)

    def include(self, path: str, mode: int = 0o600) -> None:
        self.write(path, self.read(path), mode)

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

    def write(self, path: str, content: bytes, mode: int = 0o600, *, like: str = "") -> None:
        self._here.write(self.location(path), content, mode)

    def make_dir(self, path: str, mode: int = 0o700) -> None:
        """A folder is made when a file is written into it; an empty one tells nobody anything."""

    def give(self, path: str, user: int, group: int, mode: int | None = None) -> None:
        """The files of a dry run stay with whoever asked for it."""

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

    def space(self, path: str) -> Space:
        return self._host.space(path)

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

    def fetch_public(self, url: str, *, timeout: float) -> bytes:
        return self._host.fetch_public(url, timeout=timeout)

    def container_runtime(self, socket: str) -> ContainerRuntime:
        """To be read from: a dry run pulls and removes nothing."""
        return self._host.container_runtime(socket)
