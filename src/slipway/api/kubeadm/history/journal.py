"""What a conversion has to say to the person whose file it is: what was moved, dropped, repaired or kept, and what is refused."""

from __future__ import annotations

from typing import NamedTuple


class Note(NamedTuple):
    """One sentence about one place.  ``action`` is ``moved``, ``dropped``, ``repaired`` or ``kept``."""

    action: str
    path: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.path}: {self.sentence}"


class Journal:
    """Collects notes and refusals, so that a file with three problems is told all three at once."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.refusals: list[Note] = []

    def moved(self, path: str, to: str, why: str = "") -> None:
        self.notes.append(Note("moved", path, f"moved to {to}{': ' + why if why else ''}"))

    def dropped(self, path: str, why: str) -> None:
        self.notes.append(Note("dropped", path, f"dropped: {why}"))

    def repaired(self, path: str, what: str) -> None:
        self.notes.append(Note("repaired", path, f"repaired: {what}"))

    def kept(self, path: str, why: str) -> None:
        self.notes.append(Note("kept", path, f"kept: {why}"))

    def refused(self, path: str, why: str) -> None:
        self.refusals.append(Note("refused", path, why))
