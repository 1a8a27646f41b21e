"""Where everything stands, as the events tell it: the hosts with their plans and machines, and the life of each as a row of spans."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from slipway.demo import events
from slipway.fleet.overview import stages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.demo.events import Check, Event


class Span(msgspec.Struct):
    """A host in one stage."""

    stage: str
    begin: float
    end: float
    version: str = ""
    text: str = ""


class Host(msgspec.Struct):
    name: str
    spans: list[Span] = []
    machine: str = ""
    plan: str = ""
    waiting: str = ""
    """The condition that it waits for; empty where all is well."""

    @property
    def stage(self) -> str:
        return self.spans[-1].stage if self.spans else ""

    @property
    def version(self) -> str:
        return self.spans[-1].version if self.spans else ""

    @property
    def since(self) -> float:
        return self.spans[-1].begin if self.spans else 0.0


class Step(msgspec.Struct):
    name: str
    text: str
    begin: float
    end: float = 0.0


class Board:
    def __init__(self, told: Iterable[Event] = ()) -> None:
        self._hosts: dict[str, Host] = {}
        self.steps: list[Step] = []
        self.told: list[Event] = []
        self.at = 0.0
        self.checks: tuple[Check, ...] = ()
        self.ok: bool | None = None
        for event in told:
            self.apply(event)

    @property
    def hosts(self) -> list[Host]:
        """In the order of the numbers in their names."""
        return [self._hosts[name] for name in sorted(self._hosts, key=_natural)]

    def apply(self, event: Event) -> None:
        self.told.append(event)
        self.at = max(self.at, event.at)
        if event.event == events.STEP:
            self.steps.append(Step(event.name, event.text, event.at))
        elif event.event == events.DONE and self.steps:
            self.steps[-1].end = event.at
        elif event.event == events.VERIFIED:
            self.checks, self.ok = event.checks, event.ok
        if event.host:
            self._of_host(self._hosts.setdefault(event.host, Host(event.host)), event)
        for host in self._hosts.values():
            if host.spans:
                host.spans[-1].end = self.at

    def _of_host(self, host: Host, event: Event) -> None:
        if event.event == events.PLAN:
            host.plan = event.text
        elif event.event == events.CONDITION:
            host.waiting = f"{event.condition}: {event.reason}"
        elif event.event == events.HOST and event.stage:
            if host.spans:
                host.spans[-1].end = event.at
            host.spans.append(Span(event.stage, event.at, event.at, event.version, event.text))
            host.machine = event.name if event.stage not in (stages.REGISTERED, stages.FREE) else ""
            if event.stage != stages.FAILED:
                host.waiting = ""


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part) if part.isdecimal() else -1, part) for part in re.split(r"(\d+)", name)]
