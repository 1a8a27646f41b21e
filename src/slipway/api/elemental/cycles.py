"""The record of a host's cycles: what became of the last machines that it was, in an annotation on its MachineInventory.

A BaremetalMachine takes its own conditions and times with it when it goes; the host stays.  Here is how long each part of a machine's life
took on it, for a timeline, for estimates and for rehearsals.  Nothing is ever decided by it: who cannot read it has no past, no more.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CYCLES_ANNOTATION = "slipway.io/host-cycles"
KEPT = 5
"""How many lives are remembered."""

Moment = Annotated[datetime, msgspec.Meta(tz=True)] | None
# What is longer is no name, and would grow until the API server takes the object no more.
_Name = Annotated[str, msgspec.Meta(max_length=253)]


class Cycle(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One life of a host as a machine; a time is None where it was not reached, or nobody saw it."""

    machine: _Name
    cluster: _Name = ""
    version: _Name = ""
    """The Kubernetes that the Machine asked for."""
    claimed: Moment = None
    """The host was taken out of its pool."""
    planned: Moment = None
    """The reprovision plan was written."""
    applied: Moment = None
    """The host had applied it, and booted."""
    joined: Moment = None
    """The Node was there."""
    running: Moment = None
    """The Node was Ready."""
    draining: Moment = None
    """The Machine was deleted: from here on its Node gets no more Pods."""
    drained: Moment = None
    """The Node was drained, and the host was to be cleaned."""
    cleaned: Moment = None
    """The host had applied the clean plan."""
    released: Moment = None
    """The host was back in its pool, or was given up without being clean."""


MOMENTS = tuple(name for name in Cycle.__struct_fields__ if name not in ("machine", "cluster", "version"))
"""The times of a life, in the order in which they come; a host that was given up is cleaned after its release, if ever."""

_decoder = msgspec.json.Decoder(list[Cycle])


def read(annotations: Mapping[str, str]) -> tuple[Cycle, ...]:
    """The lives of a host, the newest last; none where the annotation is not there or makes no sense."""
    found = _decoded(annotations)
    return found if isinstance(found, tuple) else ()


def unreadable(annotations: Mapping[str, str]) -> str:
    """Why the annotation makes no sense; empty where it does, or is not there."""
    found = _decoded(annotations)
    return found if isinstance(found, str) else ""


def written(cycles: Sequence[Cycle]) -> str:
    """The annotation's value: compact, the newest last, in whole seconds as the API server has its own times."""
    return msgspec.json.encode([_in_seconds(each) for each in cycles[-KEPT:]]).decode()


def _decoded(annotations: Mapping[str, str]) -> tuple[Cycle, ...] | str:
    """The lives, or why they cannot be read."""
    try:
        return tuple(map(_in_seconds, _decoder.decode(annotations.get(CYCLES_ANNOTATION) or "[]")[-KEPT:]))
    except (msgspec.DecodeError, UnicodeError, OverflowError, RecursionError) as error:
        # OverflowError: a time at the edge of the calendar, which is none in UTC; RecursionError: brackets within brackets.
        return str(error)


def _in_seconds(cycle: Cycle) -> Cycle:
    found: dict[str, datetime | None] = {name: getattr(cycle, name) for name in MOMENTS}
    return msgspec.structs.replace(
        cycle, **{name: moment.astimezone(UTC).replace(microsecond=0) for name, moment in found.items() if moment is not None}
    )
