"""What happened in a soak: events as they come, and what is counted of them."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.simulation.soak.judging.invariants import Broken

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STARTED, OPERATION, FAULT, ACT, REFUSED, VIOLATION, REST, PROGRESS, ENDED = (
    "started", "operation", "fault", "act", "refused", "violation", "rest", "progress", "ended",
)  # fmt: skip


class Event(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One thing that happened; ``at`` is in seconds since the start."""

    event: str
    at: float = 0.0
    cluster: str = ""
    name: str = ""
    """Of the operation, the fault, the act or the invariant."""
    objects: tuple[str, ...] = ()
    text: str = ""
    seconds: float = 0.0
    """How long it took."""
    numbers: dict[str, float] = {}


class Sample(NamedTuple):
    """The memory of the manager at a moment."""

    at: float
    resident: int
    life: int
    """Which manager it was, counted from 1."""
    at_rest: bool = False


LIMIT = 0.05
"""By what share a manager may grow."""


class Growth(NamedTuple):
    first: int
    last: int
    seconds: float
    rests: int

    @property
    def share(self) -> float:
        return self.last / self.first - 1.0


def growth(samples: Sequence[Sample]) -> Growth | None:
    """Of the memory of the manager that lived last, in clusters of the same size; None where it had fewer than two rests.

    Its first rest is its warm-up, where it had three.
    """
    life = max((sample.life for sample in samples), default=0)
    rests = [sample for sample in samples if sample.at_rest and sample.life == life and sample.resident]
    if len(rests) > 2:
        rests = rests[1:]
    if len(rests) < 2:
        return None
    return Growth(rests[0].resident, rests[-1].resident, rests[-1].at - rests[0].at, len(rests))


class FaultCount(msgspec.Struct):
    occurred: int = 0
    without_target: int = 0
    """There was nothing that it could happen to."""
    ended_well: int = 0
    """Everything was at rest and right after it."""


class Record:
    """``tell`` hears of every event."""

    def __init__(self, tell: Callable[[Event], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._clock = tell, clock
        self._began = clock()
        self.events: list[Event] = []
        self.violations: list[Event] = []
        self.operations: Counter[str] = Counter()
        self.acts: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.faults: dict[str, FaultCount] = {}
        self.checks: Counter[str] = Counter()
        """How often each invariant was looked at."""
        self.samples: list[Sample] = []
        self.rests: list[dict[str, int]] = []
        """The census of every rest."""
        self._this_round: Counter[str] = Counter()
        self._seen: set[tuple[str, str]] = set()

    @property
    def now(self) -> float:
        return self._clock() - self._began

    def note(self, event: Event) -> None:
        event.at = round(self.now, 3)
        if event.event != PROGRESS:
            self.events.append(event)
        self._tell(event)

    def operation(self, cluster: str, name: str, text: str, seconds: float) -> None:
        self.operations[name] += 1
        self.checks["goes-on"] += 1
        self.note(Event(event=OPERATION, cluster=cluster, name=name, text=text, seconds=round(seconds, 1)))

    def act(self, name: str, objects: tuple[str, ...], text: str, cluster: str = "") -> None:
        """What the operator had to do."""
        self.acts[name] += 1
        self.note(Event(event=ACT, cluster=cluster, name=name, objects=objects, text=text))

    def refused(self, cluster: str, name: str, text: str) -> None:
        self.refusals[name] += 1
        self.note(Event(event=REFUSED, cluster=cluster, name=name, text=text))

    def fault(self, kind: str, objects: tuple[str, ...], text: str, cluster: str = "") -> None:
        self.faults.setdefault(kind, FaultCount()).occurred += 1
        self._this_round[kind] += 1
        self.note(Event(event=FAULT, cluster=cluster, name=kind, objects=objects, text=text))

    def without_target(self, kind: str) -> None:
        self.faults.setdefault(kind, FaultCount()).without_target += 1

    def violation(self, invariant: str, broken: Broken) -> None:
        """Each is told once."""
        if (invariant, broken.text) in self._seen:
            return
        self._seen.add((invariant, broken.text))
        event = Event(event=VIOLATION, name=invariant, objects=broken.objects, text=broken.text)
        self.violations.append(event)
        self.note(event)

    def rested(self, census: dict[str, int], sample: Sample, *, well: bool) -> None:
        self.rests.append(census)
        self.samples.append(sample)
        for kind, number in self._this_round.items():
            self.faults[kind].ended_well += number if well else 0
        self._this_round.clear()
        numbers = {"resident": float(sample.resident), "life": float(sample.life), **{kind: float(each) for kind, each in census.items()}}
        self.note(Event(event=REST, text="everything stands" if well else "not everything stands", numbers=numbers))


def ended_early() -> Broken:
    return Broken((), "the soak was ended before its time")


def failed(error: Exception) -> Broken:
    """What the program itself ended with."""
    return Broken((), f"{type(error).__name__}: {error}")
