"""The reference of metrics is what a manager exposes."""

from __future__ import annotations

import re
from pathlib import Path

from fleet.metrics.exposition import families

from slipway.fleet.metrics.catalogue import METRICS

PAGE = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()


def test_the_reference_has_every_metric_of_a_fleet_with_its_labels() -> None:
    rows = [f"| `{each.exposed}` | {each.type} | {', '.join(f'`{label}`' for label in each.labels)} | {each.text} |" for each in METRICS]
    assert [line for line in PAGE.splitlines() if line.startswith("| `slipway_") and line.count("|") == 5] == rows


def test_the_reference_has_every_metric_of_the_runtime() -> None:
    of_fleets = {metric.name for metric in METRICS}
    ours = [each for each in families() if each.name not in of_fleets and not each.name.startswith("process_")]
    rows = {f"| `{each.name}{'_total' if each.type == 'counter' else ''}` | {each.type} | {each.documentation} |" for each in ours}
    assert {line for line in PAGE.splitlines() if re.match(r"\| `[a-z_]+` \|", line) and line.count("|") == 4} == rows


def test_every_metric_of_the_table_is_exposed_and_none_beside_it() -> None:
    exposed = {each.name: (each.type, each.documentation) for each in families() if each.name not in runtime_names()}
    assert exposed == {each.name: (each.type, each.text) for each in METRICS}


def runtime_names() -> set[str]:
    from slipway.runtime.metrics import Metrics

    return {each.name for each in Metrics().registry.collect()}
