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
    """An estate whose manager is a process."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.fuse = Fuse()
        self.kills = 0
        self._manager_process = ManagerProcess()
        self._followed = False

    async def start(self) -> None:
        self._follow_writes()
        await self._manager_process.start(self.server.connection(), self._settings())

    @property
    def process(self) -> int:
        """The manager that was started last."""
        return self._manager_process.pid

    def _follow_writes(self) -> None:
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
        self.fuse.set(self._manager_process, after)
        await self.fuse.burn(seconds)
        self.kills += 1
        await self._manager_process.gone()
        await self.start()

    async def stop(self) -> None:
        await self._manager_process.close()


class TwinEstate(KillableEstate):
    """An estate with several managers, one of which leads."""

    def _settings(self) -> Settings:
        # Each serves registrations, and one address can be had once; hosts know the first.
        known = super()._settings()
        where = f"{self.address}:{free_port() if self.process else self.port}"
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
        self._follow_writes()
        where = {"address": self.address, "port": self.port, "pace": PACE}
        self._manager_process.pid = (await predecessor.start(self._code, self.server.connection(), **where)).pid

    async def upgrade(self, after: int, seconds: float) -> None:
        """Let the manager of today take over, after so many writes, or so long where there are none."""
        self._upgraded = True
        await self.kill_and_restart(after, seconds)

    async def stop(self) -> None:
        if not self._upgraded:
            self._manager_process.kill()
        await super().stop()
