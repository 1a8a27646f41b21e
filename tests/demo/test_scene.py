"""Waiting on what is known: for as long as something happens, and no longer."""

from __future__ import annotations

import asyncio

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.demo.scene import Scene, StalledError
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import Connection

pytestmark = pytest.mark.asyncio


def scene() -> Scene:
    return Scene(AsyncClient(Connection(server="http://127.0.0.1:1")), lambda kind, before, after: None)


async def test_what_holds_is_not_waited_for() -> None:
    await scene().until(lambda: True, lambda: 1e9, 1.0)


async def test_a_wait_in_which_nothing_happens_ends_with_an_error() -> None:
    began = asyncio.get_running_loop().time()
    with pytest.raises(StalledError):
        await scene().until(lambda: False, lambda: asyncio.get_running_loop().time() - began, 0.05)


async def test_a_manager_that_has_ended_ends_the_wait() -> None:
    def ended() -> None:
        raise OperatorError("the manager has ended")

    watched = scene()
    watched.check = ended
    with pytest.raises(OperatorError, match="has ended"):
        await watched.until(lambda: False, lambda: 0.0, 1.0)
