"""What is told of a program that did not start; the lines are those of the real programs, shortened."""

from __future__ import annotations

from pathlib import Path

import pytest

from slipway.lab.management import log as programlog

# etcd 3.6.6 and Kubernetes 1.35.4, provoked by a taken port, a wrong flag, a full disk, random bytes in the log of etcd.
ETCD_PORT = (
    '{"level":"fatal","ts":"2026-11-15T22:35:26.174762Z","caller":"etcdmain/etcd.go:183","msg":"discovery failed",'
    '"error":"listen tcp 127.0.0.1:23999: bind: address already in use"}'
)
API_SERVER_PORT = (
    'E1115 22:36:04.622793   22250 run.go:72] "command failed" err="failed to create listener: failed to listen on 127.0.0.1:23999: '
    'listen tcp 127.0.0.1:23999: bind: address already in use"'
)
ETCD_DISK = '{"level":"panic","caller":"etcdserver/bootstrap.go:663","msg":"failed to create WAL","error":"no space left on device"}'


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        (ETCD_PORT, "another program took its port"),
        (API_SERVER_PORT, "another program took its port"),
        ("Error: unknown flag: --nonsense", "another version"),
        ("flag provided but not defined: -nonsense", "another version"),
        (ETCD_DISK, "the disk is full"),
        ("panic: cannot use none as id", "its data is damaged"),
        ("sh: 1: exec: /opt/etcd: Exec format error", "another kind of processor"),
        ('I1115 22:21:24.049143    8028 server.go:150] "Version: v1.35.4"', ""),
    ],
)
def test_a_known_line_is_explained(line: str, meaning: str) -> None:
    cause = programlog.likely_cause(["something before", line, "goroutine 1 [running]:"])
    assert meaning in cause
    assert bool(cause) == bool(meaning)


def test_the_stacks_of_a_panic_are_not_shown() -> None:
    lines = [f"line {number}" for number in range(9)] + ["panic: failed to create WAL", "goroutine 1 [running]:", "main.main()"]
    assert programlog.shown(lines) == ["line 4", "line 5", "line 6", "line 7", "line 8", "panic: failed to create WAL"]


def test_the_tail_of_a_long_log_has_its_last_lines_shortened(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("x" * 200_000 + "\n\nsecond\n" + "y" * 400 + "\n")
    assert programlog.tail(log, 2) == ["second", "y" * 300 + "…"]


def test_a_program_without_a_log_has_said_nothing(tmp_path: Path) -> None:
    assert programlog.tail(tmp_path / "log") == []
