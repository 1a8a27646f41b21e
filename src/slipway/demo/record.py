"""The record of a run: every event with its time, told to whoever shows them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

import msgspec

from slipway.demo import events
from slipway.fleet.overview import stages

if TYPE_CHECKING:
    from slipway.demo.events import Event
    from slipway.demo.options import Options


class View(Protocol):
    """Shows a run while it goes on."""

    def show(self, event: Event) -> None: ...

    def tick(self) -> None:
        """A moment has passed in which nothing happened."""

    def end(self) -> None:
        """Nothing more comes."""


class Progress:
    """How much of what is to be done is done: each host that registers, and each node that is made."""

    def __init__(self, options: Options) -> None:
        replaced = len(options.steps) * options.control_planes + options.workers if options.upgrade else 0
        self.total = options.hosts + options.control_planes + options.workers + replaced
        self._made = 0
        self._ended = False

    @property
    def done(self) -> int:
        return self.total if self._ended else min(self._made, self.total)

    def count(self, event: Event) -> None:
        if event.event == events.HOST and event.stage in (stages.REGISTERED, stages.MEMBER):
            self._made += 1
        self._ended = self._ended or (event.event == events.VERIFIED and bool(event.ok))


class Record:
    def __init__(self, options: Options, *views: View) -> None:
        self.options = options
        self.events: list[Event] = []
        self.progress = Progress(options)
        self._views = views
        self._began = time.monotonic()

    @property
    def now(self) -> float:
        return time.monotonic() - self._began

    @property
    def quiet(self) -> float:
        """For how long nothing has been told."""
        return self.now - (self.events[-1].at if self.events else 0.0)

    def tell(self, event: Event) -> None:
        stamped = msgspec.structs.replace(event, at=round(self.now, 3))
        self.events.append(stamped)
        self.progress.count(stamped)
        for view in self._views:
            view.show(stamped)

    def tick(self) -> None:
        for view in self._views:
            view.tick()

    def end(self) -> None:
        for view in self._views:
            view.end()
