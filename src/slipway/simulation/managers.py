"""A manager in a process of its own, which can be killed as the kernel kills: after any write, and without a word.

The process that starts managers has imported all of them, so that another one is there at once: ``python -m slipway.simulation.managers``.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sys
from base64 import b64decode, b64encode
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from slipway.embedded.storage.store import Change, Store
    from slipway.fleet.settings import Settings
    from slipway.kube.connection import Connection

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_PATIENCE = 60.0
_LOOK = 0.01


class Fuse:
    """Kills the manager when the API server has done the n-th write from now, before the answer is sent."""

    def __init__(self) -> None:
        self._left = 0
        self._victim: ManagerProcess | None = None
        self.blown = asyncio.Event()

    def set(self, victim: ManagerProcess, after: int) -> None:
        self._victim, self._left = victim, after
        self.blown.clear()

    def follow(self, store: Store, *resources: str) -> None:
        store.listen(self._count, *resources)

    def blow(self) -> None:
        self._left = 0
        if not self.blown.is_set() and self._victim is not None:
            self._victim.kill()
            self.blown.set()

    async def burn(self, seconds: float) -> None:
        """Until it has blown: after so long at the latest, where there are no writes."""
        try:
            async with asyncio.timeout(seconds):
                await self.blown.wait()
        except TimeoutError:
            self.blow()

    def _count(self, resource: str, change: Change) -> None:
        if self._left:
            self._left -= 1
            if not self._left:
                self.blow()


class Use(NamedTuple):
    """What a process takes."""

    resident: int = 0
    """Bytes of memory."""
    cpu: float = 0.0
    """Seconds of processor."""


class ManagerProcess:
    """Managers, of which the last is the one that is meant.  ``log`` is for what they say, in place of where this program says it."""

    def __init__(self, *, log: Path | None = None) -> None:
        self._log = log
        self._starter: asyncio.subprocess.Process | None = None
        self.pid = 0
        self.lives = 0
        """How many managers there were."""
        self._cpu = 0.0

    async def start(self, connection: Connection, settings: Settings) -> None:
        starter = self._starter or await self._begin()
        assert starter.stdin is not None
        assert starter.stdout is not None
        starter.stdin.write(b64encode(pickle.dumps((connection, settings))) + b"\n")
        told = await starter.stdout.readline()
        if not told:
            raise OperatorError("the process that starts managers has ended")
        self.pid = int(told)
        self.lives += 1

    def kill(self) -> None:
        """It dies at whatever line it is."""
        self._cpu += usage(self.pid).cpu
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    async def gone(self) -> None:
        """Until the one that was killed is no more."""
        async with asyncio.timeout(_PATIENCE):
            while self.is_alive():
                await asyncio.sleep(_LOOK)

    def is_alive(self) -> bool:
        with suppress(ProcessLookupError):
            os.kill(self.pid, 0)
            return True
        return False

    def use(self) -> Use:
        """The memory of the one that lives, and the processor time of all."""
        now = usage(self.pid)
        return Use(now.resident, now.cpu + self._cpu)

    async def close(self) -> None:
        starter, self._starter = self._starter, None
        if starter is None:
            return
        assert starter.stdin is not None
        # Whoever starts managers ends them when nobody can ask for another one.
        starter.stdin.close()
        await asyncio.wait_for(starter.wait(), _PATIENCE)

    async def _begin(self) -> asyncio.subprocess.Process:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        errors = self._log.open("ab") if self._log is not None else None
        try:
            self._starter = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "slipway.simulation.managers",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env=environment,
            )
        finally:
            if errors is not None:
                errors.close()
        return self._starter


def usage(pid: int) -> Use:
    """As the kernel has it; nothing of a process that is not there."""
    try:
        resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        # The name of a process may have blanks in it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except (OSError, IndexError):
        return Use()
    return Use(resident * _PAGE, (int(fields[11]) + int(fields[12])) / _TICKS)


def _serve() -> None:
    from slipway.fleet import manager, registry

    # What a manager imports when it starts is here before: another one is there the sooner, and is of the same code.
    registry.declarations(registry.chosen([registry.ALL]))
    del manager
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Ctrl-C is for who started this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    started: list[int] = []
    for line in sys.stdin.buffer:
        connection, settings = pickle.loads(b64decode(line))
        started.append(os.fork())
        if not started[-1]:
            _manage(connection, settings)
        sys.stdout.write(f"{started[-1]}\n")
        sys.stdout.flush()
    # Of those that are dead the number may be somebody else's by now.
    for process in filter(_is_child, started):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _is_child(process: int) -> bool:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1]) == os.getpid()
    except OSError:
        return False


def _manage(connection: Connection, settings: Settings) -> None:
    from slipway.fleet.manager import build
    from slipway.runtime import logs

    logs.configure(settings.log_format, verbosity=settings.verbosity)

    async def run() -> None:
        await build(connection, settings).run(asyncio.Event())

    asyncio.run(run())
    os._exit(0)


if __name__ == "__main__":
    _serve()
