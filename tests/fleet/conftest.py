"""Worlds on the embedded API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest_asyncio
from fleet.world import MakeWorld, User, World, lean_crd, preserving_crd

from slipway.api.cluster.kinds import CLUSTER, KUBEADM_CONFIG, KUBEADM_CONFIG_TEMPLATE, KUBEADM_CONTROL_PLANE, MACHINE, MACHINE_POOL
from slipway.embedded.server import EmbeddedServer
from slipway.runtime import rbac

# What the bootstrap provider works with.
KINDS = (KUBEADM_CONFIG, KUBEADM_CONFIG_TEMPLATE, CLUSTER, MACHINE, KUBEADM_CONTROL_PLANE)


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
                await world.install_crds(*map(lean_crd, KINDS), preserving_crd(MACHINE_POOL))
            made.append(world)
            return world

        yield make


@pytest_asyncio.fixture
async def world(make_world: MakeWorld) -> World:
    return await make_world()
