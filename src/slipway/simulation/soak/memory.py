"""How the memory of a manager grows: between two rests of one process, in clusters of the same size.  Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.simulation.soak.record import Sample

LIMIT = 0.05
STALLED = 120.0
"""Seconds without any write after which a rest that has not come does not come."""


class Growth(NamedTuple):
    first: int
    last: int
    seconds: float
    rests: int

    @property
    def share(self) -> float:
        return self.last / self.first - 1.0


def growth(samples: Sequence[Sample]) -> Growth | None:
    """Of the manager that lived last; its first rest is its warm-up, where it had three.  None where it had fewer than two."""
    life = max((sample.life for sample in samples), default=0)
    rests = [sample for sample in samples if sample.at_rest and sample.life == life and sample.resident]
    if len(rests) > 2:
        rests = rests[1:]
    if len(rests) < 2:
        return None
    return Growth(rests[0].resident, rests[-1].resident, rests[-1].at - rests[0].at, len(rests))
