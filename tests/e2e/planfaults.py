"""Whoever pulls a lab host's plug, or kills its agent, in an instruction of a plan that is named.

Which instruction runs is in the agent's journal, which is a file of this machine as well; what it says after the strike is where that hit.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from support.waiting import eventually_blocking

from slipway.agent import paths
from slipway.agent.plan.journal import Journal
from slipway.lab.hosts import hosts, nspawn
from slipway.lab.record import DEFAULT_ROOT, Lab

Fault = Literal["agent", "power"]
CLEAN = ("stop-vip", "mask-kubelet", "remove-workload", "stop-containerd")
REPROVISION = (
    *("clean-cloud-init", "upgrade-system", "check-version", "mark-cleanup", "unmask-kubelet", "place-seed"),
    *("tidy-up", "reboot"),
)
# The last one that a host which loses its power comes back from as it was, or as a node; after it, it always comes back as a node.
DECIDES = "place-seed"
_PERIOD = 0.0005


class Strike(NamedTuple):
    """What was done, in which instruction, and which attempt of the plan that was."""

    fault: Fault
    instruction: str
    attempt: int


class PlanFaults:
    """One host."""

    def __init__(self, lab: str, host: str) -> None:
        self.host = host
        self._lab = Lab(lab, DEFAULT_ROOT / lab)
        self._journal = self._lab.host_folder(host).upper / paths.JOURNAL.lstrip("/")
        self._agent = 0
        self._struck = Journal()
        self.strikes: list[Strike] = []
        self.misses = 0
        """Strikes that hit another instruction."""

    def strike(self, fault: Fault, instruction: str, patience: float = 300) -> None:
        """Wait until an instruction has begun, and strike; where it was over before that told, once more in the next attempt."""
        deadline = time.monotonic() + patience
        while True:
            self._wait(instruction, deadline)
            if fault == "power":
                # As the launcher does it, without its taking note first.
                nspawn.send(self._lab.status(self.host).leader, signal.SIGKILL)
                hosts.power_off(self._lab, self.host)
            else:
                with suppress(ProcessLookupError):
                    os.kill(self._agent, signal.SIGKILL)
                eventually_blocking(lambda: not _runs(self._agent), "the agent is gone")
            # Nobody writes it now: on a busy machine, those who are killed go on for a moment.
            self._struck = self._known()
            if fault == "power":
                # Whoever waited until it is up again would miss what its plan does meanwhile.
                hosts.begin(self._lab, self.host)
            where = self._struck.running.name if self._struck.running is not None else self._struck.state
            if where == instruction:
                self.strikes.append(Strike(fault, instruction, self._struck.attempt))
                return
            self.misses += 1
            print(f"{fault}: {instruction} was over, it hit {where}; once more")

    def _wait(self, instruction: str, deadline: float) -> None:
        self._agent, looked = self._find_agent(), time.monotonic()
        mark = f'"name":"{instruction}"'.encode()
        while time.monotonic() < deadline:
            if mark in self._content() and self._agent and self._known() != self._struck:
                return
            # A look takes longer than some instructions.
            if not _runs(self._agent) and time.monotonic() - looked > 0.25:
                self._agent, looked = self._find_agent(), time.monotonic()
            time.sleep(_PERIOD)
        raise AssertionError(f"{self.host} did not come to {instruction}: {self._content()[:600]!r}")

    def _known(self) -> Journal:
        content = self._content()
        return msgspec.json.decode(content, type=Journal) if content else Journal()

    def _content(self) -> bytes:
        try:
            return self._journal.read_bytes()
        except FileNotFoundError:
            return b""

    def _find_agent(self) -> int:
        """The agent's process as this machine numbers it; 0, which is none, where it does not run."""
        leader = self._lab.status(self.host).leader
        if leader is None:
            return 0
        with suppress(OSError):
            space = os.readlink(f"/proc/{leader.pid}/ns/pid")
            return next(_agents(space), 0)
        return 0


def _runs(process: int) -> bool:
    """Whether there is one that is not only waited for."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _agents(space: str) -> Iterator[int]:
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if words[-3:] == [b"agent", b"run", b""] and os.readlink(folder / "ns" / "pid") == space:
                yield int(folder.name)
