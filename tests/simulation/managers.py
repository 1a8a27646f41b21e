"""A manager in a process of its own, which can be killed as the kernel kills: after any write, and without a word.

The process that starts managers has imported all of them, so that another one is there at once: ``python -m simulation.managers``.
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
from typing import Any

import msgspec
from simulation import predecessor
from simulation.estate import KINDS, PACE, Estate
from support.ports import free_port
from support.waiting import eventually

from slipway.api.cluster.kinds import LEASE
from slipway.embedded.storage.store import Change, Store
from slipway.fleet.manager import build
from slipway.fleet.settings import Settings
from slipway.kube.connection import Connection
from slipway.runtime import logs
from slipway.simulation.workload.cluster import WorkloadCluster
from slipway.simulation.workload.local import LocalClient

# Whoever writes one of these in a workload cluster is a manager or a kubelet.
_WORKLOAD = ("nodes", "configmaps")


class Fuse:
    """Kills the manager when the API server has done the n-th write from now, before the answer is sent."""

    def __init__(self) -> None:
        self._left = 0
        self._victim = 0
        self.blown = asyncio.Event()

    def set(self, victim: int, after: int) -> None:
        self._victim, self._left = victim, after
        self.blown.clear()

    def follow(self, store: Store, *resources: str) -> None:
        store.listen(self._count, *resources)

    def blow(self) -> None:
        self._left = 0
        if not self.blown.is_set():
            with suppress(ProcessLookupError):
                os.kill(self._victim, signal.SIGKILL)
            self.blown.set()

    def _count(self, resource: str, change: Change) -> None:
        if self._left:
            self._left -= 1
            if not self._left:
                self.blow()


class KillableEstate(Estate):
    """An estate whose manager is a process."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.fuse = Fuse()
        self.kills = 0
        self._starter: asyncio.subprocess.Process | None = None
        self._pid = 0

    async def start(self) -> None:
        if self._starter is None:
            await self._begin()
        assert self._starter is not None
        assert self._starter.stdin is not None
        assert self._starter.stdout is not None
        self._starter.stdin.write(b64encode(pickle.dumps((self.server.connection(), self._settings()))) + b"\n")
        self._pid = int(await self._starter.stdout.readline())

    @property
    def process(self) -> int:
        """The manager that was started last."""
        return self._pid

    async def _begin(self) -> None:
        source = Path(__file__).parent.parent
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), *filter(None, sys.path)])}
        self._starter = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "simulation.managers", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=environment
        )
        catalog = self.server.core.catalog
        resources = [catalog.find(kind.group, kind.version, kind.plural) for kind in KINDS]
        self.fuse.follow(self.server.core.store, "secrets", *(each.bucket for each in resources if each is not None))

    def follow(self, cluster: WorkloadCluster) -> None:
        """Let what is written in a workload cluster be counted too."""
        self.fuse.follow(cluster.api.core.store, *_WORKLOAD)

    async def kill_and_restart(self, after: int, seconds: float) -> None:
        """Let the manager die after so many writes, or after so long where there are none; another one takes over."""
        self.fuse.set(self._pid, after)
        try:
            async with asyncio.timeout(seconds):
                await self.fuse.blown.wait()
        except TimeoutError:
            self.fuse.blow()
        self.kills += 1
        await self._dead()
        await self.start()

    async def _dead(self) -> None:
        def gone() -> bool:
            with suppress(ProcessLookupError):
                os.kill(self._pid, 0)
                return False
            return True

        await eventually(gone, "the manager is dead")

    async def stop(self) -> None:
        if self._starter is None:
            return
        assert self._starter.stdin is not None
        # Whoever starts managers ends them when nobody can ask for another one.
        self._starter.stdin.close()
        await asyncio.wait_for(self._starter.wait(), 30)
        self._starter = None


class TwinEstate(KillableEstate):
    """An estate with several managers, one of which leads."""

    def _settings(self) -> Settings:
        # Each serves registrations, and one address can be had once; hosts know the first.
        known = super()._settings()
        where = f"{self.address}:{free_port() if self._pid else self.port}"
        return msgspec.structs.replace(
            known, leader_elect=True, inventory=msgspec.structs.replace(known.inventory, bind_address=where, url=known.inventory.url)
        )

    def holder(self) -> str:
        """Who leads, as the Lease says."""
        held = [lease["spec"].get("holderIdentity") or "" for lease in LocalClient(self.server.core).list(LEASE, "home")]
        return next(iter(held), "")


class SucceededEstate(KillableEstate):
    """An estate whose first manager is of the code of an earlier commit."""

    def __init__(self, code: Path, **given: Any) -> None:
        super().__init__(**given)
        self._code = code
        self._upgraded = False

    async def start(self) -> None:
        if self._upgraded:
            await super().start()
            return
        await self._begin()
        where = {"address": self.address, "port": self.port, "pace": PACE}
        self._pid = (await predecessor.start(self._code, self.server.connection(), **where)).pid

    async def upgrade(self, after: int, seconds: float) -> None:
        """Let the manager of today take over, after so many writes, or so long where there are none."""
        self._upgraded = True
        await self.kill_and_restart(after, seconds)

    async def stop(self) -> None:
        if not self._upgraded:
            self.fuse.set(self._pid, 1)
            self.fuse.blow()
        await super().stop()


def _serve() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
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
    # As the program has it: shown where a test fails.
    logs.configure(settings.log_format, verbosity=settings.verbosity)

    async def run() -> None:
        await build(connection, settings).run(asyncio.Event())

    asyncio.run(run())
    os._exit(0)


if __name__ == "__main__":
    _serve()
