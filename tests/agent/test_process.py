"""The process of an instruction: how it ends, what is kept of what it says, and what is not waited for."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from support.waiting import eventually_blocking

from slipway.agent.machine import OUTPUT_LIMIT, CannotStartError, Command, Finished, RealMachine
from slipway.host.real import RealHost


@pytest.fixture
def machine(tmp_path: Path) -> RealMachine:
    return RealMachine(RealHost(str(tmp_path), {"PATH": os.environ["PATH"]}))


def sh(machine: RealMachine, script: str, timeout: float = 0.0) -> Finished:
    return machine.execute(Command(program="sh", arguments=("-c", script), folder="/work", timeout=timeout), stop=lambda: False)


def test_both_streams_are_kept_in_the_order_in_which_they_came(machine: RealMachine) -> None:
    assert sh(machine, "echo 1; echo 2 >&2; echo 3; exit 7") == Finished(7, b"1\n2\n3\n")


def test_of_much_output_the_end_is_kept(machine: RealMachine) -> None:
    done = sh(machine, "head -c 1000000 /dev/zero; echo the end")
    assert done.output.startswith(b"[")
    assert done.output.endswith(b"the end\n")
    assert len(done.output) < OUTPUT_LIMIT + 64


def test_what_goes_on_in_the_background_is_not_waited_for(machine: RealMachine) -> None:
    began = time.monotonic()
    done = sh(machine, "sleep 60 & echo started $!")
    assert time.monotonic() - began < 30
    os.kill(int(done.output.split()[1]), 9)


def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(machine: RealMachine) -> None:
    done = sh(machine, "sleep 60 & echo $!; wait", timeout=0.1)
    assert done.code != 0
    eventually_blocking(lambda: not _runs(int(done.output)), "the process in the background to end")


def _runs(process: int) -> bool:
    try:
        # That of a process which has ended, and is only waited for, is empty.
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())
    except OSError:
        return False


def test_a_program_that_is_not_there_is_named(machine: RealMachine) -> None:
    with pytest.raises(CannotStartError, match='"no-such-program" is not on this host'):
        machine.execute(Command(program="no-such-program", folder="/work"), stop=lambda: False)


def test_what_is_kept_for_good_is_for_root_alone_and_whole(machine: RealMachine, tmp_path: Path) -> None:
    machine.keep("/var/lib/x/journal", b"one")
    machine.keep("/var/lib/x/journal", b"two")
    assert (tmp_path / "var/lib/x/journal").read_bytes() == b"two"
    assert (tmp_path / "var/lib/x/journal").stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path / "var/lib/x") == ["journal"]
