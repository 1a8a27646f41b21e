"""A management cluster on the embedded API server, on which one reconciler of the core is run by hand, one reconcile at a time."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from fleet.infrastructure import TEST_MACHINE
from fleet.infrastructure import crds as infrastructure_crds
from fleet.world import kubeconfig, preserving_crd
from support.waiting import eventually

from slipway.api.cluster import crds
from slipway.api.cluster.kinds import (
    CLUSTER,
    CORE_EVENT,
    CUSTOM_RESOURCE_DEFINITION,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_HEALTH_CHECK,
    MACHINE_POOL,
    MACHINE_SET,
    NAMESPACE,
    SECRET,
    Kind,
)
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.clustercache import WorkloadClusters
from slipway.kube.aio import AsyncClient, PatchType
from slipway.runtime.cache.cache import Cache
from slipway.runtime.controller import Reconciler, Watch
from slipway.runtime.events import EventRecorder
from slipway.runtime.objects import Request, Result

Manifest = dict[str, Any]

NAMESPACE_NAME = "ns"
CORE = (CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE_POOL, MACHINE_HEALTH_CHECK)
NETWORK = {"serviceDomain": "cluster.local"}
CONTROL_PLANE = Kind("controlplane.cluster.x-k8s.io", "v1", "TestControlPlane", "testcontrolplanes")
NAME_LABEL = "cluster.x-k8s.io/cluster-name"
OWNER = {"apiVersion": CLUSTER.api_version, "kind": "Cluster", "name": "c"}


class Stage:
    """The workload cluster is the management cluster itself.  ``now`` is what the reconciler takes for the time."""

    def __init__(self, server: EmbeddedServer) -> None:
        self.server = server
        self.client = AsyncClient(server.connection())
        self.cache = Cache(self.client)
        self.workload = WorkloadClusters(self.client)
        self.events = EventRecorder(self.client, "test")
        self.watched: list[Watch] = []
        self.enqueued: list[Request] = []
        self.now = datetime.now(UTC).replace(microsecond=0)

    async def close(self) -> None:
        await self.events.close()
        await self.workload.close()
        await self.cache.close()
        await self.client.close()

    def later(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    async def create(
        self, kind: Kind, name: str, spec: Manifest | None = None, status: Manifest | None = None, **metadata: Any
    ) -> Manifest:
        manifest: Manifest = {"metadata": {"name": name, **({"namespace": NAMESPACE_NAME} if kind.namespaced else {}), **metadata}}
        if spec is not None:
            manifest["spec"] = spec
        made = await self.client.create(kind, manifest)
        return await self.status(kind, name, status) if status is not None else made

    async def status(self, kind: Kind, name: str, status: Manifest) -> Manifest:
        return await self.patch(kind, name, {"status": status}, subresource="status")

    async def patch(self, kind: Kind, name: str, body: Manifest, *, subresource: str = "") -> Manifest:
        namespace = NAMESPACE_NAME if kind.namespaced else ""
        return await self.client.patch(kind, name, namespace, body, type=PatchType.MERGE, subresource=subresource)

    async def member(self, kind: Kind, name: str, *, own: bool = False, spec: Manifest | None = None, **metadata: Any) -> Manifest:
        """Something that belongs to the Cluster, and is its own if nothing stands between them."""
        labels = {NAME_LABEL: "c", **metadata.pop("labels", {})}
        owners = [{**OWNER, "uid": (await self.get(CLUSTER, "c"))["metadata"]["uid"]}] if own else []
        return await self.create(kind, name, {**_spec(kind, name), **(spec or {})}, labels=labels, ownerReferences=owners, **metadata)

    async def get(self, kind: Kind, name: str) -> Manifest:
        return await self.client.get(kind, name, NAMESPACE_NAME if kind.namespaced else "")

    async def find(self, kind: Kind, name: str) -> Manifest | None:
        return await self.client.find(kind, name, NAMESPACE_NAME)

    async def names(self, kind: Kind) -> list[str]:
        return sorted(found["metadata"]["name"] for found in await self.client.list(kind, NAMESPACE_NAME))

    async def release(self, kind: Kind, name: str) -> None:
        """What holds an object up lets it go."""
        await self.patch(kind, name, {"metadata": {"finalizers": None}})

    async def secret(self, name: str, data: dict[str, bytes]) -> Manifest:
        encoded = {key: b64encode(value).decode() for key, value in data.items()}
        metadata = {"name": name, "namespace": NAMESPACE_NAME, "labels": {NAME_LABEL: "c"}}
        return await self.client.create(SECRET, {"metadata": metadata, "type": "cluster.x-k8s.io/secret", "data": encoded})

    async def kubeconfig(self) -> None:
        await self.secret("c-kubeconfig", {"value": kubeconfig(self.server.connection()).encode()})

    async def told(self) -> list[tuple[str, str]]:
        """The events so far: reason and message."""
        await self.events.flush()
        return [(event["reason"], event["message"]) for event in await self.client.list(CORE_EVENT, NAMESPACE_NAME)]

    async def condition(self, kind: Kind, name: str, condition_type: str) -> tuple[str, str, str]:
        found = (await self.get(kind, name))["status"]["conditions"]
        one = next(condition for condition in found if condition["type"] == condition_type)
        return one["status"], one["reason"], one["message"]

    async def conditions(self, kind: Kind, name: str) -> dict[str, tuple[str, str]]:
        found = (await self.get(kind, name)).get("status", {}).get("conditions") or []
        return {condition["type"]: (condition["status"], condition["reason"]) for condition in found}

    async def reconcile(self, reconciler: Reconciler, name: str, *, times: int = 1) -> Result:
        """So many reconciles, each with everything in the cache that the API server has."""
        result = Result()
        for _ in range(times):
            await self.settle([watch.kind for watch in (*reconciler.watches, *self.watched)])
            result = await reconciler.reconcile(Request(NAMESPACE_NAME, name))
        return result

    async def settle(self, kinds: Sequence[Kind]) -> None:
        for kind in dict.fromkeys(kinds):
            wanted = {found["metadata"]["name"]: int(found["metadata"]["resourceVersion"]) for found in await self.client.list(kind)}

            async def caught_up(kind: Kind = kind, wanted: dict[str, int] = wanted) -> bool:
                known = {found.name: int(found.metadata.resource_version) for found in await self.cache.list(kind)}
                return known.keys() == wanted.keys() and all(known[name] >= version for name, version in wanted.items())

            await eventually(caught_up, f"the cache has all {kind.plural}")


def _spec(kind: Kind, name: str) -> Manifest:
    """The least that a schema wants."""
    machine = {
        "clusterName": "c",
        "bootstrap": {"dataSecretName": name},
        "infrastructureRef": {"apiGroup": TEST_MACHINE.group, "kind": TEST_MACHINE.kind, "name": name},
    }
    if kind == MACHINE:
        return machine
    labels = {"group": name}
    return {"clusterName": "c", "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": machine}}


@cache
def _crds(real: tuple[Kind, ...]) -> list[Manifest]:
    names = {f"{kind.plural}.{kind.group}" for kind in real}
    others = [kind for kind in (*CORE, CONTROL_PLANE) if kind not in real]
    return [*(crd for crd in crds.crds() if crd["metadata"]["name"] in names), *map(preserving_crd, others), *infrastructure_crds()]


@asynccontextmanager
async def staged(*real: Kind) -> AsyncIterator[Stage]:
    """Kinds that are written have their ``real`` CRD; the others take everything, which is quicker."""
    async with EmbeddedServer(tls=False) as server:
        stage = Stage(server)
        try:
            for crd in _crds(real):
                await stage.client.create(CUSTOM_RESOURCE_DEFINITION, crd)
            await stage.create(NAMESPACE, NAMESPACE_NAME)
            yield stage
        finally:
            await stage.close()
