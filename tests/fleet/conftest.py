"""Worlds on the embedded API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest_asyncio
from fleet.world import MakeWorld, User, World, preserving_crd

from slipway.api.cluster import crds
from slipway.api.cluster.kinds import MACHINE_POOL
from slipway.embedded.server import EmbeddedServer
from slipway.runtime import rbac


@pytest_asyncio.fixture
async def make_world() -> AsyncIterator[MakeWorld]:
    """Worlds in namespaces of one server."""
    made: list[World] = []
    async with EmbeddedServer() as server, AsyncExitStack() as stack:

        async def account(world: World) -> User:
            name = f"manager-of-{world.namespace}"
            return User(server.connection(name, ()), rbac.user(name))

        async def make() -> World:
            world = await stack.enter_async_context(World(server.connection(), f"machines-{len(made)}", account))
            if not made:
                await world.install_crds(*crds.crds(), preserving_crd(MACHINE_POOL))
            made.append(world)
            return world

        yield make


@pytest_asyncio.fixture
async def world(make_world: MakeWorld) -> World:
    return await make_world()
