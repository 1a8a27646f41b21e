"""Waiting for something to come true, with a limit, and with what is still missing at hand when the limit is reached."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.machinery.duration import Duration

POLL = 0.1
"""Seconds between two questions: short, because a question to this machine or to its API server costs next to nothing."""


class TimedOutError(OperatorError):
    """What was awaited did not come in time; the text says what was still missing."""


def until(probe: Callable[[], str], *, timeout: float, interval: float = POLL) -> float:
    """Ask until ``probe`` answers "" (done); what it answers meanwhile is what is still awaited.  Seconds that it took.

    At least one question is asked, however short the time.
    """
    began = time.monotonic()
    while True:
        missing = probe()
        elapsed = time.monotonic() - began
        if not missing:
            return elapsed
        if elapsed + interval > timeout:
            raise TimedOutError(f"{missing} (gave up after {shown(timeout)})")
        time.sleep(interval)


def seconds(duration: Duration | None, default: float) -> float:
    """A timeout of the configuration in seconds, or the default where it is not set."""
    return default if duration is None else duration / 1e9


def shown(value: float) -> str:
    """Seconds as Go's ``time.Duration`` shows them: ``4m0s``, ``2.34s``."""
    from slipway.api.machinery.duration import Duration

    return str(Duration(round(value * 1_000) * 1_000_000))
