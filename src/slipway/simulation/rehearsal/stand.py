"""Where a rehearsal takes place: a management plane with the carried objects, and simulated hosts that are what the real ones are.

Hosts do not register, and the cluster is not made anew: each gets the files that its past would have left on it, is switched on, and is a
Node again.  Authorities, tokens and plan Secrets are the rehearsal's own.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from slipway.agent import paths as agent_paths
from slipway.api.cluster.infrastructure.cluster import DEFAULT_NETWORK_DEVICE, BaremetalCluster
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    NAMESPACE,
    NODE,
    SECRET,
)
from slipway.api.elemental import plan as plans
from slipway.api.elemental.inventory import MachineInventory
from slipway.api.machinery.errors import OperatorError
from slipway.credentials import keys, x509
from slipway.fleet import certificates, kubeconfig
from slipway.fleet.baremetal.options import BaremetalOptions
from slipway.fleet.baremetal.plans import catalog
from slipway.fleet.baremetal.vip import vip
from slipway.fleet.contract.facts import cluster_from
from slipway.kube.client import Client
from slipway.node.cluster.live import LiveCluster
from slipway.node.etcd import pod as etcdpod
from slipway.runtime import owners
from slipway.runtime.objects import Object
from slipway.simulation import kubeadm
from slipway.simulation.boot import in_thread
from slipway.simulation.host.images import OsImage
from slipway.simulation.plane import ManagementPlane, is_free
from slipway.simulation.rehearsal import likeness, transplant
from slipway.simulation.workload.local import LocalClient
from slipway.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.server import Core
    from slipway.fleet.certificates import Pairs
    from slipway.fleet.contract.facts import ClusterFacts
    from slipway.node.context import NodeContext
    from slipway.simulation.rehearsal.measured import Durations
    from slipway.simulation.rehearsal.original import Original
    from slipway.simulation.workload.cluster import WorkloadCluster

_PURPOSES = (certificates.CA, certificates.ETCD_CA, certificates.SERVICE_ACCOUNT, certificates.FRONT_PROXY_CA)
_ALGORITHM, _DAYS = "ECDSA-P256", 3650
# A manager that looks again more often than this has no time for anything else.
_PACE = 0.02
_LONGEST_BOOT, _MOST_PACE = 0.5, 0.002
"""What the slowest host takes for a boot here, in real seconds, and the most that a second of a host takes."""
# Only what does not move at all is told as late: how long hosts really take is known from elsewhere.
_DEADLINE = timedelta(hours=1)
_PATIENCE = 60.0
_LOOK = 0.05


class Stand:
    """``durations`` are those of the hosts; they decide who of several is ready first."""

    def __init__(self, original: Original, durations: Mapping[str, Durations]) -> None:
        self._original, self._durations = original, durations
        _, self.port = transplant.endpoint(original)
        self.address = _address(self.port)
        namespace, _, _ = original.catalog_place.partition("/")
        options = BaremetalOptions(
            join_deadline=_DEADLINE,
            host_deadline=_DEADLINE,
            max_failures=1,
            catalog_namespace=namespace if namespace != original.namespace else "",
        )
        slowest = max((each.boot.seconds for each in durations.values()), default=1.0)
        self.plane = ManagementPlane(original.namespace, options, pace=_PACE)
        pace = min(_LONGEST_BOOT / max(slowest, 1.0), _MOST_PACE)
        self.world = World(registry=_host(original.registry) or "registry.invalid", pace=pace, seed=1)
        self.members = likeness.members(original)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Stand:
        self._stack.push_async_callback(self.plane.stop)
        await self._stack.__aenter__()
        try:
            await self.plane.serve()
            await self._stack.enter_async_context(self.world)
            await self._restore()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def core(self) -> Core:
        return self.plane.server.core

    def all(self, kind: Kind) -> list[Manifest]:
        return LocalClient(self.core).list(kind, self._original.namespace)

    @property
    def workload(self) -> WorkloadCluster:
        (found,) = self.world.clusters.values()
        return found

    # What there was.

    async def _restore(self) -> None:
        carried = transplant.management(self._original, self.address)
        place, _, _ = self._original.catalog_place.partition("/")
        if place != self._original.namespace:
            await LocalClient(self.core).create(NAMESPACE, {"metadata": {"name": place}})
        put(self.core, carried)
        by_kind = _by_kind(carried)
        facts = cluster_from(Object(CLUSTER, msgspec.json.encode(by_kind[CLUSTER][0])))
        plane = by_kind[KUBEADM_CONTROL_PLANE][0]
        pairs = await self._authorities(facts, plane)
        self._images()
        self._hosts(by_kind)
        await self._cluster(facts, plane, pairs, by_kind)
        self.plane.start_manager()
        await self._until(self._is_taken_up, "the hosts of the rehearsal have not come up")

    async def _authorities(self, facts: ClusterFacts, plane: Manifest) -> Pairs:
        owner = owners.reference(plane, controller=True)
        now = datetime.now(UTC)
        purposes = [certificates.Purpose(name, "") for name in _PURPOSES]
        pairs = await certificates.complete(self.plane.client, facts, purposes, {}, {"encryptionAlgorithm": _ALGORITHM}, owner)
        content = kubeconfig.content(facts.name, f"https://{facts.endpoint}", pairs[certificates.CA], now, _ALGORITHM)
        await self.plane.client.create(SECRET, kubeconfig.secret(facts, content, owner))
        return pairs

    def _images(self) -> None:
        """The registry has what the catalog names: whether the real one does, only hosts find out."""
        original = self._original
        for version in original.catalog or {}:
            try:
                reference = catalog.image(original.catalog, original.catalog_place, version, original.registry, original.name)
            except OperatorError:
                # It is told when somebody wants it.
                continue
            self.world.registry.hold(reference, likeness.kubernetes_of(version))

    def _hosts(self, objects: Mapping[Kind, list[Manifest]]) -> None:
        """Every host of the cluster's pools, switched off, as it is: a Node's with that Node's image."""
        devices = likeness.devices(objects)
        nodes = {each.host: each for each in self.members}
        access = _agent_access(self.plane.server.kubeconfig(), self._original.namespace)
        for number, each in enumerate(objects[MACHINE_INVENTORY]):
            name = str(each["metadata"]["name"])
            inventory = msgspec.convert(each, MachineInventory, strict=False)
            member = nodes.get(name)
            image = OsImage(f"{self.world.registry.address}/before", member.version if member is not None else "v0.0.0")
            known = likeness.known_hardware(
                name, number, inventory, devices.get(name) or devices.get("") or DEFAULT_NETWORK_DEVICE, image.size
            )
            host = self.world.add_host(name, image, known=known)
            host.machine.hostname = member.node if member is not None else name
            host.machine.boot_seconds = self._durations[name].boot.seconds if name in self._durations else None
            host.machine.tree.make_dirs(agent_paths.FOLDER, 0o700)
            host.machine.tree.write(agent_paths.CONNECTION, access(name), 0o600)

    async def _cluster(self, facts: ClusterFacts, plane: Manifest, pairs: Pairs, objects: Mapping[Kind, list[Manifest]]) -> None:
        """The workload cluster with its Nodes, and everybody's files; on return its API answers."""
        authority, etcd = _authority(pairs[certificates.CA]), _authority(pairs[certificates.ETCD_CA])
        infrastructure = msgspec.convert(objects[BAREMETAL_CLUSTER][0], BaremetalCluster, strict=False)
        planes = {each.host: each.node for each in self.members if each.control_plane}
        version = str((plane.get("spec") or {}).get("version") or "")
        internal = vip.internal(infrastructure) is not None
        cluster = await self.world.restore((self.address, self.port), authority, etcd, version, planes, internal=internal)
        carried = transplant.workload(self._original) or [(NODE, likeness.node(each)) for each in self.members]
        for namespace in transplant.namespaces(carried):
            await cluster.client.create(NAMESPACE, {"metadata": {"name": namespace}})
        put(cluster.api.core, carried)
        known = likeness.peers(infrastructure, objects)
        etcd_members = [
            etcdpod.Member(planes[name], f"https://{self.world.hosts[name].machine.hardware.address.partition('/')[0]}:2380")
            for name in planes
        ]
        first: NodeContext | None = None
        for name, host in self.world.hosts.items():
            # What is written now is there before the boot comes to it.
            await host.power_on()
            member = next((each for each in self.members if each.host == name), None)
            if member is None:
                continue
            text = likeness.configuration(facts, plane, member, host.machine.hardware)
            context = kubeadm.restore(host.machine, text, authority, etcd_members, control_plane=member.control_plane)
            if member.control_plane:
                first = first or context
                for file in vip.files_for(infrastructure, name, known):
                    context.host.write(file.path, file.content.encode(), int(file.mode, 8))
        await self._until(lambda: cluster.api.serving, "the API of the rehearsal's cluster does not answer")
        assert first is not None, "a cluster without a control plane is refused before"
        context, place = first, f"{self.address}:{self.port}"
        administrator = Client(cluster.api.connection(), environment={})
        await in_thread(lambda: kubeadm.publish(context, LiveCluster(administrator, patience=_PATIENCE), place, authority))

    def _is_taken_up(self) -> bool:
        """Every host has taken its first plan, and every Node of a host is Ready."""
        applied = plans.checksum(plans.EMPTY)
        hosts = [(each.get("status") or {}).get("plan") or {} for each in self.all(MACHINE_INVENTORY)]
        known = {each.node for each in self.members}
        nodes = [each for each in self.workload.client.list(NODE) if each["metadata"]["name"] in known]
        return all(each.get("checksum") == applied and each.get("state") for each in hosts) and all(
            condition_is_true(each, "Ready") for each in nodes
        )

    async def _until(self, holds: Callable[[], bool], problem: str) -> None:
        # In looks and not by a clock: a machine that is too busy to look is given the time.
        for _ in range(int(_PATIENCE / _LOOK)):
            if holds():
                return
            self.plane.check()
            await asyncio.sleep(_LOOK)
        raise OperatorError(f"{problem} within {_PATIENCE:.0f} s: this is a fault of Slipway")


def put(core: Core, objects: Iterable[tuple[Kind, Manifest]]) -> None:
    """As a backup is played back: past what judges new objects, with their uids and times."""
    for kind, manifest in objects:
        resource = core.catalog.find(kind.group, kind.version, kind.plural)
        if resource is None:
            raise OperatorError(f"the rehearsal's API server does not know {kind.plural} of {kind.api_version}")
        core.store.put(resource.bucket, {**manifest, "apiVersion": kind.api_version, "kind": kind.kind}, 0)


def condition_is_true(manifest: Manifest, type_: str) -> bool:
    conditions = (manifest.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == type_ and each.get("status") == "True" for each in conditions)


def _address(port: int) -> str:
    """A loopback address on which nobody has the port."""
    for _ in range(100):
        address = f"127.{random.randint(64, 126)}.{random.randint(0, 255)}.{random.randint(1, 254)}"
        if is_free(address, port):
            return address
    raise OperatorError(f"no address of 127.64.0.0/10 has its port {port} free, on which the rehearsal's cluster would answer")


def _host(registry: str) -> str:
    return registry.strip().removeprefix("https://").removeprefix("http://").partition("/")[0]


def _by_kind(objects: Iterable[tuple[Kind, Manifest]]) -> dict[Kind, list[Manifest]]:
    found: dict[Kind, list[Manifest]] = {kind: [] for kind in (MACHINE_INVENTORY, MACHINE_INVENTORY_POOL, BAREMETAL_MACHINE)}
    for kind, manifest in objects:
        found.setdefault(kind, []).append(manifest)
    return found


def _agent_access(text: str, namespace: str) -> Callable[[str], bytes]:
    def written(name: str) -> bytes:
        return msgspec.json.encode({"kubeConfig": text, "namespace": namespace, "secretName": name})

    return written


def _authority(pair: certificates.KeyPair) -> x509.Authority:
    return x509.Authority(x509.parse(pair.certificate)[0], keys.parse_private(pair.key))
