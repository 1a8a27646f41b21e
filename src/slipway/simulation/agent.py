"""The production agent on a simulated machine: its loop in a thread of its own, for one boot."""

from __future__ import annotations

import errno
import threading
import time
from typing import TYPE_CHECKING

from slipway.agent.loop import Agent
from slipway.agent.machine import EXECUTION_FOLDER, OUTPUT_LIMIT, CannotStartError, Finished
from slipway.agent.plan.runner import ATTEMPT
from slipway.agent.registration import exchange, settings
from slipway.simulation.host.faults import AgentKilled, PowerLost
from slipway.simulation.host.view import SimulatedHost
from slipway.simulation.shell.process import Process

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.agent.machine import Command, HttpGet
    from slipway.simulation.host.machine import Machine

# Deep enough for the agent, and a thousand of them fit.
_STACK = 512 << 10


class AgentMachine:
    """What the agent does to a machine beside files: :class:`slipway.agent.machine.Machine`."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.host = SimulatedHost(machine)
        self.slipway = ("slipway",)

    def execute(self, command: Command, *, stop: Callable[[], bool]) -> Finished:
        machine = self.host.machine
        machine.tree.make_dirs(command.folder, 0o700)
        program = machine.program(command.program)
        if program is None:
            raise CannotStartError(f'the program "{command.program}" is not on this host')
        environment = {**self.host.environment, **command.environment, EXECUTION_FOLDER: command.folder}
        process = Process([command.program, *command.arguments], environment, folder=command.folder)
        process.err, process.stopped = process.out, stop
        self._interrupt(command, done=False)
        began = time.thread_time()
        try:
            code = program(process)
        finally:
            machine.cpu_seconds += time.thread_time() - began
        self._interrupt(command, done=True)
        # The power may have gone while it ran.
        self.host.machine.check_power(machine.boots)
        return Finished(code, bytes(process.out)[-OUTPUT_LIMIT:])

    def _interrupt(self, command: Command, *, done: bool) -> None:
        """Let happen what is to happen in this instruction of a plan, whose folder has its place in the plan for a name."""
        due, place = self._machine.faults.interruptions, command.folder.rpartition("/")[2]
        if ATTEMPT not in command.environment or not due or due[0][1:] != (int(place) + 1, done):
            return
        what = due.pop(0).what
        if what == "power":
            self._machine.power_off()
            raise PowerLost
        raise AgentKilled

    def end_leftovers(self, folder: str) -> int:
        # A program of a simulated machine ends with the power, and is never left running.
        return 0

    def keep(self, path: str, content: bytes) -> None:
        self.host.machine.check_space(path)
        tree = self.host.machine.tree
        tree.make_dirs(path.rpartition("/")[0], 0o700)
        tree.write(path, content, 0o600, keep_mode=False)

    def flush(self) -> None:
        """What a simulated machine has written is on its disk."""

    def free_bytes(self, path: str) -> int | None:
        machine = self.host.machine
        return machine.free_bytes() if machine.tree.exists(path) else None

    def networks(self, interface: str) -> list[str]:
        return list(self.host.machine.addresses.get(interface, ()))

    def status(self, question: HttpGet) -> int:
        """The only web server that a simulated host knows is the registry."""
        registry = self.host.machine.registry
        if question.url.partition("://")[2].partition("/")[0] == registry.address and registry.reachable:
            return 200
        raise OSError(errno.ECONNREFUSED, "Connection refused")


class AgentThread(threading.Thread):
    """One life of the agent: from the boot of its machine to the end of its power, or until it is killed."""

    def __init__(self, machine: Machine, log: Callable[[str], None], killed: Callable[[], object]) -> None:
        threading.stack_size(_STACK)
        super().__init__(name=f"agent-{machine.hardware.name}", daemon=True)
        self._machine = AgentMachine(machine)
        self._tpm = machine.tpm
        self._log = log
        self._agent: Agent | None = None
        self._killed = False
        self._when_killed = killed

    def run(self) -> None:
        try:
            self._agent = Agent(self._machine, register=self._register, log=self._log)
            if not self._killed:
                self._agent.run()
        except PowerLost:
            self._log("the power went")
        except AgentKilled:
            self._log("killed")
            self._when_killed()

    def _register(self) -> None:
        exchange.register(self._machine, settings.settings(settings.load(self._machine.host)), log=self._log, tpm=self._tpm)

    def end(self) -> None:
        """Have it end; one that waits for its Secret does so at once."""
        self._killed = True
        if self._agent is not None:
            self._agent.end()
