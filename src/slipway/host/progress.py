"""How a run tells what it is doing: lines of text for a person, or one JSON object a line for a program."""

from __future__ import annotations

import sys
from typing import IO, Literal, Protocol

import msgspec

WITHHELD = "<value withheld>"
"""Stands where a secret would; the words are kubeadm's."""


class Sensitive(str):
    """A text that holds secrets, such as a token: to a person it is a text like any other, and ``public`` is what may go further."""

    __slots__ = ("public",)
    public: str

    @classmethod
    def hiding(cls, text: str, *secrets: str) -> Sensitive:
        """``text`` with these secrets in it."""
        public = text
        for secret in filter(None, secrets):
            public = public.replace(secret, WITHHELD)
        return cls.beside(text, public)

    @classmethod
    def beside(cls, text: str, public: str) -> Sensitive:
        """``text``, and what is left of it without its secrets."""
        made = cls(text)
        made.public = public
        return made


class PhaseEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A phase started, finished, was skipped, or failed."""

    phase: str
    event: Literal["started", "finished", "skipped", "failed"]
    seconds: float
    reason: str = ""


class Progress(Protocol):
    """Where a run reports to.  A text with secrets in it is a :class:`Sensitive` one."""

    def say(self, text: str) -> None:
        """A line for the operator, such as ``[certs] Generating "ca" certificate and key``."""

    def warn(self, text: str) -> None:
        """Something that does not stop the run but should be looked at."""

    def show(self, text: str) -> None:
        """A block of output that is the point of the command (an object, a file, a join command), printed as it is."""

    def phase(self, event: PhaseEvent) -> None:
        """A step in the life of a phase."""


class TextProgress:
    """What a person reads: lines on standard output, warnings on standard error.

    A line is flushed at once, also into a pipe: what is waited for must be told before the wait.
    """

    def __init__(self, out: IO[str] | None = None, err: IO[str] | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr

    def say(self, text: str) -> None:
        self._out.write(f"{text}\n")
        self._out.flush()

    def warn(self, text: str) -> None:
        self._out.flush()
        self._err.write(f"{text}\n")

    def show(self, text: str) -> None:
        self._out.write(text)

    def phase(self, event: PhaseEvent) -> None:
        """Phases introduce themselves by what they say."""


class JsonProgress:
    """What a program reads: every event is one JSON object on a line of its own.

    Logs of programs are kept and handed on, so secrets are left out unless ``show_secrets`` asks for them; the event is marked.
    """

    def __init__(self, out: IO[str] | None = None, *, show_secrets: bool = False) -> None:
        self._out = out or sys.stdout
        self._show_secrets = show_secrets

    def say(self, text: str) -> None:
        self._tell("message", text)

    def warn(self, text: str) -> None:
        self._tell("warning", text)

    def show(self, text: str) -> None:
        self._tell("output", text)

    def phase(self, event: PhaseEvent) -> None:
        fields = {"event": event.event, "phase": event.phase, "seconds": round(event.seconds, 6)}
        if event.reason:
            fields["reason"] = event.reason
        self._emit(fields)

    def _tell(self, event: str, text: str) -> None:
        if isinstance(text, Sensitive):
            self._emit({"event": event, "text": str(text) if self._show_secrets else text.public, "secret": True})
        else:
            self._emit({"event": event, "text": text})

    def _emit(self, fields: dict[str, object]) -> None:
        self._out.write(msgspec.json.encode(fields).decode() + "\n")
        self._out.flush()


class WarningsOnly:
    """Passes on what is odd, and tells nothing else; without somebody to tell it to, nothing at all."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress

    def say(self, text: str) -> None:
        """What is done is of no interest here."""

    def warn(self, text: str) -> None:
        if self._progress is not None:
            self._progress.warn(text)

    def show(self, text: str) -> None:
        """Nothing may stand before an object on standard output."""

    def phase(self, event: PhaseEvent) -> None:
        """Nor do phases matter."""
