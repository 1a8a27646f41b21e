"""Programs that run on after this one: on record before they run, found again by a later run, and ended.

A process is known by its number and its start time, because a number alone may have passed to a stranger.  Signals
go through a pidfd, so that no stranger ever gets one.
"""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# The shell waits for one line, which comes when the process is on record, or for the end of the pipe, which comes when
# this program has died before: `read` fails then, and nothing is started.  Number and start time outlive exec.
_WAIT_THEN_EXECUTE = 'cd / && read -r go && exec "$@" </dev/null'
_ZOMBIES = "ZX"
_LAST_THREADS = 5.0


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """A process that cannot be mistaken for another one."""

    pid: int
    started: int
    """When it started, in clock ticks after the machine did."""
    boot: str
    """Which start of the machine that was."""


class Stat(NamedTuple):
    """What /proc/PID/stat tells of a process, as far as it is needed."""

    state: str
    started: int


def parse_stat(line: str) -> Stat:
    """A line of /proc/PID/stat, see proc(5); the program's name in it may hold blanks and parentheses."""
    fields = line.rpartition(")")[2].split()
    return Stat(state=fields[0], started=int(fields[19]))


def start(command: Sequence[str], log: Path, record: Callable[[Process], None]) -> Process:
    """Start a program in a session of its own, with its output in a file, after ``record`` has put it on record.

    It gets no environment but PATH: what is set in the operator's shell must not change it.
    """
    ready, go = os.pipe()
    try:
        pid = _spawn(command, log, ready)
    finally:
        os.close(ready)
    recorded = False
    try:
        process = Process(pid=pid, started=_read_stat(pid).started, boot=boot_id())
        record(process)
        recorded = True
        os.write(go, b"go\n")
    finally:
        os.close(go)
        if not recorded:
            os.waitpid(pid, 0)
    return process


def is_running(process: Process) -> bool:
    """Whether it is there still.  One that is just ending has its last threads waited for: they hold its ports and locks."""
    handle = _open(process)
    if handle is None:
        return False
    try:
        found = _stat(process)
        ending = found is None or found.state in _ZOMBIES
        return not (ending and _ended_within(handle, _LAST_THREADS))
    finally:
        os.close(handle)
        _reap(process)


def is_replaced(process: Process) -> bool:
    """Whether its number belongs to a stranger now."""
    return _stat(process) is None and os.path.exists(f"/proc/{process.pid}")


def stop(process: Process, patience: float) -> bool:
    """End a process and see it ended; False where it had to be killed because it did not follow SIGTERM in time."""
    handle = _open(process)
    if handle is None:
        return True
    try:
        _signal(handle, signal.SIGTERM)
        obeyed = _ended_within(handle, patience)
        if not obeyed:
            _signal(handle, signal.SIGKILL)
            # The kernel may take its time, with a disk that hangs for instance, but not for ever.
            if not _ended_within(handle, patience + 10):
                raise OperatorError(
                    f"process {process.pid} does not end, not even by SIGKILL: it hangs in the kernel; see its /proc/PID/stack"
                )
        return obeyed
    finally:
        os.close(handle)
        _reap(process)


def boot_id() -> str:
    return _BOOT_ID.read_text().strip()


def _spawn(command: Sequence[str], log: Path, ready: int) -> int:
    return os.posix_spawn(
        "/bin/sh",
        ["sh", "-c", _WAIT_THEN_EXECUTE, "sh", *command],
        {"PATH": os.environ.get("PATH", os.defpath)},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, ready, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigdef=[signal.SIGPIPE],  # Python ignores it, and a child inherits that
    )


def _read_stat(pid: int) -> Stat:
    return parse_stat(Path(f"/proc/{pid}/stat").read_text())


def _stat(process: Process) -> Stat | None:
    """What there is to tell of this very process, dead or alive."""
    if process.boot != boot_id():
        return None
    try:
        found = _read_stat(process.pid)
    except (FileNotFoundError, ProcessLookupError):
        return None
    return found if found.started == process.started else None


def _open(process: Process) -> int | None:
    """A handle to the process; what is compared after it was opened is what it holds."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    if _stat(process) is None:
        os.close(handle)
        return None
    return handle


def _signal(handle: int, number: signal.Signals) -> None:
    try:
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return  # it has ended by itself, which is what is wanted


def _ended_within(handle: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _reap(process: Process) -> None:
    """Take leave of a child of this very program, so that its number becomes free."""
    if _stat(process) is None:
        return
    try:
        os.waitpid(process.pid, os.WNOHANG)
    except ChildProcessError:
        return  # the child of a run that is over; init takes leave of it
