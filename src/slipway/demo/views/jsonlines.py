"""``-o json``: one event a line, as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from typing import TextIO

    from slipway.demo.events import Event

_encode = msgspec.json.Encoder().encode


class JsonLines:
    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, event: Event) -> None:
        self._out.write(_encode(event).decode() + "\n")
        self._out.flush()

    def tick(self) -> None:
        """Only events are lines."""

    def end(self) -> None:
        """A reader knows the end by the end of the file."""
