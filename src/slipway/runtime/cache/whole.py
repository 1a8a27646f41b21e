"""Objects of which a cache has the metadata alone, asked for in whole: once for every state, by however many who want it.

What is read so may be secret, and is kept for moments only: until the controllers that hear of a change at the same time have read it.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.informer import Informer

    Place = tuple[Kind, str, str]

# In seconds.  A watch that has gone silent is not believed for longer, either.
_BELIEVED = 10.0
_KEPT = 128


class _Read(NamedTuple):
    manifest: Manifest
    at: float


class _Question(NamedTuple):
    version: str
    answer: asyncio.Task[Manifest | None]


class Whole:
    def __init__(self, client: AsyncClient, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._clock = client, clock
        self._read: dict[Place, _Read] = {}
        self._asking: dict[Place, _Question] = {}

    async def get(self, informer: Informer, name: str, namespace: str) -> Manifest | None:
        """The object, at least as new as the informer has it; None where there is none.  Nobody changes it: others read it, too."""
        kind = informer.scope.kind
        place = kind, namespace, name
        seen = informer.store.get(name, namespace)
        if seen is None:
            return await self._client.find(kind, name, namespace)
        version = seen.metadata.resource_version
        known = self._read.get(place)
        if (
            known is not None
            and self._clock() - known.at < _BELIEVED
            and _is_as_new(known.manifest["metadata"]["resourceVersion"], version)
        ):
            return known.manifest
        asked = self._asking.get(place)
        if asked is None or asked.version != version:
            # A question that was asked before this version came may be answered with the one before.
            task = asyncio.get_running_loop().create_task(self._ask(kind, name, namespace), name=f"{kind.kind} {namespace}/{name}")
            # Where nobody waits for it any more, what it failed with concerns nobody.
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            asked = self._asking[place] = _Question(version, task)
        # Whoever is cancelled leaves the answer to the others.
        return await asyncio.shield(asked.answer)

    def put(self, kind: Kind, manifest: Manifest) -> None:
        """Remember what the server has given."""
        metadata, now = manifest["metadata"], self._clock()
        place = kind, metadata.get("namespace", ""), metadata["name"]
        # Whatever is being asked for was asked before.
        self._asking.pop(place, None)
        self._read.pop(place, None)
        self._read[place] = _Read(manifest, now)
        while len(self._read) > _KEPT or now - next(iter(self._read.values())).at >= _BELIEVED:
            del self._read[next(iter(self._read))]

    async def _ask(self, kind: Kind, name: str, namespace: str) -> Manifest | None:
        place, mine = (kind, namespace, name), asyncio.current_task()
        try:
            found = await self._client.find(kind, name, namespace)
            asked = self._asking.get(place)
            if found is not None and asked is not None and asked.answer is mine:
                self.put(kind, found)
            return found
        finally:
            asked = self._asking.get(place)
            if asked is not None and asked.answer is mine:
                del self._asking[place]


def _is_as_new(version: str, seen: str) -> bool:
    return version == seen or (version.isdecimal() and seen.isdecimal() and int(version) > int(seen))
