"""A provider of infrastructure and of bootstrap data whose machines are not there: the smallest that keeps Cluster API's contracts.

Its "hosts" are Nodes in a workload cluster, made at once when a Machine has its bootstrap data; those of control planes have their static
Pods, and the first of them the ConfigMap by which a control plane is known to be initialised.  It works on the embedded API server and on a
real one, under our managers and under upstream's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from slipway.api.cluster.definition import CLUSTERCTL_LABEL
from slipway.api.cluster.kinds import CONFIG_MAP, MACHINE, NAMESPACE, NODE, POD, SECRET, Kind
from slipway.kube.aio import AsyncClient, PatchType
from slipway.kube.connection import Connection
from slipway.kube.errors import AlreadyExistsError, ConflictError, NotFoundError
from slipway.runtime import finalizers
from slipway.runtime.cache.cache import Cache
from slipway.runtime.controller import Watch
from slipway.runtime.manager import Manager
from slipway.runtime.objects import DONE, Object, Request, Result
from slipway.runtime.rbac import Rule

Manifest = dict[str, Any]

GROUP = "infrastructure.cluster.x-k8s.io"
BOOTSTRAP_GROUP = "bootstrap.cluster.x-k8s.io"
TEST_CLUSTER = Kind(GROUP, "v1beta2", "TestCluster", "testclusters")
TEST_MACHINE = Kind(GROUP, "v1beta2", "TestMachine", "testmachines")
TEST_MACHINE_TEMPLATE = Kind(GROUP, "v1beta2", "TestMachineTemplate", "testmachinetemplates")
TEST_CONFIG = Kind(BOOTSTRAP_GROUP, "v1beta2", "TestConfig", "testconfigs")
TEST_CONFIG_TEMPLATE = Kind(BOOTSTRAP_GROUP, "v1beta2", "TestConfigTemplate", "testconfigtemplates")
KINDS = (TEST_CLUSTER, TEST_MACHINE, TEST_MACHINE_TEMPLATE, TEST_CONFIG, TEST_CONFIG_TEMPLATE)
FINALIZER = "testmachine.infrastructure.cluster.x-k8s.io"
CONTROL_PLANE_LABEL = "cluster.x-k8s.io/control-plane"
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
TIME = "2026-01-01T00:00:00Z"


def crds() -> list[Manifest]:
    """The CRDs of the provider; they take everything, and say which contract they keep."""
    return [crd(kind) for kind in KINDS]


def crd(kind: Kind) -> Manifest:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            "labels": {"cluster.x-k8s.io/v1beta2": kind.version, CLUSTERCTL_LABEL: ""},
        },
        "spec": {
            "group": kind.group,
            "names": {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower(), "listKind": kind.list_kind},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def reference(kind: Kind, name: str) -> Manifest:
    return {"apiGroup": kind.group, "kind": kind.kind, "name": name}


def template(kind: Kind, name: str, namespace: str, spec: Manifest | None = None) -> Manifest:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"template": {"spec": spec or {}}}}


def condition(condition_type: str, status: str = "True", reason: str = "") -> Manifest:
    return {
        "type": condition_type,
        "status": status,
        "reason": reason or (condition_type if status == "True" else f"Not{condition_type}"),
        "message": "",
        "lastTransitionTime": TIME,
    }


class Infrastructure:
    """``endpoint`` is where clusters have their API server."""

    def __init__(self, workload: Connection, *, endpoint: tuple[str, int] = ("10.0.0.1", 6443)) -> None:
        self.workload = AsyncClient(workload)
        self.endpoint = endpoint

    def add_to(self, manager: Manager) -> None:
        """Let a manager run it."""
        for reconciler in (
            _Clusters(manager.client, manager.cache, self),
            _Machines(manager.client, manager.cache, self),
            _Configs(manager.client, manager.cache),
        ):
            manager.add(reconciler)
        manager.at_end(self.workload.close)

    async def bring_up(self, machine: Manifest, name: str) -> None:
        """The Node of a host, and of a control plane its Pods."""
        control_plane = CONTROL_PLANE_LABEL in (machine["metadata"].get("labels") or {})
        node = node_of(name, machine["spec"].get("version") or "v1.35.4", control_plane=control_plane)
        status = node.pop("status")
        with suppress(AlreadyExistsError):
            await self.workload.create(NODE, node)
        await self.workload.patch(NODE, name, "", {"status": status}, type=PatchType.MERGE, subresource="status")
        if control_plane:
            for pod in static_pods(name):
                status = pod.pop("status")
                with suppress(AlreadyExistsError):
                    await self.workload.create(POD, pod)
                await self.workload.patch(
                    POD, pod["metadata"]["name"], "kube-system", {"status": status}, type=PatchType.MERGE, subresource="status"
                )
            with suppress(AlreadyExistsError):
                await self.workload.create(CONFIG_MAP, kubeadm_config(machine["spec"].get("version") or "v1.35.4"))

    async def take_down(self, name: str) -> None:
        """The host is gone, and with it its static Pods; the Node is for Cluster API to delete."""
        for component in COMPONENTS:
            await self.workload.delete(POD, f"{component}-{name}", "kube-system")

    async def fail(self, name: str, status: str = "Unknown") -> None:
        """The kubelet of a Node says no more that it is well."""
        ready = condition("Ready", status, "NodeStatusUnknown")
        await self.workload.patch(NODE, name, "", {"status": {"conditions": [ready]}}, type=PatchType.STRATEGIC, subresource="status")


def node_of(name: str, version: str, *, control_plane: bool = False) -> Manifest:
    labels = {"kubernetes.io/hostname": name}
    taints = [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}]
    if control_plane:
        labels["node-role.kubernetes.io/control-plane"] = ""
        taints.append({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"})
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": f"test:///{name}", "taints": taints},
        "status": {
            "conditions": [
                condition("Ready", reason="KubeletReady"),
                *(condition(kind, "False", "Fine") for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")),
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "b",
                "containerRuntimeVersion": "containerd://2.1.0",
                "kernelVersion": "6.1",
                "kubeProxyVersion": "",
                "kubeletVersion": version,
                "machineID": name,
                "operatingSystem": "linux",
                "osImage": "test",
                "systemUUID": name,
            },
        },
    }


def static_pods(node: str) -> list[Manifest]:
    return [
        {
            "metadata": {
                "name": f"{component}-{node}",
                "namespace": "kube-system",
                "labels": {"component": component, "tier": "control-plane"},
                "annotations": {"kubernetes.io/config.mirror": "x"},
            },
            "spec": {"nodeName": node, "containers": [{"name": component, "image": "registry.k8s.io/pause:3.10"}]},
            "status": {
                "phase": "Running",
                "conditions": [condition(kind) for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")],
            },
        }
        for component in COMPONENTS
    ]


def kubeadm_config(version: str) -> Manifest:
    text = f"apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: {version}\n"
    return {"metadata": {"name": "kubeadm-config", "namespace": "kube-system"}, "data": {"ClusterConfiguration": text}}


class _Base:
    rules: Sequence[Rule] = ()

    def __init__(self, client: AsyncClient, cache: Cache) -> None:
        self._client, self._cache = client, cache

    async def _status(self, kind: Kind, found: Manifest, status: Manifest) -> None:
        metadata = found["metadata"]
        if any((found.get("status") or {}).get(key) != value for key, value in status.items()):
            await self._client.patch(
                kind, metadata["name"], metadata["namespace"], {"status": status}, type=PatchType.MERGE, subresource="status"
            )


class _Clusters(_Base):
    name = "test-cluster"
    watches: Sequence[Watch] = (Watch(TEST_CLUSTER),)

    def __init__(self, client: AsyncClient, cache: Cache, infrastructure: Infrastructure) -> None:
        super().__init__(client, cache)
        self._infrastructure = infrastructure

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(TEST_CLUSTER, request.name, request.namespace)
        if found is None or found.metadata.deletion_timestamp:
            return DONE
        content = found.content()
        if not (content.get("spec") or {}).get("controlPlaneEndpoint"):
            host, port = self._infrastructure.endpoint
            endpoint = {"spec": {"controlPlaneEndpoint": {"host": host, "port": port}}}
            await self._client.patch(TEST_CLUSTER, request.name, request.namespace, endpoint, type=PatchType.MERGE)
        await self._status(TEST_CLUSTER, content, {"initialization": {"provisioned": True}, "conditions": [condition("Ready")]})
        return DONE


async def _owner(found: Object, cache: Cache) -> Manifest | None:
    """The Machine that an object is of."""
    name = next((owner.name for owner in found.metadata.owner_references if owner.kind == MACHINE.kind), "")
    machine = await cache.get(MACHINE, name, found.namespace) if name else None
    return None if machine is None else machine.content()


async def _of_machine(found: Object, cache: Cache) -> Iterable[Request]:
    name = ((found.content().get("spec") or {}).get("infrastructureRef") or {}).get("name")
    return [Request(found.namespace, name)] if name else []


class _Machines(_Base):
    name = "test-machine"
    watches: Sequence[Watch] = (Watch(TEST_MACHINE), Watch(MACHINE, _of_machine))

    def __init__(self, client: AsyncClient, cache: Cache, infrastructure: Infrastructure) -> None:
        super().__init__(client, cache)
        self._infrastructure = infrastructure

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(TEST_MACHINE, request.name, request.namespace)
        if found is None:
            return DONE
        content = found.content()
        if finalizers.is_deleted(content):
            if finalizers.remove(content, FINALIZER):
                await self._infrastructure.take_down(request.name)
                with suppress(NotFoundError, ConflictError):
                    await self._client.update(TEST_MACHINE, content)
            return DONE
        machine = await _owner(found, self._cache)
        if machine is None or not (machine["spec"].get("bootstrap") or {}).get("dataSecretName"):
            return DONE
        wanted = f"test:///{request.name}"
        if finalizers.add(content, FINALIZER) or (content.get("spec") or {}).get("providerID") != wanted:
            content["spec"] = {**(content.get("spec") or {}), "providerID": wanted}
            content = await self._client.update(TEST_MACHINE, content)
            await self._infrastructure.bring_up(machine, request.name)
        await self._status(
            TEST_MACHINE,
            content,
            {
                "initialization": {"provisioned": True},
                "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}],
                "conditions": [condition("Ready")],
            },
        )
        return DONE


class _Configs(_Base):
    """Bootstrap data that nobody reads."""

    name = "test-config"
    watches: Sequence[Watch] = (Watch(TEST_CONFIG),)

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(TEST_CONFIG, request.name, request.namespace)
        if found is None or found.metadata.deletion_timestamp or await _owner(found, self._cache) is None:
            return DONE
        labels = {key: value for key, value in found.metadata.labels.items() if key == "cluster.x-k8s.io/cluster-name"}
        owner = {"apiVersion": TEST_CONFIG.api_version, "kind": TEST_CONFIG.kind, "name": request.name, "uid": found.metadata.uid}
        secret = {
            "metadata": {
                "name": request.name,
                "namespace": request.namespace,
                "labels": labels,
                "ownerReferences": [{**owner, "controller": True}],
            },
            "type": "cluster.x-k8s.io/secret",
            "data": {"value": "I2Nsb3VkLWNvbmZpZwo="},
        }
        with suppress(AlreadyExistsError):
            await self._client.create(SECRET, secret)
        status = {
            "initialization": {"dataSecretCreated": True},
            "dataSecretName": request.name,
            "conditions": [condition("Ready"), condition("DataSecretAvailable")],
        }
        await self._status(TEST_CONFIG, found.content(), status)
        return DONE


@asynccontextmanager
async def workload_cluster(connection: Connection) -> AsyncIterator[AsyncClient]:
    """A client of the API server that stands for a workload cluster, with the namespace that every cluster has."""
    async with AsyncClient(connection) as client:
        with suppress(AlreadyExistsError):
            await client.create(NAMESPACE, {"metadata": {"name": "kube-system"}})
        yield client
