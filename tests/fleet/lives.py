"""One cluster's life under whatever managers run, ours or upstream's: made, scaled, rolled, repaired and deleted.

The infrastructure is simulated (tests/fleet/infrastructure.py) and the management cluster is its own workload cluster, so that two lives
differ in nothing but their managers and their API server.  At each rest everything is taken down in a form without names and times.
"""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from fleet import infrastructure
from fleet.infrastructure import TEST_CLUSTER, TEST_MACHINE, TEST_MACHINE_TEMPLATE, Infrastructure
from support.definitions import established
from support.waiting import eventually

from slipway.api.cluster.kinds import (
    CLUSTER,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONFIG,
    KUBEADM_CONFIG_TEMPLATE,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_HEALTH_CHECK,
    MACHINE_SET,
    NODE,
    SECRET,
    Kind,
)
from slipway.kube.aio import AsyncClient, PatchType
from slipway.kube.connection import Connection
from slipway.runtime.manager import Manager, ManagerOptions

Manifest = dict[str, Any]
NAMESPACE = "default"
NAME = "fleet"
KINDS = (
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    MACHINE,
    MACHINE_HEALTH_CHECK,
    KUBEADM_CONFIG,
    TEST_CLUSTER,
    TEST_MACHINE,
    TEST_MACHINE_TEMPLATE,
    KUBEADM_CONFIG_TEMPLATE,
)
FIRST, SECOND = "v1.34.10", "v1.35.4"
_GENERATED = re.compile(r"\b(fleet-(?:cp|md))-[bcdfghjklmnpqrstvwxz2456789]{5}(?:-[bcdfghjklmnpqrstvwxz2456789]{5})?\b")
_HASH = re.compile(r"machine-template-hash=[^,]+")
_PORT = re.compile(r'("port": |127\.0\.0\.1:)\d{4,5}\b')
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def reference(group: str, kind: str, name: str) -> Manifest:
    return {"apiGroup": group, "kind": kind, "name": name}


def manifests(host: str, port: int, *, control_planes: int = 3, workers: int = 2, version: str = FIRST) -> list[tuple[Kind, Manifest]]:
    """A cluster as users write it; its etcd is somebody else's, as nothing here runs one."""
    metadata = {"namespace": NAMESPACE}
    labels = {"cluster.x-k8s.io/cluster-name": NAME}
    etcd = {
        "external": {
            "endpoints": ["https://10.0.0.9:2379"],
            "caFile": "/etc/kubernetes/pki/etcd/ca.crt",
            "certFile": "/etc/kubernetes/pki/apiserver-etcd-client.crt",
            "keyFile": "/etc/kubernetes/pki/apiserver-etcd-client.key",
        }
    }
    machine = {
        "clusterName": NAME,
        "version": version,
        "bootstrap": {"configRef": reference(KUBEADM_CONFIG.group, KUBEADM_CONFIG_TEMPLATE.kind, f"{NAME}-md")},
        "infrastructureRef": reference(infrastructure.GROUP, TEST_MACHINE_TEMPLATE.kind, f"{NAME}-md"),
    }
    selector = {**labels, "cluster.x-k8s.io/deployment-name": f"{NAME}-md"}
    return [
        (TEST_CLUSTER, {"metadata": {**metadata, "name": NAME}, "spec": {"controlPlaneEndpoint": {"host": host, "port": port}}}),
        (TEST_MACHINE_TEMPLATE, infrastructure.template(TEST_MACHINE_TEMPLATE, f"{NAME}-cp", NAMESPACE)),
        (TEST_MACHINE_TEMPLATE, infrastructure.template(TEST_MACHINE_TEMPLATE, f"{NAME}-md", NAMESPACE)),
        (
            KUBEADM_CONFIG_TEMPLATE,
            {"metadata": {**metadata, "name": f"{NAME}-md"}, "spec": {"template": {"spec": {"verbosity": 1}}}},
        ),
        (
            KUBEADM_CONTROL_PLANE,
            {
                "metadata": {**metadata, "name": f"{NAME}-cp", "labels": labels},
                "spec": {
                    "replicas": control_planes,
                    "version": version,
                    "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
                    "machineTemplate": {
                        "spec": {"infrastructureRef": reference(infrastructure.GROUP, TEST_MACHINE_TEMPLATE.kind, f"{NAME}-cp")}
                    },
                    "kubeadmConfigSpec": {"clusterConfiguration": {"etcd": etcd}},
                },
            },
        ),
        (
            MACHINE_DEPLOYMENT,
            {
                "metadata": {**metadata, "name": f"{NAME}-md", "labels": labels},
                "spec": {
                    "clusterName": NAME,
                    "replicas": workers,
                    "selector": {"matchLabels": selector},
                    "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}},
                    "template": {"metadata": {"labels": selector}, "spec": machine},
                },
            },
        ),
        (
            MACHINE_HEALTH_CHECK,
            {
                "metadata": {**metadata, "name": f"{NAME}-mhc", "labels": labels},
                "spec": {
                    "clusterName": NAME,
                    "selector": {"matchLabels": {"cluster.x-k8s.io/deployment-name": f"{NAME}-md"}},
                    "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 1}]},
                },
            },
        ),
        (
            CLUSTER,
            {
                "metadata": {**metadata, "name": NAME},
                "spec": {
                    "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "serviceDomain": "cluster.local"},
                    "infrastructureRef": reference(infrastructure.GROUP, TEST_CLUSTER.kind, NAME),
                    "controlPlaneRef": reference(KUBEADM_CONTROL_PLANE.group, KUBEADM_CONTROL_PLANE.kind, f"{NAME}-cp"),
                },
            },
        ),
    ]


class Authority(NamedTuple):
    """The certificate authority of the API server, as PEM: with it the management cluster takes the part of the workload cluster."""

    certificate: bytes
    key: bytes


class Life:
    """``told`` is what to show where something does not come to pass; ``pause`` is how long nothing may change at a rest, three times."""

    def __init__(
        self,
        connection: Connection,
        client: AsyncClient,
        infra: Infrastructure,
        authority: Authority,
        *,
        told: Callable[[], str] = lambda: "",
        pause: float = 1.5,
    ) -> None:
        self.connection, self.client, self.infrastructure = connection, client, infra
        self.authority, self._told, self._pause = authority, told, pause

    async def begin(self, written: Callable[..., list[tuple[Kind, Manifest]]] = manifests, **options: Any) -> None:
        """What users make, as they write it."""
        pair = {"tls.crt": self.authority.certificate, "tls.key": self.authority.key}
        for name, data in (("ca", pair), ("etcd", {"tls.crt": pair["tls.crt"]}), ("apiserver-etcd-client", pair)):
            metadata = {"name": f"{NAME}-{name}", "namespace": NAMESPACE, "labels": {"cluster.x-k8s.io/cluster-name": NAME}}
            encoded = {key: b64encode(value).decode() for key, value in data.items()}
            await self.client.create(SECRET, {"metadata": metadata, "type": "Opaque", "data": encoded})
        host, _, port = self.connection.server.removeprefix("https://").rpartition(":")
        for kind, manifest in written(host, int(port), **options):
            await self.client.create(kind, manifest)

    async def patch(self, kind: Kind, name: str, spec: Manifest) -> None:
        await self.client.patch(kind, name, NAMESPACE, {"spec": spec}, type=PatchType.MERGE)

    async def machines(self, **labels: str) -> list[Manifest]:
        selector = ",".join(f"cluster.x-k8s.io/{key.replace('_', '-')}={value}" for key, value in labels.items())
        return await self.client.list(MACHINE, NAMESPACE, labels=selector)

    async def at_rest(self, said: str, done: Callable[[], Awaitable[bool]], *, patience: float = 240) -> None:
        """Wait until ``done``, and then until nothing changes any more."""
        try:
            await eventually(done, said, patience)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._told()}") from None
        before: list[str] = []
        still = 0
        while still < 3:
            await asyncio.sleep(self._pause)
            now = [item["metadata"]["resourceVersion"] for kind in KINDS for item in await self.client.list(kind, NAMESPACE)]
            still = still + 1 if now == before else 0
            before = now

    async def ready(self, kind: Kind, name: str, replicas: int, version: str) -> bool:
        found = await self.client.get(kind, name, NAMESPACE)
        status = found.get("status") or {}
        counters = [status.get(key) for key in ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")]
        return (
            counters == [replicas] * 4
            and [version] == [each["version"] for each in status.get("versions") or ()]
            and (status.get("observedGeneration") == found["metadata"]["generation"])
        )

    async def watched_over(self, workers: int) -> bool:
        """Whether the MachineHealthCheck, which looks once in fifteen seconds, has seen all workers well."""
        status = (await self.client.get(MACHINE_HEALTH_CHECK, f"{NAME}-mhc", NAMESPACE)).get("status") or {}
        return (status.get("expectedMachines"), status.get("currentHealthy")) == (workers, workers)

    def all_at(self, version: str, control_planes: int, workers: int, *, workers_at: str = "") -> Callable[[], Awaitable[bool]]:
        """Whether every machine is there, in its version, and well."""

        async def probe() -> bool:
            return (
                await self.ready(KUBEADM_CONTROL_PLANE, f"{NAME}-cp", control_planes, version)
                and await self.ready(MACHINE_DEPLOYMENT, f"{NAME}-md", workers, workers_at or version)
                and await self.watched_over(workers)
            )

        return probe

    async def taken_down(self) -> list[str]:
        """Every object, one line each, without names and times."""
        found = [item for kind in KINDS for item in await self.client.list(kind, NAMESPACE)]
        found += [item for item in await self.client.list(NODE) if (item["spec"].get("providerID") or "").startswith("test://")]
        return sorted(json.dumps(plain(item), sort_keys=True) for item in found)


async def _made(one: Life) -> None:
    await one.begin()
    await one.at_rest("the cluster is made", one.all_at(FIRST, 3, 2))


async def _scaled(one: Life) -> None:
    await one.patch(MACHINE_DEPLOYMENT, f"{NAME}-md", {"replicas": 3})
    await one.at_rest("there are three workers", one.all_at(FIRST, 3, 3))


async def _upgraded(one: Life) -> None:
    await one.patch(KUBEADM_CONTROL_PLANE, f"{NAME}-cp", {"version": SECOND})
    await one.at_rest("the control plane is at the new version", one.all_at(SECOND, 3, 3, workers_at=FIRST), patience=400)
    await one.patch(MACHINE_DEPLOYMENT, f"{NAME}-md", {"template": {"spec": {"version": SECOND}}})
    await one.at_rest("the workers are at the new version", one.all_at(SECOND, 3, 3), patience=400)


async def _remediated(one: Life) -> None:
    sick = min((machine["metadata"]["name"] for machine in await one.machines(deployment_name=f"{NAME}-md")), default="")
    await one.infrastructure.fail(sick)

    async def replaced() -> bool:
        names = [machine["metadata"]["name"] for machine in await one.machines(deployment_name=f"{NAME}-md")]
        return sick not in names and await one.all_at(SECOND, 3, 3)()

    await one.at_rest("the sick worker is replaced", replaced)


async def _shrunk(one: Life) -> None:
    await one.patch(MACHINE_DEPLOYMENT, f"{NAME}-md", {"replicas": 1})
    await one.patch(KUBEADM_CONTROL_PLANE, f"{NAME}-cp", {"replicas": 1})
    await one.at_rest("one of each is left", one.all_at(SECOND, 1, 1), patience=400)


async def _deleted(one: Life) -> None:
    await one.client.delete(CLUSTER, NAME, NAMESPACE)

    async def gone() -> bool:
        return await one.client.find(CLUSTER, NAME, NAMESPACE) is None

    await one.at_rest("the cluster is gone", gone)


STAGES: dict[str, Callable[[Life], Awaitable[None]]] = {
    "made": _made,
    "scaled": _scaled,
    "upgraded": _upgraded,
    "remediated": _remediated,
    "shrunk": _shrunk,
    "deleted": _deleted,
}


def plain(item: Manifest) -> Manifest:
    """What must be equal of an object, whoever made it."""
    text = _PORT.sub(r"\g<1>6443", _TIMES.sub("<time>", _GENERATED.sub(r"\1-<random>", json.dumps(item))))
    out: Manifest = json.loads(text)
    metadata = out["metadata"]
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink"):
        metadata.pop(name, None)
    for reference in metadata.get("ownerReferences") or ():
        reference.pop("uid", None)
    metadata["ownerReferences"] = sorted(metadata.get("ownerReferences") or (), key=lambda each: json.dumps(each, sort_keys=True))
    metadata["finalizers"] = sorted(metadata.get("finalizers") or ())
    status = out.get("status") or {}
    status.pop("observedGeneration", None)
    status.pop("lastUpdated", None)
    out["status"] = status
    _normalise(out)
    return out


def _normalise(value: Any) -> None:
    if isinstance(value, list):
        for each in value:
            _normalise(each)
        return
    if not isinstance(value, dict):
        return
    for key in list(value):
        if key in ("lastTransitionTime", "observedGeneration", "conversion-data"):
            del value[key]
        elif key == "machine-template-hash" or key.endswith("/conversion-data"):
            value[key] = "<hash>"
        elif key == "selector" and isinstance(value[key], str):
            value[key] = _HASH.sub("machine-template-hash=<hash>", value[key])
        elif key == "cluster.x-k8s.io/cloned-from-name" or not isinstance(value[key], dict | list):
            continue
        else:
            _normalise(value[key])


@asynccontextmanager
async def life(
    connection: Connection,
    authority: Authority,
    *,
    workload: Connection | None = None,
    told: Callable[[], str] = lambda: "",
    pause: float = 1.5,
) -> AsyncIterator[Life]:
    """The simulated infrastructure beside whatever managers run; without ``workload`` the management cluster is that as well."""
    async with AsyncClient(connection) as client:
        for crd in infrastructure.crds():
            name = crd["metadata"]["name"]
            await client.patch(CUSTOM_RESOURCE_DEFINITION, name, "", crd, type=PatchType.APPLY, field_manager="tests", force=True)
            await established(client, name)
        infra = Infrastructure(workload or connection)
        manager = Manager(connection, ManagerOptions(name="simulated-infrastructure"))
        infra.add_to(manager)
        stop = asyncio.Event()
        task = asyncio.create_task(manager.run(stop))
        try:
            yield Life(connection, client, infra, authority, told=told, pause=pause)
        finally:
            stop.set()
            await asyncio.wait_for(task, 60)


# What is not as upstream has it, on purpose or by the nature of the place, and why.
DIFFERENCES = {
    "KubeadmConfig status.conditions[ControlPlaneKubernetesVersionAvailable]": "ours: tells how the version of the join was chosen",
    "KubeadmConfig spec.joinConfiguration.discovery.bootstrapToken": "a token and the pin of an authority are each cluster's own",
    "Node metadata.annotations, spec.taints[node.kubernetes.io/not-ready]": "a real server's admission and controllers add them",
    "Node status.conditions[].message": "a real server leaves out what is empty",
}
_OF_THE_SERVER = ("node.alpha.kubernetes.io/ttl",)


def agreed(item: Manifest) -> Manifest:
    """What of an object is to be equal under both managers, on every server."""
    out: Manifest = json.loads(json.dumps(item))
    spec, status = out.get("spec") or {}, out.get("status") or {}
    if out["kind"] == "KubeadmConfig":
        discovery = (spec.get("joinConfiguration") or {}).get("discovery") or {}
        if "bootstrapToken" in discovery:
            discovery["bootstrapToken"] = dict.fromkeys(discovery["bootstrapToken"], "<own>")
        ours = "ControlPlaneKubernetesVersionAvailable"
        status["conditions"] = [each for each in status.get("conditions") or () if each["type"] != ours]
    if out["kind"] == "Node":
        annotations = out["metadata"].get("annotations") or {}
        out["metadata"]["annotations"] = {key: value for key, value in annotations.items() if key not in _OF_THE_SERVER}
        spec["taints"] = [taint for taint in spec.get("taints") or () if taint["key"] != "node.kubernetes.io/not-ready"]
        out["status"] = {"conditions": [[each["type"], each["status"]] for each in status.get("conditions") or ()]}
    return out
