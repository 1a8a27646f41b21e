"""Several managers that share an estate, each with a way of its own to the API server that can be cut, and what each of them wrote."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import defaultdict
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from simulation.estate import Estate
from support.ports import free_port

from slipway.embedded.access.authentication import User
from slipway.embedded.access.authorization import Attributes, Authorizer
from slipway.fleet.inventory.options import InventoryOptions
from slipway.fleet.manager import build
from slipway.fleet.settings import Settings
from slipway.kube.connection import Connection
from slipway.runtime.leader import LeaseTimes
from slipway.runtime.manager import Manager

TIMES = LeaseTimes(lease_duration=20.0, renew_deadline=17.0, retry_period=0.3)
_WRITES = ("create", "update", "patch", "delete")


class Wire:
    """A way to an address, byte for byte, until it is cut."""

    def __init__(self, connection: Connection) -> None:
        self._target = urlsplit(connection.server)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.port = free_port()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)

    async def cut(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._open):
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._target.hostname is not None
        there, onward = await asyncio.open_connection(self._target.hostname, self._target.port)
        self._open |= {writer, onward}
        await asyncio.gather(_copy(reader, onward), _copy(there, writer))
        self._open -= {writer, onward}


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


class Write(NamedTuple):
    verb: str
    resource: str
    name: str


@dataclasses.dataclass
class Replica:
    who: str
    manager: Manager
    wire: Wire
    stop: asyncio.Event
    task: asyncio.Task[None]

    @property
    def shards(self) -> set[int]:
        """What it works on at this moment."""
        assert self.manager.share is not None
        return {shard for shard in self.manager.share.holding.active if self.manager.share.holding.works(shard)}

    def kept(self, kind: Any) -> list[Any]:
        return self.manager.cache.informer(kind).store.list()


class ReplicatedEstate(Estate):
    """An estate of several managers; the first of them is where hosts register."""

    def __init__(self, replicas: int = 2, shards: int = 2, **given: Any) -> None:
        super().__init__(**given)
        self._number, self._shards = replicas, shards
        self.replicas: list[Replica] = []
        self.writes: defaultdict[str, list[Write]] = defaultdict(list)
        """By who wrote, in order."""

    async def start(self) -> None:
        authorizer = self.server.core.authorizer
        check = Authorizer.check

        def observed(authorizer: Authorizer, user: User, asked: Attributes) -> None:
            if asked.verb in _WRITES:
                self.writes[user.name].append(Write(asked.verb, asked.resource, asked.name))
            check(authorizer, user, asked)

        authorizer.check = partial(observed, authorizer)  # type: ignore[method-assign]
        for number in range(self._number):
            await self.add_replica(f"manager-{number}")

    async def add_replica(self, who: str) -> Replica:
        connection = self.server.connection(who, ("system:masters",))
        wire = Wire(connection)
        await wire.start()
        through = msgspec.structs.replace(connection, server=f"https://127.0.0.1:{wire.port}")
        manager = build(through, self._settings_of(len(self.replicas)))
        stop = asyncio.Event()
        made = Replica(who, manager, wire, stop, asyncio.create_task(manager.run(stop)))
        self.replicas.append(made)
        return made

    def _settings_of(self, number: int) -> Settings:
        base = self._settings()
        # Hosts have their own way.
        told = InventoryOptions(bind_address="0", url=base.inventory.url, api_server=self.server.connection().server)
        inventory = told if number else msgspec.structs.replace(told, bind_address=base.inventory.bind_address)
        return msgspec.structs.replace(base, leader_elect=True, shards=self._shards, lease=TIMES, inventory=inventory)

    async def stop(self) -> None:
        for replica in self.replicas:
            replica.stop.set()
        await asyncio.wait({replica.task for replica in self.replicas}, timeout=30)
        for replica in self.replicas:
            await replica.wire.cut()
