"""The server that hosts call: the registration and the images for it, by HTTPS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from slipway.api.elemental import protocol
from slipway.fleet.inventory.options import FLAG
from slipway.fleet.inventory.registration.configuration import ApiServer
from slipway.fleet.inventory.registration.endpoint import RegistrationEndpoint
from slipway.fleet.inventory.seed.download import SeedDownloads
from slipway.runtime.healthz import parse_address
from slipway.runtime.webhook.serving import LOOK, HttpsServer, Pair

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from slipway.fleet.inventory.options import InventoryOptions
    from slipway.fleet.inventory.registration.certificate import Source
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

# A host with a TPM sends its keys and their proof in one header.
_LARGEST_HEADER = protocol.MAX_HEADER + 1024
# Seconds for which a stranger may hold a connection open and say nothing; hosts do not keep theirs.
_IDLE = 15.0


class RegistrationServer:
    """Served by every replica; ``own`` is how the manager itself reaches the API server, which hosts are told unless options say better."""

    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        source: Source,
        options: InventoryOptions,
        *,
        own: ApiServer,
        called: Callable[[str], None] | None = None,
        look: float = LOOK,
    ) -> None:
        address = parse_address(options.bind_address, FLAG)
        if address is None:
            raise ValueError("there is no address to serve the registration on")
        self._source = source
        self.authorities = b""
        """Of the certificate that is shown; empty before there is one."""
        application = web.Application()
        self.endpoint = RegistrationEndpoint(
            client,
            cache,
            authorities=lambda: self.authorities,
            api_server=ApiServer(options.api_server.rstrip("/") or own.url, own.ca),
            called=called,
        )
        self.endpoint.add_routes(application)
        SeedDownloads(client, cache).add_routes(application)
        self._serving = HttpsServer(
            self,
            application,
            what="registrations",
            flag=FLAG,
            address=address.host,
            port=address.port,
            largest_header=_LARGEST_HEADER,
            idle=_IDLE,
            look=look,
        )

    @property
    def port(self) -> int:
        """Where it listens, once it does."""
        return self._serving.port

    async def pair(self) -> Pair:
        """The certificate to show, and from then on its authorities to be told."""
        shown = await self._source.shown()
        self.authorities = shown.authorities
        return shown.pair

    def ready(self) -> str:
        return self._serving.ready()

    async def run(self, stop: asyncio.Event) -> None:
        await self._serving.run(stop)
