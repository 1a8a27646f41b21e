"""``make soak`` in small: two clusters for some seconds, as a program, with everything that can go wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.environ.get("SLIPWAY_E2E") != "1", reason="takes minutes: run it with `make e2e`")
_SECONDS = 1200


def _soaked(folder: Path, *words: str) -> dict[str, object]:
    program = [sys.executable, "-m", "slipway.simulation.soak", "--clusters", "2", "--report", str(folder), "-o", "json", *words]
    ran = subprocess.run(program, capture_output=True, text=True, timeout=_SECONDS, check=False)
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    found: dict[str, object] = json.loads((folder / "report.json").read_text())
    assert ran.returncode == 0, found["violations"] or ran.stderr
    assert events[0]["event"] == "started"
    assert events[-1]["event"] == "ended"
    return found


def test_two_clusters_are_rolled_through_faults_and_nothing_is_violated(tmp_path: Path) -> None:
    found = _soaked(tmp_path, "--minutes", "1.5", "--seed", "3")
    assert found["violations"] == []
    assert sum(found["operations"].values()) > 2  # type: ignore[attr-defined]
    assert found["rests"] > 1  # type: ignore[operator]
    assert "<svg" in (tmp_path / "report.html").read_text()


def test_a_manager_that_is_killed_a_hundred_times_loses_nothing(tmp_path: Path) -> None:
    found = _soaked(tmp_path, "--minutes", "4", "--kills", "100", "--only", "manager-killed", "--seed", "4")
    assert found["kills"] == 100
    assert found["violations"] == []
