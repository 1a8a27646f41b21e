"""What those who judge at once, without asking the API server, can know: what the manager has read already."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol, TypeVar

from slipway.api.cluster.infrastructure.names import CATALOG_NAME
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE_TEMPLATE,
    CONFIG_MAP,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
)
from slipway.api.machinery.errors import OperatorError
from slipway.runtime.logs import fields
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.cache.store import Store
    from slipway.runtime.objects import Object

T = TypeVar("T")
_log = logging.getLogger("slipway.fleet.baremetal")

KINDS = (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE_TEMPLATE,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
)
"""What webhooks look at, beside the catalog."""
RULES = (*(rule(kind, "list", "watch") for kind in KINDS), rule(CONFIG_MAP, *READ))


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

    def facts(self, kind: Kind, namespace: str, of: Callable[[Object], T]) -> builtins.list[T]:
        """What ``of`` says of each of them: asked once for every state of an object, as there may be hundreds of clusters."""
        return self._store(kind).facts(of, namespace)

    def _store(self, kind: Kind) -> Store:
        informer = self._cache.informer(kind)
        if not informer.synced.is_set():
            raise NotKnownYetError
        return informer.store


class Followed(Cached):
    """What a manager has read since its start.

    Webhooks judge in threads, where nothing can begin to be read.  Of ConfigMaps the cache has the metadata alone: the catalog is read
    when that changes.
    """

    def __init__(self, cache: Cache, client: AsyncClient) -> None:
        super().__init__(cache)
        self._client = client
        self._catalogs: dict[str, Manifest] = {}
        # How often the catalog of a namespace has changed: of two that read it, the later one counts, whichever answer comes first.
        self._changes: dict[str, int] = {}
        self._reading: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        for kind in KINDS:
            self._cache.informer(kind)
        self._cache.informer(CONFIG_MAP).add_handler(self._changed)

    async def close(self) -> None:
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)

    def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        found = super().get(kind, namespace, name)
        if kind != CONFIG_MAP or found is None:
            return found
        if namespace not in self._catalogs:
            raise NotKnownYetError
        return self._catalogs[namespace]

    def _changed(self, old: Object | None, new: Object | None) -> None:
        seen = new or old
        if seen is None or seen.name != CATALOG_NAME:
            return
        change = self._changes[seen.namespace] = self._changes.get(seen.namespace, 0) + 1
        if new is None:
            self._catalogs.pop(seen.namespace, None)
            return
        task = asyncio.get_running_loop().create_task(self._read(seen.namespace, change), name="read the image catalog")
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _read(self, namespace: str, change: int) -> None:
        try:
            found = await self._client.find(CONFIG_MAP, CATALOG_NAME, namespace)
        except OperatorError as error:
            # What is not known is not judged; the next look at all objects reads it again.
            self._catalogs.pop(namespace, None)
            _log.warning("The image catalog could not be read", extra=fields(namespace=namespace, err=error.message))
            return
        if found is not None and change == self._changes[namespace]:
            self._catalogs[namespace] = found
