"""Keeping the record of a host's cycles: what was seen of a machine's life is added to what the annotation has.

It goes with writes that are made anyway, and names the version of the inventory as they do: of two writers, neither loses what the other
noted.  What was seen first stays: whoever comes after a manager that was killed says the same later, not better.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from msgspec import structs

from slipway.api.elemental.cycles import CYCLES_ANNOTATION, MOMENTS, Cycle, read, unreadable, written

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest

_log = logging.getLogger("slipway.fleet.baremetal.hosts")


def with_seen(cycles: Sequence[Cycle], seen: Cycle) -> list[Cycle]:
    """The lives with what was seen of the last one; one that is not there begins, as a machine may be older than the record."""
    if not cycles or cycles[-1].machine != seen.machine or cycles[-1].released is not None:
        return [*cycles, seen]
    return [*cycles[:-1], _filled(cycles[-1], {name: getattr(seen, name) for name in MOMENTS})]


def with_cleaned(cycles: Sequence[Cycle], at: datetime) -> list[Cycle]:
    """The lives of a host that was cleaned after it had been given up."""
    return [*cycles[:-1], _filled(cycles[-1], {"cleaned": at, "released": at})] if cycles else []


def is_unfinished(cycles: Sequence[Cycle], machine: str) -> bool:
    """Whether a machine is known to have joined, and not yet to have been Ready."""
    last = cycles[-1] if cycles else None
    return last is not None and last.machine == machine and last.joined is not None and last.running is None


def noted(inventory: Manifest, seen: Cycle) -> dict[str, str | None]:
    """The change of annotations that notes what was seen; none where all of it is known."""
    return _changed(inventory, with_seen(_past(inventory), seen))


def noted_cleaned(inventory: Manifest, at: datetime) -> dict[str, str | None]:
    """The same of a host that was cleaned after it had been given up."""
    return _changed(inventory, with_cleaned(_past(inventory), at))


def _filled(cycle: Cycle, moments: Mapping[str, datetime | None]) -> Cycle:
    return structs.replace(cycle, **{name: at for name, at in moments.items() if at is not None and getattr(cycle, name) is None})


def _past(inventory: Manifest) -> tuple[Cycle, ...]:
    annotations = inventory["metadata"].get("annotations") or {}
    if why := unreadable(annotations):
        metadata = inventory["metadata"]
        _log.warning(
            "the annotation %s of the MachineInventory %s/%s cannot be read, and is begun anew: %s",
            CYCLES_ANNOTATION,
            metadata.get("namespace", ""),
            metadata["name"],
            why,
        )
    return read(annotations)


def _changed(inventory: Manifest, cycles: Sequence[Cycle]) -> dict[str, str | None]:
    annotations = inventory["metadata"].get("annotations") or {}
    text = written(cycles) if cycles else None
    return {CYCLES_ANNOTATION: text} if annotations.get(CYCLES_ANNOTATION) != text else {}
