"""A process of a simulated machine, as its program sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.simulation.host.files import FileTree

NOT_FOUND, NOT_EXECUTABLE = 127, 126


class Process:
    """What a program gets, and where it writes."""

    def __init__(self, words: list[str], environment: dict[str, str], stdin: bytes = b"", folder: str = "/") -> None:
        self.words, self.environment, self.stdin, self.folder = words, environment, stdin, folder
        self.out: bytearray = bytearray()
        self.err: bytearray = bytearray()
        self.stopped: Callable[[], bool] = lambda: False
        """Whether somebody wants it to end; of the processes that a program starts, its own children are not told."""

    @property
    def name(self) -> str:
        return self.words[0]

    @property
    def arguments(self) -> list[str]:
        return self.words[1:]

    def path(self, path: str) -> str:
        import posixpath

        return posixpath.normpath(posixpath.join(self.folder, path))

    def say(self, text: str) -> None:
        self.out += f"{text}\n".encode()

    def fail(self, why: str, code: int = 1) -> int:
        self.err += f"{self.name}: {why}\n".encode()
        return code


class System(Protocol):
    """A machine, as far as a shell needs to know."""

    @property
    def tree(self) -> FileTree: ...

    def program(self, name: str) -> Callable[[Process], int] | None:
        """What runs when somebody runs ``name``; None where there is no such program."""
