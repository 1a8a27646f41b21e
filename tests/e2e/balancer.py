"""The address of a control plane whose machines come and go: a TCP relay to those that answer, as a load balancer or a VIP would be."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

PORT = 6443


class Balancer:
    """``backends`` may be changed at any time; each connection goes to the first that takes it, another one first each time."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.backends: list[str] = []
        self._next = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        mine = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not mine]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, self.address, PORT)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        backend = await self._connect()
        if backend is None:
            writer.close()
            return
        await asyncio.gather(_relay(reader, backend[1]), _relay(backend[0], writer), return_exceptions=True)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        backends = list(self.backends)
        self._next += 1
        for number in range(len(backends)):
            host = backends[(self._next + number) % len(backends)]
            try:
                async with asyncio.timeout(2):
                    return await asyncio.open_connection(host, PORT)
            except (OSError, TimeoutError):
                continue
        return None


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        with closing(writer):
            pass


@contextmanager
def balancer(address: str) -> Iterator[Balancer]:
    made = Balancer(address)
    made.start()
    try:
        yield made
    finally:
        made.stop()
