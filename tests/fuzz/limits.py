"""What one input may cost a parser: two seconds of a processor, and 200 MB beyond what there were before it.

Time is the processor's and not the clock's, so that a busy machine finds nothing that is not there.
"""

from __future__ import annotations

import re
import signal
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 2.0
MEGABYTES = 200

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
# See proc_pid_clear_refs(5): from now on, the peak is counted anew.
_FORGET_PEAK = "5"


class _TooLongError(BaseException):
    """No `except Exception` of a parser may catch it."""


def problem(fuzz: Callable[[bytes], None], data: bytes) -> str:
    """What is wrong with how ``fuzz`` takes ``data``; empty where nothing is."""
    _CLEAR.write_text(_FORGET_PEAK)
    before = _megabytes("VmRSS")
    previous = signal.signal(signal.SIGPROF, _end)
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        fuzz(data)
    except _TooLongError:
        return f"took more than {SECONDS:g} s"
    except Exception:
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
    grown = _megabytes("VmHWM") - before
    return f"took {grown:.0f} MB more, and {MEGABYTES} are allowed" if grown > MEGABYTES else ""


def _end(*_: object) -> NoReturn:
    raise _TooLongError


def _megabytes(field: str) -> float:
    found = re.search(rf"^{field}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1000
