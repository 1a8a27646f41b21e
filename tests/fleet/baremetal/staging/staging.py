"""A pool whose images are staged ahead, with a MachineDeployment of one worker; hosts are imitated by what their agents tell."""

from __future__ import annotations

from typing import Any

from fleet.baremetal.estate import KINDS, NS, VERSION, Estate
from fleet.baremetal.rollouts.rolling import plane, workers
from fleet.world import lean_crd, preserving_crd
from support.waiting import eventually

from slipway.api.cluster.kinds import (
    BAREMETAL_MACHINE_TEMPLATE,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    SECRET,
)
from slipway.api.elemental import names, staging
from slipway.api.elemental.staging import Wanted
from slipway.fleet.baremetal.staging.reconciler import StagingReconciler
from slipway.runtime.objects import Request

NEXT = "v1.35.4"


class Staged:
    def __init__(self, metal: Estate) -> None:
        self.metal = metal
        self.enqueued: list[Request] = []
        self.start()

    def start(self) -> None:
        """A new process, which knows nothing."""
        self.metal.process()
        self.reconciler = StagingReconciler(
            self.metal.client, self.metal.cache, self.metal.options, enqueue=self.enqueued.append, clock=lambda: self.metal.now
        )

    async def look(self, times: int = 2) -> None:
        """Reconcile the pool, with everything in the cache that the API server has."""
        for _ in range(times):
            await self.metal.settle((*KINDS, KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT, BAREMETAL_MACHINE_TEMPLATE, CONFIG_MAP))
            await self.settle_secrets()
            await self.metal.reconcile("pool", self.reconciler)

    async def settle_secrets(self) -> None:
        label = f"{names.MANAGED_LABEL}={names.MANAGED}"
        wanted = {
            each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in await self.metal.client.list(SECRET, NS, labels=label)
        }

        def caught_up() -> bool:
            store = self.metal.cache.informer(SECRET, labels=label).store
            return {each.name: each.metadata.resource_version for each in store.list(NS)} == wanted

        await eventually(caught_up, "the cache has all plan Secrets")

    async def asked(self, host: str) -> Wanted | None:
        secret = await self.metal.client.get(SECRET, host, NS)
        return staging.decode((secret["metadata"].get("annotations") or {}).get(names.STAGE_IMAGE_ANNOTATION, ""))

    async def tells(self, host: str, state: str, message: str = "", image: str = "") -> None:
        """What the inventory's status has of what a host says."""
        asked = await self.asked(host)
        facts: dict[str, Any] = {"image": image or (asked.image if asked is not None else ""), "state": state, "message": message}
        await self.metal.patch(MACHINE_INVENTORY, host, {"status": {"hostFacts": {"staging": facts}}}, subresource="status")

    async def status(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.metal.get(MACHINE_INVENTORY_POOL, "pool"))["status"].get("images") or []
        return found


async def prepared(metal: Estate, hosts: int = 1, machines: int = 1) -> Staged:
    for crd in (preserving_crd(KUBEADM_CONTROL_PLANE), preserving_crd(MACHINE_DEPLOYMENT), lean_crd(BAREMETAL_MACHINE_TEMPLATE)):
        await metal.client.create(CUSTOM_RESOURCE_DEFINITION, crd)
    staged = Staged(metal)
    await metal.cluster()
    names_ = [f"rack-{number}" for number in range(1, hosts + 1)]
    for name in names_:
        await metal.host(name)
    await metal.pool(*names_)
    await metal.patch(MACHINE_INVENTORY_POOL, "pool", {"spec": {"imageStaging": "Ahead"}})
    template = {"template": {"spec": {"machineInventoryPoolRef": {"name": "pool"}}}}
    await metal.create(BAREMETAL_MACHINE_TEMPLATE, "w", spec=template)
    await metal.create(MACHINE_DEPLOYMENT, "md", spec=workers(VERSION, replicas=machines)["spec"])
    await metal.create(
        KUBEADM_CONTROL_PLANE, "cp", spec=plane(VERSION)["spec"], metadata={"labels": {"cluster.x-k8s.io/cluster-name": "c"}}
    )
    await metal.reconcile("pool", metal.pools)
    for number in range(1, machines + 1):
        await metal.machine(f"m-{number}", deployment="md")
        await metal.becomes_a_node(f"m-{number}", f"rack-{number}")
    return staged
