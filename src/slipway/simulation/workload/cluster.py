"""One workload cluster: an API behind its endpoint, for as long as control planes run, the address is held and etcd has its quorum."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from slipway.api import rbac
from slipway.api.cluster.kinds import NODE
from slipway.credentials import x509
from slipway.embedded.storage.store import DELETED
from slipway.simulation.workload.api import WorkloadApi
from slipway.simulation.workload.controllers import Controllers
from slipway.simulation.workload.etcd import Etcd, Gateway
from slipway.simulation.workload.local import LocalClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.storage.store import Change, Stored
    from slipway.simulation.host.machine import Machine
    from slipway.simulation.kubelet import Kubelet

API_SERVER, ETCD = "kube-apiserver", "etcd"
ETCD_PORT = 2379
_log = logging.getLogger(__name__)

# What kube-apiserver makes at its start (its bootstrap policy), as far as nodes need it.  What a Node may do is decided by an authorizer
# of its own there; here by a role.
_CSR = "certificates.k8s.io"
_ROLES: dict[str, list[Manifest]] = {
    "system:node-bootstrapper": [
        {"apiGroups": [_CSR], "resources": ["certificatesigningrequests"], "verbs": ["create", "get", "list", "watch"]}
    ],
    f"system:{_CSR}:certificatesigningrequests:nodeclient": [
        {"apiGroups": [_CSR], "resources": ["certificatesigningrequests/nodeclient"], "verbs": ["create"]}
    ],
    f"system:{_CSR}:certificatesigningrequests:selfnodeclient": [
        {"apiGroups": [_CSR], "resources": ["certificatesigningrequests/selfnodeclient"], "verbs": ["create"]}
    ],
    "system:node": [
        {"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["create", "get", "list", "watch", "patch", "update"]},
        {"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["create", "delete", "get", "list", "watch", "patch", "update"]},
        {"apiGroups": [""], "resources": ["configmaps", "secrets", "services"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "get", "patch", "update", "delete"]},
        {"apiGroups": [_CSR], "resources": ["certificatesigningrequests"], "verbs": ["create", "get", "list", "watch"]},
    ],
    "system:kubelet-api-admin": [{"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["*"]}],
    "system:node-proxier": [{"apiGroups": [""], "resources": ["endpoints", "services", "nodes"], "verbs": ["get", "list", "watch"]}],
}


class WorkloadCluster:
    """``holds`` says whether somebody holds the address of the endpoint; an external load balancer always does.

    ``gateway`` is what answers at the client port of a member of etcd.
    """

    def __init__(
        self,
        address: str,
        port: int,
        authority: x509.Authority,
        etcd_authority: x509.Authority,
        version: str,
        *,
        holds: Callable[[WorkloadCluster], bool],
        gateway: type[Gateway] = Gateway,
    ) -> None:
        self.authority, self._etcd_authority, self._gateway = authority, etcd_authority, gateway
        self.etcd = Etcd()
        self.api = WorkloadApi(address, port, authority, version, self._target)
        self.client = LocalClient(self.api.core)
        self.controllers = Controllers(self.api.core, authority)
        self.planes: dict[str, tuple[Machine, str]] = {}
        """The machines that are control planes or were, each with the name of its Node, by the machine's name."""
        self.kubelets: dict[str, Kubelet] = {}
        """Those that run, by the names of their Nodes: they are woken when their Pods change."""
        self.outages = 0
        """How often the API stopped answering."""
        self._holds = holds
        self._placed: dict[str, dict[str, Stored]] = {}
        self._members: dict[str, int] = {}
        self._gateways: dict[int, tuple[Gateway, tuple[str, int]]] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._silences: set[asyncio.Task[None]] = set()

    @property
    def pin(self) -> str:
        """What tells this cluster from every other: the public key of its CA."""
        return x509.public_key_pins(x509.pem(self.authority.certificate))[0]

    async def start(self) -> None:
        self.api.start()
        self.controllers.start()
        for name, rules in _ROLES.items():
            await self._create(rbac.role(name, rules))
        await self._create(rbac.binding("system:node", "system:node", [{"kind": "Group", "name": "system:nodes"}]))
        self.api.core.store.listen(self._observe, "pods")
        self._task = asyncio.create_task(self._run(), name="simulated workload cluster")

    async def stop(self) -> None:
        tasks = [*self._silences, *([self._task] if self._task is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for gateway, _ in self._gateways.values():
            await gateway.stop()
        await self.controllers.stop()
        await self.api.stop()

    def settle(self) -> None:
        """Something changed on a machine: see who runs, and whether the API answers."""
        self._wake.set()

    def leave(self, node: str, grace: float) -> None:
        """The kubelet of a Node is no more: where none takes its place for so long, nothing is known of the Node any more."""
        self.kubelets.pop(node, None)
        task = asyncio.create_task(self._silence(node, grace), name=f"silence of {node}")
        self._silences.add(task)
        task.add_done_callback(self._silences.discard)

    async def _silence(self, node: str, grace: float) -> None:
        """What kube-controller-manager says of a Node whose Lease is not renewed."""
        await asyncio.sleep(grace)
        found = self.client.find(NODE, node)
        if found is None or node in self.kubelets:
            return
        unknown = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        told = [{**each, **unknown, "lastTransitionTime": now} for each in (found.get("status") or {}).get("conditions") or ()]
        await self.client.patch(NODE, node, "", {"status": {"conditions": told}}, subresource="status")

    def placed(self, node: str) -> dict[str, Stored]:
        """The Pods of a Node by ``namespace/name``: what a kubelet's watch would bring."""
        return self._placed.get(node, {})

    def _observe(self, bucket: str, change: Change) -> None:
        current = change.current
        node = (current.manifest().get("spec") or {}).get("nodeName") or ""
        if not node:
            return
        pods = self._placed.setdefault(node, {})
        if change.type == DELETED:
            pods.pop(f"{current.namespace}/{current.name}", None)
        else:
            pods[f"{current.namespace}/{current.name}"] = current
        if node in self.kubelets:
            self.kubelets[node].wake()

    def is_ready(self, machine: Machine) -> bool:
        """Whether the API server of a machine answers at the machine's own address."""
        # One that is cut off is alone with its etcd, which has no leader then.
        return machine.powered and not machine.faults.cut_off and machine.running(API_SERVER) is not None and self.etcd.has_quorum()

    def is_answered(self) -> bool:
        return any(self.is_ready(machine) for machine, _ in self.planes.values()) and self._holds(self)

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._members_as_they_run()
                await self._open_or_closed()
            except Exception:
                _log.exception("simulated workload cluster %s", self.api.url)

    async def _members_as_they_run(self) -> None:
        for name, (machine, node) in self.planes.items():
            runs = machine.powered and not machine.faults.cut_off and machine.running(ETCD) is not None
            known = self._members.get(name)
            member = self.etcd.members.get(known) if known is not None else None
            if runs and (member is None or not member.running):
                await self._start_member(name, machine, node)
            elif not runs and member is not None and member.running:
                self.etcd.stop(member.id)
        for number in [number for number in self._gateways if number not in self.etcd.members or not self.etcd.members[number].running]:
            gateway, _ = self._gateways.pop(number)
            await gateway.stop()

    async def _start_member(self, name: str, machine: Machine, node: str) -> None:
        address = machine.hardware.address.partition("/")[0]
        peer = f"https://{address}:2380"
        if self.etcd.members and all(member.peer_url != peer for member in self.etcd.members.values()):
            # It was removed: the real one ends at once, and is started again and again.
            return
        member = self.etcd.start(node, peer, f"https://{address}:{ETCD_PORT}")
        self._members[name] = member.id
        gateway = self._gateway(self.etcd, member, self._etcd_authority)
        self._gateways[member.id] = gateway, await gateway.start()

    async def _open_or_closed(self) -> None:
        wanted = self.is_answered()
        if wanted and not self.api.serving:
            await self.api.open()
        elif not wanted and self.api.serving:
            self.outages += 1
            await self.api.close()

    def _target(self, pod: str, port: int) -> tuple[str, int] | None:
        for name, (machine, node) in self.planes.items():
            if pod == f"{ETCD}-{node}" and port == ETCD_PORT and machine.powered:
                return self._gateways.get(self._members.get(name, 0), (None, None))[1]
            if pod == f"{API_SERVER}-{node}" and self.is_ready(machine):
                return self.api.address, self.api.port
        return None

    async def _create(self, manifest: Manifest) -> None:
        await self.client.create(_kind_of(manifest), manifest)


def _kind_of(manifest: Manifest) -> Kind:
    from slipway.api.cluster import kinds

    return kinds.named(manifest["apiVersion"], manifest["kind"])
