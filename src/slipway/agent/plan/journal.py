"""What the agent remembers of the plan that it ran last, on the host's disk: written before it acts, and again with the outcome.

The Secret may be out of reach, or restored to what it was before: the journal is what keeps a plan that is done from being run again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from slipway.agent import paths
from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from slipway.agent.machine import Machine
    from slipway.host.interface import Host

State = Literal["none", "running", "succeeded", "failed", "canceled"]


class Running(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The instruction that is being run."""

    name: str
    index: int
    of: int
    started: float


class Journal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    checksum: str = ""
    state: State = "none"
    attempt: int = 0
    """Of this plan: the first is 1, and one that was interrupted counts."""
    failures: int = 0
    final: bool = False
    """A failure that no repetition can change, such as a plan that is no JSON."""
    message: str = ""
    """Why it failed, in a sentence."""
    output: bytes = b""
    """What instructions said, as the Secret has it."""
    started: float = 0.0
    finished: float = 0.0
    completed: int = 0
    """How many instructions ended well."""
    total: int = 0
    reported: bool = False
    """Whether the Secret has the outcome."""
    running: Running | None = None


class UnreadableError(OperatorError):
    """The file is there, and is no journal."""


def read(host: Host) -> Journal:
    """The journal as it is; an empty one where there is none."""
    try:
        return msgspec.json.decode(host.read(paths.JOURNAL), type=Journal)
    except FileNotFoundError:
        return Journal()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{paths.JOURNAL} cannot be read ({error})") from None


class JournalFile:
    """The journal's file.  One that cannot be read is put aside and told of: the Secret then says what was applied."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.problem = ""

    def load(self) -> Journal:
        try:
            return read(self._machine.host)
        except UnreadableError as error:
            self._machine.host.rename(paths.JOURNAL, f"{paths.JOURNAL}.unreadable")
            self.problem = f"{error.message} and was put aside as {paths.JOURNAL}.unreadable"
            return Journal()

    def save(self, journal: Journal) -> None:
        """For good: on return it outlives a power cut."""
        self._machine.keep(paths.JOURNAL, msgspec.json.encode(journal))

    def try_save(self, journal: Journal) -> str:
        """The same; why it could not be, as on a disk that is full."""
        try:
            self.save(journal)
        except OSError as error:
            return f"the agent's journal {paths.JOURNAL} cannot be written: {error.strerror or error}"
        return ""

    def note(self, journal: Journal) -> None:
        """What only matters while the host is up, such as which instruction runs."""
        self._machine.host.write(paths.JOURNAL, msgspec.json.encode(journal), 0o600)
