"""What kube-controller-manager does in a real cluster and clients rely on: namespaces, definitions, garbage, default accounts.

Changes of the store put work into one queue, and one task does it, in order.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from slipway.embedded import errors
from slipway.embedded.access.authorization import CLUSTER_ROLES, aggregate
from slipway.embedded.apiextensions.definitions import DEFINITIONS
from slipway.embedded.controllers.garbage import GarbageCollector
from slipway.embedded.controllers.namespace import NamespaceController
from slipway.embedded.storage.store import DELETED, ConflictError

if TYPE_CHECKING:
    from slipway.embedded.access.authentication import User
    from slipway.embedded.apiextensions.definitions import Definitions
    from slipway.embedded.registry.resources import Catalog
    from slipway.embedded.registry.write import Registry
    from slipway.embedded.storage.store import Change


_NAMESPACES = "namespaces"
_log = logging.getLogger(__name__)


class Controllers:
    """One queue of (what, which) and the task that works it off; the same work waits only once."""

    def __init__(self, registry: Registry, catalog: Catalog, definitions: Definitions, itself: User, ca: bytes) -> None:
        self._registry, self._catalog, self._definitions = registry, catalog, definitions
        self._collector = GarbageCollector(registry, catalog, itself)
        self._namespaces = NamespaceController(registry, catalog, itself, ca)
        self._queue: dict[tuple[str, str], None] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Take in what is stored already, then follow."""
        store = self._registry.store
        for bucket in store.resources():
            for stored in store.bucket(bucket).within(""):
                self._collector.load(stored)
        for uid in self._collector.with_owners():
            self._add("garbage", uid)
        for stored in store.bucket(_NAMESPACES).within(""):
            self._add("namespace", stored.name)
        for stored in store.bucket(DEFINITIONS).within(""):
            self._add("definition", stored.name)
        store.listen(self._observe, _NAMESPACES, DEFINITIONS, CLUSTER_ROLES)
        store.follow(self._follow)
        self._task = asyncio.create_task(self._run(), name="embedded controllers")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _add(self, what: str, which: str) -> None:
        self._queue.setdefault((what, which))
        self._wake.set()

    def _observe(self, bucket: str, change: Change) -> None:
        if bucket == CLUSTER_ROLES:
            self._add("roles", "")
            return
        self._add("namespace" if bucket == _NAMESPACES else "definition", change.current.name)
        if bucket == DEFINITIONS and change.type == DELETED:
            # Names that were taken may be free now.
            for stored in self._registry.store.bucket(bucket).within(""):
                self._add("definition", stored.name)

    def _follow(self, bucket: str, change: Change) -> None:
        for uid in self._collector.observe(change):
            self._add("garbage", uid)
        if change.type != DELETED:
            return
        current = change.current
        if current.namespace:
            owner = self._registry.store.get(_NAMESPACES, "", current.namespace)
            if owner is not None and (owner.deleting or current.name in ("default", "kube-root-ca.crt")):
                self._add("namespace", current.namespace)
        resource = self._catalog.stored_as(bucket)
        if resource is not None and resource.custom is not None:
            self._add("definition", resource.custom.definition)

    async def _run(self) -> None:
        while True:
            if not self._queue:
                self._wake.clear()
                await self._wake.wait()
            what, which = next(iter(self._queue))
            del self._queue[what, which]
            try:
                await self._do(what, which)
            except (errors.StatusError, ConflictError) as error:
                _log.warning("%s %s: %s", what, which, error)
            except Exception:
                _log.exception("%s %s", what, which)
            # Requests go first.
            await asyncio.sleep(0)

    async def _do(self, what: str, which: str) -> None:
        if what == "garbage":
            await self._collector.collect(which)
        elif what == "namespace":
            await self._namespaces.reconcile(which)
        elif what == "definition":
            await self._definitions.reconcile(which)
        else:
            aggregate(self._registry.store)
