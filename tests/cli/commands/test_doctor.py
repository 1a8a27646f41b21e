"""``doctor``: its exit codes and forms of output, on machines that are folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.conftest import Run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, text in {
        "proc/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
        "sys/fs/cgroup/cgroup.controllers": "cpuset cpu memory pids\n",
        "etc/resolv.conf": "nameserver 192.0.2.53\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def test_a_machine_that_is_no_node_ends_with_0(run: Run, root: Path) -> None:
    outcome = run("doctor", "--rootfs", str(root))
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[-1].startswith("This machine, which is no node, is well")
    assert "\033" not in outcome.out


def test_what_a_node_left_ends_with_1_and_a_sentence(run: Run, root: Path) -> None:
    (root / "etc/kubernetes").mkdir()
    (root / "etc/kubernetes/admin.conf").write_text("")
    outcome = run("doctor", "--rootfs", str(root), "-o", "json")
    told = json.loads(outcome.out)
    assert outcome.code == 1
    assert "1 error found" in outcome.err
    assert [(each["name"], each["fix"]) for each in told["findings"] if each["severity"] == "error"] == [("left-behind", ["slipway reset"])]
    assert told["well"] is False


def test_an_unknown_form_is_refused(run: Run, root: Path) -> None:
    outcome = run("doctor", "--rootfs", str(root), "-o", "yaml")
    assert outcome.code != 0
    assert "use text or json" in outcome.err
