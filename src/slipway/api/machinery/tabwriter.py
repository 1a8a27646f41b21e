"""Tables as Go's text/tabwriter lays them out for kubeadm."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def aligned(rows: Sequence[tuple[str, ...]]) -> str:
    """Columns at least 10 wide and 3 apart, the last one as it is."""
    widths = [max(10, *(len(cell) + 3 for cell in column)) for column in list(zip(*rows, strict=True))[:-1]]
    lines = ["".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)) for row in rows]
    return "\n".join(lines) + "\n"
