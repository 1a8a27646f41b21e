"""Expressions that cost much, evaluated beside everybody else's requests.

Half a million units take this server about half a second, and a custom resource may use twenty times that.  What is cheap is done at once;
what turns out not to be is begun again in a thread, one at a time, while the others are served.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

AT_ONCE = 50_000
"""What an evaluation may cost while everybody waits for it, in the units of cel-go."""


async def apart(work: Callable[[], T]) -> T:
    """What comes of work that takes its time, and touches nothing that others change."""
    return await asyncio.get_running_loop().run_in_executor(_thread(), work)


@cache
def _thread() -> ThreadPoolExecutor:
    # A second one would not be faster: both are Python.
    return ThreadPoolExecutor(1, "expressions")
