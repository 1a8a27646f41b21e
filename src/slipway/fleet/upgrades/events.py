"""What is told of an upgrade: one value for each thing that happens, as it is for JSON, and in words by the views."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - a field's type

import msgspec

# Kinds of events.
PLANNED, PREFLIGHT, NOTE, PATCH, MACHINE, PROGRESS, PROBLEM = (
    "planned", "preflight", "note", "patch", "machine", "progress", "problem",
)  # fmt: skip
# The last one, whatever comes: all is done, nothing was begun, it does not go on, somebody has ended it.
DONE, REFUSED, STOPPED, INTERRUPTED = "done", "refused", "stopped", "interrupted"
GONE = "gone"
"""The stage of a machine that is not there any more."""


class Check(msgspec.Struct, frozen=True):
    """A prerequisite."""

    check: str
    status: str
    message: str


class Event(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    event: str
    at: datetime | None = None
    text: str = ""
    kind: str = ""
    name: str = ""
    """The object that it is about."""
    version: str = ""
    stage: str = ""
    """Where a machine is, from now on."""
    host: str = ""
    command: str = ""
    """What an operator would type."""
    commands: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    done: int | None = None
    total: int | None = None
    """Machines that this upgrade replaces."""
    estimate_seconds: int | None = None
    reason: str = ""
    sentences: tuple[str, ...] = ()
    to_do: tuple[str, ...] = ()
    dry_run: bool = False
    ok: bool | None = None
    """Of the last event: whether the exit code is 0."""
