"""``slipway fleet upgrade`` as a process, against a management cluster in another one: killed at random moments and run again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.waiting import eventually_blocking

pytestmark = pytest.mark.skipif(os.environ.get("SLIPWAY_E2E") != "1", reason="takes minutes: run it with `make e2e`")
SPACE, NAME, OLD, NEW, NEWEST = "cpaas-system", "demo", "v1.34.10", "v1.35.4", "v1.36.3"
_SLIPWAY = [sys.executable, "-m", "slipway"]
_MADE = 300.0
# Long enough for a step, short enough to be in the middle of one.
_LONGEST = 5.0
_MOST_KILLS = 60


@pytest.fixture
def management(tmp_path: Path) -> Iterator[Path]:
    """A cluster of 3 + 2 simulated hosts that stays up; the path of the management cluster's kubeconfig."""
    log = tmp_path / "demo.log"
    with log.open("w") as out:
        process = subprocess.Popen([*_SLIPWAY, "demo", "--keep", "--no-upgrade", "--workers", "2", "--to", NEWEST], stdout=out)
    try:
        eventually_blocking(lambda: "All of it stays up" in log.read_text() or process.poll() is not None, log.read_text, _MADE)
        assert process.poll() is None, log.read_text()
        (line,) = [line for line in log.read_text().splitlines() if line.startswith("export KUBECONFIG=")]
        yield Path(line.partition("=")[2])
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def test_an_upgrade_over_two_minors_that_is_killed_at_random_moments_ends_right(management: Path) -> None:
    chance = random.Random(11)
    environment = {**os.environ, "KUBECONFIG": str(management)}
    patches: list[tuple[str, str]] = []
    kills = 0
    while kills < _MOST_KILLS:
        command = [*_SLIPWAY, "fleet", "upgrade", NAME, "-n", SPACE, "--to", NEWEST, "--yes", "-o", "json"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                out, _ = process.communicate(timeout=chance.uniform(1.0, _LONGEST))
            except subprocess.TimeoutExpired:
                process.kill()
                out, _ = process.communicate()
        told = [json.loads(line) for line in out.splitlines() if line.endswith("}")]
        patches += [(each["name"], each["version"]) for each in told if each["event"] == "patch"]
        if process.returncode >= 0:
            break
        kills += 1
    assert process.returncode == 0
    assert kills > 1, "it was hardly killed"
    # Who is killed between a patch and telling of it has patched all the same.
    assert patches == [each for each in _PATCHES if each in patches]
    status = json.loads(subprocess.check_output([*_SLIPWAY, "fleet", "status", NAME, "-n", SPACE, "-o", "json"], env=environment))
    assert _versions(status) == {"demo-control-plane": {NEWEST}, "demo-workers": {NEWEST}}
    explained = subprocess.check_output([*_SLIPWAY, "fleet", "explain", NAME, "-n", SPACE], env=environment, text=True)
    assert explained == f"The Cluster demo is well: 3 control plane machines at {NEWEST}, 2 workers at {NEWEST}.\n"


_PATCHES = [("demo-control-plane", NEW), ("demo-control-plane", NEWEST), ("demo-workers", NEWEST)]


def _versions(status: Any) -> dict[str, set[str]]:
    (cluster,) = status["clusters"]
    groups = [cluster["controlPlane"], *cluster["workers"]]
    return {group["name"]: {machine["version"] for machine in group["machines"]} for group in groups}
