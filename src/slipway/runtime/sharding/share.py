"""The share of the work that this process has: what comes with a shard, and what goes with it."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from slipway.runtime.logs import fields
from slipway.runtime.objects import Outline

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from prometheus_client import CollectorRegistry

    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.controller import Controller
    from slipway.runtime.objects import Object, Request
    from slipway.runtime.sharding.coordinator import Coordinator
    from slipway.runtime.sharding.holding import Holding

_log = logging.getLogger("slipway.runtime.shards")


class Share:
    """``controllers`` are all that work is divided for."""

    def __init__(self, holding: Holding, cache: Cache) -> None:
        self.holding = holding
        self._cache = cache
        self._controllers: list[Controller] = []
        self._after_loss: list[Callable[[], None]] = []

    def add(self, controller: Controller) -> None:
        self._controllers.append(controller)

    def after_loss(self, let_go: Callable[[], None]) -> None:
        """Do something when a shard has gone to another process, such as closing connections."""
        self._after_loss.append(let_go)

    def admits(self, controller: Callable[[], Controller], request: Request) -> bool:
        """Whether a controller may reconcile an object now: one that is not here is nobody's, and nothing is done about it."""
        found = self._find(controller(), request)
        return found is None or self.holding.works_on(found)

    async def begin(self, shards: Collection[int]) -> None:
        self.holding.held.update(shards)
        await self._cache.refill()
        self.holding.active.update(shards)
        for controller in self._controllers:
            controller.look_at(lambda found: self.holding.shard(found) in shards and not isinstance(found, Outline))
        _log.info("Working on shards", extra=fields(shards=sorted(self.holding.active)))

    async def end(self, shard: int) -> None:
        self.holding.active.discard(shard)

        def concerns(controller: Controller) -> Callable[[Request], bool]:
            def of_shard(request: Request) -> bool:
                found = self._find(controller, request)
                return found is None or self.holding.shard(found) == shard

            return of_shard

        await asyncio.gather(*(controller.ended(concerns(controller)) for controller in self._controllers))
        self.holding.held.discard(shard)
        self._cache.reconsider()
        for let_go in self._after_loss:
            let_go()

    def _find(self, controller: Controller, request: Request) -> Object | None:
        watch = controller.watches[0]
        return self._cache.informer(watch.kind, labels=watch.labels).store.get(request.name, request.namespace)


class ShardMetrics(Collector):
    """What Prometheus is told of a share.  Objects are counted when it asks: of the kinds that are reconciled, each by its shard."""

    def __init__(self, coordinator: Coordinator, holding: Holding, cache: Cache, controllers: Sequence[Controller]) -> None:
        self._coordinator, self._holding, self._cache, self._controllers = coordinator, holding, cache, controllers

    def register(self, registry: CollectorRegistry) -> None:
        registry.register(self)

    def describe(self) -> Iterable[GaugeMetricFamily]:
        return _families()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        shards, held, members, waiting, objects = _families()
        shards.add_metric((), self._coordinator.division.shards)
        held.add_metric((), len(self._holding.active))
        members.add_metric((), len(self._coordinator.members))
        waiting.add_metric((), float(bool(self._coordinator.waits_for)))
        for (shard, kind), number in sorted(self._counted().items()):
            objects.add_metric((str(shard), kind), number)
        return shards, held, members, waiting, objects

    def _counted(self) -> Counter[tuple[int, str]]:
        found: Counter[tuple[int, str]] = Counter()
        for watch in {controller.watches[0].kind: controller.watches[0] for controller in self._controllers}.values():
            for each in self._cache.informer(watch.kind, labels=watch.labels).store.list():
                shard = -1 if isinstance(each, Outline) else self._holding.shard(each)
                if shard in self._holding.active:
                    found[shard, watch.kind.kind] += 1
        return found


def _families() -> tuple[GaugeMetricFamily, ...]:
    return (
        GaugeMetricFamily("slipway_shards", "Into how many shards the work is divided"),
        GaugeMetricFamily("slipway_shards_held", "Shards that this process works on"),
        GaugeMetricFamily("slipway_shard_members", "Processes that share the work, as this one sees it"),
        GaugeMetricFamily("slipway_shards_waiting", "Whether this process waits to share the work: 1"),
        GaugeMetricFamily("slipway_shard_objects", "Objects that this process works on, by shard and kind", labels=("shard", "kind")),
    )
