"""A management cluster with Clusters and ClusterResourceSets, and a workload cluster of their own; the controller has just its rights."""

from __future__ import annotations

from base64 import b64encode
from contextlib import AsyncExitStack, suppress
from typing import Any

from fleet.world import kubeconfig, preserving_crd
from support.waiting import eventually

from slipway.api.cluster import crds
from slipway.api.cluster.kinds import (
    ADDONS_GROUP,
    CLUSTER,
    CLUSTER_RESOURCE_SET,
    CLUSTER_RESOURCE_SET_BINDING,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    SECRET,
    Kind,
)
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.addons.bindings import ClusterResourceSetBindingReconciler
from slipway.fleet.addons.controllers import RULES
from slipway.fleet.addons.reconciler import ClusterResourceSetReconciler
from slipway.fleet.clustercache import WorkloadClusters
from slipway.kube.aio import AsyncClient, PatchType
from slipway.kube.errors import NotFoundError
from slipway.runtime import rbac
from slipway.runtime.cache.cache import Cache
from slipway.runtime.objects import Request, Result

Manifest = dict[str, Any]
PLACE = "fleet"
USER = "addons"
KINDS = (CLUSTER, CLUSTER_RESOURCE_SET, CLUSTER_RESOURCE_SET_BINDING)
CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: kube-system}
data: {mtu: "%s"}
"""


class Stage:
    """Everything that a test needs, begun with ``async with``."""

    async def __aenter__(self) -> Stage:
        self._stack = AsyncExitStack()
        self.management = await self._stack.enter_async_context(EmbeddedServer(tls=False))
        self.server = await self._stack.enter_async_context(EmbeddedServer(tls=False))
        self.client = await self._stack.enter_async_context(AsyncClient(self.management.connection()))
        self.remote = await self._stack.enter_async_context(AsyncClient(self.server.connection()))
        served = [crds.crd(each) for each in crds.DEFINITIONS if each.kind.group == ADDONS_GROUP]
        for crd in (*served, preserving_crd(CLUSTER)):
            await self.client.create(CUSTOM_RESOURCE_DEFINITION, crd)
        await eventually(self._are_served, "the kinds are served")
        await self.client.create(NAMESPACE, {"metadata": {"name": PLACE}})
        role = rbac.cluster_role(USER, RULES)
        await self.client.create(CLUSTER_ROLE, role)
        await self.client.create(CLUSTER_ROLE_BINDING, rbac.binding(role, rbac.user(USER)))
        own = await self._stack.enter_async_context(AsyncClient(self.management.connection(USER, ())))
        self.cache = Cache(own, namespace=PLACE)
        self._stack.push_async_callback(self.cache.close)
        workload = WorkloadClusters(own)
        self._stack.push_async_callback(workload.close)
        self.sets = ClusterResourceSetReconciler(own, self.cache, workload=workload)
        self.bindings = ClusterResourceSetBindingReconciler(own, self.cache)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _are_served(self) -> bool:
        for kind in KINDS:
            with suppress(NotFoundError):
                if f'"{kind.plural}"' in (await self.client.raw(f"/apis/{kind.group}/{kind.version}")).decode():
                    continue
            return False
        return True

    # What people make.

    async def cluster(self, name: str = "c", *, reachable: bool = True, **labels: str) -> Manifest:
        labels = labels or {"cni": "calico"}
        made = await self.client.create(CLUSTER, {"metadata": {"name": name, "namespace": PLACE, "labels": labels}, "spec": {}})
        if reachable:
            await self.kubeconfig(name)
        return made

    async def kubeconfig(self, name: str = "c") -> None:
        data = {"value": b64encode(kubeconfig(self.server.connection()).encode()).decode()}
        metadata = {"name": f"{name}-kubeconfig", "namespace": PLACE, "labels": {"cluster.x-k8s.io/cluster-name": name}}
        await self.client.create(SECRET, {"metadata": metadata, "type": "cluster.x-k8s.io/secret", "data": data})

    async def config_map(self, name: str, text: str) -> None:
        manifest = {"metadata": {"name": name, "namespace": PLACE}, "data": {"manifests.yaml": text}}
        if await self.client.find(CONFIG_MAP, name, PLACE) is None:
            await self.client.create(CONFIG_MAP, manifest)
        else:
            await self.client.patch(CONFIG_MAP, name, PLACE, {"data": manifest["data"]}, type=PatchType.MERGE)

    async def secret(self, name: str, text: str, type_: str = "addons.cluster.x-k8s.io/resource-set") -> None:
        data = {"manifests.yaml": b64encode(text.encode()).decode()}
        await self.client.create(SECRET, {"metadata": {"name": name, "namespace": PLACE}, "type": type_, "data": data})

    async def resource_set(self, *resources: str, name: str = "cni", strategy: str = "ApplyOnce", **spec: Any) -> Manifest:
        """``resources`` are ConfigMaps, or Secrets with a leading ``Secret/``."""
        listed = [{"kind": "Secret" if "/" in each else "ConfigMap", "name": each.rpartition("/")[2]} for each in resources]
        wanted = {"clusterSelector": {"matchLabels": {"cni": "calico"}}, "resources": listed, "strategy": strategy, **spec}
        return await self.client.create(CLUSTER_RESOURCE_SET, {"metadata": {"name": name, "namespace": PLACE}, "spec": wanted})

    # The controllers.

    async def run(self, name: str = "cni") -> Result:
        """Reconcile a set until it is at rest."""
        result = Result()
        for _ in range(4):
            await self.settle()
            before = await self.client.find(CLUSTER_RESOURCE_SET, name, PLACE)
            result = await self.sets.reconcile(Request(PLACE, name))
            if await self.client.find(CLUSTER_RESOURCE_SET, name, PLACE) == before:
                break
        return result

    async def run_binding(self, name: str = "c") -> None:
        await self.settle()
        await self.bindings.reconcile(Request(PLACE, name))

    async def settle(self) -> None:
        """Wait until the cache has what the server has."""
        for kind in KINDS:
            wanted = {found["metadata"]["name"]: found["metadata"]["resourceVersion"] for found in await self.client.list(kind, PLACE)}

            async def caught_up(kind: Kind = kind, wanted: dict[str, str] = wanted) -> bool:
                return {found.name: found.metadata.resource_version for found in await self.cache.list(kind, PLACE)} == wanted

            await eventually(caught_up, f"the cache has all {kind.plural}")

    # What comes of it.

    async def get(self, kind: Kind, name: str) -> Manifest:
        return await self.client.get(kind, name, PLACE)

    async def applied(self, name: str) -> Manifest | None:
        """A ConfigMap of the workload cluster."""
        return await self.remote.find(CONFIG_MAP, name, "kube-system")

    async def condition(self, name: str = "cni", type_: str = "ResourcesApplied") -> tuple[str, str, str] | None:
        found = (await self.get(CLUSTER_RESOURCE_SET, name)).get("status") or {}
        for each in found.get("conditions") or ():
            if each["type"] == type_:
                return each["status"], each["reason"], each["message"]
        return None

    async def deprecated(self, name: str = "cni") -> tuple[str, str, str]:
        found = (await self.get(CLUSTER_RESOURCE_SET, name))["status"]["deprecated"]["v1beta1"]["conditions"][0]
        return found["status"], found.get("severity", ""), found.get("reason", "")

    async def bound(self, cluster: str = "c") -> dict[str, dict[str, bool]]:
        """What a binding says of each set: resources, and whether they were applied."""
        spec = (await self.get(CLUSTER_RESOURCE_SET_BINDING, cluster))["spec"]
        return {
            each["clusterResourceSetName"]: {one["name"]: one["applied"] for one in each.get("resources") or ()}
            for each in spec.get("bindings") or ()
        }
