"""A process of an instruction: run in a group of its own, its output kept as far as there is room, its end waited for without polling."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from slipway.agent.machine import OUTPUT_LIMIT, CannotStartError, Finished

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# How often it is asked whether the process is to be stopped.
_LOOK = 0.5
# For a process that was told to end to do so, before it is made to.
_GRACE = 10.0
_PIECE = 1 << 16


class Tail:
    """The last bytes of a stream, and how many there were before."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        self._kept += data
        if (over := len(self._kept) - self._limit) > 0:
            del self._kept[:over]
            self._left_out += over

    def content(self) -> bytes:
        told = f"[{self._left_out} bytes left out]\n".encode() if self._left_out else b""
        return told + bytes(self._kept)


def run(
    words: Sequence[str],
    folder: str,
    environment: Mapping[str, str],
    *,
    timeout: float,
    stop: Callable[[], bool],
) -> Finished:
    try:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise CannotStartError(_why(words[0], error)) from None
    assert process.stdout is not None
    tail = Tail(OUTPUT_LIMIT)
    with process.stdout:
        _follow(process, process.stdout.fileno(), tail, timeout, stop)
    return Finished(process.wait(), tail.content())


def _follow(process: subprocess.Popen[bytes], pipe: int, tail: Tail, timeout: float, stop: Callable[[], bool]) -> None:
    """Until the process has ended.  What it left in the background may hold the pipe for longer, and is not waited for."""
    os.set_blocking(pipe, False)
    deadline = time.monotonic() + timeout if timeout else 0.0
    poll = select.poll()
    ended = os.pidfd_open(process.pid)
    poll.register(ended, select.POLLIN)
    poll.register(pipe, select.POLLIN)
    kill_at = 0.0
    try:
        while True:
            events = dict(poll.poll(_LOOK * 1000))
            if pipe in events and not _drain(pipe, tail):
                poll.unregister(pipe)
            if ended in events:
                _drain(pipe, tail)
                return
            now = time.monotonic()
            if not kill_at and ((deadline and now > deadline) or stop()):
                _signal(process.pid, signal.SIGTERM)
                kill_at = now + _GRACE
            elif kill_at and now > kill_at:
                _signal(process.pid, signal.SIGKILL)
    finally:
        os.close(ended)
        # Whatever else is in the group was started for this instruction, which is over where it was stopped.
        if kill_at:
            _signal(process.pid, signal.SIGKILL)


def _drain(pipe: int, tail: Tail) -> bool:
    """Whether more may come."""
    while True:
        try:
            data = os.read(pipe, _PIECE)
        except BlockingIOError:
            return True
        if not data:
            return False
        tail.add(data)


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def _why(program: str, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return f'the program "{program}" is not on this host'
    if isinstance(error, PermissionError):
        return f'the program "{program}" may not be run: {error.strerror}'
    return f'the program "{program}" cannot be run: {getattr(error, "strerror", None) or error}'


def end_all(marker: str) -> int:
    """Kill every process whose environment has an entry that begins with the marker; how many there were.  They are gone on return.

    What a command started has its environment: also a process that went into the background, and that nobody wrote down in time.
    """
    count = 0
    end = time.monotonic() + _GRACE
    while (found := _having(marker.encode())) and time.monotonic() < end:
        count = max(count, len(found))
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)
    return count


def _having(marker: bytes) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as handle:
                    # That of a process that has ended, and is only waited for, is empty.
                    entries = handle.read()
            except OSError:
                continue
            if entries.startswith(marker) or b"\0" + marker in entries:
                found.append(int(name))
    return found
