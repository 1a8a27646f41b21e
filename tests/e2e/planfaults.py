"""Whoever pulls a lab host's plug, or kills its agent, in an instruction of a plan that is named.

Which instruction runs is in the agent's journal, which is a file of this machine as well; what it says after the strike is where that hit.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
# From here on, a host that loses its power comes back as a node.
AFTER_THE_DECISION = REPROVISION[6:]
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
        self.cuts = 0
        """How often its power was cut, whatever that hit."""

    def strike(self, fault: Fault, instruction: str, patience: float = 300) -> bool:
        """Wait until an instruction has begun, and strike; where it was over before that told, once more in the next attempt.

        False where there is none: a host that would come back as a node is let go on with its plan.
        """
        deadline = time.monotonic() + patience
        while True:
            with _first_in_line():
                self._wait(instruction, deadline)
                where = self._hold()
            if where != instruction:
                print(f"{fault}: {instruction} was over, it hit {where}")
                if fault == "power" and instruction in AFTER_THE_DECISION:
                    os.kill(self._agent, signal.SIGCONT)
                    return False
            if fault == "power":
                self._cut_power()
            else:
                os.kill(self._agent, signal.SIGKILL)
            if where == instruction:
                self.strikes.append(Strike(fault, instruction, self._struck.attempt))
                return True

    def _hold(self) -> str:
        """Stop the agent, so that it begins with nothing else; the instruction that runs, or what became of the plan."""
        os.kill(self._agent, signal.SIGSTOP)
        eventually_blocking(lambda: _state(self._agent) in ("", "T", "t"), "the agent stands still", pause=0.001)
        self._struck = self._known()
        return self._struck.running.name if self._struck.running is not None else self._struck.state

    def _cut_power(self) -> None:
        """End everything in the host at once: where it ends one by one, an agent may still write down that its instruction was killed."""
        leader = self._lab.status(self.host).leader
        assert leader is not None
        groups = dict(line.split(":", 2)[1:] for line in Path(f"/proc/{leader.pid}/cgroup").read_text().splitlines())
        freezer = Path("/sys/fs/cgroup/freezer") / groups.get("freezer", "none").lstrip("/") / "freezer.state"
        if freezer.exists():
            _end_at_once(freezer)
        else:
            nspawn.send(leader, signal.SIGKILL)
        hosts.power_off(self._lab, self.host)
        self.cuts += 1
        # Whoever waited until it is up again would miss what its plan does meanwhile.
        hosts.begin(self._lab, self.host)

    def _wait(self, instruction: str, deadline: float) -> None:
        self._agent, looked = self._find_agent(), time.monotonic()
        mark = f'"name":"{instruction}"'.encode()
        while time.monotonic() < deadline:
            if mark in self._content() and self._agent and self._known() != self._struck:
                return
            # A look takes longer than some instructions.
            if not _state(self._agent) and time.monotonic() - looked > 0.25:
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


@contextmanager
def _first_in_line() -> Iterator[None]:
    """Some instructions are over within milliseconds, which is less than others on a busy machine let this process wait for its turn."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    # Whoever may not go first waits with the others, and may be late.
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)


def _end_at_once(freezer: Path) -> None:
    """Kill all processes of a control group that stand still, but for those of this machine's own: its launcher's."""
    outside = os.readlink("/proc/self/ns/pid")
    freezer.write_text("FROZEN")
    try:
        eventually_blocking(lambda: freezer.read_text().strip() == "FROZEN", "the host stands still", 10, pause=0.001)
        for listed in freezer.parent.rglob("cgroup.procs"):
            for process in listed.read_text().split():
                with suppress(OSError):
                    if os.readlink(f"/proc/{process}/ns/pid") != outside:
                        os.kill(int(process), signal.SIGKILL)
    finally:
        freezer.write_text("THAWED")


def _state(process: int) -> str:
    """The letter of a process's state, see proc(5); empty where there is none that lives."""
    try:
        letter = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
    return "" if letter in "ZX" else letter


def _agents(space: str) -> Iterator[int]:
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if words[-3:] == [b"agent", b"run", b""] and os.readlink(folder / "ns" / "pid") == space:
                yield int(folder.name)
