"""MachineDeployments and MachineSets on the embedded API server, with the CRDs that we install, run by hand one reconcile at a time.

The Machine controller is played: its Machines come up when the test says so, and are gone when they are let go.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from fleet.infrastructure import TEST_CONFIG, TEST_CONFIG_TEMPLATE, TEST_MACHINE, TEST_MACHINE_TEMPLATE, reference
from fleet.infrastructure import crds as provider_crds
from fleet.world import preserving_crd
from support.waiting import eventually

from slipway.api.cluster import crds
from slipway.api.cluster.kinds import (
    CLUSTER,
    CORE_EVENT,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    NAMESPACE,
    Kind,
)
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.clustercache import WorkloadClusters
from slipway.fleet.machines.deployment.reconciler import MachineDeploymentReconciler
from slipway.fleet.machines.machineset.reconciler import MachineSetReconciler
from slipway.kube.aio import AsyncClient, PatchType
from slipway.kube.errors import ConflictError
from slipway.runtime.cache.cache import Cache
from slipway.runtime.controller import Watch
from slipway.runtime.events import EventRecorder
from slipway.runtime.objects import Request, Result

Manifest = dict[str, Any]

SPACE = "ns"
KINDS = (CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, TEST_MACHINE, TEST_CONFIG, TEST_MACHINE_TEMPLATE, TEST_CONFIG_TEMPLATE)
OFTEN = (MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, TEST_MACHINE, TEST_CONFIG)
INSTALLED = (MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET)
WELL = ("Ready", "Available", "UpToDate", "NodeHealthy")


def condition(kind: str, status: str = "True", reason: str = "", message: str = "") -> Manifest:
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"type": kind, "status": status, "reason": reason or kind, "message": message, "lastTransitionTime": stamp}


class Workers:
    """``clients`` counts what is asked of the API server, by verb."""

    def __init__(self, server: EmbeddedServer) -> None:
        self.server = server
        self.client = AsyncClient(server.connection())
        self._watching = AsyncClient(server.connection())
        self.cache = Cache(self._watching)
        self.workload = WorkloadClusters(self._watching)
        self.acting = AsyncClient(server.connection(), on_request=self._count)
        self.events = EventRecorder(self.acting, "test")
        self.watched: list[Watch] = []
        self.verbs: dict[str, int] = {}
        self.ahead = timedelta(0)
        self._settled = 0
        self._changed: builtins.set[Kind] = builtins.set()
        self.restart()

    def _count(self, verb: str, code: int, seconds: float) -> None:
        self.verbs[verb] = self.verbs.get(verb, 0) + 1

    def restart(self) -> None:
        """A new process, as far as its memory goes."""
        clock: Callable[[], datetime] = lambda: datetime.now(UTC) + self.ahead  # noqa: E731
        watch = self.watched.append
        self.sets = MachineSetReconciler(self.acting, self.cache, workload=self.workload, events=self.events, watch=watch, clock=clock)
        self.deployments = MachineDeploymentReconciler(self.acting, self.cache, events=self.events, watch=watch, clock=clock)

    async def close(self) -> None:
        await self.events.close()
        await self.workload.close()
        await self.cache.close()
        for client in (self.client, self._watching, self.acting):
            await client.close()

    # Objects.

    async def create(self, kind: Kind, name: str, spec: Manifest, **metadata: Any) -> Manifest:
        self._changed.add(kind)
        return await self.client.create(kind, {"metadata": {"name": name, "namespace": SPACE, **metadata}, "spec": spec})

    async def patch(self, kind: Kind, name: str, body: Manifest, *, subresource: str = "") -> Manifest:
        self._changed.add(kind)
        return await self.client.patch(kind, name, SPACE, body, type=PatchType.MERGE, subresource=subresource)

    async def get(self, kind: Kind, name: str) -> Manifest:
        return await self.client.get(kind, name, SPACE)

    async def all(self, kind: Kind) -> list[Manifest]:
        return sorted(await self.client.list(kind, SPACE), key=lambda one: str(one["metadata"]["name"]))

    async def names(self, kind: Kind) -> list[str]:
        return [one["metadata"]["name"] for one in await self.all(kind)]

    async def cluster(self) -> None:
        spec = {"infrastructureRef": {"apiGroup": "x.y", "kind": "TestCluster", "name": "c"}}
        await self.create(CLUSTER, "c", spec)
        for kind, name in ((TEST_MACHINE_TEMPLATE, "i"), (TEST_CONFIG_TEMPLATE, "b")):
            await self.create(kind, name, {"template": {"metadata": {"labels": {"from": "template"}}, "spec": {"size": "m"}}})

    def template(self, **more: Any) -> Manifest:
        spec = {
            "clusterName": "c",
            "version": "v1.35.0",
            "bootstrap": {"configRef": reference(TEST_CONFIG_TEMPLATE, "b")},
            "infrastructureRef": reference(TEST_MACHINE_TEMPLATE, "i"),
        }
        return {"metadata": {"labels": {"pool": "p"}}, "spec": {**spec, **more}}

    async def deployment(
        self, name: str = "md", replicas: int = 3, surge: int | str = 1, unavailable: int | str = 0, **more: Any
    ) -> Manifest:
        strategy = more.pop("strategy", {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}})
        template = more.pop("template", self.template())
        template["metadata"]["labels"] = {"pool": name}
        spec = {
            "clusterName": "c",
            "replicas": replicas,
            "selector": {"matchLabels": {"pool": name}},
            "template": template,
            "rollout": {"strategy": strategy},
            **more.pop("spec", {}),
        }
        return await self.create(MACHINE_DEPLOYMENT, name, spec, **more)

    async def machine_set(self, name: str = "ms", replicas: int = 2, **more: Any) -> Manifest:
        spec = {
            "clusterName": "c",
            "replicas": replicas,
            "selector": {"matchLabels": {"pool": "p"}},
            "template": more.pop("template", self.template()),
            **more.pop("spec", {}),
        }
        return await self.create(MACHINE_SET, name, spec, **more)

    async def control_plane(self, version: str, *statuses: str) -> None:
        """The Cluster's control plane, at this version, with machines of these."""
        if await self.client.find(KUBEADM_CONTROL_PLANE, "cp", SPACE) is None:
            await self.create(KUBEADM_CONTROL_PLANE, "cp", {"version": version})
            await self.patch(CLUSTER, "c", {"spec": {"controlPlaneRef": reference(KUBEADM_CONTROL_PLANE, "cp")}})
        else:
            await self.patch(KUBEADM_CONTROL_PLANE, "cp", {"spec": {"version": version}})
        versions = [{"version": each, "replicas": 1} for each in statuses]
        await self.patch(KUBEADM_CONTROL_PLANE, "cp", {"status": {"versions": versions}}, subresource="status")

    async def told(self, kind: Kind, name: str, condition_type: str) -> tuple[str, str, str]:
        found = (await self.get(kind, name)).get("status", {}).get("conditions") or []
        one = next(each for each in found if each["type"] == condition_type)
        return one["status"], one["reason"], one["message"]

    async def said(self) -> list[str]:
        """The reasons of the events so far."""
        await self.events.flush()
        return [event["reason"] for event in await self.client.list(CORE_EVENT, SPACE)]

    # Controllers.

    async def set(self, name: str, *, times: int = 1) -> Result:
        result = Result()
        for _ in range(times):
            await self.settle()
            result = await self.sets.reconcile(Request(SPACE, name))
        return result

    async def roll(self, name: str = "md", *, times: int = 1) -> Result:
        result = Result()
        for _ in range(times):
            await self.settle()
            result = await self.deployments.reconcile(Request(SPACE, name))
        return result

    async def settle(self) -> None:
        """Wait until the cache has what the API server has.  Clusters, templates and control planes change when the test changes them, and
        in the first reconciles, which give them their owner."""
        self._settled += 1
        kinds = {*KINDS, *(watch.kind for watch in self.watched)} if self._settled < 6 else {*OFTEN, *self._changed}
        self._changed.clear()
        for kind in kinds:
            wanted = {
                (one["metadata"]["namespace"], one["metadata"]["name"]): int(one["metadata"]["resourceVersion"])
                for one in await self.client.list(kind)
            }

            async def caught_up(kind: Kind = kind, wanted: dict[tuple[str, str], int] = wanted) -> bool:
                known = {(one.namespace, one.name): int(one.metadata.resource_version) for one in await self.cache.list(kind)}
                return known.keys() == wanted.keys() and all(known[place] >= version for place, version in wanted.items())

            await eventually(caught_up, f"the cache has all {kind.plural}")

    async def everything(self, *, ready: bool = True) -> None:
        """One turn of all: the MachineDeployments, the MachineSets, and the machines."""
        for one in await self.names(MACHINE_DEPLOYMENT):
            await self.roll(one)
        for one in await self.names(MACHINE_SET):
            await self.set(one)
        await self.let_go()
        if ready:
            await self.bring_up()

    async def until(self, done: Callable[[], Any], *, turns: int = 60, each: Callable[[], Any] | None = None) -> None:
        for _ in range(turns):
            if await done():
                return
            try:
                await self.everything()
            except ConflictError:
                continue
            if each is not None:
                await each()
        raise AssertionError("it does not come to an end")

    async def bring_up(self, *wanted: str) -> None:
        """Machines get their Nodes and are well."""
        for one in await self.all(MACHINE):
            name = one["metadata"]["name"]
            if (wanted and name not in wanted) or one["metadata"].get("deletionTimestamp"):
                continue
            known = {each["type"]: each["status"] for each in (one.get("status") or {}).get("conditions") or ()}
            if all(known.get(kind) == "True" for kind in WELL):
                continue
            status = {"nodeRef": {"name": f"node-{name}"}, "conditions": [condition(kind) for kind in WELL]}
            await self.patch(MACHINE, name, {"status": status}, subresource="status")

    async def let_go(self) -> None:
        """Machines that are deleted are gone, and their clones with them."""
        for one in await self.all(MACHINE):
            if one["metadata"].get("deletionTimestamp"):
                name = one["metadata"]["name"]
                await self.client.delete(TEST_MACHINE, name, SPACE)
                await self.client.delete(TEST_CONFIG, name, SPACE)
                await self.patch(MACHINE, name, {"metadata": {"finalizers": None}})

    async def versions(self) -> list[str]:
        return [one["spec"]["version"] for one in await self.all(MACHINE)]

    async def sick(self, name: str, *, reason: str = "WaitingForRemediation") -> None:
        """A MachineHealthCheck finds a Machine sick and asks its owner to act."""
        found = [condition("HealthCheckSucceeded", "False", "UnhealthyNode"), condition("OwnerRemediated", "False", reason)]
        kept = [
            one
            for one in (await self.get(MACHINE, name)).get("status", {}).get("conditions") or ()
            if one["type"] not in ("HealthCheckSucceeded", "OwnerRemediated")
        ]
        await self.patch(MACHINE, name, {"status": {"conditions": [*kept, *found]}}, subresource="status")


@cache
def definitions() -> list[Manifest]:
    """Our CRDs in the version that is stored, the provider's, and for what is only read ones that take everything."""
    wanted = {f"{kind.plural}.{kind.group}" for kind in INSTALLED}
    ours = [crds.crd(one) for one in crds.DEFINITIONS if f"{one.kind.plural}.{one.kind.group}" in wanted]
    for one in ours:
        one["spec"]["versions"] = [version for version in one["spec"]["versions"] if version["storage"]]
    return [*ours, *map(preserving_crd, (CLUSTER, KUBEADM_CONTROL_PLANE)), *provider_crds()]


@asynccontextmanager
async def employed() -> AsyncIterator[Workers]:
    async with EmbeddedServer(tls=False) as server:
        workers = Workers(server)
        try:
            for one in definitions():
                await workers.client.create(CUSTOM_RESOURCE_DEFINITION, one)
            await workers.client.create(NAMESPACE, {"metadata": {"name": SPACE}})
            await workers.cluster()
            yield workers
        finally:
            await workers.close()
