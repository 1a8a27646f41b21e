"""The image catalogs of a manager: read from the API server once for each of their versions, which the cache's metadata tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster.infrastructure.names import CATALOG_NAME
from slipway.api.cluster.kinds import CONFIG_MAP

if TYPE_CHECKING:
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache


class Catalogs:
    """Of ConfigMaps the cache has the metadata alone."""

    def __init__(self, client: AsyncClient, cache: Cache) -> None:
        self._client, self._cache = client, cache
        cache.restrict(CONFIG_MAP, metadata_only=True)
        self._known: dict[str, tuple[str, dict[str, str]]] = {}

    async def entries(self, namespace: str) -> dict[str, str] | None:
        """What the catalog of a namespace says; None where there is none."""
        seen = await self._cache.get(CONFIG_MAP, CATALOG_NAME, namespace)
        version, entries = self._known.get(namespace, ("", {}))
        if seen is not None and seen.metadata.resource_version == version:
            return entries
        # One that was made a moment ago may be on its way to the cache.
        found = await self._client.find(CONFIG_MAP, CATALOG_NAME, namespace)
        if found is None:
            self._known.pop(namespace, None)
            return None
        entries = dict(found.get("data") or {})
        self._known[namespace] = found["metadata"]["resourceVersion"], entries
        return entries
