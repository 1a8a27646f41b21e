"""A line for each thing that changes: for people, and for programs as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.fleet.overview import changes
from slipway.fleet.overview.views.status import STYLES, status

if TYPE_CHECKING:
    from datetime import datetime
    from typing import TextIO

    from slipway.fleet.overview.changes import Change
    from slipway.fleet.overview.model import Overview
    from slipway.fleet.overview.views.terminal import Terminal

_encode = msgspec.json.Encoder().encode


class PlainLines:
    """How all stands in the beginning; then what changes.  ``namespace`` is the one that is looked at; empty for all."""

    def __init__(self, out: TextIO, terminal: Terminal, namespace: str = "") -> None:
        self._out, self._terminal, self._namespace = out, terminal, namespace
        self._trouble = ""

    def begin(self, view: Overview, now: datetime) -> None:
        self._out.write(status(view, self._terminal, now, self._namespace) + "\n")
        self._out.flush()

    def show(self, view: Overview, changed: list[Change], trouble: str, now: datetime) -> None:
        for each in changed:
            text = line(each)
            if text:
                self._write(now, text, style(each))
        if trouble != self._trouble:
            self._trouble = trouble
            self._write(now, f"! {trouble}: it is tried again" if trouble else "the API server answers again", "bad" if trouble else "good")
        self._out.flush()

    def end(self) -> None:
        """Every line was the last one."""

    def _write(self, now: datetime, text: str, look: str) -> None:
        stamp = f"{now.astimezone():%H:%M:%S}  "
        self._out.write(self._terminal.paint(stamp, "quiet") + self._terminal.paint(self._terminal.cut(text, len(stamp)), look) + "\n")


class JsonLines:
    """The first line has everything; each further one has a change, or says that the server does not answer, or does again."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._trouble = ""

    def begin(self, view: Overview, now: datetime) -> None:
        self._write({"event": "overview", "time": now, "overview": view})

    def show(self, view: Overview, changed: list[Change], trouble: str, now: datetime) -> None:
        for each in changed:
            self._write(each)
        if trouble != self._trouble:
            self._trouble = trouble
            self._write({"event": "unreachable" if trouble else "reachable", "time": now, "text": trouble})

    def end(self) -> None:
        """A reader knows the end by the end of the file."""

    def _write(self, value: object) -> None:
        self._out.write(_encode(value).decode() + "\n")
        self._out.flush()


def line(change: Change) -> str:
    """What is said of a change, on one line; nothing of what people need not see."""
    text = " · ".join(part.strip() for part in change.text.splitlines() if part.strip())
    if change.event in (changes.PLAN, changes.WAIT):
        return ""
    if change.event == changes.PROBLEM:
        return f"! {change.kind} {change.name}: {change.condition}: {change.reason}: {text}" + (
            f" → {change.to_do}" if change.to_do else ""
        )
    if change.event == changes.SOLVED:
        return f"{change.kind} {change.name}: {change.condition} is well again"
    if change.event == changes.ROLLOUT:
        return f"{change.name}: rollout {text}"
    return f"{change.kind} {change.name} {text}" if change.event != changes.HOST else f"{change.name} {text}"


def style(change: Change) -> str:
    if change.event == changes.PROBLEM:
        return "bad"
    if change.event == changes.ROLLOUT:
        return "title"
    return STYLES.get(change.stage, "good" if change.event == changes.SOLVED else "")
