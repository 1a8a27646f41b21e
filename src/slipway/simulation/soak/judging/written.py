"""Which writes the API server has made, and which of them a watch has still to tell: the order in which they are judged is the server's.

What is known here of a write is its kind and its resource version, and nothing else: what it was is heard by the watcher alone.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from slipway.simulation.soak.options import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.cluster.kinds import Kind


class Written:
    def __init__(self) -> None:
        self._untold: dict[Kind, deque[int]] = {}
        self.latest = 0

    def note(self, kind: Kind, namespace: str, version: int) -> None:
        if namespace == NAMESPACE:
            self._untold.setdefault(kind, deque()).append(version)
            self.latest = version

    def told(self, seen: Callable[[Kind], int]) -> int:
        """Up to which version every write has been told, where ``seen`` says up to which a watch has; all of them: the latest."""
        first = self.latest + 1
        for kind, untold in self._untold.items():
            upto = seen(kind)
            while untold and untold[0] <= upto:
                untold.popleft()
            first = min(first, untold[0]) if untold else first
        return first - 1
