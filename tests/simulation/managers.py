"""Estates whose managers are processes of their own, which can be killed as the kernel kills: after any write, and without a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from simulation import predecessor
from simulation.estate import KINDS, PACE, Estate
from support.ports import free_port

from slipway.api.cluster.kinds import LEASE
from slipway.fleet.settings import Settings
from slipway.simulation.managers import Fuse, ManagerProcess
from slipway.simulation.workload.cluster import WorkloadCluster
from slipway.simulation.workload.local import LocalClient

# Whoever writes one of these in a workload cluster is a manager or a kubelet.
_WORKLOAD = ("nodes", "configmaps")


class KillableEstate(Estate):
    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.fuse = Fuse()
        self.kills = 0
        self._process = ManagerProcess()
        self._followed = False

    async def start(self) -> None:
        self._count()
        await self._process.start(self.server.connection(), self._settings())

    def _count(self) -> None:
        """Let every write of the management cluster be counted."""
        if not self._followed:
            self._followed = True
            catalog = self.server.core.catalog
            resources = [catalog.find(kind.group, kind.version, kind.plural) for kind in KINDS]
            self.fuse.follow(self.server.core.store, "secrets", *(each.bucket for each in resources if each is not None))

    def follow(self, cluster: WorkloadCluster) -> None:
        """Let what is written in a workload cluster be counted too."""
        self.fuse.follow(cluster.api.core.store, *_WORKLOAD)

    async def kill_and_restart(self, after: int, seconds: float) -> None:
        """Let the manager die after so many writes, or after so long where there are none; another one takes over."""
        self.fuse.set(self._process, after)
        await self.fuse.burn(seconds)
        self.kills += 1
        await self._process.gone()
        await self.start()

    async def stop(self) -> None:
        await self._process.close()


class TwinEstate(KillableEstate):
    """An estate with two managers, one of which leads."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._other = ManagerProcess()

    def _settings(self) -> Settings:
        return msgspec.structs.replace(super()._settings(), leader_elect=True)

    @property
    def first(self) -> int:
        """The process of the one that was there first."""
        return self._process.pid

    async def start_other(self) -> None:
        """The one that waits.  It serves registrations, too, and one address can be had once: hosts know the first."""
        known = self._settings()
        inventory = msgspec.structs.replace(known.inventory, bind_address=f"{self.address}:{free_port()}")
        await self._other.start(self.server.connection(), msgspec.structs.replace(known, inventory=inventory))

    def holder(self) -> str:
        """Who leads, as the Lease says."""
        held = [lease["spec"].get("holderIdentity") or "" for lease in LocalClient(self.server.core).list(LEASE, "home")]
        return next(iter(held), "")

    async def stop(self) -> None:
        await self._other.close()
        await super().stop()


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
        self._count()
        where = {"address": self.address, "port": self.port, "pace": PACE}
        self._process.pid = (await predecessor.start(self._code, self.server.connection(), **where)).pid

    async def upgrade(self, after: int, seconds: float) -> None:
        """Let the manager of today take over, after so many writes, or so long where there are none."""
        self._upgraded = True
        await self.kill_and_restart(after, seconds)

    async def stop(self) -> None:
        if not self._upgraded:
            self._process.kill()
        await super().stop()
