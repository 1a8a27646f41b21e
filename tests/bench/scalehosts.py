"""Simulated hosts of some clusters, and the API of these clusters, in a process of their own: ``scalehosts.py FILE``.

The file says what there is to be (:class:`Told`).  Every line that the process says is JSON: how many hosts have registered.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.scaleobjects import FIRST, REGISTRY, REPOSITORY, SECOND

from slipway.agent import paths
from slipway.runtime.memory import economise
from slipway.simulation.boot import Life
from slipway.simulation.world import World

_LOOK = 0.1


class Told(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    """Where hosts register."""
    authority: str
    names: list[str]
    first: int
    """The number of the first host of this process."""
    pace: float
    heartbeat: float
    at_once: int
    """So many are switched on at a time: each proves its TPM to the manager."""
    grpc: bool
    """Whether the members of etcd answer in gRPC, as upstream's managers ask them, and not in JSON, as ours does."""


class Said(msgspec.Struct, frozen=True):
    registered: int
    of: int


async def main(told: Told) -> None:
    # Both ends of a host's connection to its cluster are in this process.
    economise()
    async with World(registry=REGISTRY, pace=told.pace, seed=told.first, first=told.first, heartbeat=told.heartbeat) as world:
        if told.grpc:
            from bench.scaleetcd import GrpcGateway

            world.gateway = GrpcGateway
        image, _ = (world.registry.push(REPOSITORY, version, version) for version in (FIRST, SECOND))
        for begin in range(0, len(told.names), told.at_once):
            batch = [world.add_host(name, image) for name in told.names[begin : begin + told.at_once]]
            for host in batch:
                world.give_registration(host, told.url, told.authority)
                await host.power_on()
            while not all(map(_is_registered, batch)):
                await asyncio.sleep(_LOOK)
            sys.stdout.buffer.write(msgspec.json.encode(Said(len(world.hosts), len(told.names))) + b"\n")
            sys.stdout.buffer.flush()
        # Until it is killed: hosts that are not there need no end.
        await asyncio.Event().wait()


def _is_registered(host: Life) -> bool:
    return host.machine.tree.exists(paths.CONNECTION)


if __name__ == "__main__":
    asyncio.run(main(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Told)))
