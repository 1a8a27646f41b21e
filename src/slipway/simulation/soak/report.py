"""What a soak has shown, as values: for people in a few lines, for programs as JSON.  Pure functions of what was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.simulation.soak.faults import FAULTS, MANAGER_KILLED
from slipway.simulation.soak.judging.invariants import INVARIANTS, TRUTHS
from slipway.simulation.soak.judging.rest import AT_REST
from slipway.simulation.soak.record import LIMIT, growth

if TYPE_CHECKING:
    from slipway.simulation.soak.options import Options
    from slipway.simulation.soak.record import Event, FaultCount, Record, Sample

_MOST_SAMPLES = 600


class Invariant(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    text: str
    checked: int
    violated: int


class Memory(msgspec.Struct, frozen=True, rename="camel"):
    """Of the manager that lived last; nothing where it had too few rests."""

    first: int = 0
    last: int = 0
    share: float | None = None
    seconds: float = 0.0
    rests: int = 0
    samples: tuple[Sample, ...] = ()


class Costs(msgspec.Struct, frozen=True, rename="camel"):
    """Seconds: of the clock, and of the processor."""

    wall: float = 0.0
    manager: float = 0.0
    world: float = 0.0
    """The API server, the hosts, the operator and the watcher, which are one process."""


class Counts(msgspec.Struct, frozen=True, rename="camel"):
    """What the watcher has heard of."""

    writes: int = 0
    out_of_order: int = 0
    unjudged: int = 0


class Report(msgspec.Struct, frozen=True, rename="camel"):
    ok: bool
    seed: int
    minutes: float
    clusters: int
    hosts: int
    rounds: int
    rests: int
    kills: int
    costs: Costs
    operations: dict[str, int]
    faults: dict[str, FaultCount]
    acts: dict[str, int]
    refusals: dict[str, int]
    invariants: tuple[Invariant, ...]
    violations: tuple[Event, ...]
    memory: Memory
    counts: Counts
    census: dict[str, int]
    """The objects at the last rest."""


FAULT_TEXTS = {
    **{kind: fault.text for kind, fault in FAULTS.items()},
    MANAGER_KILLED: "the manager dies after some write, and another one starts",
}
INVARIANT_TEXTS = {
    **{each.name: each.text for each in INVARIANTS},
    **{name: text for name, text, _ in TRUTHS},
    **{each.name: f"at rest, {each.text}" for each in AT_REST},
    "no-growth": "at rest, there are no more objects than at the first rest",
    "memory": f"the manager that lives to the end grows by less than {LIMIT:.0%}",
    "says-what-to-do": "who waits for longer than anything takes says what to do",
    "goes-on": "no operation stalls",
    "manager-lives": "the manager does not end by itself",
    "kills": "the manager was killed as often as was asked for",
}


def report(options: Options, record: Record, *, rounds: int, kills: int, costs: Costs, counts: Counts) -> Report:
    broken = [each.name for each in record.violations]
    return Report(
        ok=not record.violations,
        seed=options.seed,
        minutes=options.minutes,
        clusters=options.clusters,
        hosts=options.hosts,
        rounds=rounds,
        rests=len(record.rests),
        kills=kills,
        costs=costs,
        operations=dict(sorted(record.operations.items())),
        faults=dict(sorted(record.faults.items())),
        acts=dict(sorted(record.acts.items())),
        refusals=dict(record.refusals.most_common(20)),
        invariants=tuple(Invariant(name, text, record.checks[name], broken.count(name)) for name, text in INVARIANT_TEXTS.items()),
        violations=tuple(record.violations),
        memory=_memory(record),
        counts=counts,
        census=record.rests[-1] if record.rests else {},
    )


def _memory(record: Record) -> Memory:
    every = max(len(record.samples) // _MOST_SAMPLES, 1)
    samples = tuple(each for index, each in enumerate(record.samples) if each.at_rest or index % every == 0)
    grown = growth(record.samples)
    if grown is None:
        return Memory(samples=samples)
    return Memory(grown.first, grown.last, round(grown.share, 4), grown.seconds, grown.rests, samples)


def lines(found: Report) -> list[str]:
    """For a terminal."""
    told = [
        f"{found.clusters} clusters on {found.hosts} hosts, seed {found.seed}: {found.rounds} rounds in {found.costs.wall / 60:.1f} min "
        f"({found.costs.manager:.0f} s of processor for the manager, {found.costs.world:.0f} s for everything around it)",
        "rolled: " + (", ".join(f"{number} × {name}" for name, number in found.operations.items()) or "nothing"),
        "faults: " + (", ".join(f"{each.occurred} × {kind}" for kind, each in found.faults.items() if each.occurred) or "none"),
        "done by the operator: " + (", ".join(f"{number} × {name}" for name, number in found.acts.items()) or "nothing"),
        f"invariants: {sum(each.checked for each in found.invariants)} looks at {len(found.invariants)} in {found.counts.writes} writes",
        f"memory of the manager: {memory_text(found.memory)}",
    ]
    told += [f"VIOLATED at {each.at:.1f} s: {each.name}: {each.text}" for each in found.violations]
    told.append("everything held" if found.ok else f"{len(found.violations)} violations")
    return told


def memory_text(found: Memory) -> str:
    if found.share is None:
        return "not judged: the last manager had fewer than two rests"
    rests = f"{found.share:+.1%}, {found.rests} rests in {found.seconds:.0f} s"
    return f"{found.first >> 20} MiB at its first rest, {found.last >> 20} MiB at its last ({rests})"
