"""What those who judge at once, without asking the API server, can know: what the manager has read already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.cache.informer import Store


class NotKnownYetError(Exception):
    """The objects of a kind have not been read yet."""


class Known(Protocol):
    """Objects as they were last seen; raises NotKnownYetError where they were not."""

    def list(self, kind: Kind, namespace: str) -> Sequence[Manifest]:
        """Those of a namespace, or of all of them where it is empty."""
        ...

    def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None: ...


class NothingKnown:
    """For who only wants to hear what would be asked."""

    def list(self, kind: Kind, namespace: str) -> Sequence[Manifest]:
        raise NotKnownYetError

    def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        raise NotKnownYetError


class Cached:
    """What a cache has.  The first question about a kind lets it read that."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def list(self, kind: Kind, namespace: str) -> Sequence[Manifest]:
        return [each.content() for each in self._store(kind).list(namespace)]

    def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        found = self._store(kind).get(name, namespace)
        return None if found is None else found.content()

    def _store(self, kind: Kind) -> Store:
        informer = self._cache.informer(kind)
        if not informer.synced.is_set():
            raise NotKnownYetError
        return informer.store
