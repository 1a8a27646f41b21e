"""A machine with the facts that a test gives it: its files are under a folder, its programs print what they are told to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.host.interface import CommandResult
from slipway.host.real import RealHost

if TYPE_CHECKING:
    from pathlib import Path


class Machine(RealHost):
    """A machine with the facts that a test gives it."""

    def __init__(self, root: Path, environment: dict[str, str] | None = None) -> None:
        super().__init__(str(root), environment or {})
        self.name = "node-1"
        self.uid = 0
        self.cpus = 2
        self.busy: set[int] = set()
        self.owners: dict[int, str] = {}
        """The process that holds a port."""
        self.system, self.release = "Linux", "6.1.0-18-amd64"
        self.answers: dict[str, list[bytes | OSError]] = {}
        """What web servers answer, by address, one after another."""
        self.programs: dict[str, str] = {}
        """What each program prints."""
        self.failing: set[str] = set()
        self.interfaces: dict[str, list[str]] = {}
        """The addresses of each network interface."""

    def put(self, path: str, text: str) -> Machine:
        self.write(path, text.encode())
        return self

    def hostname(self) -> str:
        return self.name

    def addresses(self, interface: str) -> list[str]:
        return self.interfaces[interface]

    def user_id(self) -> int:
        return self.uid

    def cpu_count(self) -> int:
        return self.cpus

    def port_in_use(self, port: int) -> bool:
        return port in self.busy

    def port_owner(self, port: int) -> str:
        return self.owners.get(port, "")

    def kernel(self) -> tuple[str, str]:
        return self.system, self.release

    def fetch(self, url: str, *, ca: str = "", identity: tuple[str, str] | None = None, timeout: float = 10.0) -> bytes:
        answer = self.answers[url].pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    def fetch_public(self, url: str, *, timeout: float) -> bytes:
        if url not in self.answers:
            raise OSError("network is unreachable")
        return self.fetch(url)

    def resolve(self, name: str) -> list[str]:
        if name != "known":
            raise OSError("Name or service not known")
        return ["10.0.0.1"]

    def which(self, program: str) -> str | None:
        return f"/bin/{program}" if any(command.split()[0] == program for command in self.programs) else None

    def run(self, *command: str) -> CommandResult:
        words = " ".join(command)
        return CommandResult(1 if words in self.failing else 0, self.programs.get(words, ""), "")
