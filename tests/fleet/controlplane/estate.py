"""A control plane with everything around it that others do: a management cluster and a workload cluster, both on embedded API servers.

Hosts, bootstrap data and the Machine controller are played by hand: a host comes up when the test says so, and goes when it may.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any

from fleet.controlplane.etcdmodel import Etcd, inspection_of
from fleet.fuse import Fuse, Killed
from fleet.infrastructure import (
    TEST_MACHINE,
    TEST_MACHINE_TEMPLATE,
    condition,
    crds,
    kubeadm_config,
    node_of,
    static_pods,
    template,
    workload_cluster,
)
from fleet.world import kubeconfig
from support.waiting import eventually

from slipway.api.cluster import crds as own
from slipway.api.cluster import names
from slipway.api.cluster.kinds import (
    CLUSTER,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONFIG,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_POOL,
    NAMESPACE,
    NODE,
    POD,
    SECRET,
    Kind,
)
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.clustercache import WorkloadClusters
from slipway.fleet.controlplane.reconciler import KubeadmControlPlaneReconciler
from slipway.fleet.snapshots.options import SnapshotOptions
from slipway.kube.aio import AsyncClient, PatchType
from slipway.kube.errors import AlreadyExistsError, UnreachableError
from slipway.runtime.cache.cache import Cache
from slipway.runtime.events import EventRecorder
from slipway.runtime.objects import Request, Result

Manifest = dict[str, Any]
PLACE = "n"
FINALIZER = "machine.cluster.x-k8s.io"
HOOK = names.KUBEADM_CONTROL_PLANE_PRE_TERMINATE_HOOK
CACHED = (KUBEADM_CONTROL_PLANE, MACHINE, CLUSTER, KUBEADM_CONFIG, SECRET, MACHINE_POOL)


class Estate:
    def __init__(self, server: EmbeddedServer, management: AsyncClient, workload: AsyncClient) -> None:
        self._server = server
        self.client = management
        self.workload = workload
        self.etcd = Etcd()
        self.cache = Cache(management)
        self.clusters = WorkloadClusters(management)
        self.events = EventRecorder(management, "test")
        self.snapshots = SnapshotOptions()
        self.reconciler = self.restarted()
        self.most_machines = 0
        self.seen_machines: set[str] = set()
        self.versions: list[str] = []
        """The versions that the control plane has had."""
        self.fresh_every_time = False
        """Whether the controller is started anew for every reconcile."""

    def restarted(self, client: AsyncClient | None = None) -> KubeadmControlPlaneReconciler:
        """The controller as it is after a new start, with nothing in its memory."""
        self.reconciler = KubeadmControlPlaneReconciler(
            client or self.client,
            self.cache,
            workload=self.clusters,
            events=self.events,
            inspection=inspection_of(self.etcd),
            snapshots=self.snapshots,
        )
        return self.reconciler

    async def close(self) -> None:
        await self.events.close()
        await self.clusters.close()
        await self.cache.close()

    # What people and other controllers make.

    async def make(self, *, replicas: int = 3, version: str = "v1.35.4", config: Manifest | None = None, **spec: Any) -> None:
        reference = {"apiGroup": KUBEADM_CONTROL_PLANE.group, "kind": KUBEADM_CONTROL_PLANE.kind, "name": "cp"}
        cluster = await self.client.create(
            CLUSTER,
            {
                "metadata": {"name": "c", "namespace": PLACE},
                "spec": {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}, "controlPlaneRef": reference},
            },
        )
        await self.patch(CLUSTER, "c", {"status": {"initialization": {"infrastructureProvisioned": True}}}, status=True)
        await self.client.create(TEST_MACHINE_TEMPLATE, template(TEST_MACHINE_TEMPLATE, "t", PLACE, {"size": "small"}))
        owner = {"apiVersion": CLUSTER.api_version, "kind": "Cluster", "name": "c", "uid": cluster["metadata"]["uid"]}
        metadata = {"name": "cp", "namespace": PLACE, "labels": {names.CLUSTER_NAME_LABEL: "c"}, "ownerReferences": [owner]}
        infrastructure = {"apiGroup": TEST_MACHINE_TEMPLATE.group, "kind": TEST_MACHINE_TEMPLATE.kind, "name": "t"}
        whole = {
            "replicas": replicas,
            "version": version,
            "machineTemplate": {"spec": {"infrastructureRef": infrastructure}},
            "kubeadmConfigSpec": config or {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}},
            "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
            **spec,
        }
        await self.client.create(KUBEADM_CONTROL_PLANE, {"metadata": metadata, "spec": whole})
        # A person's: the workload cluster of the test has a CA of its own.
        labels = {names.CLUSTER_NAME_LABEL: "c"}
        content = kubeconfig(self.workload.connection)
        await self.client.create(
            SECRET, {"metadata": {"name": "c-kubeconfig", "namespace": PLACE, "labels": labels}, "stringData": {"value": content}}
        )

    async def machine(self, name: str, *, control_plane: bool, owners: Sequence[Manifest] = ()) -> None:
        """A Machine that is not the control plane's."""
        labels = {names.CLUSTER_NAME_LABEL: "c", **({names.CONTROL_PLANE_LABEL: ""} if control_plane else {})}
        config = {"apiGroup": KUBEADM_CONFIG.group, "kind": KUBEADM_CONFIG.kind, "name": name}
        infrastructure = {"apiGroup": TEST_MACHINE.group, "kind": TEST_MACHINE.kind, "name": name}
        spec = {"clusterName": "c", "version": "v1.35.4", "bootstrap": {"configRef": config}, "infrastructureRef": infrastructure}
        metadata = {"name": name, "namespace": PLACE, "labels": labels, "ownerReferences": list(owners)}
        await self.client.create(MACHINE, {"metadata": metadata, "spec": spec})

    async def patch(self, kind: Kind, name: str, body: Manifest, *, status: bool = False) -> Manifest:
        return await self.client.patch(kind, name, PLACE, body, type=PatchType.MERGE, subresource="status" if status else "")

    async def change(self, **spec: Any) -> None:
        """Change the spec of the control plane."""
        await self.patch(KUBEADM_CONTROL_PLANE, "cp", {"spec": spec})

    async def come_up(self, name: str) -> None:
        """The host of a Machine is made and its node has joined."""
        machine = await self.client.get(MACHINE, name, PLACE)
        version = machine["spec"]["version"]
        await self.patch(MACHINE, name, {"metadata": {"finalizers": [FINALIZER]}, "spec": {"providerID": f"test:///{name}"}})
        node = node_of(name, version, control_plane=True)
        status = node.pop("status")
        await self.workload.create(NODE, node)
        await self.workload.patch(NODE, name, "", {"status": status}, type=PatchType.MERGE, subresource="status")
        for pod in static_pods(name):
            status = pod.pop("status")
            await self.workload.create(POD, pod)
            body = {"status": status}
            await self.workload.patch(POD, pod["metadata"]["name"], "kube-system", body, type=PatchType.MERGE, subresource="status")
        with suppress(AlreadyExistsError):
            await self.workload.create(CONFIG_MAP, kubeadm_config(version))
        self.etcd.join(name)
        told = [condition("Ready"), condition("Available")]
        await self._tell(name, told, nodeRef={"name": name}, nodeInfo={**_NODE_INFO, "kubeletVersion": version})
        if not (await self.initialized()):
            await self.patch(
                CLUSTER, "c", {"status": {"conditions": [condition("ControlPlaneInitialized", reason="Initialized")]}}, status=True
            )

    async def fall_ill(self, name: str) -> None:
        """The host is dead, and a health check has given it up."""
        self.etcd.dead.add(name)
        if self.etcd.leading == name:
            self.etcd.leader = next(number for number, node in self.etcd.members.items() if node not in self.etcd.dead)
        for pod in static_pods(name):
            await self.workload.delete(POD, pod["metadata"]["name"], "kube-system")
        await self.remediate(name)

    async def remediate(self, name: str) -> None:
        """A health check gives a Machine up, and leaves it to its owner."""
        await self._tell(name, [condition("HealthCheckSucceeded", "False"), condition("OwnerRemediated", "False", "WaitingForRemediation")])

    async def forget_workload(self) -> None:
        """What a new etcd knows: nothing."""
        await self.workload.delete(CONFIG_MAP, "kubeadm-config", "kube-system")

    async def drain(self, name: str) -> None:
        """A Machine that goes waits for nothing but the hooks of others."""
        await self._tell(name, [condition("Deleting", "True", "WaitingForPreTerminateHook")])

    async def take_down(self, name: str) -> None:
        """The host of a Machine that is released is gone, and so is the Machine."""
        machine = await self.client.get(MACHINE, name, PLACE)
        assert HOOK not in (machine["metadata"].get("annotations") or {}), "taken down before its etcd member was removed"
        for pod in static_pods(name):
            await self.workload.delete(POD, pod["metadata"]["name"], "kube-system")
        await self.workload.delete(NODE, name)
        self.etcd.dead.discard(name)
        await self.patch(MACHINE, name, {"metadata": {"finalizers": []}})
        await self.client.delete(TEST_MACHINE, name, PLACE)
        await self.client.delete(KUBEADM_CONFIG, name, PLACE)

    async def _tell(self, name: str, conditions: list[Manifest], **status: Any) -> None:
        machine = await self.client.get(MACHINE, name, PLACE)
        said = {one["type"]: one for one in (machine.get("status") or {}).get("conditions") or ()}
        said |= {one["type"]: one for one in conditions}
        await self.patch(MACHINE, name, {"status": {"conditions": list(said.values()), **status}}, status=True)

    # The controller.

    async def reconcile(self) -> Result:
        """One reconcile, with everything in the cache that the API server has."""
        await self.settle()
        if self.fresh_every_time:
            self.restarted()
        result = await self.reconciler.reconcile(Request(PLACE, "cp"))
        machines = await self.names()
        self.most_machines = max(self.most_machines, len(machines))
        self.seen_machines.update(machines)
        found = await self.client.find(KUBEADM_CONTROL_PLANE, "cp", PLACE)
        version = found["spec"]["version"] if found is not None else ""
        if version and version not in self.versions:
            self.versions.append(version)
        return result

    async def cut_short(self, fuse: Fuse) -> bool:
        """Whether a new process was ended by the fuse in its one reconcile."""
        await self.settle()
        async with AsyncClient(self._server.connection(), on_request=fuse) as client:
            reconciler = self.restarted(client)
            try:
                await reconciler.reconcile(Request(PLACE, "cp"))
            except (Killed, UnreachableError):
                pass
            finally:
                self.restarted()
        return fuse.left <= 0

    async def rest(self, times: int = 6) -> None:
        """Reconcile until nothing changes any more."""
        seen = None
        for _ in range(times):
            await self.reconcile()
            now = [self._versions(kind) for kind in CACHED]
            if now == seen:
                return
            seen = now

    async def play(self) -> None:
        """Let hosts come up and go as their Machines want it, until nothing changes any more."""
        for _ in range(60):
            await self.rest()
            if not await self._one_thing():
                return
        raise AssertionError("it does not end")

    async def _one_thing(self) -> bool:
        machines = await self.machines()
        leaving = [machine for machine in machines if machine["metadata"].get("deletionTimestamp")]
        assert len(leaving) <= 1, "one at a time"
        for machine in leaving:
            name = machine["metadata"]["name"]
            if HOOK not in (machine["metadata"].get("annotations") or {}):
                await self.take_down(name)
            else:
                await self.drain(name)
                await self.rest()
            return True
        coming = [machine for machine in machines if not ((machine.get("status") or {}).get("nodeRef") or {}).get("name")]
        assert len(coming) <= 1, "one at a time"
        for machine in coming:
            await self.come_up(machine["metadata"]["name"])
            return True
        return False

    def _versions(self, kind: Kind) -> dict[str, str]:
        """What the server has, without asking it: that is done more often than anything else here."""
        bucket = self._server.core.store.bucket(f"{kind.plural}.{kind.group}" if kind.group else kind.plural)
        found = [stored for stored in bucket.within(PLACE) if kind is not SECRET or names.CLUSTER_NAME_LABEL in stored.labels]
        return {stored.name: str(stored.version) for stored in found}

    async def settle(self) -> None:
        for kind in (*CACHED, TEST_MACHINE, TEST_MACHINE_TEMPLATE):

            async def caught_up(kind: Kind = kind) -> bool:
                known = {found.name: found.metadata.resource_version for found in await self.cache.list(kind, PLACE)}
                return known == self._versions(kind)

            await eventually(caught_up, f"the cache has all {kind.plural}")
        if await self.initialized():
            await eventually(lambda: self.clusters.probe(PLACE, "c").connected, "there is a connection to the workload cluster")

    # What is there.

    async def plane(self) -> Manifest:
        return await self.client.get(KUBEADM_CONTROL_PLANE, "cp", PLACE)

    async def initialized(self) -> bool:
        found = await self.client.find(KUBEADM_CONTROL_PLANE, "cp", PLACE)
        return bool((((found or {}).get("status") or {}).get("initialization") or {}).get("controlPlaneInitialized"))

    async def machines(self) -> list[Manifest]:
        return await self.client.list(MACHINE, PLACE)

    async def names(self) -> list[str]:
        return [machine["metadata"]["name"] for machine in await self.machines()]

    async def condition(self, name: str) -> Manifest:
        return next(one for one in (await self.plane())["status"]["conditions"] if one["type"] == name)


_NODE_INFO = dict.fromkeys(
    (
        "machineID",
        "systemUUID",
        "bootID",
        "kernelVersion",
        "osImage",
        "containerRuntimeVersion",
        "kubeProxyVersion",
        "operatingSystem",
        "architecture",
    ),
    "",
)


@cache
def definitions() -> list[Manifest]:
    """The CRDs that a control plane has to do with."""
    wanted = {f"{kind.plural}.{kind.group}" for kind in CACHED}
    return [crd for crd in own.crds() if crd["metadata"]["name"] in wanted]


@asynccontextmanager
async def estate() -> AsyncIterator[Estate]:
    async with (
        EmbeddedServer() as management,
        EmbeddedServer() as workload,
        AsyncClient(management.connection()) as client,
        workload_cluster(workload.connection()) as inside,
    ):
        await client.create(NAMESPACE, {"metadata": {"name": PLACE}})
        for crd in (*definitions(), *crds()):
            await client.create(CUSTOM_RESOURCE_DEFINITION, crd)
        made = Estate(management, client, inside)
        try:
            yield made
        finally:
            await made.close()
