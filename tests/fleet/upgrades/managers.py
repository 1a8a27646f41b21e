"""A cluster of somebody's infrastructure on the embedded API server, and managers of Cluster API's contract.

They replace one machine at a time, are not ours, and know nothing of who asks them: what must not be asked for, they write down.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Self

from fleet.world import preserving_crd

from slipway.api.cluster.kinds import (
    CLUSTER,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    NAMESPACE,
    NODE,
    SECRET,
    Kind,
)
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.upgrades.versions import minor
from slipway.kube.aio import AsyncClient
from slipway.simulation.workload.local import LocalClient

Manifest = dict[str, Any]
SPACE, NAME, PLANE, WORKERS = "n", "prod", "cp", "w"
OLD, NEW, NEWEST = "v1.34.10", "v1.35.4", "v1.36.3"
LABEL = "cluster.x-k8s.io/"


class Managed:
    """``server`` is the management cluster's and, for its Nodes, the workload cluster's too."""

    def __init__(self, database: Path | None = None) -> None:
        self.server = EmbeddedServer(database=database)
        self._sizes = {PLANE: 3, WORKERS: 2}
        self._stack = AsyncExitStack()
        self._numbers = count()
        self._task: asyncio.Task[None] | None = None
        self.wrong: list[str] = []
        self.replaced: list[str] = []
        """The versions of machines that were made, with their group."""
        self.stuck = ""
        """The condition that every new machine stays with."""

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self.server)
        self.client = await self._stack.enter_async_context(AsyncClient(self.server.connection()))
        self._local = LocalClient(self.server.core)
        await self.client.create(NAMESPACE, {"metadata": {"name": SPACE}})
        for kind in (CLUSTER, KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE):
            await self.client.create(CUSTOM_RESOURCE_DEFINITION, preserving_crd(kind))
        await self._make()
        self._task = asyncio.create_task(self._manage())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.pause()
        await self._stack.aclose()

    async def pause(self) -> None:
        """Let the managers be dead."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def version(self, kind: Kind, name: str) -> str:
        spec = (await self.client.get(kind, name, SPACE))["spec"]
        return str(spec["version"] if kind == KUBEADM_CONTROL_PLANE else spec["template"]["spec"]["version"])

    async def _make(self) -> None:
        references = {
            "controlPlaneRef": {"kind": "KubeadmControlPlane", "name": PLANE},
            "infrastructureRef": {"kind": "DockerCluster", "name": NAME},
        }
        secret = {"value": b64encode(self.server.kubeconfig().encode()).decode()}
        machine = {"spec": {"clusterName": NAME, "version": OLD}}
        made: list[tuple[Kind, str, Manifest]] = [
            (CLUSTER, NAME, {"spec": {**references, "controlPlaneEndpoint": {"host": "192.0.2.1", "port": 6443}}}),
            (SECRET, f"{NAME}-kubeconfig", {"data": secret}),
            (KUBEADM_CONTROL_PLANE, PLANE, {"spec": {"replicas": self._sizes[PLANE], "version": OLD}}),
            (MACHINE_DEPLOYMENT, WORKERS, {"spec": {"clusterName": NAME, "replicas": self._sizes[WORKERS], "template": machine}}),
        ]
        for kind, name, content in made:
            labels = {f"{LABEL}cluster-name": NAME}
            await self.client.create(kind, {"metadata": {"name": name, "namespace": SPACE, "labels": labels}, **content})
        for group, number in self._sizes.items():
            for _ in range(number):
                await self._add(group, OLD)
        await self._observe()

    async def _add(self, group: str, version: str) -> None:
        name = f"{group}-{next(self._numbers)}"
        mark = {f"{LABEL}control-plane": ""} if group == PLANE else {f"{LABEL}deployment-name": group}
        labels = {f"{LABEL}cluster-name": NAME, **mark}
        made = await self.client.create(
            MACHINE, {"metadata": {"name": name, "namespace": SPACE, "labels": labels}, "spec": {"clusterName": NAME, "version": version}}
        )
        ready = "False" if self.stuck else "True"
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        told = [{"type": "Ready", "status": ready, "reason": "x", "message": "", "lastTransitionTime": now}]
        if self.stuck:
            told.append({"type": self.stuck, "status": "False", "reason": "ObjectDeleted", "message": "gone", "lastTransitionTime": now})
        status = {"conditions": told, "nodeRef": {"name": name}}
        await self.client.update(MACHINE, {**made, "status": status}, subresource="status")
        node = await self.client.create(NODE, {"metadata": {"name": name}})
        await self.client.update(NODE, {**node, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}, subresource="status")

    async def _manage(self) -> None:
        while True:
            await self._observe()
            await self._replace_one()
            await asyncio.sleep(0.005)

    async def _replace_one(self) -> None:
        """One machine at a time, of the control plane before the workers; what is asked for beside that is wrong."""
        behind: list[tuple[str, str, Manifest]] = []
        for kind, name in ((KUBEADM_CONTROL_PLANE, PLANE), (MACHINE_DEPLOYMENT, WORKERS)):
            wanted = await self.version(kind, name)
            own = [each for each in self._local.list(MACHINE, SPACE) if str(each["metadata"]["name"]).rpartition("-")[0] == name]
            behind += [(name, wanted, each) for each in own if each["spec"]["version"] != wanted]
        if not behind:
            return
        if len({group for group, _, _ in behind}) > 1:
            self.wrong.append("two groups are rolled at once")
        group, wanted, old = behind[0]
        if group == PLANE and minor(wanted) - minor(old["spec"]["version"]) > 1:
            self.wrong.append(f"the control plane goes from {old['spec']['version']} to {wanted}")
        name = old["metadata"]["name"]
        await self.client.delete(MACHINE, name, SPACE)
        await self.client.delete(NODE, name)
        self.replaced.append(f"{group} {wanted}")
        await self._add(group, wanted)

    async def _observe(self) -> None:
        for kind, name in ((KUBEADM_CONTROL_PLANE, PLANE), (MACHINE_DEPLOYMENT, WORKERS)):
            found = await self.client.get(kind, name, SPACE)
            generation = found["metadata"]["generation"]
            if (found.get("status") or {}).get("observedGeneration") != generation:
                await self.client.update(kind, {**found, "status": {"observedGeneration": generation}}, subresource="status")
