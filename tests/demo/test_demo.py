"""The whole program: a small run to its end, and one that is interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.demo.options import Options
from slipway.demo.run import main

PROGRAM = [sys.executable, "-c", "from slipway.cli.main import entry; entry()", "demo"]
SMALL = ["--control-planes=1", "--workers=1", "--hosts=3", "--speed=600"]


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "TMPDIR": str(folder)}
    # Tests that run in the background do not hear Ctrl-C, and a child would not either.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_small_cluster_is_made_upgraded_and_verified_and_nothing_is_left_but_the_report(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    folder = tmp_path / "temporary"
    folder.mkdir()
    process = start(folder, *SMALL, "-o", "json", "--report", str(report))
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    told = [json.loads(line) for line in out.splitlines()]
    assert told[-1]["event"] == "verified"
    assert [check["name"] for check in told[-1]["checks"] if not check["ok"]] == []
    assert [each["name"] for each in told if each["event"] == "done"] == ["management", "register", "make", "control plane", "workers"]
    assert "host-3" in report.read_text()
    assert list(folder.iterdir()) == []


def test_an_interrupted_run_ends_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    process = start(tmp_path, *SMALL)
    assert process.stdout is not None
    assert "start" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_nobody_reads_any_more_ends(tmp_path: Path) -> None:
    process = start(tmp_path, *SMALL)
    assert process.stdout is not None
    assert "start" in process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=30) == 141
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_cannot_be_written_is_told_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="the report cannot be written to"):
        main(Options(report=str(tmp_path / "none" / "report.html")), "text")
