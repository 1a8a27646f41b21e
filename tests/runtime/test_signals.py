"""A command that is told to end puts away what it has made."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from slipway.runtime.signals import heard, told_to_end


def test_sigterm_ends_work_in_order_with_its_exit_code() -> None:
    put_away: list[str] = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()
        finally:
            put_away.append("the screen")

    with pytest.raises(SystemExit) as ended:
        asyncio.run(heard(work()))
    assert (ended.value.code, put_away) == (128 + signal.SIGTERM, ["the screen"])


def test_what_waits_to_be_told_ends_well_and_leaves_ctrl_c_as_it_was() -> None:
    before = signal.getsignal(signal.SIGINT)

    async def work() -> bool:
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGINT)
        await told_to_end()
        return True

    assert asyncio.run(heard(work()))
    assert signal.getsignal(signal.SIGINT) is before
