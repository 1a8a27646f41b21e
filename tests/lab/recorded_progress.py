"""Keeps what a run said, for a test to look at."""

from __future__ import annotations

from slipway.host.progress import PhaseEvent


class RecordedProgress:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.warnings: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def show(self, text: str) -> None:
        self.lines.append(text)

    def phase(self, event: PhaseEvent) -> None:
        """Components have no phases."""
