"""What a controller has done that its cache does not show yet: until it does, the next reconcile would do it again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from slipway.runtime.cache.cache import ON_ITS_WAY

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.cluster.kinds import Kind
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Request


class _Expected(NamedTuple):
    kind: Kind
    namespace: str
    name: str
    uid: str
    """Of one that was deleted; empty for one that was written."""
    since: float


class Expectations:
    """By the object whose reconcile did it.  What does not come within half a minute is no longer waited for."""

    def __init__(self, cache: Cache, clock: Callable[[], float] = time.monotonic) -> None:
        self._cache = cache
        self._clock = clock
        self._of: dict[Request, list[_Expected]] = {}

    def wrote(self, request: Request, kind: Kind, name: str) -> None:
        """An object in the same namespace was made or changed; the cache was told its version."""
        self._of.setdefault(request, []).append(_Expected(kind, request.namespace, name, "", self._clock()))

    def deleted(self, request: Request, kind: Kind, name: str, uid: str) -> None:
        self._of.setdefault(request, []).append(_Expected(kind, request.namespace, name, uid, self._clock()))

    def forget(self, request: Request) -> None:
        self._of.pop(request, None)

    async def met(self, request: Request) -> bool:
        """Whether the cache shows all of it."""
        waiting = [one for one in self._of.pop(request, ()) if not await self._is_met(one)]
        if waiting:
            self._of[request] = waiting
        return not waiting

    async def _is_met(self, one: _Expected) -> bool:
        if self._clock() - one.since > ON_ITS_WAY:
            return True
        if not one.uid:
            return not self._cache.is_behind(one.kind, one.name, one.namespace)
        known = await self._cache.get(one.kind, one.name, one.namespace)
        return known is None or known.metadata.uid != one.uid or known.metadata.deletion_timestamp is not None
