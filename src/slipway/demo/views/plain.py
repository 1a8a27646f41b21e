"""A line for each thing that happens, for files, pipes and terminals that cannot do more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.demo import events

if TYPE_CHECKING:
    from typing import TextIO

    from slipway.demo.events import Check, Event


class PlainLines:
    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._report, self._ways = "", ""

    def show(self, event: Event) -> None:
        text = line(event)
        if event.event == events.KEPT:
            self._ways = event.text
            self._out.write(f"{event.command}\n")
        elif event.event == events.DASHBOARD:
            self._out.write(page_at(event))
        elif event.event == events.REPORT:
            self._report = event.text
        elif text:
            self._out.write(f"{event.at:6.1f}s  {text}\n")
        if event.checks:
            self._out.write("\n" + table(event.checks) + "\n")
            if self._ways:
                self._out.write(kept(self._report, self._ways))
        self._out.flush()

    def tick(self) -> None:
        """Only what happens is a line."""

    def end(self) -> None:
        """Every line was the last one."""


def line(event: Event) -> str:
    """What is said of an event, on one line; nothing of what people need not see."""
    return " · ".join(part.rstrip() for part in _said(event).splitlines() if part.strip())


def _said(event: Event) -> str:
    if event.event == events.STEP:
        return f"── {event.text}"
    if event.event == events.DONE:
        return f"── done in {event.seconds:.1f} s"
    if event.event == events.PATCH:
        return f"$ {event.command}"
    if event.event == events.HOST:
        return f"{event.host:<10} {event.text}"
    if event.event == events.MACHINE_EVENT:
        return f"{'':<10} Machine {event.name} {event.text}"
    if event.event in (events.PLAN, events.KEPT, events.DASHBOARD, events.REPORT) or (
        event.event == events.CONDITION and not event.lasting
    ):
        return ""
    if event.event == events.CONDITION:
        return f"{'! ' if event.lasting else '. '}{event.kind} {event.name}: {event.condition}: {event.reason}: {event.text}" + (
            f" → {event.to_do}" if event.lasting else ""
        )
    if event.event == events.EXPLAINED:
        return f"$ {event.command}\n{event.text}" + (f" → {event.to_do}" if event.to_do else "")
    if event.event == events.VERIFIED:
        return "── verified: every check holds" if event.ok else "── verified: not every check holds"
    return {events.FAULT: "# ", events.REFUSED: "✗ ", events.NOTE: "# ", events.PROBLEM: "! "}.get(event.event, "") + event.text


def page_at(event: Event) -> str:
    """Where the web page is."""
    return f"The dashboard is at {event.text}\n(its certificate is the manager's own, so the browser asks whether to go on)\n"


def kept(report: str, ways: str) -> str:
    """What is said when all is done and stays up: what can be typed in another terminal."""
    typed = "".join(f"  {each}\n" for each in ways.splitlines())
    return f"The report is in {report}\nAll of it stays up until Ctrl-C. In another terminal:\n{typed}"


def table(checks: tuple[Check, ...]) -> str:
    """The checks, one a line."""
    width = max(len(check.name) for check in checks)
    return "".join(f"  {'ok ' if check.ok else 'NOT'}  {check.name:<{width}}  {check.seen}\n" for check in checks)
