"""A management cluster with a Cluster, its machines and their KubeadmConfigs, which is its own workload cluster as well.

Objects are made as Cluster API's core and control-plane controllers make them; the reconciler under test is run by hand, one reconcile
at a time, or by a manager.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from support.definitions import established
from support.waiting import eventually

from slipway.api.cluster import crds
from slipway.api.cluster.kinds import (
    CLUSTER,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONFIG,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_POOL,
    NAMESPACE,
    ROLE,
    ROLE_BINDING,
    SECRET,
    Kind,
)
from slipway.fleet import certificates as clustercerts
from slipway.fleet.bootstrap.options import BootstrapOptions
from slipway.fleet.bootstrap.reconciler import KubeadmConfigReconciler
from slipway.fleet.bootstrap.tokens import OWNER_ANNOTATION
from slipway.fleet.clustercache import WorkloadClusters
from slipway.fleet.contract import secrets
from slipway.kube.aio import AsyncClient, PatchType
from slipway.kube.connection import Connection
from slipway.kube.errors import AlreadyExistsError
from slipway.runtime import rbac
from slipway.runtime.cache.cache import Cache
from slipway.runtime.controller import Watch
from slipway.runtime.events import EventRecorder
from slipway.runtime.objects import Request, Result
from slipway.runtime.rbac import Rule

Manifest = dict[str, Any]

KINDS = (CLUSTER, MACHINE, MACHINE_POOL, KUBEADM_CONFIG, SECRET)
CLUSTER_NAME = "c"
ENDPOINT = "10.0.0.1:6443"
CA_PAIR = clustercerts.generate(clustercerts.CA, "ECDSA-P256", 10, datetime.now(UTC))


def lean_crd(kind: Kind) -> Manifest:
    """A CRD of ours with its stored version alone and without words: the same rules, and less for a server to read in each test."""
    (definition,) = [definition for definition in crds.EVERY if definition.kind == kind]
    crd = crds.crd(definition._replace(versions=[version for version in definition.versions if version.storage]))
    wordless: Manifest = _without_words(crd)
    return wordless


def _without_words(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_words(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _without_words(value) for key, value in schema.items() if key != "description" or not isinstance(value, str)}


def preserving_crd(kind: Kind) -> Manifest:
    """A CRD that takes everything, for kinds of which only a few fields matter here."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {"name": f"{kind.plural}.{kind.group}", "labels": {"cluster.x-k8s.io/v1beta2": kind.version}},
        "spec": {
            "group": kind.group,
            "names": {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower(), "listKind": kind.list_kind},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def kubeconfig(connection: Connection) -> str:
    """As JSON, which is YAML too."""
    cluster: Manifest = {"server": connection.server}
    if connection.ca:
        cluster["certificate-authority-data"] = b64encode(connection.ca).decode()
    user: Manifest = {"token": connection.token} if connection.token else {}
    if connection.client_certificate:
        user["client-certificate-data"] = b64encode(connection.client_certificate).decode()
        user["client-key-data"] = b64encode(connection.client_key).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": cluster}],
        "users": [{"name": "x", "user": user}],
    }
    return msgspec.json.encode(document).decode()


class User(NamedTuple):
    """Somebody whom the API server knows: how to come as them, and what a RoleBinding calls them."""

    connection: Connection
    subject: Manifest


Account = Callable[["World"], Awaitable[User]]


class World:
    """``strict``: the CRDs of Cluster API are the real ones, and are not changed."""

    def __init__(self, connection: Connection, namespace: str, account: Account, *, strict: bool = False) -> None:
        self.strict = strict
        self._account = account
        self.connection = connection
        self.namespace = namespace
        self.client = AsyncClient(connection)
        self.cache = Cache(AsyncClient(connection), namespace=namespace)
        secrets.restrict(self.cache)
        self.watched: list[Watch] = []
        self._reconcilers: list[tuple[AsyncClient, WorkloadClusters, EventRecorder]] = []

    async def __aenter__(self) -> World:
        with suppress(AlreadyExistsError):
            await self.client.create(NAMESPACE, {"metadata": {"name": self.namespace}})
        return self

    async def __aexit__(self, *_: object) -> None:
        for client, workload, events in self._reconcilers:
            await events.close()
            await workload.close()
            await client.close()
        await self.cache.close()
        await self.cache._client.close()
        await self.client.delete(NAMESPACE, self.namespace)
        for kind in (CLUSTER_ROLE_BINDING, CLUSTER_ROLE):
            await self.client.delete(kind, f"{self.namespace}-manager")
        for token in await self.tokens():
            await self.client.delete(SECRET, token["metadata"]["name"], "kube-system")
        await self.client.close()

    async def install_crds(self, *crds: Manifest) -> None:
        for crd in crds:
            with suppress(AlreadyExistsError):
                await self.client.create(CUSTOM_RESOURCE_DEFINITION, crd)
            await established(self.client, crd["metadata"]["name"])

    async def user(self, rules: Sequence[Rule]) -> User:
        """Somebody who may do just this, in the namespace of the world."""
        user = await self._account(self)
        cluster_wide = [rule for rule in rules if CUSTOM_RESOURCE_DEFINITION.group in rule.groups]
        name = f"{self.namespace}-manager"
        for made, kind in (
            (rbac.role(name, self.namespace, [rule for rule in rules if rule not in cluster_wide]), ROLE),
            (rbac.cluster_role(name, cluster_wide), CLUSTER_ROLE),
        ):
            await self.client.create(kind, made)
            binding = rbac.binding(made, user.subject)
            await self.client.create(ROLE_BINDING if kind is ROLE else CLUSTER_ROLE_BINDING, binding)
        return user

    # What others make.

    async def cluster(
        self,
        *,
        initialized: bool = True,
        provisioned: bool = True,
        reference: bool = True,
        endpoint: bool = True,
        **spec: Any,
    ) -> Manifest:
        if endpoint:
            spec["controlPlaneEndpoint"] = {"host": "10.0.0.1", "port": 6443}
        if reference:
            spec["controlPlaneRef"] = {"apiGroup": KUBEADM_CONTROL_PLANE.group, "kind": "KubeadmControlPlane", "name": "cp"}
        spec.setdefault("clusterNetwork", {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "serviceDomain": "cluster.local"})
        spec["infrastructureRef"] = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "TestCluster", "name": "c"}
        await self.client.create(CLUSTER, {"metadata": {"name": CLUSTER_NAME, "namespace": self.namespace}, "spec": spec})
        return await self.cluster_status(initialized=initialized, provisioned=provisioned)

    async def cluster_status(self, *, initialized: bool = True, provisioned: bool = True) -> Manifest:
        state = "True" if initialized else "False"
        condition = {
            "type": "ControlPlaneInitialized",
            "status": state,
            "reason": "Initialized" if initialized else "NotInitialized",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "message": "",
        }
        return await self.patch(
            CLUSTER,
            CLUSTER_NAME,
            {"status": {"initialization": {"infrastructureProvisioned": provisioned}, "conditions": [condition]}},
            subresource="status",
        )

    async def control_plane(self, version: str) -> Manifest:
        template = {
            "spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "TestMachineTemplate", "name": "t"}}
        }
        spec = {"version": version, "replicas": 1, "machineTemplate": template, "kubeadmConfigSpec": {"verbosity": 1}}
        labels = {"cluster.x-k8s.io/cluster-name": CLUSTER_NAME}
        manifest = {"metadata": {"name": "cp", "namespace": self.namespace, "labels": labels}, "spec": spec}
        return await self.client.create(KUBEADM_CONTROL_PLANE, manifest)

    async def certificates(self) -> None:
        """As the control plane's controller makes them."""
        for purpose in (clustercerts.CA, clustercerts.ETCD_CA, clustercerts.FRONT_PROXY_CA, clustercerts.SERVICE_ACCOUNT):
            pair = CA_PAIR
            if purpose == clustercerts.SERVICE_ACCOUNT:
                pair = clustercerts.generate(purpose, "ECDSA-P256", 10, datetime.now(UTC))
            await self.secret(f"{CLUSTER_NAME}-{purpose}", {"tls.crt": pair.certificate, "tls.key": pair.key})

    async def kubeconfig(self) -> None:
        await self.secret(f"{CLUSTER_NAME}-kubeconfig", {"value": kubeconfig(self.connection).encode()})

    async def secret(self, name: str, data: dict[str, bytes]) -> Manifest:
        encoded = {key: b64encode(value).decode() for key, value in data.items()}
        labels = {"cluster.x-k8s.io/cluster-name": CLUSTER_NAME}
        metadata = {"name": name, "namespace": self.namespace, "labels": labels}
        return await self.client.create(SECRET, {"metadata": metadata, "type": "cluster.x-k8s.io/secret", "data": encoded})

    async def ready(self, version: str = "v1.35.0") -> None:
        """A cluster that workers can join."""
        await self.cluster()
        await self.control_plane(version)
        await self.certificates()
        await self.kubeconfig()

    async def machine(self, name: str, spec: Manifest | None = None, *, control_plane: bool = False, version: str = "v1.34.0") -> Manifest:
        """A Machine and its KubeadmConfig."""
        labels = {"cluster.x-k8s.io/cluster-name": CLUSTER_NAME}
        if control_plane:
            labels["cluster.x-k8s.io/control-plane"] = ""
        reference = {"apiGroup": KUBEADM_CONFIG.group, "kind": "KubeadmConfig", "name": name}
        infrastructure = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "TestMachine", "name": name}
        manifest = {
            "metadata": {"name": name, "namespace": self.namespace, "labels": labels},
            "spec": {
                "clusterName": CLUSTER_NAME,
                "version": version,
                "bootstrap": {"configRef": reference},
                "infrastructureRef": infrastructure,
            },
        }
        machine = await self.client.create(MACHINE, manifest)
        return await self._config(MACHINE, machine, spec)

    async def pool(self, name: str, spec: Manifest | None = None, *, replicas: int = 1) -> Manifest:
        reference = {"apiGroup": KUBEADM_CONFIG.group, "kind": "KubeadmConfig", "name": name}
        infrastructure = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "TestMachinePool", "name": name}
        template = {
            "clusterName": CLUSTER_NAME,
            "version": "v1.34.0",
            "bootstrap": {"configRef": reference},
            "infrastructureRef": infrastructure,
        }
        manifest = {
            "metadata": {"name": name, "namespace": self.namespace, "labels": {"cluster.x-k8s.io/cluster-name": CLUSTER_NAME}},
            "spec": {"clusterName": CLUSTER_NAME, "replicas": replicas, "template": {"spec": template}},
        }
        return await self._config(MACHINE_POOL, await self.client.create(MACHINE_POOL, manifest), spec)

    async def _config(self, kind: Kind, owner: Manifest, spec: Manifest | None) -> Manifest:
        metadata = owner["metadata"]
        reference = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        }
        labels = {"cluster.x-k8s.io/cluster-name": CLUSTER_NAME}
        made = {"name": metadata["name"], "namespace": self.namespace, "labels": labels, "ownerReferences": [reference]}
        return await self.client.create(KUBEADM_CONFIG, {"metadata": made, **({"spec": spec} if spec else {})})

    async def joined(self, name: str) -> None:
        """The host was made and its Node is there."""
        await self.patch(MACHINE, name, {"status": {"nodeRef": {"name": name}}}, subresource="status")

    async def provisioned(self, name: str) -> None:
        await self.patch(MACHINE, name, {"status": {"initialization": {"infrastructureProvisioned": True}}}, subresource="status")

    async def patch(self, kind: Kind, name: str, body: Manifest, *, subresource: str = "") -> Manifest:
        return await self.client.patch(kind, name, self.namespace, body, type=PatchType.MERGE, subresource=subresource)

    # The reconciler.

    def reconciler(
        self,
        options: BootstrapOptions | None = None,
        *,
        connection: Connection | None = None,
        on_request: Callable[[str, int, float], None] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> KubeadmConfigReconciler:
        """A new process, as far as its memory goes."""
        client = AsyncClient(connection or self.connection, on_request=on_request)
        workload = WorkloadClusters(client, on_request=on_request)
        events = EventRecorder(client, "test")
        self._reconcilers.append((client, workload, events))
        return KubeadmConfigReconciler(
            client, self.cache, options or BootstrapOptions(), workload=workload, events=events, watch=self.watched.append, clock=now
        )

    async def reconcile(self, reconciler: KubeadmConfigReconciler, name: str) -> Result:
        """One reconcile, with everything in the cache that the API server has."""
        await self.settle()
        return await reconciler.reconcile(Request(self.namespace, name))

    async def settle(self) -> None:
        for kind in KINDS:
            labels = "cluster.x-k8s.io/cluster-name" if kind is SECRET else ""
            wanted = {
                found["metadata"]["name"]: found["metadata"]["resourceVersion"]
                for found in await self.client.list(kind, self.namespace, labels=labels)
            }

            async def caught_up(kind: Kind = kind, wanted: dict[str, str] = wanted) -> bool:
                known = {found.name: found.metadata.resource_version for found in await self.cache.list(kind, self.namespace)}
                return known.keys() == wanted.keys() and all(int(known[name]) >= int(version) for name, version in wanted.items())

            await eventually(caught_up, f"the cache has all {kind.plural}")

    # What is there.

    async def config(self, name: str) -> Manifest:
        return await self.client.get(KUBEADM_CONFIG, name, self.namespace)

    async def data(self, name: str) -> str:
        """The bootstrap data of a host."""
        secret = await self.client.get(SECRET, name, self.namespace)
        return b64decode(secret["data"]["value"]).decode()

    async def condition(self, name: str, condition_type: str) -> Manifest:
        conditions = (await self.config(name))["status"]["conditions"]
        found: Manifest = next(condition for condition in conditions if condition["type"] == condition_type)
        return found

    async def tokens(self) -> list[Manifest]:
        """The bootstrap tokens of KubeadmConfigs of this namespace."""
        found = await self.client.list(SECRET, "kube-system", fields="type=bootstrap.kubernetes.io/token")
        mine = f"KubeadmConfig {self.namespace}/"
        return [
            secret
            for secret in found
            if OWNER_ANNOTATION in (secret["metadata"].get("annotations") or {})
            and mine in b64decode(secret["data"]["description"]).decode()
        ]

    async def lock(self) -> Manifest | None:
        return await self.client.find(CONFIG_MAP, f"{CLUSTER_NAME}-lock", self.namespace)


MakeWorld = Callable[[], Awaitable[World]]
