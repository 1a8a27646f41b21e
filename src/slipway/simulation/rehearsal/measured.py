"""How long hosts took in the past: from the record of their cycles, else from times that objects have, else nobody knows.  Pure.

A rehearsal finds out in which order things happen; how long each of them takes on these very hosts only these hosts can say.
"""

from __future__ import annotations

from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING, Literal, NamedTuple

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import BAREMETAL_MACHINE, MACHINE, MACHINE_INVENTORY, NODE
from slipway.api.elemental import cycles
from slipway.simulation.rehearsal.original import condition, host_of, machine_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slipway.api.elemental.cycles import Cycle
    from slipway.api.machinery.objects import Manifest
    from slipway.simulation.rehearsal.original import Original

Part = Literal["drain", "clean", "provision"]
PARTS: tuple[Part, ...] = ("drain", "clean", "provision")
DEFAULTS: Mapping[Part, float] = {"drain": 60.0, "clean": 60.0, "provision": 900.0}
"""Seconds, where nothing is known: a server with its firmware's self-test, an image of some gigabytes, and kubeadm."""
Source = Literal["this host", "its objects", "other hosts", "unknown"]
_ENDS: Mapping[Part, tuple[str, str]] = {
    "drain": ("draining", "drained"),
    "clean": ("drained", "cleaned"),
    "provision": ("claimed", "running"),
}
# What is longer was not a host at work, but somebody who looked for what was wrong with it.
_LONGEST = 6 * 3600.0


class Took(NamedTuple):
    """How long something takes, and who says so."""

    seconds: float
    source: Source


class Durations(NamedTuple):
    """Of one host."""

    drain: Took
    clean: Took
    provision: Took


def durations(original: Original) -> dict[str, Durations]:
    """By the names of hosts."""
    recorded = {
        str(each["metadata"]["name"]): _of_cycles(cycles.read(each["metadata"].get("annotations") or {}))
        for each in original.objects[MACHINE_INVENTORY]
    }
    seen = _of_objects(original)
    elsewhere: dict[Part, list[float]] = {
        part: [seconds for found in recorded.values() for seconds in found[part]] or ([*seen.values()] if part == "provision" else [])
        for part in PARTS
    }
    return {
        name: Durations(*(_took(part, found[part], seen.get(name), elsewhere[part]) for part in PARTS)) for name, found in recorded.items()
    }


def unknown(known: Mapping[str, Durations]) -> dict[str, list[str]]:
    """For what nobody has measured anything: the parts, and the hosts of each."""
    found = {part: sorted(name for name, each in known.items() if getattr(each, part).source == "unknown") for part in PARTS}
    return {part: hosts for part, hosts in found.items() if hosts}


def _took(part: Part, own: list[float], seen: float | None, others: list[float]) -> Took:
    if own:
        return Took(median(own), "this host")
    if part == "provision" and seen is not None:
        return Took(seen, "its objects")
    return Took(median(others), "other hosts") if others else Took(DEFAULTS[part], "unknown")


def _of_cycles(lives: Iterable[Cycle]) -> dict[Part, list[float]]:
    found: dict[Part, list[float]] = {part: [] for part in PARTS}
    for life in lives:
        for part, (begin, end) in _ENDS.items():
            seconds = _between(getattr(life, begin), getattr(life, end))
            if seconds is not None:
                found[part].append(seconds)
    return found


def _of_objects(original: Original) -> dict[str, float]:
    """From a BaremetalMachine's creation to its Node's, or to the moment at which it said that the Node was there."""
    nodes = {str(each["metadata"]["name"]): each for each in (original.workload or {}).get(NODE, ())}
    machines = {str(each["metadata"]["name"]): each for each in original.objects[MACHINE]}
    found = {}
    for each in original.objects[BAREMETAL_MACHINE]:
        machine = machines.get(machine_of(each)) or {}
        node = nodes.get(str(((machine.get("status") or {}).get("nodeRef") or {}).get("name") or ""))
        said = condition(each, names.NODE_JOINED_CONDITION)
        end = node["metadata"].get("creationTimestamp") if node is not None else said.get("lastTransitionTime")
        seconds = _between(_moment(each["metadata"].get("creationTimestamp")), _moment(end))
        if host_of(each) and seconds is not None:
            found[host_of(each)] = seconds
    return found


def _between(begin: datetime | None, end: datetime | None) -> float | None:
    seconds = (end - begin).total_seconds() if begin is not None and end is not None else -1.0
    return seconds if 0 <= seconds <= _LONGEST else None


def _moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text or ""))
    except ValueError:
        return None


def nodes_of(original: Original) -> dict[str, Manifest]:
    """The Machines by the hosts that they are on."""
    machines = {str(each["metadata"]["name"]): each for each in original.objects[MACHINE]}
    return {host_of(each): machines[machine_of(each)] for each in original.objects[BAREMETAL_MACHINE] if machine_of(each) in machines}
