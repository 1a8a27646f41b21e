"""An estate whose manager is a process of its own, which can be killed as the kernel kills: after any write, and without a word."""

from __future__ import annotations

from typing import Any

from simulation.estate import KINDS, Estate

from slipway.simulation.managers import Fuse, ManagerProcess
from slipway.simulation.workload.cluster import WorkloadCluster

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
        if not self._followed:
            self._followed = True
            catalog = self.server.core.catalog
            resources = [catalog.find(kind.group, kind.version, kind.plural) for kind in KINDS]
            self.fuse.follow(self.server.core.store, "secrets", *(each.bucket for each in resources if each is not None))
        await self._process.start(self.server.connection(), self._settings())

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
