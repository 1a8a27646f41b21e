"""How long hosts took in the past: from the record of their cycles, else from times that objects have, else nobody knows.  Pure.

A rehearsal finds out in which order things happen; how long each of them takes on these very hosts only these hosts can say.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Literal, NamedTuple

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import BAREMETAL_MACHINE, MACHINE, MACHINE_INVENTORY, NODE
from slipway.api.elemental import cycles
from slipway.fleet.contract.conditions import moment
from slipway.fleet.overview.stages import condition, host_of, machine_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from slipway.api.elemental.cycles import Cycle
    from slipway.api.machinery.objects import Manifest
    from slipway.simulation.rehearsal.original import Original

Part = Literal["drain", "clean", "image", "boot"]
PARTS: tuple[Part, ...] = ("drain", "clean", "image", "boot")
DEFAULTS: Mapping[Part, float] = {"drain": 60.0, "clean": 60.0, "image": 300.0, "boot": 600.0}
"""Seconds, where nothing is known: an image of some gigabytes, a server with its firmware's self-test, and kubeadm."""
Source = Literal["this host", "other hosts", "unknown"]
_ENDS: Mapping[Part, tuple[str, str]] = {
    "drain": ("draining", "drained"),
    "clean": ("drained", "cleaned"),
    "image": ("claimed", "applied"),
    "boot": ("applied", "running"),
}
# What is longer was not a host at work, but somebody who looked for what was wrong with it.
_LONGEST = 6 * 3600.0

Seconds = dict[Part, list[float]]


class Took(NamedTuple):
    """How long something takes, and who says so."""

    seconds: float
    source: Source


class Durations(NamedTuple):
    """Of one host: until its Node is drained, until it is clean, until it has its image, and from there until it is a Node."""

    drain: Took
    clean: Took
    image: Took
    boot: Took


def durations(original: Original) -> dict[str, Durations]:
    """By the names of hosts: what each took itself counts most, then what the others took."""
    seen = _of_objects(original)
    recorded = {}
    for each in original.objects[MACHINE_INVENTORY]:
        name = str(each["metadata"]["name"])
        told = _of_cycles(cycles.read(each["metadata"].get("annotations") or {}))
        recorded[name] = {part: told[part] or seen.get(name, {}).get(part, []) for part in PARTS}
    everywhere = {part: [seconds for found in recorded.values() for seconds in found[part]] for part in PARTS}
    return {name: Durations(*(_took(part, found[part], everywhere[part]) for part in PARTS)) for name, found in recorded.items()}


def unknown(known: Mapping[str, Durations]) -> dict[Part, list[str]]:
    """For what nobody has measured anything: the parts, and the hosts of each."""
    found = {part: sorted(name for name, each in known.items() if getattr(each, part).source == "unknown") for part in PARTS}
    return {part: hosts for part, hosts in found.items() if hosts}


def machines_by_host(original: Original) -> dict[str, Manifest]:
    """The Machines, by the hosts that they are on."""
    machines = {str(each["metadata"]["name"]): each for each in original.objects[MACHINE]}
    owned = [each for each in original.objects[BAREMETAL_MACHINE] if host_of(each) and machine_of(each) in machines]
    return {host_of(each): machines[machine_of(each)] for each in owned}


def _took(part: Part, own: list[float], everywhere: list[float]) -> Took:
    if own:
        return Took(median(own), "this host")
    return Took(median(everywhere), "other hosts") if everywhere else Took(DEFAULTS[part], "unknown")


def _of_cycles(lives: Iterable[Cycle]) -> Seconds:
    found: Seconds = {part: [] for part in PARTS}
    for life in lives:
        for part, (begin, end) in _ENDS.items():
            found[part] += _between(getattr(life, begin), getattr(life, end))
    return found


def _of_objects(original: Original) -> dict[str, Seconds]:
    """What the present machines tell of how they came to be: a Node's age is surer than a condition, which may have changed since."""
    nodes = {str(each["metadata"]["name"]): each for each in (original.workload or {}).get(NODE, ())}
    machines = machines_by_host(original)
    found: dict[str, Seconds] = {}
    for each in original.objects[BAREMETAL_MACHINE]:
        host = host_of(each)
        node = nodes.get(str(((machines.get(host, {}).get("status") or {}).get("nodeRef") or {}).get("name") or ""))
        said = condition(each, names.NODE_JOINED_CONDITION)
        joined = node["metadata"].get("creationTimestamp") if node is not None else said.get("lastTransitionTime")
        made, applied = each["metadata"].get("creationTimestamp"), (each.get("status") or {}).get("planAppliedTime")
        found[host] = {"image": _between(moment(made), moment(applied)), "boot": _between(moment(applied), moment(joined))}
    return found


def _between(begin: datetime | None, end: datetime | None) -> list[float]:
    seconds = (end - begin).total_seconds() if begin is not None and end is not None else -1.0
    return [seconds] if 0 <= seconds <= _LONGEST else []
