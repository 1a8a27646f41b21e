"""The machine behind an interface: files under a root, commands, addresses, the environment and the clock.

Everything that works on a machine knows only :class:`Host`; real.py is the machine, dryrun.py reads it and writes elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from slipway.host.cri.client import ContainerRuntime


class CommandResult(msgspec.Struct, frozen=True):
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str


class Space(msgspec.Struct, frozen=True):
    """The room on the file system under a path, as far as it is there for programs: bytes and inodes."""

    device: int
    """Tells file systems apart."""
    total: int
    free: int
    inodes: int
    """0 where the file system has no fixed number of them."""
    inodes_free: int


class Host(Protocol):
    """A machine, as far as phases need to know.  Paths are absolute and seen from the machine's own root."""

    @property
    def environment(self) -> Mapping[str, str]: ...

    def shown(self, path: str) -> str:
        """How a path is told to a person: as it is, and in a dry run where the file really goes."""

    def keep(self, path: str, content: bytes, mode: int = 0o600) -> None:
        """Write a file unless it has that content: who watches it, or looks at its age, learns nothing from a repetition.

        A dry run writes it in any case, so that it is among the files of the run.
        """

    def include(self, path: str, mode: int = 0o600) -> None:
        """Have a file of the machine among those of this run: a dry run copies it to where it writes."""

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

    def write(self, path: str, content: bytes, mode: int = 0o600, *, like: str = "") -> None:
        """Write beside and rename, so that nobody ever sees half a file; folders in between are made.

        Of a file that is replaced, owner and mode stay; a new one has those of the file ``like``, where that is there.  A link is followed,
        and what is no regular file is written to.
        """

    def make_dir(self, path: str, mode: int = 0o700) -> None:
        """Make a folder; those in between have the same mode."""

    def give(self, path: str, user: int, group: int, mode: int | None = None) -> None:
        """Make a file somebody else's, with a mode; without one, a folder and all that is in it.  OSError where that cannot be done."""

    def remove(self, path: str) -> None:
        """Remove a file or a whole folder; nothing happens where there is none."""

    def rename(self, path: str, target: str) -> None:
        """Give a file or a folder another name on the same file system."""

    def mounts(self, folder: str) -> list[str]:
        """What is mounted below a folder, the folder itself not counted, the deepest first; links in its path are followed."""

    def unmount(self, path: str, flags: int = 0) -> None:
        """umount2(2); OSError where that fails."""

    def space(self, path: str) -> Space:
        """The room under a path; OSError where there is no such path."""

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

    def fetch_public(self, url: str, *, timeout: float) -> bytes:
        """What anybody may read from the internet, a few kilobytes of it; OSError says why there is nothing."""

    def container_runtime(self, socket: str) -> ContainerRuntime:
        """A client of the runtime that listens on a socket such as ``unix:///run/containerd/containerd.sock``."""
