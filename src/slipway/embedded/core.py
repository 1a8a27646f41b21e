"""The parts of a server, put together: what a request can reach, without how requests come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.embedded.access.authentication import Authenticator
from slipway.embedded.access.authorization import Authorizer
from slipway.embedded.apiextensions.definitions import Definitions
from slipway.embedded.controllers.garbage import GarbageCollector
from slipway.embedded.controllers.loop import Controllers
from slipway.embedded.endpoints.pages import Pages
from slipway.embedded.registry.resources import Catalog
from slipway.embedded.registry.write import Registry, WriteOptions
from slipway.embedded.webhooks.admission import Admission
from slipway.embedded.webhooks.client import WebhookCaller
from slipway.embedded.webhooks.conversion import Converter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from slipway.embedded.access.authentication import User
    from slipway.embedded.registry.resources import Resource
    from slipway.embedded.storage.store import Store
    from slipway.embedded.storage.watch import Watch


class Core:
    """One server's store and everything that works on it."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], datetime],
        *,
        tokens: Mapping[str, User],
        version: str,
        bookmark_seconds: float,
        ca: bytes,
        itself: User,
    ) -> None:
        self.store, self.clock, self.bookmark_seconds = store, clock, bookmark_seconds
        self.catalog = Catalog()
        self.caller = WebhookCaller()
        self.converter = Converter(self.caller)
        self.authenticator = Authenticator(store, clock, tokens)
        self.authorizer = Authorizer(store)
        self.registry = Registry(store, clock, self.converter, Admission(store, self.caller), self.authorizer)
        self.pages = Pages(self.catalog, version)
        options = WriteOptions(user=itself, manager="kube-controller-manager")
        self.definitions = Definitions(self.registry, self.catalog)
        collector = GarbageCollector(self.registry, self.catalog, options)
        self.controllers = Controllers(self.registry, self.catalog, collector, self.definitions, options, ca)
        self._watches: dict[tuple[str, str, str], set[Watch]] = {}

    def start(self) -> None:
        self.definitions.load()
        self.catalog.changed = self._end_orphaned_watches
        self.controllers.start()

    async def stop(self) -> None:
        await self.controllers.stop()
        await self.caller.close()

    def watched(self, resource: Resource, watch: Watch) -> None:
        self._watches.setdefault((resource.group, resource.version, resource.plural), set()).add(watch)

    def unwatched(self, resource: Resource, watch: Watch) -> None:
        self._watches.get((resource.group, resource.version, resource.plural), set()).discard(watch)

    def _end_orphaned_watches(self) -> None:
        """A resource that is no longer served, or is served otherwise, is no longer watched."""
        for key, watches in self._watches.items():
            if self.catalog.find(*key) is None:
                for watch in watches:
                    watch.end()
