"""A management cluster with a bare-metal Cluster, its pools and hosts, on the embedded API server; it is its own workload cluster.

Reconcilers are run by hand, one reconcile at a time.  A host is imitated by what its agent writes into its plan Secret.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import msgspec
from fleet.world import kubeconfig, lean_crd, preserving_crd
from support.waiting import eventually

from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CLUSTER,
    CONFIG_MAP,
    CORE_EVENT,
    CUSTOM_RESOURCE_DEFINITION,
    MACHINE,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    NAMESPACE,
    NODE,
    SECRET,
    Kind,
)
from slipway.api.elemental import plan as plans
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.baremetal.cluster.reconciler import BaremetalClusterReconciler
from slipway.fleet.baremetal.hosts.reconciler import MachineInventoryPoolReconciler
from slipway.fleet.baremetal.machine.reconciler import BaremetalMachineReconciler
from slipway.fleet.baremetal.options import BaremetalOptions
from slipway.fleet.baremetal.rollouts.reconciler import RolloutGuardReconciler
from slipway.fleet.baremetal.staging.reconciler import StagingReconciler
from slipway.fleet.baremetal.vip.reconciler import AliveReconciler
from slipway.fleet.clustercache import WorkloadClusters
from slipway.kube.aio import AsyncClient, PatchType
from slipway.runtime.cache.cache import Cache
from slipway.runtime.events import EventRecorder
from slipway.runtime.objects import Request, Result

Manifest = dict[str, Any]
Reconciler = (
    BaremetalMachineReconciler
    | BaremetalClusterReconciler
    | MachineInventoryPoolReconciler
    | AliveReconciler
    | RolloutGuardReconciler
    | StagingReconciler
)

NS = "metal"
VERSION = "v1.34.5"
REGISTRY = "registry.example.com:5000"
CATALOG = {VERSION: "elsewhere.example.com/tkestack/base:v0-1.34.5"}
TOKEN = "abcdef.0123456789abcdef"
VIP = "10.0.0.100"
KINDS = (CLUSTER, MACHINE, BAREMETAL_CLUSTER, BAREMETAL_MACHINE, MACHINE_INVENTORY_POOL, MACHINE_INVENTORY)
OUR_KINDS = (BAREMETAL_CLUSTER, BAREMETAL_MACHINE, MACHINE_INVENTORY_POOL, MACHINE_INVENTORY)
CLUSTER_LABEL = "cluster.x-k8s.io/cluster-name"

USER_DATA = f"""\
## template: jinja
#cloud-config

write_files:
-   path: /run/kubeadm/kubeadm-join-config.yaml
    owner: root:root
    permissions: '0640'
    content: |
      ---
      apiVersion: kubeadm.k8s.io/v1beta4
      discovery:
        bootstrapToken:
          apiServerEndpoint: {VIP}:6443
          token: {TOKEN}
      kind: JoinConfiguration
      nodeRegistration:
        name: '{{{{ ds.meta_data.local_hostname }}}}'
runcmd:
  - kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml
"""


def encoded(data: dict[str, bytes | str]) -> dict[str, str]:
    return {key: b64encode(value.encode() if isinstance(value, str) else value).decode() for key, value in data.items()}


@cache
def _crds() -> list[Manifest]:
    return [*map(lean_crd, OUR_KINDS), *map(preserving_crd, (CLUSTER, MACHINE))]


class Estate:
    """``now`` is what reconcilers take for the time."""

    def __init__(self, server: EmbeddedServer) -> None:
        self.server = server
        self.client = AsyncClient(server.connection())
        self.now = datetime.now(UTC).replace(microsecond=0)
        self.options = BaremetalOptions()
        self.enqueued: list[Request] = []
        self.seen: set[tuple[str, str, str, str]] = set()
        self._processes: list[tuple[AsyncClient, Cache, WorkloadClusters, EventRecorder]] = []
        self._current: dict[type, Reconciler] = {}
        self.process()

    async def close(self) -> None:
        for client, store, workload, events in self._processes:
            await events.close()
            await workload.close()
            await store.close()
            await client.close()
        await self.client.close()

    def process(self, on_request: Callable[[str, int, float], None] | None = None) -> None:
        """A new process: nothing of what the last one knew is known to it."""
        client = AsyncClient(self.server.connection(), on_request=on_request)
        quiet = AsyncClient(self.server.connection())
        self.cache = Cache(quiet)
        self.workload = WorkloadClusters(quiet)
        self.events = EventRecorder(quiet, "test")
        self._processes += [(client, self.cache, self.workload, self.events)]
        self._processes.append((quiet, self.cache, self.workload, self.events))
        self.machines = BaremetalMachineReconciler(
            client,
            self.cache,
            self.options,
            workload=self.workload,
            events=self.events,
            enqueue=self.enqueued.append,
            clock=lambda: self.now,
        )
        self.clusters = BaremetalClusterReconciler(client, self.cache, events=self.events, clock=lambda: self.now)
        self.pools = MachineInventoryPoolReconciler(
            client, self.cache, self.options, workload=self.workload, events=self.events, clock=lambda: self.now
        )
        self.alive = AliveReconciler(client, self.cache, self.workload, clock=lambda: self.now)

    async def deafen(self) -> None:
        """Let the process know nothing more than it knows now: its watches are cut, and its requests still go through."""
        await self.cache.close()

    def later(self, **how_much: float) -> None:
        self.now += timedelta(**how_much)

    # What others make.

    async def create(self, kind: Kind, name: str, *, status: Manifest | None = None, namespace: str = NS, **fields: Any) -> Manifest:
        metadata = {"name": name, **({"namespace": namespace} if kind.namespaced else {}), **fields.pop("metadata", {})}
        made = await self.client.create(kind, {"metadata": metadata, **fields})
        return made if status is None else await self.patch(kind, name, {"status": status}, subresource="status")

    async def patch(self, kind: Kind, name: str, body: Manifest, *, subresource: str = "") -> Manifest:
        return await self.client.patch(kind, name, NS if kind.namespaced else "", body, type=PatchType.MERGE, subresource=subresource)

    async def cluster(self, *, balancer: Manifest | None = None, initialized: bool = True, annotated: bool = True) -> None:
        """The Cluster and its infrastructure, as they are when machines are made; and what hosts are made from."""
        reference = {"apiGroup": BAREMETAL_CLUSTER.group, "kind": "BaremetalCluster", "name": "c"}
        spec = {"infrastructureRef": reference, "controlPlaneEndpoint": {"host": VIP, "port": 6443}}
        condition = {"type": "ControlPlaneInitialized", "status": "True" if initialized else "False", "reason": "x", "message": ""}
        status = {
            "initialization": {"infrastructureProvisioned": True},
            "conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }
        annotations = {"cpaas.io/registry-address": REGISTRY} if annotated else {}
        made = await self.create(CLUSTER, "c", spec=spec, status=status, metadata={"annotations": annotations})
        await self.create(
            BAREMETAL_CLUSTER,
            "c",
            spec={"controlPlaneLoadBalancer": balancer or {"host": VIP, "port": 6443, "type": "Internal", "vrid": 51}},
            metadata={"labels": {CLUSTER_LABEL: "c"}, "ownerReferences": [self._reference(CLUSTER, made)]},
        )
        await self.create(CONFIG_MAP, "elemental-image-catalog", data=CATALOG)
        if initialized:
            await self.create(SECRET, "c-kubeconfig", data=encoded({"value": kubeconfig(self.server.connection())}))
            await self.token()

    async def token(self, text: str = TOKEN, *, lives: timedelta = timedelta(hours=1)) -> None:
        expires = (self.now + lives).strftime("%Y-%m-%dT%H:%M:%SZ")
        name = f"bootstrap-token-{text.partition('.')[0]}"
        await self.client.delete(SECRET, name, "kube-system")
        await self.create(
            SECRET,
            name,
            namespace="kube-system",
            type="bootstrap.kubernetes.io/token",
            data=encoded({"token-id": text[:6], "token-secret": text[7:], "expiration": expires, "usage-bootstrap-signing": "true"}),
        )

    async def host(self, name: str, *, ready: bool = True, address: str = "", metadata: Manifest | None = None, **spec: Any) -> None:
        """A host that registered, and its plan Secret, as the inventory's controller makes both."""
        network = {
            "interfaces": [{"name": "eth0", "mac": "52:54:00:12:34:56", "addresses": [f"{address or self._address(name)}/24"]}],
            "routes": [{"destination": "default", "gateway": "10.0.0.1", "interface": "eth0"}],
        }
        made = await self.create(MACHINE_INVENTORY, name, spec={"observedNetwork": network, **spec}, metadata=metadata or {})
        condition = {"type": "Ready", "status": str(ready), "reason": "PlanSuccessfullyApplied", "message": ""}
        await self.patch(
            MACHINE_INVENTORY,
            name,
            {"status": {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}},
            subresource="status",
        )
        await self.create(
            SECRET,
            name,
            type="elemental.cattle.io/plan",
            metadata={"labels": {"elemental.cattle.io/managed": "true"}, "ownerReferences": [self._reference(MACHINE_INVENTORY, made)]},
            data=encoded({"plan": plans.EMPTY, "applied-checksum": plans.checksum(plans.EMPTY)}),
        )

    @staticmethod
    def _address(name: str) -> str:
        return f"10.0.0.{10 + int(name.rpartition('-')[2])}"

    async def pool(self, *hosts: str | Manifest, name: str = "pool", cluster: str = "c") -> None:
        members = [host if isinstance(host, dict) else {"name": host} for host in hosts]
        await self.create(MACHINE_INVENTORY_POOL, name, spec={"clusterName": cluster, "machineInventories": members})

    async def machine(
        self,
        name: str,
        *,
        pool: str = "pool",
        control_plane: bool = False,
        deployment: str = "",
        data: str | None = USER_DATA,
        version: str = VERSION,
        **spec: Any,
    ) -> None:
        """A Machine with its bootstrap data, and the BaremetalMachine of the same name, as Cluster API makes them."""
        labels = {CLUSTER_LABEL: "c", **({"cluster.x-k8s.io/control-plane": ""} if control_plane else {})}
        labels |= {"cluster.x-k8s.io/deployment-name": deployment} if deployment else {}
        bootstrap = {"dataSecretName": f"{name}-data"} if data is not None else {}
        reference = {"apiGroup": BAREMETAL_MACHINE.group, "kind": "BaremetalMachine", "name": name}
        made = await self.create(
            MACHINE,
            name,
            spec={"clusterName": "c", "version": version, "bootstrap": bootstrap, "infrastructureRef": reference},
            metadata={"labels": labels},
        )
        if data is not None:
            await self.data(name, data)
        await self.create(
            BAREMETAL_MACHINE,
            name,
            spec={"machineInventoryPoolRef": {"name": pool}, **spec},
            metadata={"labels": labels, "ownerReferences": [self._reference(MACHINE, made)]},
        )

    async def data(self, machine: str, text: str, data_format: str = "cloud-config") -> None:
        await self.create(SECRET, f"{machine}-data", type="cluster.x-k8s.io/secret", data=encoded({"value": text, "format": data_format}))

    @staticmethod
    def _reference(kind: Kind, manifest: Manifest) -> Manifest:
        metadata = manifest["metadata"]
        return {"apiVersion": kind.api_version, "kind": kind.kind, "name": metadata["name"], "uid": metadata["uid"], "controller": True}

    # What a host does.

    async def plan(self, host: str) -> plans.Plan:
        secret = await self.client.get(SECRET, host, NS)
        return plans.decode(b64decode(secret["data"]["plan"]))

    async def plan_type(self, host: str) -> str:
        secret = await self.client.get(SECRET, host, NS)
        annotations = secret["metadata"].get("annotations") or {}
        return str(annotations.get("baremetal.alauda.io/plan.type", ""))

    async def applies(self, host: str, output: str = "done") -> None:
        """Its agent has applied the plan."""
        await self._outcome(
            host, lambda checksum: {"applied-checksum": checksum, "plan-state": "succeeded", "applied-output": _packed(output)}
        )

    async def says(self, host: str, *, clean: bool) -> None:
        """Its agent has looked, since it applied the plan, whether the host is clean; the inventory's controller tells of it."""

        def facts(checksum: str) -> Manifest:
            return {"clean": clean, "plan": checksum}

        await self._outcome(host, lambda checksum: {plans.HOST_FACTS: msgspec.json.encode(facts(checksum))})
        checksum = plans.checksum(b64decode((await self.client.get(SECRET, host, NS))["data"]["plan"]))
        status = {"plan": {"checksum": checksum, "type": await self.plan_type(host)}, "hostFacts": facts(checksum)}
        await self.patch(MACHINE_INVENTORY, host, {"status": status}, subresource="status")

    async def begins(self, host: str) -> None:
        await self._outcome(host, lambda _: {"plan-state": "in-progress"})

    async def fails(self, host: str, output: str, times: int = 3) -> None:
        await self._outcome(
            host,
            lambda checksum: {
                "failed-checksum": checksum,
                "failure-count": str(times),
                "failed-output": _packed(output),
                "plan-state": "failed" if times >= 3 else "in-progress",
            },
        )

    async def _outcome(self, host: str, keys: Callable[[str], dict[str, bytes | str]]) -> None:
        secret = await self.client.get(SECRET, host, NS)
        checksum = plans.checksum(b64decode(secret["data"]["plan"]))
        await self.client.update(SECRET, {**secret, "data": {**secret["data"], **encoded(keys(checksum))}})

    async def joins(self, host: str, *, version: str = VERSION, boot_id: str = "boot-1", ready: bool = True, name: str = "") -> None:
        """Its kubelet is known to the cluster."""
        name = name or host
        if await self.client.find(NODE, name) is None:
            await self.create(NODE, name, spec={"providerID": f"baremetal:///{host}"})
        condition = {"type": "Ready", "status": str(ready), "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        info = {"kubeletVersion": version, "bootID": boot_id}
        await self.patch(NODE, name, {"status": {"nodeInfo": info, "conditions": [condition]}}, subresource="status")

    async def becomes_a_node(self, machine: str, host: str, **how: Any) -> None:
        """All of it."""
        await self.reconcile(machine)
        await self.applies(host)
        await self.joins(host, **how)
        await self.reconcile(machine)

    # The reconcilers.

    async def reconcile(self, name: str, reconciler: Reconciler | None = None, *, times: int = 1) -> Result:
        """A reconcile of a BaremetalMachine, or by another reconciler, with everything in the cache that the API server has."""
        result = Result()
        for _ in range(times):
            await self.settle()
            result = await (reconciler or self.machines).reconcile(Request(NS, name))
            await self._note()
        return result

    async def _note(self) -> None:
        """Remember every condition that was ever told."""
        for kind in (BAREMETAL_MACHINE, BAREMETAL_CLUSTER, MACHINE_INVENTORY_POOL):
            for found in await self.client.list(kind):
                told = (found.get("status") or {}).get("conditions") or []
                self.seen |= {(kind.kind, each["type"], each["status"], each["reason"]) for each in told}

    async def settle(self, kinds: Sequence[Kind] = KINDS) -> None:
        for kind in kinds:
            await _caught_up(self.cache, self.client, kind)
        if await self.client.find(SECRET, "c-kubeconfig", NS) is not None:
            await eventually(lambda: self.workload.probe(NS, "c").connected, "the workload cluster is connected")
            await _caught_up(await self.workload.nodes(NS, "c"), self.client, NODE)

    # What is there.

    async def get(self, kind: Kind, name: str) -> Manifest:
        return await self.client.get(kind, name, NS if kind.namespaced else "")

    async def find(self, kind: Kind, name: str) -> Manifest | None:
        return await self.client.find(kind, name, NS)

    async def status(self, name: str) -> Manifest:
        status: Manifest = (await self.get(BAREMETAL_MACHINE, name)).get("status") or {}
        return status

    async def condition(self, name: str, condition_type: str, kind: Kind = BAREMETAL_MACHINE) -> tuple[str, str, str]:
        found = ((await self.get(kind, name)).get("status") or {}).get("conditions") or []
        one = next(condition for condition in found if condition["type"] == condition_type)
        return one["status"], one["reason"], one["message"]

    async def annotations(self, host: str) -> dict[str, str]:
        """Those of the provider on an inventory, without their prefix."""
        found = (await self.get(MACHINE_INVENTORY, host))["metadata"].get("annotations") or {}
        return {key.partition("/")[2]: value for key, value in found.items() if key.startswith("baremetal.alauda.io/")}

    async def told(self) -> list[tuple[str, str]]:
        await self.events.flush()
        return [(event["reason"], event["message"]) for event in await self.client.list(CORE_EVENT, NS)]


async def _caught_up(store: Cache, client: AsyncClient, kind: Kind) -> None:
    wanted = {
        (each["metadata"].get("namespace", ""), each["metadata"]["name"]): int(each["metadata"]["resourceVersion"])
        for each in await client.list(kind)
    }

    async def caught_up() -> bool:
        known = {(each.namespace, each.name): int(each.metadata.resource_version) for each in await store.list(kind)}
        return known.keys() == wanted.keys() and all(known[name] >= version for name, version in wanted.items())

    await eventually(caught_up, f"the cache has all {kind.plural}")


def _packed(output: str) -> bytes:
    return plans.pack_output({"upgrade-system": output.encode()})


@asynccontextmanager
async def estate() -> AsyncIterator[Estate]:
    async with EmbeddedServer(tls=False) as server:
        made = Estate(server)
        try:
            for crd in _crds():
                await made.client.create(CUSTOM_RESOURCE_DEFINITION, crd)
            await made.create(NAMESPACE, NS)
            yield made
        finally:
            await made.close()
