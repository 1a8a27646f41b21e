"""One line on a terminal that says how far a long step is; nothing at all where nobody looks at a terminal."""

from __future__ import annotations

import shutil
import sys
import time
from typing import IO

_REDRAW_SECONDS = 0.1
_BAR_WIDTH = 30


class Meter:
    """A line that is drawn over itself.  As a context manager it wipes the line at the end."""

    def __init__(self, label: str, stream: IO[str] | None = None) -> None:
        self._label = label
        self._stream = stream or sys.stderr
        self._drawn = 0.0
        self._packages = 0

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def transferred(self, here: int, total: int | None) -> None:
        """Bytes arrived; ``total`` is how many there will be."""
        self._draw(transfer_text(here, total))

    def compiled(self, package: str) -> None:
        """The Go compiler began with another package."""
        self._packages += 1
        self._draw(f"{self._packages} packages, {package}")

    def _draw(self, text: str) -> None:
        now = time.monotonic()
        if now - self._drawn < _REDRAW_SECONDS or not self._stream.isatty():
            return
        self._drawn = now
        columns = shutil.get_terminal_size().columns
        self._stream.write("\r\x1b[K" + f"{self._label}: {text}"[: columns - 1])
        self._stream.flush()


def transfer_text(here: int, total: int | None) -> str:
    """A bar where the end is known, a count of bytes otherwise."""
    if not total:
        return f"{here / 1e6:.1f} MB"
    filled = _BAR_WIDTH * here // total
    return f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {here / 1e6:.1f} of {total / 1e6:.1f} MB"
