"""What the report of a test run says beside passed and failed: how much of it rests on the real programs."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is a matter of what else the machine does.
settings.register_profile("slipway", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("slipway")

# The markers that say where a test's expectations come from, and what that is called in the report.
_ORACLES = {
    "upstream_table": "in modules that carry rows of upstream's own test tables",
    "recorded": "in modules that compare with recorded runs of the real programs",
}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    passed = [report for report in terminalreporter.stats.get("passed", []) if report.when == "call"]
    for marker, what in _ORACLES.items():
        resting = [report.nodeid.partition("::")[0] for report in passed if marker in report.keywords]
        if resting:
            terminalreporter.write_line(f"{len(resting)} tests {what} ({len(set(resting))} modules)")
