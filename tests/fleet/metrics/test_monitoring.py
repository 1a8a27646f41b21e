"""The dashboard and the alert rules speak of metrics, labels and reasons that there are."""

from __future__ import annotations

import json
import re

import pytest
from fleet.metrics.exposition import FILES, dashboard_expressions, families

from slipway.api.machinery.yaml import goyaml
from slipway.fleet.baremetal.reasons import REASONS
from slipway.fleet.metrics.catalogue import METRICS

ALERTS = [rule for group in goyaml.load((FILES / "alerts.yaml").read_text())[0].value["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((FILES / "dashboard.json").read_text())
EXPRESSIONS = [*dashboard_expressions(), *(rule["expr"] for rule in ALERTS)]
SELECTED = re.compile(r"\b((?:slipway|controller_runtime|workqueue|rest_client|leader_election|process)_\w+)(?:\{([^}]*)\})?")


def exposed() -> set[str]:
    """The names as they are on the wire."""
    endings = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
    return {each.name + ending for each in families() for ending in endings.get(each.type, ("",))}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_metric_that_is_asked_for_is_exposed(expression: str) -> None:
    asked = {name for name, _ in SELECTED.findall(expression)}
    assert asked
    assert asked <= exposed()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_label_by_which_a_metric_of_the_fleet_is_chosen_is_one_of_its_labels(expression: str) -> None:
    labels = {each.exposed: set(each.labels) for each in METRICS}
    for name, chosen in SELECTED.findall(expression):
        if name in labels:
            assert set(re.findall(r"(\w+)\s*(?:=~|!=|=)", chosen)) <= labels[name]


def test_every_reason_for_which_an_alert_is_there_can_be_told() -> None:
    told = {row.reason for row in REASONS}
    asked = {reason for rule in ALERTS for found in re.findall(r'reason=~?"([^"]*)"', rule["expr"]) for reason in found.split("|")}
    assert asked
    assert asked <= told


@pytest.mark.parametrize("rule", ALERTS, ids=[rule["alert"] for rule in ALERTS])
def test_every_alert_says_what_is_wrong_how_bad_it_is_and_what_to_do(rule: dict[str, dict[str, str]]) -> None:
    assert rule["labels"]["severity"] in ("info", "warning", "critical")
    assert set(rule["annotations"]) == {"summary", "description"}


def test_every_metric_of_the_fleet_is_on_the_dashboard() -> None:
    shown = {name.removesuffix("_bucket") for expression in dashboard_expressions() for name, _ in SELECTED.findall(expression)}
    assert [each.exposed for each in METRICS if each.exposed not in shown] == []


def test_the_panels_have_places_and_numbers_of_their_own() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells), "panels lie over one another"
    assert max(x for x, _ in cells) < 24, "Grafana's grid has 24 columns"


def test_the_page_lists_every_alert_with_its_severity() -> None:
    page = (FILES.parents[2] / "docs/metrics.md").read_text()
    listed = re.findall(r"^\| `(Slipway\w+)` \| (\w+) \|", page, re.MULTILINE)
    assert listed == [(rule["alert"], rule["labels"]["severity"]) for rule in ALERTS]
