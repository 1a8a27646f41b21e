"""Forced server-side apply: what a controller wants of an object, said in whole, and sent only when it may change something.

The field managers are Cluster API's own, so that another manager which takes over, or from which one was taken, gives up just the fields
that it no longer wants.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from slipway.kube.aio import PatchType
from slipway.runtime.objects import Object

if TYPE_CHECKING:
    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

# As many objects as a manager looks after, and more; what is forgotten is sent once more.
_REMEMBERED = 50_000


class Applier:
    """Applies as one field manager, and remembers what it has applied."""

    def __init__(self, client: AsyncClient, cache: Cache, field_manager: str) -> None:
        self._client = client
        self._cache = cache
        self._field_manager = field_manager
        self._applied: dict[tuple[Kind, str, str], bytes] = {}
        """What was applied, and to which version of the object: a digest of both."""

    async def apply(self, kind: Kind, wanted: Manifest, *, current: Object | Manifest | None = None) -> Manifest:
        """The object after ``wanted`` was applied to it.

        With ``current`` the apply is an update: its uid is sent, so that what is gone is not made again, and nothing is sent where the
        same was applied before and the object has not changed since.
        """
        metadata = wanted["metadata"]
        place = kind, metadata.get("namespace", ""), metadata["name"]
        body: Manifest = {**wanted, "apiVersion": kind.api_version, "kind": kind.kind}
        if current is not None:
            uid, version = _identity(current)
            body["metadata"] = {**metadata, "uid": uid}
        intent = msgspec.json.encode(body, order="deterministic")
        if current is not None and self._applied.get(place) == _digest(intent, version):
            return current.content() if isinstance(current, Object) else current
        written = await self._client.patch(
            kind, metadata["name"], place[1], body, type=PatchType.APPLY, field_manager=self._field_manager, force=True
        )
        self._remember(place, _digest(intent, written["metadata"]["resourceVersion"]))
        if current is None or written["metadata"]["resourceVersion"] != version:
            self._cache.wrote(kind, written)
        return written

    def _remember(self, place: tuple[Kind, str, str], applied: bytes) -> None:
        self._applied.pop(place, None)
        self._applied[place] = applied
        if len(self._applied) > _REMEMBERED:
            del self._applied[next(iter(self._applied))]


def _digest(intent: bytes, version: str) -> bytes:
    return blake2b(intent + version.encode(), digest_size=16).digest()


def _identity(current: Object | Manifest) -> tuple[str, str]:
    if isinstance(current, Object):
        return current.metadata.uid, current.metadata.resource_version
    return current["metadata"]["uid"], current["metadata"]["resourceVersion"]
