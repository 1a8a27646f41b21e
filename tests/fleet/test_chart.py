"""The Helm chart as it is in the repository; what Helm makes of it is tested with the real one, in the end-to-end tests."""

from __future__ import annotations

import json
import re
from pathlib import Path

from slipway import __version__
from slipway.cli.trees.manager import MANAGER
from slipway.fleet import chart, registry

CHART = Path(__file__).parents[2] / "charts/slipway"


def test_the_generated_parts_are_what_the_code_says_today() -> None:
    # Where they are not: make chart.
    there = {str(path.relative_to(CHART)): path.read_text() for path in (CHART / chart.FOLDER).iterdir()}
    wanted = chart.files()
    assert [name for name in there.keys() | wanted.keys() if there.get(name) != wanted.get(name)] == []


def test_the_chart_installs_the_version_that_it_is_beside() -> None:
    lines = (CHART / "Chart.yaml").read_text().splitlines()
    assert [line for line in lines if line.startswith(("version:", "appVersion:"))] == [
        f"version: {__version__}",
        f"appVersion: {__version__}",
    ]


def test_every_controller_can_be_chosen() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(registry.NAMES) <= set(schema["properties"]["controllers"]["items"]["enum"])


def test_every_flag_that_values_set_is_one_of_the_manager() -> None:
    used = set(re.findall(r"--([a-z-]+)=", (CHART / "templates/_helpers.tpl").read_text()))
    assert used
    assert used <= {flag.name for flag in MANAGER.flags}


def test_no_manifest_says_where_it_was_made() -> None:
    for path in (CHART / chart.FOLDER).iterdir():
        assert "chart-" not in path.read_text()
