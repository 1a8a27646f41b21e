"""The life of a cluster as far as the bootstrap provider sees it, for tests in which it is not the data that counts."""

from __future__ import annotations

from fleet.world import CLUSTER_NAME, World
from support.waiting import eventually

from slipway.api.cluster.kinds import CLUSTER, KUBEADM_CONTROL_PLANE, SECRET


async def _data_of(world: World, *names: str) -> None:
    for name in names:

        async def there(name: str = name) -> bool:
            return bool(((await world.config(name)).get("status") or {}).get("dataSecretName"))

        await eventually(there, f"{name} has its data")


async def begins(world: World) -> None:
    """The first control plane, a second one, a worker and a pool; then a new version, which a host that has not started yet gets."""
    await world.cluster(initialized=False, reference=False)
    await world.machine("first", {"initConfiguration": {"nodeRegistration": {"name": "first"}}}, control_plane=True, version="v1.35.0")
    await _data_of(world, "first")
    await world.machine("second", {"joinConfiguration": {"nodeRegistration": {"name": "second"}}}, control_plane=True, version="v1.35.0")
    await eventually(lambda: _waits(world, "second"), "the second one waits for the first")
    await world.control_plane("v1.35.0")
    reference = {"apiGroup": KUBEADM_CONTROL_PLANE.group, "kind": "KubeadmControlPlane", "name": "cp"}
    await world.patch(CLUSTER, CLUSTER_NAME, {"spec": {"controlPlaneRef": reference}})
    await world.kubeconfig()
    await world.cluster_status()
    await world.machine("worker")
    await world.pool("pool")
    await _data_of(world, "second", "worker", "pool")
    await world.patch(KUBEADM_CONTROL_PLANE, "cp", {"spec": {"version": "v1.35.1"}})

    async def anew() -> bool:
        return "v1.35.1" in await world.data("worker")

    await eventually(anew, "the worker's data is made for the new version")


async def goes_on(world: World) -> None:
    """A Secret that has lost its owner gets it back from a manager that has just started; then everything is paused."""

    async def owned() -> bool:
        return bool((await world.client.get(SECRET, "first", world.namespace))["metadata"].get("ownerReferences"))

    await eventually(owned, "the data belongs to its KubeadmConfig again")
    await world.patch(CLUSTER, CLUSTER_NAME, {"spec": {"paused": True}})

    async def paused() -> bool:
        return bool((await world.condition("worker", "Paused"))["status"] == "True")

    await eventually(paused, "the worker is paused")


async def _waits(world: World, name: str) -> bool:
    status = (await world.config(name)).get("status") or {}
    return any(condition["type"] == "DataSecretAvailable" for condition in status.get("conditions") or ())
