"""Looking at a fleet for as long as somebody wants to: what follows the objects on one side, what shows them on the other."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.overview.changes import changes
from slipway.fleet.overview.model import Overview, overview

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.fleet.overview.changes import Change
    from slipway.fleet.overview.follow import Follower

# Seconds between two looks, however much happens; and the share of the time that looking may take: ten thousand hosts take longer.
_LEAST, _SHARE = 0.3, 0.2
# Seconds until a picture is drawn anew though nothing happens, as it has times in it; and until what is known is judged anew by the time.
_TICK, _JUDGED = 1.0, 15.0
_NOTHING = Overview((), (), (), ())


class View(Protocol):
    def begin(self, view: Overview, now: datetime) -> None:
        """What there is in the beginning."""

    def show(self, view: Overview, changed: list[Change], trouble: str, now: datetime) -> None:
        """What there is now, what has changed, and why nothing new is heard, if that is so."""

    def end(self) -> None:
        """Nothing more comes."""


async def watch(follower: Follower, view: View, choose: Callable[[Overview], Overview]) -> None:
    """Until it is cancelled, or what ``choose`` wants to see is gone; an OperatorError where it never was there."""
    seen = choose(overview(await follower.objects(), _now()))
    looked, pause, is_there = time.monotonic(), _LEAST, True
    try:
        view.begin(seen, _now())
        while is_there:
            told: list[Change] = []
            if await follower.changed(_TICK) or time.monotonic() - looked > _JUDGED:
                await asyncio.sleep(max(0.0, pause - (time.monotonic() - looked)))
                began = looked = time.monotonic()
                before, seen = seen, overview(await follower.objects(), _now())
                try:
                    seen = choose(seen)
                except OperatorError:
                    seen, is_there = _NOTHING, False
                told = changes(before, seen, _now())
                pause = max(_LEAST, (time.monotonic() - began) / _SHARE)
            view.show(seen, told, follower.trouble, _now())
    finally:
        view.end()


def _now() -> datetime:
    return datetime.now(UTC)
