"""Hosts whose power or link the soak itself has cut: what they are not meanwhile is nobody's fault."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Cuts:
    def __init__(self) -> None:
        self._cut: dict[str, bool] = {}
        """Whether they have it back."""
        self._due: dict[str, Sequence[object]] = {}
        """Of hosts that are to lose their power in a plan: what has yet to happen to them."""

    @contextmanager
    def during(self, name: str, due: Sequence[object] = ()) -> Iterator[None]:
        """A host is cut for as long as the block runs and until it is back, from the moment on when nothing is ``due`` any more."""
        self._cut[name], self._due[name] = False, due
        try:
            yield
        finally:
            self._cut[name] = True
            if self._due.pop(name):
                del self._cut[name]

    def is_cut(self, name: str) -> bool:
        return name in self._cut and not self._due.get(name)

    def is_back(self, name: str) -> None:
        """It is what it would be: from now on it is cut only if it is cut again."""
        if self._cut.get(name):
            del self._cut[name]
