"""The ground that a soak stands on: an API server that keeps its objects, a manager in a process of its own, and simulated hosts."""

from __future__ import annotations

import asyncio
import os
from base64 import b64decode
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from slipway.api.cluster.kinds import CLUSTER, MACHINE_INVENTORY, MACHINE_REGISTRATION, NODE, SECRET
from slipway.api.elemental.names import READY_CONDITION
from slipway.api.machinery.errors import OperatorError
from slipway.embedded.registry.resources import bucket_of
from slipway.fleet.baremetal.options import BaremetalOptions
from slipway.fleet.inventory.options import SECRET as REGISTRATION_SECRET
from slipway.fleet.manifests import NAMESPACE as HOME
from slipway.kube.aio import AsyncClient
from slipway.simulation.managers import Fuse, ManagerProcess
from slipway.simulation.plane import ManagementPlane, is_free
from slipway.simulation.soak import objects
from slipway.simulation.soak.cuts import Cuts
from slipway.simulation.soak.judging.snapshot import ClusterTruth, EtcdTruth, HostTruth, Truth, is_going, is_true
from slipway.simulation.soak.judging.watcher import WATCHED, Watcher
from slipway.simulation.soak.judging.written import Written
from slipway.simulation.soak.options import NAMESPACE, VERSIONS
from slipway.simulation.workload.cluster import ETCD
from slipway.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from datetime import timedelta
    from pathlib import Path

    from slipway.simulation.boot import Life
    from slipway.simulation.host.machine import Machine
    from slipway.simulation.soak.record import Record
    from slipway.simulation.workload.cluster import WorkloadCluster

# How long a second of a host takes, and one that a manager waits.
_HOST_PACE, _MANAGER_PACE = 0.01, 0.02
_BEAT = 5.0
_MAX_FAILURES = 2
# Who waits for so many deadlines has something to say.
_PATIENT = 4
_PATIENCE = 600.0


class Ground:
    """``folder`` is for files of the time of the run; ``deadline`` is how long a host may take for a plan, and for its join.

    ``stalled`` is for how many seconds nothing of a cluster may be written while it is on its way.
    """

    def __init__(self, folder: Path, record: Record, *, seed: int, deadline: timedelta, stalled: float) -> None:
        self.stalled = stalled
        options = BaremetalOptions(join_deadline=deadline, host_deadline=deadline, max_failures=_MAX_FAILURES)
        self.plane = ManagementPlane(NAMESPACE, options, pace=_MANAGER_PACE, database=folder / "objects.db")
        self.manager = ManagerProcess(log=folder / "manager.log")
        self.fuse = Fuse()
        self._written = Written()
        self.world = World(registry=objects.REGISTRY, pace=_HOST_PACE, seed=seed)
        self.vips: dict[str, str] = {}
        """The addresses of clusters, by their names."""
        self._cuts = Cuts()
        self._record, self.deadline = record, deadline
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Ground:
        self._stack.push_async_callback(self.plane.stop)
        try:
            await self.plane.serve()
            self._follow()
            self._stack.push_async_callback(self.manager.close)
            await self.start_manager()
            await self._stack.enter_async_context(self.world)
            # It ends before the hosts do, whose end is nobody's fault.
            watching = await self._stack.enter_async_context(AsyncClient(self.plane.server.connection("watcher")))
            self.watcher = Watcher(watching, self.truth, self._record, _PATIENT * self.deadline, self._written)
            self._stack.push_async_callback(self.watcher.close)
            await self.watcher.start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    # The management plane.

    async def start_manager(self) -> None:
        await self.manager.start(self.plane.server.connection(), self.plane.settings())

    async def api_down(self) -> None:
        self.watcher.disturb()
        await self.plane.server.stop()

    async def api_up(self) -> None:
        await self.plane.server.start()
        self._follow()
        self.watcher.disturb()

    def _follow(self) -> None:
        """Let the fuse count what is written; a server that starts anew has another store."""
        store, buckets = self.plane.server.core.store, {bucket_of(kind.group, kind.plural): kind for kind in WATCHED}
        self.fuse.follow(store, *buckets)
        store.listen(lambda bucket, change: self._written.note(buckets[bucket], change.current.namespace, change.version), *buckets)

    # Hosts.

    async def register(self, number: int) -> list[str]:
        """So many hosts, switched on and registered with what is there for them; their names."""
        for version in VERSIONS:
            self.world.registry.push(objects.REPOSITORY, version, version)
        image = self.world.registry.pull(objects.image(VERSIONS[0]))
        assert image is not None
        url = await self._registration_url()
        authority = await self._registration_authority()
        names = [f"host-{index:03}" for index in range(1, number + 1)]
        for name in names:
            host = self.world.add_host(name, image)
            host.machine.heartbeat = _BEAT
            self.world.give_registration(host, url, authority)
            await host.power_on()
        await self._until(
            lambda: sum(is_true(each, READY_CONDITION) for each in self.watcher.now.of(MACHINE_INVENTORY).values()) == number,
            f"{number} hosts have not registered",
        )
        return names

    async def _registration_url(self) -> str:
        def url() -> str:
            found = self.watcher.now.get(MACHINE_REGISTRATION, objects.REGISTRATION) or {}
            return str((found.get("status") or {}).get("registrationURL") or "")

        await self._until(lambda: bool(url()), "the manager has not said where hosts register")
        return url()

    async def _registration_authority(self) -> str:
        found = await self.plane.client.get(SECRET, REGISTRATION_SECRET, HOME)
        data = found["data"]
        return b64decode(data.get("ca.crt") or data["tls.crt"]).decode()

    async def _until(self, holds: Callable[[], bool], problem: str) -> None:
        end = asyncio.get_running_loop().time() + _PATIENCE
        while not holds():
            if asyncio.get_running_loop().time() > end:
                raise OperatorError(f"{problem} within {_PATIENCE:.0f} s")
            self.check()
            await self.watcher.changed(1.0)

    def check(self) -> None:
        """Raise what went wrong beside everything."""
        self.watcher.check()

    def host(self, name: str) -> Life:
        return self.world.hosts[name]

    def cut(self, name: str, due: Sequence[object] = ()) -> AbstractContextManager[None]:
        return self._cuts.during(name, due)

    # Clusters.

    def place(self, cluster: str, number: int) -> str:
        """The address of a cluster: one that nobody has."""
        for other in range(1, 255):
            vip = f"127.{64 + os.getpid() % 60}.{number % 256}.{other}"
            if vip not in self.vips.values() and is_free(vip, objects.PORT):
                self.vips[cluster] = vip
                return vip
        raise OperatorError(f"no address is free for the cluster {cluster}")

    def workload(self, cluster: str) -> WorkloadCluster | None:
        vip = self.vips.get(cluster)
        found = [each for each in self.world.clusters.values() if each.api.address == vip]
        return found[-1] if found else None

    async def forget(self, cluster: str) -> None:
        """What a cluster that is gone had in its control planes is gone with them."""
        vip = self.vips[cluster]
        for pin, found in list(self.world.clusters.items()):
            if found.api.address == vip:
                del self.world.clusters[pin]
                await found.stop()

    # What is true.

    def truth(self, *, whole: bool = False) -> Truth:
        """How it really is; with the Nodes and the kubelets, where all of it is wanted."""
        clusters = {}
        for cluster in self.vips:
            found, known = self.workload(cluster), self.watcher.now.get(CLUSTER, cluster)
            if found is not None and known is not None and not is_going(known):
                clusters[cluster] = ClusterTruth(self._etcd(found), self._nodes(found) if whole else {})
        hosts = {name: _host(life.machine) for name, life in self.world.hosts.items()} if whole else {}
        return Truth(hosts, clusters, len(self.world.segment.doubled))

    def _etcd(self, found: WorkloadCluster) -> EtcdTruth:
        voters = [member for member in found.etcd.members.values() if not member.learner]
        down = {member.peer_url for member in voters if not member.running}
        unplugged = 0
        for name, (machine, _) in found.planes.items():
            if f"https://{machine.hardware.address.partition('/')[0]}:2380" in down:
                unplugged += self._cuts.is_cut(name)
            elif machine.running(ETCD) is not None:
                self._cuts.is_back(name)
        running = sum(member.running for member in voters)
        return EtcdTruth(len(voters), running, unplugged, len(found.etcd.members) - len(voters))

    @staticmethod
    def _nodes(found: WorkloadCluster) -> dict[str, str]:
        return {each["metadata"]["name"]: str(each["spec"].get("providerID") or "") for each in found.client.list(NODE)}


def _host(machine: Machine) -> HostTruth:
    kubelet = machine.powered and "kubelet.service" in machine.active and not machine.is_masked("kubelet.service")
    return HostTruth(machine.powered, kubelet and machine.tree.exists("/var/lib/kubelet/config.yaml"), machine.boots)
