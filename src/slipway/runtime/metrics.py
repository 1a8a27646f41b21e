"""Prometheus metrics of the runtime, with the names that controller-runtime and client-go gave them, so that their dashboards work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

CONTENT_TYPE = CONTENT_TYPE_LATEST

# The Go clients have no series that tell when a counter began.
disable_created_metrics()  # type: ignore[no-untyped-call]

# controller-runtime's buckets of reconcile times, and client-go's of queue times (powers of ten from 10 ns) and of requests.
_RECONCILE_BUCKETS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
    1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
)  # fmt: skip
_QUEUE_BUCKETS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
_REQUEST_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_METHODS = {"get": "GET", "list": "GET", "watch": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}


class Followed(Protocol):
    """A queue, as far as metrics ask it."""

    def __len__(self) -> int: ...

    @property
    def processing(self) -> Mapping[Any, float]: ...


class Metrics:
    """All of the runtime's metrics, in a registry of its own; reconcilers may add theirs to it."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=registry)
        self._unfinished = _Unfinished()
        registry.register(self._unfinished)
        name, queue, informer = ("controller",), ("name", "controller"), ("kind", "namespace")
        self.reconciles = Counter(
            "controller_runtime_reconcile_total", "Reconciles, by how they ended", (*name, "result"), registry=registry
        )
        self.reconcile_errors = Counter("controller_runtime_reconcile_errors", "Reconciles that ended in an error", name, registry=registry)
        self.reconcile_panics = Counter(
            "controller_runtime_reconcile_panics", "Reconciles that ended in an error of the program", name, registry=registry
        )
        self.reconcile_timeouts = Counter(
            "controller_runtime_reconcile_timeouts", "Reconciles that did not end in their time", name, registry=registry
        )
        self.reconcile_time = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "How long reconciles took",
            name,
            buckets=_RECONCILE_BUCKETS,
            registry=registry,
        )
        self.workers = Gauge("controller_runtime_max_concurrent_reconciles", "Workers of a controller", name, registry=registry)
        self.active_workers = Gauge("controller_runtime_active_workers", "Workers that reconcile at present", name, registry=registry)
        self.queue_depth = Gauge("workqueue_depth", "Keys that wait in a queue", queue, registry=registry)
        self.queue_adds = Counter("workqueue_adds", "Keys that were added to a queue", queue, registry=registry)
        self.queue_wait = Histogram(
            "workqueue_queue_duration_seconds",
            "How long keys waited in a queue",
            queue,
            buckets=_QUEUE_BUCKETS,
            registry=registry,
        )
        self.queue_work = Histogram(
            "workqueue_work_duration_seconds",
            "How long workers had keys in hand",
            queue,
            buckets=_QUEUE_BUCKETS,
            registry=registry,
        )
        self.queue_retries = Counter("workqueue_retries", "Keys that were added again after a failure", queue, registry=registry)
        self.requests = Counter(
            "rest_client_requests",
            "Requests to API servers, by status, method and server",
            ("code", "method", "host"),
            registry=registry,
        )
        self.request_time = Histogram(
            "rest_client_request_duration_seconds",
            "How long requests to API servers took, by verb and server",
            ("verb", "host"),
            buckets=_REQUEST_BUCKETS,
            registry=registry,
        )
        self.leader = Gauge("leader_election_master_status", "Whether this process leads: 1, or waits to: 0", ("name",), registry=registry)
        self.informer_objects = Gauge("slipway_informer_objects", "Objects in an informer's cache", informer, registry=registry)
        self.informer_synced = Gauge("slipway_informer_synced", "Whether an informer has the whole list: 1", informer, registry=registry)
        self.informer_failing = Gauge(
            "slipway_informer_failing", "Whether an informer's last list or watch failed: 1", informer, registry=registry
        )
        self.informer_events = Counter("slipway_informer_events", "Changes that an informer saw", (*informer, "type"), registry=registry)
        self.informer_lists = Counter("slipway_informer_lists", "Lists that an informer has completed", informer, registry=registry)
        self.informer_errors = Counter(
            "slipway_informer_errors", "Lists and watches of an informer that failed, by reason", (*informer, "reason"), registry=registry
        )
        self.events_lost = Gauge("slipway_events_lost", "Kubernetes Events that could not be written, by why", ("why",), registry=registry)
        self.mapping_errors = Counter(
            "slipway_watch_mapping_errors", "Events that could not be mapped to requests and are tried again", name, registry=registry
        )

    def render(self) -> bytes:
        """What /metrics answers with."""
        return generate_latest(self.registry)

    def request(self, host: str) -> Callable[[str, int, float], None]:
        """What an :class:`AsyncClient` of ``host`` tells about its requests."""
        counters: dict[tuple[str, int], Counter] = {}
        times: dict[str, Histogram] = {}

        def seen(verb: str, code: int, seconds: float) -> None:
            counter = counters.get((verb, code))
            if counter is None:
                method = _METHODS.get(verb, verb.upper())
                # client-go's word for a request that got no answer.
                counter = counters[verb, code] = self.requests.labels(str(code) if code else "<error>", method, host)
            counter.inc()
            histogram = times.get(verb)
            if histogram is None:
                histogram = times[verb] = self.request_time.labels(verb.upper(), host)
            histogram.observe(seconds)

        return seen

    def queue(self, name: str) -> BoundQueueMetrics:
        return BoundQueueMetrics(self, name)

    def follow(self, name: str, queue: Followed, now: Callable[[], float]) -> None:
        """Tell of a queue what can be told when it is asked for: how many keys wait, how many are in hand, and for how long."""
        self._unfinished.queues[name] = queue, now
        self.queue_depth.labels(name, name).set_function(lambda: float(len(queue)))
        self.active_workers.labels(name).set_function(lambda: float(len(queue.processing)))


class BoundQueueMetrics:
    """The metrics of one queue; see :class:`slipway.runtime.queue.QueueMetrics`."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self.added = metrics.queue_adds.labels(name, name).inc
        self.taken = metrics.queue_wait.labels(name, name).observe
        self.finished = metrics.queue_work.labels(name, name).observe
        self.retried = metrics.queue_retries.labels(name, name).inc


class _Unfinished(Collector):
    """How long the keys in hand have been so, told when it is asked for: a reconcile that hangs is seen there and nowhere else."""

    def __init__(self) -> None:
        self.queues: dict[str, tuple[Followed, Callable[[], float]]] = {}

    def collect(self) -> Iterable[GaugeMetricFamily]:
        text = "For how long the keys in hand have been so, all together"
        work = GaugeMetricFamily("workqueue_unfinished_work_seconds", text, labels=("name", "controller"))
        text = "For how long the key that is longest in hand has been so"
        longest = GaugeMetricFamily("workqueue_longest_running_processor_seconds", text, labels=("name", "controller"))
        for name, (queue, now) in self.queues.items():
            ages = [now() - since for since in queue.processing.values()]
            work.add_metric((name, name), sum(ages))
            longest.add_metric((name, name), max(ages, default=0.0))
        return work, longest
