"""Everything that is around a management plane: hosts, the registry of their images, their network, and the clusters they become.

A world lives in an event loop.  Its hosts reach the manager by its real addresses, the manager the clusters by theirs; nothing else
connects the two, so that a world may as well run in a process of its own.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

from slipway.api.machinery.yaml import goyaml
from slipway.credentials import x509
from slipway.simulation import kubeadm
from slipway.simulation.boot import Life
from slipway.simulation.host import programs
from slipway.simulation.host.images import ImageRegistry
from slipway.simulation.host.machine import Machine, hardware
from slipway.simulation.network import CONFIGURATION, Segment
from slipway.simulation.tpms import SimulatedTPMs
from slipway.simulation.workload.cluster import WorkloadCluster
from slipway.simulation.workload.etcd import Gateway

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.simulation.host.images import OsImage
    from slipway.simulation.host.machine import Hardware
    from slipway.simulation.shell.process import Process

REGISTRATION = "/oem/registration/config.yaml"


class SimulatedMachine(Machine):
    """A machine whose kubeadm knows what is around it."""

    surroundings: World

    def program(self, name: str) -> Callable[[Process], int] | None:
        if name in ("kubeadm", "/usr/bin/kubeadm"):
            return self._kubeadm
        return programs.find(self, name)

    def _kubeadm(self, process: Process) -> int:
        self.begin_program("kubeadm")
        code = self.faults.fails.get("kubeadm")
        if code is not None:
            return process.fail("it fails, as the simulation was told", code)
        return kubeadm.run(self.surroundings, self, process)


class World:
    """``pace``: how long a second of a host takes; 0 as fast as it goes.  The same ``seed`` brings the same chances.

    ``first`` is the number of the first host: those of several worlds are not alike then.  ``heartbeat`` is how many real seconds there
    are between two signs of life of a kubelet, whatever the pace.
    """

    def __init__(
        self, *, registry: str = "registry.sim:5000", pace: float = 0.0, seed: int = 0, first: int = 0, heartbeat: float | None = None
    ) -> None:
        self.registry = ImageRegistry(registry)
        self.pace, self._seed, self._first, self._heartbeat = pace, seed, first, heartbeat
        self.hosts: dict[str, Life] = {}
        self.clusters: dict[str, WorkloadCluster] = {}
        """By the pin of their CA."""
        self.segment = Segment(self._is_ready)
        self.gateway: type[Gateway] = Gateway
        """What answers for a member of a cluster's etcd."""
        self._tpms = SimulatedTPMs()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._began = time.process_time()

    async def __aenter__(self) -> World:
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        # The parser is imported when it is first used, and must not be by two threads at once.
        goyaml.load("{}", "nothing")
        return self

    async def __aexit__(self, *exception: object) -> None:
        for host in list(self.hosts.values()):
            await host.stop()
        for cluster in list(self.clusters.values()):
            await cluster.stop()

    def add_host(self, name: str, image: OsImage, *, with_agent: bool = True, known: Hardware | None = None) -> Life:
        """A host with an image on its disk, switched off; ``known`` is what it is made of, where that is not to be made up."""
        number = self._first + len(self.hosts)
        machine = SimulatedMachine(known or hardware(name, number), image, self.registry, seed=self._seed + number, pace=self.pace)
        machine.surroundings = self
        machine.heartbeat = self._heartbeat
        machine.hostname = name
        if known is None:
            # One that is known has registered before, and has its credentials.
            machine.tpm = self._tpms.take()
        host = self.hosts[name] = Life(machine, self.cluster_of, with_agent=with_agent)
        machine.changed = lambda: self._changed(host)
        return host

    def give_registration(self, host: Life, url: str, ca: str, *, auth: str = "tpm") -> None:
        """What a registration image leaves on a host's disk."""
        told = {"url": url, "ca-cert": ca, "auth": auth, "emulate-tpm": True}
        host.machine.tree.make_dirs(REGISTRATION.rpartition("/")[0], 0o700)
        host.machine.tree.write(REGISTRATION, goyaml.dump({"elemental": {"registration": told}}).encode(), 0o600)

    def cluster_of(self, ca: bytes) -> WorkloadCluster | None:
        return self.clusters.get(x509.public_key_pins(ca)[0])

    # What kubeadm asks for, in a thread of a host.

    def initialised(
        self, machine: Machine, node: str, endpoint: str, authority: x509.Authority, etcd: x509.Authority, version: str
    ) -> WorkloadCluster:
        assert self._loop is not None
        made = self._initialised(machine, node, endpoint, authority, etcd, version)
        return asyncio.run_coroutine_threadsafe(made, self._loop).result(60)

    async def _initialised(
        self, machine: Machine, node: str, endpoint: str, authority: x509.Authority, etcd: x509.Authority, version: str
    ) -> WorkloadCluster:
        address, _, port = endpoint.rpartition(":")
        internal = machine.tree.exists(CONFIGURATION)
        holds = self._holds if internal else lambda cluster: True
        made = WorkloadCluster(address, int(port), authority, etcd, version, holds=holds, gateway=self.gateway)
        before = self.clusters.pop(made.pin, None)
        if before is not None:
            # All that it had was in the etcd of a first control plane that did not live to see a second one.
            await before.stop()
        self.clusters[made.pin] = made
        made.planes[machine.hardware.name] = machine, node
        await made.start()
        return made

    async def restore(
        self,
        endpoint: tuple[str, int],
        authority: x509.Authority,
        etcd: x509.Authority,
        version: str,
        planes: dict[str, str],
        *,
        internal: bool,
    ) -> WorkloadCluster:
        """A cluster that there was before: ``planes`` are the names of its control planes' Nodes, by the names of their hosts."""
        holds = self._holds if internal else lambda cluster: True
        made = WorkloadCluster(*endpoint, authority, etcd, version, holds=holds, gateway=self.gateway)
        self.clusters[made.pin] = made
        for name, node in planes.items():
            machine = self.hosts[name].machine
            made.planes[name] = machine, node
            made.etcd.know(f"https://{machine.hardware.address.partition('/')[0]}:2380")
        await made.start()
        return made

    def joined(self, machine: Machine, node: str, ca: bytes) -> WorkloadCluster | None:
        def join() -> WorkloadCluster | None:
            cluster = self.cluster_of(ca)
            for other in self.clusters.values():
                other.planes.pop(machine.hardware.name, None)
            if cluster is not None:
                cluster.planes[machine.hardware.name] = machine, node
            return cluster

        found = self.within(join)
        assert found is None or isinstance(found, WorkloadCluster)
        return found

    def within(self, action: Callable[[], object]) -> object:
        assert self._loop is not None

        async def perform() -> object:
            return action()

        return asyncio.run_coroutine_threadsafe(perform(), self._loop).result(60)

    # What follows from a change.

    def _changed(self, host: Life) -> None:
        if self._loop is None or self._loop.is_closed():
            return
        if threading.get_ident() == self._thread:
            self._settle(host)
        else:
            self._loop.call_soon_threadsafe(self._settle, host)

    def _settle(self, host: Life) -> None:
        host.changed()
        for cluster in self._clusters_with(host.machine):
            self.segment.settle([machine for machine, _ in cluster.planes.values()])
            cluster.etcd.changed = lambda cluster=cluster: self._settle_cluster(cluster)  # type: ignore[misc]
            cluster.settle()

    def _settle_cluster(self, cluster: WorkloadCluster) -> None:
        self.segment.settle([machine for machine, _ in cluster.planes.values()])
        cluster.settle()

    def _clusters_with(self, machine: Machine) -> list[WorkloadCluster]:
        return [cluster for cluster in self.clusters.values() if machine.hardware.name in cluster.planes]

    def _is_ready(self, machine: Machine) -> bool:
        return any(cluster.is_ready(machine) for cluster in self._clusters_with(machine))

    def _holds(self, cluster: WorkloadCluster) -> bool:
        machines = [machine for machine, _ in cluster.planes.values()]
        return any(cluster.is_ready(machine) for machine in self.segment.holders(cluster.api.address, machines))
