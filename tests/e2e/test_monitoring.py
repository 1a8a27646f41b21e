"""Metrics, dashboard and alert rules with the real promtool, and the chart that brings them with the real Helm."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path

import pytest
from e2e.planes import VERSION, real_server
from e2e.test_chart import CHART, named, rendered
from fleet.baremetal.estate import estate
from fleet.metrics.exposition import dashboard_expressions
from lab.recorded_progress import RecordedProgress

from slipway.api.machinery.yaml import goyaml
from slipway.fleet.metrics.following import FleetMetrics
from slipway.lab.programs import obtain
from slipway.runtime.metrics import Metrics

pytestmark = real_server
RULES = CHART / "files/alerts.yaml"
UNIT_TESTS = Path(__file__).with_name("alerts.yaml")


@cache
def promtool() -> Path:
    return obtain.obtain(VERSION, ["promtool"], progress=RecordedProgress())["promtool"].path


def run(*arguments: str | Path, given: bytes = b"") -> str:
    done = subprocess.run([promtool(), *arguments], input=given, capture_output=True, timeout=120, check=False)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
    return said


def test_the_alert_rules_are_rules_of_prometheus() -> None:
    assert "15 rules found" in run("check", "rules", RULES)


def test_each_alert_fires_for_what_it_is_for() -> None:
    assert "SUCCESS" in run("test", "rules", UNIT_TESTS)
    tested = UNIT_TESTS.read_text()
    alerts = [rule["alert"] for group in goyaml.load(RULES.read_text())[0].value["groups"] for rule in group["rules"]]
    assert [alert for alert in alerts if alert not in tested] == []


@pytest.mark.parametrize("expression", dashboard_expressions())
def test_prometheus_understands_what_the_dashboard_asks(expression: str) -> None:
    run("--experimental", "promql", "format", expression)


@pytest.mark.asyncio
async def test_what_a_manager_exposes_is_as_prometheus_wants_metrics_to_be() -> None:
    metrics = Metrics()
    async with estate() as metal:
        fleet = FleetMetrics(metal.cache, metrics.registry, clock=lambda: metal.now)
        fleet.follow()
        await metal.cluster()
        await metal.host("rack-1")
        await metal.pool("rack-1")
        await metal.machine("m")
        await metal.becomes_a_node("m", "rack-1")
        fleet.called("new")
        metrics.request("10.0.0.1:6443")("list", 200, 0.1)
        given = metrics.render()
    assert b"slipway_hosts{" in given
    run("check", "metrics", given=given)


def test_the_chart_brings_rules_and_dashboard_as_they_are_in_its_files() -> None:
    switches = ",".join(f"monitoring.{part}.enabled=true" for part in ("podMonitor", "rules", "dashboard"))
    made = rendered("--set", switches, "--set", "monitoring.podMonitor.labels.release=prometheus")
    assert named(made, "PrometheusRule")["slipway"]["spec"] == goyaml.load(RULES.read_text())[0].value
    dashboard = named(made, "ConfigMap")["slipway-dashboard"]
    assert json.loads(dashboard["data"]["slipway-fleet.json"]) == json.loads((CHART / "files/dashboard.json").read_text())
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    monitor = named(made, "PodMonitor")["slipway-manager"]
    pod = named(made, "Deployment")["slipway-manager"]["spec"]["template"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert monitor["spec"]["podMetricsEndpoints"][0]["port"] in {port["name"] for port in pod["spec"]["containers"][0]["ports"]}


def test_without_being_asked_for_the_chart_brings_nothing_that_needs_an_operator() -> None:
    assert {each["apiVersion"].partition("/")[0] for each in rendered()}.isdisjoint({"monitoring.coreos.com"})
