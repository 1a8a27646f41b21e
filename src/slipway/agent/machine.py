"""The machine under the agent: what :class:`slipway.host.interface.Host` has, and the few things that only an agent does to a machine.

A simulated host implements this, and everything above it is the production agent.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slipway.host.interface import Host

OUTPUT_LIMIT = 64 << 10
"""Bytes of what one command says that are kept: the last ones, since those say why it failed."""
EXECUTION_FOLDER = "CATTLE_AGENT_EXECUTION_PWD"
"""Tells a command where it runs, and the next agent which processes are of a plan."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A program with its arguments, run in a folder of its own."""

    program: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    """Beside that of the agent."""
    folder: str
    timeout: float = 0.0
    """Seconds; 0 for as long as it takes."""


class Finished(msgspec.Struct, frozen=True):
    """What a command left behind: how it ended, and the end of what it wrote to standard output and standard error, as it came."""

    code: int
    output: bytes = b""


class CannotStartError(Exception):
    """There is no such program, or it cannot be run; the message is a sentence."""


class HttpGet(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a web server; certificates and keys are paths."""

    url: str
    insecure: bool = False
    ca: str = ""
    certificate: str = ""
    key: str = ""
    timeout: float = 1.0


class Machine(Protocol):
    @property
    def host(self) -> Host: ...

    @property
    def slipway(self) -> tuple[str, ...]:
        """The words that start this very program on the machine."""

    def execute(self, command: Command, *, stop: Callable[[], bool]) -> Finished:
        """Run a command to its end, or until ``stop`` says so; CannotStartError where there is no such program."""

    def end_leftovers(self, folder: str) -> int:
        """Kill what commands of a former agent left running that were started in a folder; how many processes that were."""

    def keep(self, path: str, content: bytes) -> None:
        """Write a file, mode 0600, so that it outlives a power cut: the old content or the new, never a part."""

    def flush(self) -> None:
        """Have everything that was written so far outlive a power cut."""

    def free_bytes(self, path: str) -> int | None:
        """What may still be written under a path; None where there is no such path."""

    def networks(self, interface: str) -> list[str]:
        """The addresses of a network interface that is up, each with the length of its prefix: 192.0.2.7/24."""

    def status(self, question: HttpGet) -> int:
        """The status of the answer of a web server; OSError says why there is none."""


class RealMachine:
    def __init__(self, host: Host) -> None:
        self.host = host

    @property
    def slipway(self) -> tuple[str, ...]:
        words = sys.orig_argv
        # As it was started itself, up to what it was told to do.
        return tuple(words[: words.index("agent")]) if "agent" in words else (sys.executable, "-m", "slipway")

    def execute(self, command: Command, *, stop: Callable[[], bool]) -> Finished:
        from slipway.agent import process

        folder = self.host.location(command.folder)
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
        except OSError as error:
            raise CannotStartError(f"its folder {folder} cannot be made: {error.strerror}") from None
        environment = {**self.host.environment, **command.environment, EXECUTION_FOLDER: folder}
        return process.run([command.program, *command.arguments], folder, environment, timeout=command.timeout, stop=stop)

    def end_leftovers(self, folder: str) -> int:
        from slipway.agent import process

        return process.end_all(f"{EXECUTION_FOLDER}={self.host.location(folder)}/")

    def keep(self, path: str, content: bytes) -> None:
        target = self.host.location(path)
        folder = os.path.dirname(target)
        os.makedirs(folder, 0o700, exist_ok=True)
        partial = f"{target}.partial"
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(partial, target)
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)

    def flush(self) -> None:
        os.sync()

    def free_bytes(self, path: str) -> int | None:
        try:
            found = os.statvfs(self.host.location(path))
        except OSError:
            return None
        return found.f_bavail * found.f_frsize

    def networks(self, interface: str) -> list[str]:
        from slipway.host import netlink

        return netlink.networks(interface)

    def status(self, question: HttpGet) -> int:
        from slipway.agent import webquestion

        return webquestion.status(question, self.host.location)
