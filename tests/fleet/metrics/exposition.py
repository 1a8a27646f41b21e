"""What a manager of hosts exposes to Prometheus, and what is asked of that."""

from __future__ import annotations

import json
from pathlib import Path

from prometheus_client.metrics_core import Metric

from slipway.fleet.metrics.following import FleetMetrics
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import Connection
from slipway.runtime.cache.cache import Cache
from slipway.runtime.metrics import Metrics

FILES = Path(__file__).parents[3] / "charts/slipway/files"


def families() -> list[Metric]:
    """Every family, those without a value too."""
    metrics = Metrics()
    FleetMetrics(Cache(AsyncClient(Connection(server="http://127.0.0.1:1"))), metrics.registry)
    return list(metrics.registry.collect())


def dashboard_expressions() -> list[str]:
    """What the dashboard asks of Prometheus, with something in the place of its variables."""
    panels = json.loads((FILES / "dashboard.json").read_text())["panels"]
    found = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    return [expression.replace("$namespace", "ns").replace("$cluster", "c") for expression in found]
