"""An informer on a bad line to a server that forgets: whatever happens on the way, in the end it knows what the server knows."""

from __future__ import annotations

import asyncio
import random
from types import TracebackType

import pytest

from slipway.api.cluster.kinds import CONFIG_MAP
from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import Connection
from slipway.runtime.cache.informer import Informer, Scope
from slipway.runtime.clock import Backoff
from slipway.runtime.metrics import Metrics
from slipway.runtime.objects import Object, Request


class BadLine:
    """A proxy that drops all its connections whenever it is told to."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Connection:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return Connection(server=f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}")

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._server is not None
        self._server.close()
        self.drop()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def drop(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, back}
        for source, target in ((reader, back), (there, writer)):
            task = asyncio.create_task(_copy(source, target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    except ConnectionError:
        pass
    finally:
        target.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("seed", range(4))
async def test_an_informer_ends_with_what_the_server_has_and_told_every_step_of_it(seed: int) -> None:
    chance = random.Random(seed)
    async with EmbeddedServer(tls=False) as server, AsyncClient(server.connection()) as writer:
        line = BadLine(server.port)
        async with line as connection, AsyncClient(connection) as client:
            metrics = Metrics()
            scope = Scope(CONFIG_MAP, "default", "of=test")
            informer = Informer(client, scope, metrics=metrics, backoff=Backoff(0.005, 0.02))
            told: dict[Request, str] = {}

            def handle(old: Object | None, new: Object | None) -> None:
                known = new if new is not None else old
                assert known is not None
                # What is told as new was not there, what is told as changed or deleted was.
                assert (known.request in told) == (old is not None)
                if new is not None:
                    told[known.request] = new.metadata.resource_version
                else:
                    del told[known.request]

            informer.add_handler(handle)
            task = asyncio.create_task(informer.run())
            try:
                names: set[str] = set()
                for number in range(250):
                    name = f"object-{chance.randrange(25)}"
                    if name in names and chance.random() < 0.4:
                        await writer.delete(CONFIG_MAP, name, "default")
                        names.remove(name)
                    else:
                        labels = {"of": "test" if chance.random() < 0.8 else "other"}
                        manifest = {"metadata": {"name": name, "namespace": "default", "labels": labels}, "data": {"n": str(number)}}
                        await (writer.update if name in names else writer.create)(CONFIG_MAP, manifest)
                        names.add(name)
                    if chance.random() < 0.1:
                        line.drop()
                    if chance.random() < 0.06:
                        line.drop()
                        server.compact()
                expected = {
                    Request("default", each["metadata"]["name"]): each["metadata"]["resourceVersion"]
                    for each in await writer.list(CONFIG_MAP, "default", labels="of=test")
                }
                async with asyncio.timeout(20):
                    while told != expected:
                        await asyncio.sleep(0.01)
                assert {known.request: known.metadata.resource_version for known in informer.store.list()} == expected
                labels = {"kind": "configmaps with of=test", "namespace": "default"}
                assert (metrics.registry.get_sample_value("slipway_informer_lists_total", labels) or 0) > 1
            finally:
                task.cancel()
                await asyncio.wait({task})
