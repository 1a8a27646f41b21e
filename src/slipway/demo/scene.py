"""What is known of the objects at this moment, kept by watches; whoever waits for something is woken by every change."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    MACHINE_REGISTRATION,
)
from slipway.demo.options import NAMESPACE
from slipway.runtime.cache.cache import Cache

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.objects import Object

WATCHED = (
    MACHINE_REGISTRATION,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE,
)
Observer = "Callable[[Kind, Manifest | None, Manifest | None], None]"


class StalledError(Exception):
    """Nothing has changed for longer than anything takes."""


class Scene:
    """``observe`` hears of each change: the object before and after it."""

    def __init__(self, client: AsyncClient, observe: Callable[[Kind, Manifest | None, Manifest | None], None]) -> None:
        self._cache = Cache(client, namespace=NAMESPACE)
        self._observe = observe
        self._objects: dict[Kind, dict[str, Manifest]] = {kind: {} for kind in WATCHED}
        self._changed = asyncio.Event()
        self.check: Callable[[], None] = lambda: None
        """Called whenever somebody waits; what it raises ends the wait."""

    def start(self) -> None:
        for kind in WATCHED:
            self._cache.informer(kind).add_handler(lambda old, new, kind=kind: self._seen(kind, old, new))  # type: ignore[misc]

    async def close(self) -> None:
        await self._cache.close()

    def all(self, kind: Kind) -> list[Manifest]:
        """In the order of their names."""
        found = self._objects[kind]
        return [found[name] for name in sorted(found)]

    def get(self, kind: Kind, name: str) -> Manifest | None:
        return self._objects[kind].get(name)

    async def until(self, holds: Callable[[], bool], patience: float) -> None:
        """Wait until something holds; a StalledError if nothing at all has changed for ``patience`` seconds before it does."""
        while not holds():
            self._changed.clear()
            self.check()
            try:
                async with asyncio.timeout(patience):
                    await self._changed.wait()
            except TimeoutError:
                self.check()
                if holds():
                    return
                raise StalledError from None

    def wake(self) -> None:
        self._changed.set()

    def _seen(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        name = (new or old).name  # type: ignore[union-attr]
        before = self._objects[kind].pop(name, None)
        after = new.content() if new is not None else None
        if after is not None:
            self._objects[kind][name] = after
        if before != after:
            self._observe(kind, before, after)
            self._changed.set()
