"""What one execution of a template may still spend: steps, memory and time."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from slipway.api.machinery.gotemplate import limits
from slipway.api.machinery.gotemplate.errors import ExhaustedError

if TYPE_CHECKING:
    from slipway.api.machinery.gotemplate.values import Value

# Steps between two looks at the clock, about a millisecond.
_STRETCH = 1_000
# Characters that are copied or compared in the time of a step, that are encoded, and that are looked at one by one.
_COPIED, _ENCODED, _SCANNED = 1_000, 250, 32


class Budget:
    """Whoever works for a template spends here first, so that nothing large is begun that may not be finished."""

    __slots__ = ("_deadline", "_left", "_memory", "_steps")

    def __init__(self, deadline: float | None = None) -> None:
        """``deadline`` is a moment of ``time.monotonic``."""
        self._deadline = deadline
        # The steps of this stretch, and those after it.
        self._left, self._steps = 0, limits.STEPS
        self._memory = limits.MEMORY

    def step(self, count: int = 1) -> None:
        self._left -= count
        if self._left < 0:
            self._next_stretch()

    def copy(self, length: int) -> None:
        """Text of this length is copied or compared as a whole."""
        if length >= _COPIED:
            self.step(length // _COPIED)

    def read(self, text: str) -> None:
        """A function gets the text; what is not ASCII has to be encoded, more often than not."""
        if len(text) >= _ENCODED:
            self.step(len(text) // (_COPIED if text.isascii() else _ENCODED))

    def scan(self, length: int) -> None:
        """Every character of a text of this length is looked at."""
        self.step(length // _SCANNED)

    def reserve(self, length: int) -> None:
        """A text of at least this many characters is about to be made."""
        if length > limits.TEXT:
            raise ExhaustedError(f"the text is longer than the limit of {limits.TEXT} characters")

    def piece(self, length: int, total: int) -> None:
        """A piece of this length is added to a text, which then has ``total`` characters."""
        if total > limits.TEXT:
            self.reserve(total)
        self._left -= 1 + length // _COPIED
        if self._left < 0:
            self._next_stretch()

    def keep(self, made: str | list[Value]) -> None:
        """A text or list was made."""
        self._memory -= made.__sizeof__()
        if self._memory < 0:
            raise ExhaustedError(f"all texts that were made are together larger than the limit of {limits.MEMORY} bytes")

    def _next_stretch(self) -> None:
        if self._deadline is not None and monotonic() > self._deadline:
            raise ExhaustedError("the time to render it in is over")
        granted = min(self._steps, _STRETCH - self._left)
        self._left += granted
        self._steps -= granted
        if self._left < 0:
            raise ExhaustedError(f"exceeded the limit of {limits.STEPS} steps")
