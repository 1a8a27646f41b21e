"""What the report of a test run says beside passed and failed: how much of it rests on the real kubeadm."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is a matter of what else the machine does.
settings.register_profile("slipway", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("slipway")

# What a test module says about where its expectations come from, and what that is called in the report.
_ORACLES = {
    "_test.go": "in modules that carry rows of kubeadm's own test tables",
    "golden": "in modules that compare with recorded runs of the real programs",
}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    modules = Counter(report.nodeid.partition("::")[0] for report in terminalreporter.stats.get("passed", []) if report.when == "call")
    texts = {module: (Path(config.rootpath) / module).read_text() for module in modules}
    for sign, what in _ORACLES.items():
        carrying = [module for module, text in texts.items() if sign in text]
        if carrying:
            terminalreporter.write_line(f"{sum(modules[module] for module in carrying)} tests {what} ({len(carrying)} modules)")
