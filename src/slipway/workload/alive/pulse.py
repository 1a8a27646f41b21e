"""Whether keepalived lives: not only that its processes are there, but that they get anything done.

The one that speaks VRRP wakes at least once a second in every state, for its script or its advertisements, and the kernel counts that.
One that was stopped, hangs in the kernel or waits for itself wakes no more: the others miss it and take its address over, while it has it
still.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

NAME = "keepalived"
_COUNTS = ("voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:")
HOLDER_SECONDS = 2.0
"""For how long a holder may do nothing: others take over 3.2 seconds after its last advertisement at the earliest."""
BACKUP_SECONDS = 15.0
"""For how long a host without the address may: nobody suffers, and a start costs something."""


class Beat(NamedTuple):
    """The process that speaks VRRP, and how often it woke; process 0 where there is none."""

    process: int = 0
    wakes: int = 0


class Pulse(NamedTuple):
    """The last beat that was felt, and when it was felt first."""

    beat: Beat
    since: float

    def felt(self, beat: Beat, now: float) -> Pulse:
        """After another look."""
        return self if beat == self.beat else Pulse(beat, now)

    def hangs(self, now: float, *, holder: bool) -> bool:
        return now - self.since >= (HOLDER_SECONDS if holder else BACKUP_SECONDS)


def process(file: Path) -> int | None:
    """The process that the file names, if it is a keepalived: a file that a killed one left may name another program's."""
    try:
        found = int(file.read_text())
        return found if Path(f"/proc/{found}/comm").read_text().strip() == NAME else None
    except (OSError, ValueError):
        return None


def beat(file: Path) -> Beat:
    found = process(file)
    if found is None:
        return Beat()
    try:
        lines = Path(f"/proc/{found}/status").read_text().splitlines()
    except OSError:
        return Beat()
    return Beat(found, sum(int(line.split()[1]) for line in lines if line.startswith(_COUNTS)))
