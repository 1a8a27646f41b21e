"""What a manager of hosts exposes to Prometheus."""

from __future__ import annotations

from prometheus_client.metrics_core import Metric

from slipway.fleet.metrics.following import FleetMetrics
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import Connection
from slipway.runtime.cache.cache import Cache
from slipway.runtime.metrics import Metrics


def families() -> list[Metric]:
    """Every family, those without a value too."""
    metrics = Metrics()
    FleetMetrics(Cache(AsyncClient(Connection(server="http://127.0.0.1:1"))), metrics.registry)
    return list(metrics.registry.collect())
