"""What a rehearsal found, as a value, as text, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.tabwriter import aligned
from slipway.fleet.overview import stages
from slipway.simulation.rehearsal.course import Level, Move  # noqa: TC001 - msgspec reads them
from slipway.simulation.rehearsal.findings import Finding  # noqa: TC001 - msgspec reads it
from slipway.simulation.rehearsal.measured import PARTS, Durations, Source

if TYPE_CHECKING:
    from collections.abc import Iterable

_WIDTH = 50
_MARKS = {stages.DRAINING: "d", stages.CLEANING: "c", stages.PENDING: ".", stages.REPROVISIONING: "i", stages.BOOTING: "b"}
_WEIGHTS = {"stops": "STOPS", "holds": "HOLDS", "warning": "warning", "unknown": "unknown"}


class Group(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    kind: str
    replicas: int
    lowest: int
    """The least nodes that it has that take work, at any moment."""


class Report(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    namespace: str
    cluster: str
    versions: tuple[str, ...]
    to: str
    ok: bool
    """Whether the upgrade would begin, and end well."""
    seconds: float
    """How long it would take on the real hosts: as far as it came, where it would not end."""
    rehearsed_in: float
    """How long the rehearsal took."""
    groups: tuple[Group, ...]
    moves: tuple[Move, ...]
    levels: tuple[Level, ...]
    findings: tuple[Finding, ...]
    durations: dict[str, Durations]
    """Of the hosts that take part: drain, clean, image and boot, each with its seconds and who says so."""


def as_json(report: Report) -> str:
    document = msgspec.to_builtins(report)
    document["durations"] = {
        host: {part: {"seconds": took.seconds, "source": took.source} for part, took in zip(PARTS, each, strict=True)}
        for host, each in report.durations.items()
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def as_text(report: Report) -> str:
    parts = [f"{verdict(report)}\n"]
    if report.moves:
        parts += [_order(report), _capacity(report), _timeline(report), _sources(report)]
    if report.findings:
        parts.append(_findings(report.findings))
    return "\n".join(parts)


def verdict(report: Report) -> str:
    """In one sentence."""
    versions = " and ".join(report.versions)
    name = f"{report.namespace}/{report.cluster} from {versions} to {report.to}"
    if report.ok and not report.moves:
        return f"{name}: everything is there already."
    if report.ok:
        return f"{name}: would end well{_time(report)}."
    stops, holds = (sum(each.weight == weight for each in report.findings) for weight in ("stops", "holds"))
    unmet = f"{holds} prerequisite{'s are' if holds > 1 else ' is'} not met"
    if not stops:
        return f"{name}: would NOT begin: {unmet}. With {'those' if holds > 1 else 'that'} mended it would end well{_time(report)}."
    came = f" after about {spoken(report.seconds)}" if report.moves else ""
    before = f"; and it would not begin, as {unmet}" if holds else ""
    return f"{name}: would NOT end well{came}: {stops} thing{'s' if stops > 1 else ''} would stop it{before}."


def _time(report: Report) -> str:
    return f", in about {spoken(report.seconds)}" if report.moves else ""


def _order(report: Report) -> str:
    rows = [
        (
            clock(move.begin),
            clock(move.end) if move.end is not None else "never",
            move.host or "-",
            "leaves" if move.way == "leaves" else f"comes, {move.version}",
            move.group,
            move.machine,
        )
        for move in report.moves
    ]
    return aligned([("BEGINS", "ENDS", "HOST", "WHAT", "GROUP", "MACHINE"), *rows])


def _capacity(report: Report) -> str:
    return aligned([("GROUP", "NODES", "LOWEST"), *((each.name, str(each.replicas), str(each.lowest)) for each in report.groups)])


def _timeline(report: Report) -> str:
    """A line for each host, over the whole time."""
    hosts = dict.fromkeys(move.host for move in report.moves if move.host)
    total = max(report.seconds, max((each.end for move in report.moves for each in move.stretches), default=0.0))
    lines = []
    for host in hosts:
        cells = ["·"] * _WIDTH
        for move in report.moves:
            for each in move.stretches if move.host == host else ():
                first, last = (int(at / total * _WIDTH) if total else 0 for at in (each.begin, each.end))
                for cell in range(min(first, _WIDTH - 1), max(min(last, _WIDTH), min(first, _WIDTH - 1) + 1)):
                    cells[cell] = _MARKS.get(each.stage, "?")
        lines.append((host, "".join(cells)))
    legend = ", ".join(f"{mark} {stages.MEANINGS[stage]}" for stage, mark in _MARKS.items())
    return aligned([("HOST", f"0 … {spoken(total)}"), *lines]) + f"({legend})\n"


def _sources(report: Report) -> str:
    everything = [took.source for each in report.durations.values() for took in each]
    counted = {source: everything.count(source) for source in _SOURCES}
    told = ", ".join(f"{number} {_SOURCES[source]}" for source, number in counted.items() if number)
    return f"The order was simulated, in {report.rehearsed_in:.0f} s. Of the times, {told}.\n"


_SOURCES: dict[Source, str] = {
    "this host": "were measured on the very host",
    "other hosts": "on other hosts of the cluster",
    "unknown": "are assumed, as nobody has measured them",
}


def _findings(found: Iterable[Finding]) -> str:
    lines = []
    for each in found:
        about = f"{each.object}: " if each.object else ""
        lines.append(f"{_WEIGHTS[each.weight]:<8} {about}{each.message}")
        if each.to_do:
            lines.append(f"{'':<8} → {each.to_do}")
    return "\n".join(lines) + "\n"


def clock(seconds: float) -> str:
    """On a stopwatch: 1:24, 1:02:03."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}" if whole >= 3600 else f"{whole // 60}:{whole % 60:02}"


def spoken(seconds: float) -> str:
    """As people say it: 45 s, 12 min, 3 h 5 min."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
