"""A management cluster with a Cluster and its Machines, and the workload cluster of it, on two API servers.

Providers' objects are made and changed by hand, as providers do it; the reconciler under test is run by hand, one reconcile at a time.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

from fleet.infrastructure import TEST_CONFIG, TEST_MACHINE, condition, node_of, reference
from fleet.world import kubeconfig
from support.waiting import eventually

from slipway.api.cluster.kinds import (
    CLUSTER,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_DRAIN_RULE,
    MACHINE_SET,
    NAMESPACE,
    NODE,
    POD,
    SECRET,
    Kind,
)
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.clustercache import WorkloadClusters
from slipway.fleet.contract import secrets
from slipway.fleet.machines.machine.reconciler import MachineReconciler
from slipway.kube.aio import AsyncClient, PatchType
from slipway.runtime.cache.cache import Cache
from slipway.runtime.controller import Watch
from slipway.runtime.events import EventRecorder
from slipway.runtime.objects import Request, Result

Manifest = dict[str, Any]

CLUSTER_NAME = "c"
KINDS = (CLUSTER, MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT, MACHINE_DRAIN_RULE, TEST_CONFIG, TEST_MACHINE)


class MachineWorld:
    def __init__(self, management: EmbeddedServer, workload: EmbeddedServer, namespace: str) -> None:
        self.namespace = namespace
        self._management, self._workload = management, workload
        self.client = AsyncClient(management.connection())
        self.remote = AsyncClient(workload.connection())
        self.cache = Cache(self.client, namespace=namespace)
        secrets.restrict(self.cache)
        self.now = datetime.now(UTC).replace(microsecond=0)
        self.requests: list[str] = []
        self.enqueued: list[Request] = []
        self.watched: list[Watch] = []
        self._reconcilers: list[tuple[list[AsyncClient], WorkloadClusters, EventRecorder]] = []

    async def __aenter__(self) -> MachineWorld:
        await self.client.create(NAMESPACE, {"metadata": {"name": self.namespace}})
        self.reconciler = self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for clients, workload, events in self._reconcilers:
            await events.close()
            await workload.close()
            for client in clients:
                await client.close()
        await self.cache.close()
        await self.client.close()
        await self.remote.close()

    def start(self) -> MachineReconciler:
        """A new process, as far as its memory goes."""
        client = AsyncClient(self._management.connection(), on_request=lambda verb, status, _: self.requests.append(verb))
        self.workload = WorkloadClusters(client, on_request=lambda verb, status, _: self.requests.append(f"workload {verb}"))
        # Its requests are none of the reconciler's.
        quiet = AsyncClient(self._management.connection())
        events = EventRecorder(quiet, "test")
        self._reconcilers.append(([client, quiet], self.workload, events))
        return MachineReconciler(
            client,
            self.cache,
            workload=self.workload,
            events=events,
            watch=self.watched.append,
            enqueue=self.enqueued.append,
            clock=lambda: self.now,
        )

    # What others make.

    async def cluster(self, *, initialized: bool = True, labels: Manifest | None = None, **spec: Any) -> Manifest:
        spec.setdefault("infrastructureRef", {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "TestCluster", "name": "c"})
        metadata = {"name": CLUSTER_NAME, "namespace": self.namespace, "labels": labels or {}}
        await self.client.create(CLUSTER, {"metadata": metadata, "spec": spec})
        status: Manifest = {"initialization": {"infrastructureProvisioned": True}}
        if initialized:
            status["conditions"] = [condition("ControlPlaneInitialized", reason="Initialized")]
            value = b64encode(kubeconfig(self._workload.connection()).encode()).decode()
            labelled = {"cluster.x-k8s.io/cluster-name": CLUSTER_NAME}
            secret = {"metadata": {"name": "c-kubeconfig", "namespace": self.namespace, "labels": labelled}, "data": {"value": value}}
            await self.client.create(SECRET, secret)
        return await self.patch(CLUSTER, CLUSTER_NAME, {"status": status}, subresource="status")

    async def machine(self, name: str, *, control_plane: bool = False, **changes: Any) -> Manifest:
        labels = {"cluster.x-k8s.io/cluster-name": CLUSTER_NAME, **changes.pop("labels", {})}
        if control_plane:
            labels["cluster.x-k8s.io/control-plane"] = ""
        spec = {
            "clusterName": CLUSTER_NAME,
            "version": "v1.35.4",
            "bootstrap": {"configRef": reference(TEST_CONFIG, name)},
            "infrastructureRef": reference(TEST_MACHINE, name),
            **changes.pop("spec", {}),
        }
        metadata = {"name": name, "namespace": self.namespace, "labels": labels, **changes.pop("metadata", {})}
        return await self.client.create(MACHINE, {"metadata": metadata, "spec": spec})

    async def providers(self, name: str, *, finalizers: bool = False, provisioned: bool = True, **metadata: Any) -> None:
        """The objects of the providers, as they are when their work is done."""
        held = {"finalizers": ["test/held"]} if finalizers else {}
        made = {"name": name, "namespace": self.namespace, **held, **metadata}
        await self.client.create(TEST_CONFIG, {"metadata": made})
        await self.client.create(TEST_MACHINE, {"metadata": made, "spec": {"providerID": f"test:///{name}"} if provisioned else {}})
        if provisioned:
            data = {"initialization": {"dataSecretCreated": True}, "dataSecretName": name, "conditions": [condition("Ready")]}
            await self.patch(TEST_CONFIG, name, {"status": data}, subresource="status")
            host = {"initialization": {"provisioned": True}, "conditions": [condition("Ready")]}
            host["addresses"] = [{"type": "InternalIP", "address": "10.0.0.1"}]
            await self.patch(TEST_MACHINE, name, {"status": host}, subresource="status")

    async def node(self, name: str, **changes: Any) -> Manifest:
        made = node_of(name, changes.pop("version", "v1.35.4"))
        status = made.pop("status")
        await self.remote.create(NODE, made)
        return await self.remote.patch(NODE, name, "", {"status": {**status, **changes}}, type=PatchType.MERGE, subresource="status")

    async def pod(self, name: str, node: str, **metadata: Any) -> Manifest:
        """One that runs, and is ready."""
        made = {"metadata": {"name": name, "namespace": "default", **metadata}, "spec": {"nodeName": node, "containers": [CONTAINER]}}
        await self.remote.create(POD, made)
        status = {"phase": "Running", "conditions": [condition("Ready")]}
        return await self.remote.patch(POD, name, "default", {"status": status}, type=PatchType.MERGE, subresource="status")

    async def running(self, name: str = "m", **changes: Any) -> None:
        """A Machine with everything that it needs, and a control plane beside it."""
        await self.cluster()
        await self.machine("cp", control_plane=True, metadata={"finalizers": ["machine.cluster.x-k8s.io"]})
        await self.machine(name, **changes)
        await self.providers(name, finalizers=True)
        await self.node(name)
        await self.rest(name)

    async def patch(self, kind: Kind, name: str, body: Manifest, *, subresource: str = "") -> Manifest:
        return await self.client.patch(kind, name, self.namespace, body, type=PatchType.MERGE, subresource=subresource)

    async def let_go(self, kind: Kind, name: str) -> None:
        """A provider has done its part of a deletion."""
        await self.patch(kind, name, {"metadata": {"finalizers": None}})

    async def stopped(self, pod: str) -> None:
        """The kubelet has stopped a Pod."""
        await self.remote.raw(f"/api/v1/namespaces/default/pods/{pod}", method="DELETE", body=b'{"gracePeriodSeconds": 0}')

    # The reconciler.

    async def reconcile(self, name: str) -> Result:
        """One reconcile, with everything in the caches that the API servers have."""
        await self.settle()
        return await self.reconciler.reconcile(Request(self.namespace, name))

    async def killed(self, name: str, request: int) -> bool:
        """Whether the manager ended when this request of a reconcile had been answered; there is a new one then."""
        await self.settle()
        left = [None] * request

        def end(*_: object) -> None:
            left.pop()
            if not left:
                raise _Killed

        client, _ = self._reconcilers[-1][0]
        client.on_request = end
        try:
            await self.reconciler.reconcile(Request(self.namespace, name))
        except _Killed:
            return True
        else:
            return False
        finally:
            client.on_request = None
            await self.workload.close()
            self.reconciler = self.start()

    async def rest(self, name: str) -> Result:
        """Reconcile until nothing is written any more."""
        for _ in range(10):
            before = len(self.writes)
            result = await self.reconcile(name)
            if len(self.writes) == before:
                return result
        raise AssertionError(f"{name} does not come to rest")

    @property
    def writes(self) -> list[str]:
        return [request for request in self.requests if request.rpartition(" ")[2] in ("create", "update", "patch", "delete", "post")]

    async def later(self, seconds: float, name: str) -> Result:
        self.now += timedelta(seconds=seconds)
        return await self.reconcile(name)

    async def delete(self, name: str) -> Manifest:
        """Delete a Machine, and reconcile."""
        await self.client.delete(MACHINE, name, self.namespace)
        await self.reconcile(name)
        return await self.get(name)

    async def get(self, name: str) -> Manifest:
        return await self.client.get(MACHINE, name, self.namespace)

    async def settle(self) -> None:
        for kind in KINDS:
            await self._caught_up(self.cache, self.client, kind, self.namespace)
        cluster = await self.client.find(CLUSTER, CLUSTER_NAME, self.namespace)
        if cluster is not None and await self.client.find(SECRET, "c-kubeconfig", self.namespace) is not None:
            await eventually(lambda: self.workload.probe(self.namespace, CLUSTER_NAME).succeeded_at is not None, "connected")
            if self.workload.probe(self.namespace, CLUSTER_NAME).connected:
                nodes = await self.workload.nodes(self.namespace, CLUSTER_NAME)
                await self._caught_up(nodes, self.remote, NODE, "")

    async def _caught_up(self, cache: Cache, client: AsyncClient, kind: Kind, namespace: str) -> None:
        listed = await client.list(kind, namespace)
        wanted = {each["metadata"]["name"]: int(each["metadata"]["resourceVersion"]) for each in listed}

        async def caught_up() -> bool:
            known = {each.name: int(each.metadata.resource_version) for each in await cache.list(kind, namespace)}
            return known.keys() == wanted.keys() and all(known[name] >= version for name, version in wanted.items())

        await eventually(caught_up, f"{kind.plural} are in the cache")


class _Killed(BaseException):
    """Nothing that comes after it is done."""


CONTAINER = {"name": "c", "image": "registry.k8s.io/pause:3.10"}


def said(machine: Manifest, name: str) -> tuple[str, str, str]:
    """Status, reason and message of a condition."""
    found = next((each for each in (machine.get("status") or {}).get("conditions") or () if each["type"] == name), None)
    return (found["status"], found["reason"], found["message"]) if found is not None else ("", "", "")
