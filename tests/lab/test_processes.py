"""Processes that outlive the program that started them: on record first, found again, ended, and never taken for a stranger."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from slipway.lab import processes
from slipway.lab.processes import Process, Stat

SLEEP = ["sleep", "300"]
# A line of proc(5) with a name that looks like what follows it.
LINE = "4711 (a) R 1 (b) S 1 4711 4711 0 -1 4194304 97 0 0 0 0 0 0 0 20 0 1 0 571203 2531328 223 18446744073709551615 1 1 0 0 0 0 0\n"


def test_state_and_start_time_are_read_after_a_name_with_parentheses() -> None:
    assert processes.parse_stat(LINE) == Stat(state="S", started=571203)


def test_a_process_is_on_record_before_its_program_runs(tmp_path: Path) -> None:
    seen: list[str] = []

    def record(process: Process) -> None:
        seen.append(Path(f"/proc/{process.pid}/comm").read_text().strip())

    process = processes.start(SLEEP, tmp_path / "log", record)
    try:
        assert seen == ["sh"]
        assert processes.is_running(process)
    finally:
        processes.stop(process, 5)
    assert not processes.is_running(process)


def test_a_process_that_cannot_be_recorded_is_not_started(tmp_path: Path) -> None:
    pids: list[int] = []

    def record(process: Process) -> None:
        pids.append(process.pid)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        processes.start(["touch", str(tmp_path / "ran")], tmp_path / "log", record)
    assert not Path(f"/proc/{pids[0]}").exists()
    assert not (tmp_path / "ran").exists()


def test_a_starter_that_dies_while_it_records_leaves_no_process(tmp_path: Path) -> None:
    script = f"""
import os, signal, sys
from pathlib import Path
from slipway.lab import processes

def record(process):
    Path({str(tmp_path / "pid")!r}).write_text(str(process.pid))
    os.kill(os.getpid(), signal.SIGKILL)

processes.start(["sh", "-c", "echo ran; sleep 300"], Path({str(tmp_path / "log")!r}), record)
"""
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == -signal.SIGKILL
    pid = int((tmp_path / "pid").read_text())
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        pass
    else:
        with os.fdopen(handle):
            assert processes._ended_within(handle, 10)
    assert (tmp_path / "log").read_text() == ""


def test_a_program_gets_a_session_of_its_own_and_nothing_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETCD_NAME", "of the operator's shell")
    log = tmp_path / "log"
    process = processes.start(["sh", "-c", 'echo "$ETCD_NAME:$(pwd):$(cut -d" " -f6 /proc/$$/stat)"'], log, lambda _: None)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert log.read_text() == f":/:{process.pid}\n"
    assert not processes.is_running(process), "a process that is only waited for has ended"


@pytest.mark.parametrize(
    "change",
    [{"started": 1}, {"boot": "1c2fd2c6-0000-4000-8000-a6a9b8c7d6e5"}],
    ids=["another start time", "another start of the machine"],
)
def test_a_stranger_with_the_same_number_is_left_alone(change: dict[str, object], tmp_path: Path) -> None:
    ours = processes.start(SLEEP, tmp_path / "log", lambda _: None)
    recorded = msgspec.structs.replace(ours, **change)
    try:
        assert not processes.is_running(recorded)
        assert processes.is_replaced(recorded)
        assert processes.stop(recorded, 5)
        assert processes.is_running(ours)
    finally:
        processes.stop(ours, 5)


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    os.mkfifo(log)
    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    process = processes.start(["sh", "-c", "trap '' TERM; echo ready; exec sleep 300"], log, lambda _: None)
    os.set_blocking(reader, True)
    with os.fdopen(reader) as said:
        assert said.readline() == "ready\n"
        assert processes.stop(process, 0.1) is False
    assert not processes.is_running(process)


def test_a_process_that_has_ended_is_ended(tmp_path: Path) -> None:
    process = processes.start(["true"], tmp_path / "log", lambda _: None)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert processes.stop(process, 5)
    assert not processes.is_running(process)
    assert not processes.is_replaced(process)


def test_a_process_runs_until_its_last_thread_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_LAST_THREADS", 0.05)
    log = tmp_path / "log"
    log.touch()
    # Its first thread leaves alone, as those of a killed server do before the ones that hold its ports.
    leave = "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(300,)).start(); ctypes.CDLL(None).pthread_exit(None)"
    process = processes.start([sys.executable, "-c", leave], log, lambda _: None)
    try:
        while processes.parse_stat(Path(f"/proc/{process.pid}/stat").read_text()).state != "Z":
            os.sched_yield()
        assert processes.is_running(process)
    finally:
        processes.stop(process, 5)
    assert not processes.is_running(process)
