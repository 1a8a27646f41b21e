"""The link between a simulated host and the management plane, which can be cut: what its agent sends and hears goes through here."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec
from simulation.estate import Estate

from slipway.agent import paths
from slipway.simulation.boot import Life


class Link:
    """Forwards one host's connections for as long as the block runs; once it is cut nothing comes through until it is mended."""

    def __init__(self, estate: Estate, host: Life) -> None:
        self._estate, self._host = estate, host
        self._server: asyncio.Server | None = None
        self._port = 0
        self._open: set[asyncio.StreamWriter] = set()
        self.cuts = 0
        self.carried = 0
        """How many connections came through."""

    async def __aenter__(self) -> Link:
        await self.mend()
        self._lead_to(self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._lead_to(self._estate.server.port)
        await self.cut()

    async def cut(self) -> None:
        self.cuts += 1
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._open):
            writer.transport.abort()

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def flap(self, up: float, down: float) -> None:
        """Cut and mend, until it is cancelled; it is mended then."""
        try:
            while True:
                await asyncio.sleep(up)
                await self.cut()
                await asyncio.sleep(down)
                await self.mend()
        finally:
            if self._server is None:
                await self.mend()

    def _lead_to(self, port: int) -> None:
        """Its agent finds the API server at another port from now on."""
        tree = self._host.machine.tree
        known = msgspec.json.decode(tree.file(paths.CONNECTION).content)
        config = msgspec.json.decode(known["kubeConfig"])
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        tree.write(paths.CONNECTION, msgspec.json.encode({**known, "kubeConfig": msgspec.json.encode(config).decode()}))
        self._host.kill_agent()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.carried += 1
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._estate.server.port)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, far_writer}
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        self._open -= {writer, far_writer}


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    writer.close()
