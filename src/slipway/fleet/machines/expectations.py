"""What a controller has done that its cache does not show yet: until it does, the next reconcile would do it again."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import OperatorError
from slipway.kube.errors import ApiError, UnreachableError
from slipway.runtime.cache.cache import ON_ITS_WAY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slipway.api.cluster.kinds import Kind
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Request

UNSURE = 2.0
"""So many seconds after a request without an answer the server is asked what became of it: it may be at work on it yet."""


class _Expected(NamedTuple):
    kind: Kind
    namespace: str
    name: str
    since: float
    deleted: str = ""
    """The uid of one that was deleted."""
    unsure: bool = False
    """Whether it came to be is not known."""


class Expectations:
    """By the object whose reconcile did it.  What does not come within half a minute of an open watch is no longer waited for."""

    def __init__(self, client: AsyncClient, cache: Cache, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._cache = client, cache
        self._clock = clock
        self._of: dict[Request, list[_Expected]] = {}

    @contextmanager
    def making(self, request: Request, kind: Kind, name: str) -> Iterator[None]:
        """An object in the same namespace is made, and the cache told its version; without an answer, the server is asked."""
        try:
            yield
        except BaseException as error:
            if not _is_refusal(error):
                self._expect(request, _Expected(kind, request.namespace, name, self._clock(), unsure=True))
            raise
        self.wrote(request, kind, name)

    def wrote(self, request: Request, kind: Kind, name: str) -> None:
        """An object in the same namespace was made or changed; the cache was told its version."""
        self._expect(request, _Expected(kind, request.namespace, name, self._clock()))

    def deleted(self, request: Request, kind: Kind, name: str, uid: str) -> None:
        self._expect(request, _Expected(kind, request.namespace, name, self._clock(), deleted=uid))

    def _expect(self, request: Request, one: _Expected) -> None:
        self._of.setdefault(request, []).append(one)

    def forget(self, request: Request) -> None:
        self._of.pop(request, None)

    async def wait(self, request: Request) -> float:
        """For how many seconds to wait at most until the cache shows all of it, which there is an event for; 0 where it does."""
        waiting = [one for one in self._of.get(request, ()) if not await self._is_met(one)]
        if waiting:
            self._of[request] = waiting
        else:
            self.forget(request)
        return 0.0 if not waiting else UNSURE if any(one.unsure for one in waiting) else ON_ITS_WAY

    async def _is_met(self, one: _Expected) -> bool:
        age = self._clock() - one.since
        # While the watch is broken nothing comes, and what is here is no reason to do it again.
        if min(age, self._cache.open_for(one.kind)) > ON_ITS_WAY:
            return True
        known = await self._cache.get(one.kind, one.name, one.namespace)
        if one.deleted:
            return known is None or known.metadata.uid != one.deleted or known.metadata.deletion_timestamp is not None
        if one.unsure and known is None:
            if age < UNSURE:
                return False
            found = await self._client.find(one.kind, one.name, one.namespace)
            if found is None:
                return True
            self._cache.wrote(one.kind, found)
        return not self._cache.is_behind(one.kind, one.name, one.namespace)


def _is_refusal(error: BaseException) -> bool:
    """Whether the server has answered that there is nothing, or was never asked."""
    cause = error.__cause__ or error
    if isinstance(cause, ApiError):
        return cause.code < 500
    return isinstance(cause, OperatorError) and not isinstance(cause, UnreachableError)
