"""The download of images: who knows the address gets the file, for as long as it is kept."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from aiohttp import web

from slipway.api.cluster.kinds import SEED_IMAGE
from slipway.api.elemental.seedimage import SeedImage
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.facts import read
from slipway.fleet.inventory.seed import storage
from slipway.runtime.logs import fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object

_log = logging.getLogger("slipway.fleet.inventory.seed")

PATH = "/elemental/seedimage/"
CHECKSUM_SUFFIX = ".sha256"
TOKEN_INDEX = "downloadToken"


def tokens(found: Object) -> Iterable[str]:
    token = read(found, SeedImage).status.download_token
    return (token,) if token else ()


class SeedDownloads:
    def __init__(self, client: AsyncClient, cache: Cache) -> None:
        self._client = client
        self._cache = cache
        cache.add_index(SEED_IMAGE, TOKEN_INDEX, tokens)

    def add_routes(self, application: web.Application) -> None:
        application.router.add_get(PATH + "{token}/{file}", self.answer)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        token, file = request.match_info["token"], request.match_info["file"]
        try:
            found = await self._cache.list(SEED_IMAGE, index=(TOKEN_INDEX, token))
            for each in found:
                image = read(each, SeedImage)
                name = image.status.download_url.rpartition("/")[2]
                seed = await storage.load(self._client, each.name, each.namespace, each.metadata.uid) if name else None
                if seed is not None and file == name:
                    return web.Response(body=seed.image, content_type="application/octet-stream")
                if seed is not None and file == name + CHECKSUM_SUFFIX:
                    return web.Response(text=f"{seed.checksum}  {name}\n")
        except OperatorError as error:
            _log.error("An image could not be read", extra=fields(err=error.message))
            return web.Response(status=503, headers={"Retry-After": "5"}, text="the management cluster does not answer: try again\n")
        return web.Response(status=404, text="there is no such image; it may have been cleaned up\n")
