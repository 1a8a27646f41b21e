"""The metrics of a fleet, from what a manager has in its caches anyway: being asked for them costs no request.

Of the kinds that nobody here follows there is nothing to tell, and nothing is followed for their sake but hosts, whose every change
counts.  Of several replicas the one that leads tells, or each of its share: sums over all of them are right.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import msgspec
from prometheus_client import Counter, Histogram
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    MACHINE_REGISTRATION,
)
from slipway.api.elemental import cycles
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.metrics import catalogue, facts
from slipway.runtime.objects import Outline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric as Family

    from slipway.api.cluster.kinds import Kind
    from slipway.fleet.metrics.catalogue import Metric
    from slipway.fleet.metrics.facts import GroupFacts, HostFacts, MachineFacts, PoolFacts, Wait
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.cache.informer import Informer
    from slipway.runtime.objects import Object, Request

T = TypeVar("T")
Key = tuple[str, ...]

# A bare-metal host takes minutes for what a simulated one does in seconds.
_BUCKETS = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 180.0, 300.0, 450.0, 600.0, 900.0, 1200.0, 1800.0, 3600.0, 7200.0)


class Share(NamedTuple):
    """What of a fleet this process tells: of the shards that it ``works`` on, where ``shard`` says of which one an object is."""

    shard: Callable[[Object], int]
    works: Callable[[int], bool]


ALL = Share(lambda found: 0, lambda shard: True)


class Tally(Generic[T]):
    """What each object of a kind contributes, kept as events tell it."""

    def __init__(self, read: Callable[[Object], T], share: Share = ALL) -> None:
        self._read = read
        self._share = share
        self._known: dict[Request, tuple[int, T]] = {}

    def values(self) -> Iterable[T]:
        """Those of our share."""
        told = {shard for shard in {shard for shard, _ in self._known.values()} if self._share.works(shard)}
        return [value for shard, value in self._known.values() if shard in told]

    def __call__(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self.put(new)
        elif old is not None:
            self._known.pop(old.request, None)

    def put(self, new: Object) -> tuple[T | None, T | None]:
        """Before and after; None where there was nothing, or it cannot be read: who works on such an object says so."""
        _, before = self._known.pop(new.request, (0, None))
        if isinstance(new, Outline):
            return before, None
        try:
            after = self._read(new)
        except (OperatorError, msgspec.ValidationError):
            return before, None
        self._known[new.request] = self._share.shard(new), after
        return before, after


class FleetMetrics(Collector):
    """``share``: what this process tells at present."""

    def __init__(
        self,
        cache: Cache,
        registry: CollectorRegistry,
        *,
        share: Share = ALL,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._cache = cache
        self._share = share
        self._clock = clock
        self._hosts: Tally[HostFacts] = Tally(facts.host, share)
        self._pools: Tally[PoolFacts] = Tally(facts.pool, share)
        self._machines: Tally[MachineFacts] = Tally(facts.machine, share)
        self._groups: Tally[GroupFacts] = Tally(facts.group, share)
        self._registrations: Tally[tuple[str, bool]] = Tally(lambda found: (found.namespace, facts.is_ready(found)), share)
        self._waits: list[Tally[tuple[Wait, ...]]] = []
        self._followed: set[Kind] = set()
        self._inventories: Informer | None = None
        self._plans = _made(Counter, catalogue.PLANS, registry)
        self._node_out = _made(Histogram, catalogue.NODE_OUT, registry, buckets=_BUCKETS)
        self._stages = _made(Histogram, catalogue.HOST_STAGE, registry, buckets=_BUCKETS)
        self._called = _made(Counter, catalogue.HOST_REGISTRATIONS, registry)
        for stage in facts.STAGES:
            self._stages.labels(stage)
        registry.register(self)

    def follow(self) -> None:
        """Begin to follow hosts: how their plans end is told by changes."""
        self._inventories = self._cache.informer(MACHINE_INVENTORY)
        self._inventories.add_handler(self._host_changed)

    def called(self, result: str) -> None:
        """A host has called in order to register."""
        self._called.labels(result).inc()

    def describe(self) -> Iterable[Family]:
        return [_family(metric) for metric in catalogue.METRICS if metric.type == "gauge"]

    def collect(self) -> Iterable[Family]:
        self._join()
        if self._inventories is None or not self._inventories.synced.is_set():
            return self.describe()
        return [_filled(metric, values) for metric, values in self._gauges(self._clock()).items()]

    def _join(self) -> None:
        """Follow the kinds that somebody else has begun to follow by now."""
        tallies: Mapping[Kind, list[Callable[[Object | None, Object | None], None]]] = {
            MACHINE_INVENTORY_POOL: [self._pools],
            BAREMETAL_MACHINE: [self._machines],
            BAREMETAL_CLUSTER: [],
            KUBEADM_CONTROL_PLANE: [self._groups],
            MACHINE_DEPLOYMENT: [self._groups],
            MACHINE_REGISTRATION: [self._registrations],
        }
        for informer in self._cache.informers:
            kind = informer.scope.kind
            whole = informer.synced.is_set() and not informer.scope.labels and not informer.scope.metadata_only
            if kind not in tallies or kind in self._followed or not whole:
                continue
            self._followed.add(kind)
            waits: Tally[tuple[Wait, ...]] = Tally(facts.waits, self._share)
            self._waits.append(waits)
            informer.add_handler(waits)
            for tally in tallies[kind]:
                informer.add_handler(tally)

    def _gauges(self, now: datetime) -> dict[Metric, dict[Key, float]]:
        found: dict[Metric, dict[Key, float]] = {metric: defaultdict(float) for metric in catalogue.METRICS if metric.type == "gauge"}
        for host in self._hosts.values():
            found[catalogue.HOSTS][host.namespace, host.state] += 1
            found[catalogue.HOSTS_QUARANTINED][host.namespace,] += host.quarantined
            if host.plan_checksum:
                found[catalogue.PLANS_IN_FLIGHT][host.namespace, host.plan_type] += not host.plan_state
        for (namespace,) in found[catalogue.HOSTS_QUARANTINED]:
            # A state that no host is in is told as well: 0 is not the same as nothing known.
            for state in catalogue.HOST_STATES:
                found[catalogue.HOSTS][namespace, state] += 0
        for pool in self._pools.values():
            for state, number in pool.hosts.items():
                found[catalogue.POOL_HOSTS][pool.namespace, pool.name, state] = number
        for machine in self._machines.values():
            found[catalogue.MACHINES][machine] += 1
        for group in self._groups.values():
            self._add_group(found, group, now)
        for namespace, ready in self._registrations.values():
            found[catalogue.REGISTRATIONS][namespace, str(ready).lower()] += 1
        oldest = found[catalogue.OLDEST_WAIT]
        for wait in (wait for tally in self._waits for waits in tally.values() for wait in waits):
            key = wait.kind, wait.condition, wait.reason
            found[catalogue.WAITING][key] += 1
            oldest[key] = max(oldest[key], _age(wait.since, now))
        return found

    def _add_group(self, found: dict[Metric, dict[Key, float]], group: GroupFacts, now: datetime) -> None:
        key = group.namespace, group.cluster, group.kind
        found[catalogue.ROLLOUTS][key] += group.rolling_since is not None
        ages = found[catalogue.ROLLOUT_AGE]
        ages[key] = max(ages[key], _age(group.rolling_since, now))
        found[catalogue.ROLLOUT_MACHINES][*key, "UpToDate"] += group.up_to_date
        found[catalogue.ROLLOUT_MACHINES][*key, "Outdated"] += max(0, group.machines - group.up_to_date)

    def _host_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            self._hosts(old, new)
            return
        before, after = self._hosts.put(new)
        if before is None or after is None or not self._share.works(self._share.shard(new)):
            return
        if facts.ended_plan(before, after):
            self._plans.labels(after.plan_type, after.plan_state.lower()).inc()
        # Read when they are needed: the lives of ten thousand hosts would be much to keep.
        lives = [cycles.read(each.metadata.annotations) if each is not None else () for each in (old, new)]
        if lives[0] == lives[1]:
            return
        for stage, seconds in facts.finished(*lives):
            self._stages.labels(stage).observe(seconds)
        out = facts.node_out(*lives)
        if out is not None:
            self._node_out.observe(out)


def _age(since: datetime | None, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds()) if since is not None else 0.0


def _made(type_: type[T], metric: Metric, registry: CollectorRegistry, **more: Any) -> T:
    return type_(metric.name, metric.text, metric.labels, registry=registry, **more)  # type: ignore[call-arg]


def _family(metric: Metric) -> GaugeMetricFamily:
    return GaugeMetricFamily(metric.name, metric.text, labels=metric.labels)


def _filled(metric: Metric, values: Mapping[Key, float]) -> GaugeMetricFamily:
    family = _family(metric)
    for key, value in sorted(values.items()):
        family.add_metric(key, value)
    return family
