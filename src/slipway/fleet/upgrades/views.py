"""An upgrade as lines: of text for people, files and pipes, or of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.fleet.overview import stages
from slipway.fleet.upgrades import events

if TYPE_CHECKING:
    from typing import TextIO

    from slipway.fleet.overview.views.terminal import Terminal
    from slipway.fleet.upgrades.events import Event

_encode = msgspec.json.Encoder().encode
# Of a Machine, and with its host where it has one.
_MEANINGS = {
    **stages.MEANINGS,
    events.GONE: "is gone",
    stages.MEMBER: "is a Node",
    stages.ALLOCATED: "has a host",
    stages.FAILED: "has failed",
}
_WITH_HOST = {
    stages.ALLOCATED: "has taken {host}",
    stages.REPROVISIONING: "gets its image on {host}",
    stages.DRAINING: "leaves: {host} is drained",
    stages.CLEANING: "leaves: {host} is cleaned",
    stages.PENDING: "waits for a host",
}
_STYLES = {"ok": "good", "failed": "bad", "warning": "wait", "unknown": "quiet"}


class JsonLines:
    """One event a line, as it is."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, event: Event) -> None:
        self._out.write(_encode(event).decode() + "\n")
        self._out.flush()

    def begin(self) -> None:
        """Every event is a line, from the first one on."""

    def end(self) -> None:
        """A reader knows the end by the end of the file."""


class PlainLines:
    def __init__(self, out: TextIO, terminal: Terminal) -> None:
        self._out, self._terminal = out, terminal

    def show(self, event: Event) -> None:
        self._out.write("".join(f"{line}\n" for line in lines(event, self._terminal)))
        self._out.flush()

    def begin(self) -> None:
        """Lines follow lines."""

    def end(self) -> None:
        """Every line was the last one."""


def lines(event: Event, terminal: Terminal) -> list[str]:
    """What is said of an event."""
    paint = terminal.paint
    if event.event == events.PLANNED:
        would = "These patches would be made, each when the one before is through:"
        return [event.text, *([would, *(f"  {each}" for each in event.commands)] if event.dry_run and event.commands else [])]
    if event.event == events.PREFLIGHT:
        return _preflight(event, terminal)
    if event.event == events.NOTE:
        return [paint(f"note: {event.text}", "quiet")]
    if event.event == events.PATCH:
        return [_stamped(event, paint(f"$ {event.command}", "title"))]
    if event.event == events.MACHINE:
        return [_stamped(event, machine(event))]
    if event.event == events.PROGRESS:
        return [_stamped(event, paint(f"{event.kind} {event.name} to {event.version}: {bar(event)}", "title"))]
    if event.event == events.PROBLEM:
        return problem(event, terminal)
    if event.event in (events.REFUSED, events.STOPPED):
        # The command says it on standard error, with its exit code.
        return []
    style = "good" if event.event == events.DONE else "wait"
    return [_stamped(event, paint(event.text, style))]


def machine(event: Event) -> str:
    version = f" {event.version}" if event.version else ""
    told = _MEANINGS.get(event.stage, event.stage)
    if event.host:
        told = _WITH_HOST.get(event.stage, f"{told} on {{host}}").format(host=event.host)
    return f"{event.name}{version} {told}"


def bar(event: Event) -> str:
    """How far it is, in words."""
    left = f", about {duration(event.estimate_seconds)} left" if event.estimate_seconds is not None else ""
    return f"{event.done} of {event.total} machines{left}"


def duration(seconds: float) -> str:
    whole = max(int(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def problem(event: Event, terminal: Terminal) -> list[str]:
    told = [terminal.paint(f"The upgrade has stopped: {event.reason}", "bad"), *(f"  {each}" for each in event.sentences)]
    return [*told, *(["What to do:", *(f"  - {each}" for each in event.to_do)] if event.to_do else [])]


def _preflight(event: Event, terminal: Terminal) -> list[str]:
    """What is met is only counted: what is not, and what somebody has to look at, is said."""
    met = sum(each.status == "ok" for each in event.checks)
    head = f"preflight of {event.version}: {met} of {len(event.checks)} prerequisites are met"
    rest = [each for each in event.checks if each.status != "ok"]
    return [head, *(f"  {terminal.paint(each.status, _STYLES[each.status])}: {each.check}: {each.message}" for each in rest)]


def _stamped(event: Event, text: str) -> str:
    return f"{event.at.astimezone():%H:%M:%S}  {text}" if event.at is not None else text
