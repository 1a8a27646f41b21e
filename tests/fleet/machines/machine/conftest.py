"""Worlds with a management cluster and a workload cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cache
from typing import Any

import pytest_asyncio
from fleet.infrastructure import crds as providers
from fleet.machines.machine.machineworld import MachineWorld
from fleet.world import preserving_crd

from slipway.api.cluster import crds
from slipway.api.cluster.kinds import CLUSTER, CUSTOM_RESOURCE_DEFINITION, MACHINE_DEPLOYMENT, MACHINE_SET
from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient


@cache
def definitions() -> tuple[dict[str, Any], ...]:
    """The real ones of what this controller writes; made once, which takes longest."""
    real = [crd for crd in crds.crds() if crd["metadata"]["name"].partition(".")[0] in ("machines", "machinedrainrules")]
    return (*real, *map(preserving_crd, (CLUSTER, MACHINE_SET, MACHINE_DEPLOYMENT)), *providers())


@pytest_asyncio.fixture
async def world() -> AsyncIterator[MachineWorld]:
    async with EmbeddedServer(tls=False) as management, EmbeddedServer(tls=False) as workload:
        async with AsyncClient(management.connection()) as client:
            for crd in definitions():
                await client.create(CUSTOM_RESOURCE_DEFINITION, crd)
        async with MachineWorld(management, workload, "machines") as made:
            yield made
