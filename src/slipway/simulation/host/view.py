"""A simulated machine as the program sees it that runs on it: the Host of everything that works on a machine, for one boot.

Whatever still runs when the power is gone finds out at its next touch of the machine.
"""

from __future__ import annotations

import errno
import posixpath
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from slipway.host.interface import CommandResult, Space
from slipway.simulation.host.files import File, Folder, failure
from slipway.simulation.shell.process import NOT_FOUND, Process

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.host.cri.client import ContainerRuntime
    from slipway.simulation.host.machine import Machine

_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root"}


class SimulatedHost:
    """The machine during one boot."""

    def __init__(self, machine: Machine, environment: Mapping[str, str] | None = None) -> None:
        self._machine = machine
        self._boot = machine.boots
        self.environment: Mapping[str, str] = {**_ENVIRONMENT, **(environment or {})}

    @property
    def machine(self) -> Machine:
        """Checked: there is power, and it is still the same boot."""
        self._machine.check_power(self._boot)
        return self._machine

    def shown(self, path: str) -> str:
        return path

    def location(self, path: str) -> str:
        return path

    def keep(self, path: str, content: bytes, mode: int = 0o600) -> None:
        entry = self.machine.tree.find(path)
        if not isinstance(entry, File) or entry.content != content:
            self.write(path, content, mode)

    def include(self, path: str, mode: int = 0o600) -> None:
        """It is where the run looks for it."""

    def hostname(self) -> str:
        return self.machine.hostname

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self._machine.faults.clock)

    def addresses(self, interface: str) -> list[str]:
        return [address.partition("/")[0] for address in self.machine.addresses.get(interface, ())]

    def exists(self, path: str) -> bool:
        return self.machine.tree.exists(path)

    def is_dir(self, path: str) -> bool:
        return self.machine.tree.is_dir(path)

    def list_dir(self, path: str) -> list[str]:
        try:
            return self.machine.tree.names(path)
        except FileNotFoundError:
            return []

    def read(self, path: str, most: int = -1) -> bytes:
        content = self.machine.tree.file(path).content
        return content if most < 0 else content[:most]

    def write(self, path: str, content: bytes, mode: int = 0o600, *, like: str = "") -> None:
        self.machine.check_space(path)
        tree = self.machine.tree
        tree.make_dirs(posixpath.dirname(path), 0o700)
        present = tree.exists(path)
        owned = tree.find(like) if like and not present else None
        made = tree.write(path, content, mode)
        if isinstance(owned, File):
            made.mode, made.user, made.group = owned.mode, owned.user, owned.group

    def make_dir(self, path: str, mode: int = 0o700) -> None:
        self.machine.tree.make_dirs(path, mode)

    def give(self, path: str, user: int, group: int, mode: int | None = None) -> None:
        tree = self.machine.tree
        entry = tree.find(path)
        if entry is None or not isinstance(entry, File | Folder):
            raise failure(errno.ENOENT, path)
        entry.user, entry.group = user, group
        if mode is not None:
            entry.mode = mode
            return
        for _, below in tree.walk(path):
            if isinstance(below, File | Folder):
                below.user, below.group = user, group

    def remove(self, path: str) -> None:
        self.machine.tree.remove(path)

    def rename(self, path: str, target: str) -> None:
        self.machine.tree.rename(path, target)

    def mounts(self, folder: str) -> list[str]:
        return []

    def unmount(self, path: str, flags: int = 0) -> None:
        raise failure(errno.EINVAL, path)

    def space(self, path: str) -> Space:
        if not self.machine.tree.exists(path):
            raise failure(errno.ENOENT, path)
        return Space(device=1, total=self.machine.hardware.disk, free=self.machine.free_bytes(), inodes=0, inodes_free=0)

    def which(self, program: str) -> str | None:
        if self.machine.program(program) is None:
            return None
        return program if program.startswith("/") else f"/usr/bin/{program}"

    def run(self, *command: str) -> CommandResult:
        program = self.machine.program(command[0])
        if program is None:
            return CommandResult(NOT_FOUND, "", f"{command[0]}: not found")
        process = Process(list(command), dict(self.environment))
        code = program(process)
        return CommandResult(code, process.out.decode(errors="replace"), process.err.decode(errors="replace"))

    def user_id(self) -> int:
        return 0

    def cpu_count(self) -> int:
        return 8

    def port_in_use(self, port: int) -> bool:
        return False

    def port_owner(self, port: int) -> str:
        return ""

    def kernel(self) -> tuple[str, str]:
        return "Linux", "6.12.0-simulated"

    def resolve(self, name: str) -> list[str]:
        if name in (self.machine.hostname, "localhost"):
            return [self.machine.hardware.address.partition("/")[0]]
        raise OSError(errno.ENOENT, f"no such host: {name}")

    def fetch(self, url: str, *, ca: str = "", identity: tuple[str, str] | None = None, timeout: float = 10.0) -> bytes:
        """Over the real network: the services that hosts talk to are real."""
        from slipway.host import fetching

        del identity
        self._machine.check_power(self._boot)
        return fetching.fetch(url, ca=ca, identity=None, timeout=timeout)

    def fetch_public(self, url: str, *, timeout: float) -> bytes:
        raise OSError(errno.ENETUNREACH, f"a simulated host has no internet: {url}")

    def container_runtime(self, socket: str) -> ContainerRuntime:
        raise OSError(errno.ENOENT, f"nothing listens on {socket}: containers of a simulated host are asked for with ctr or crictl")
