"""The life of a control plane on an API server: made, grown, rolled, shrunk, repaired, deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from fleet.controlplane.estate import PLACE, Estate, estate
from fleet.infrastructure import TEST_MACHINE

from slipway.api.cluster.kinds import KUBEADM_CONFIG, KUBEADM_CONTROL_PLANE, MACHINE, SECRET

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def world() -> AsyncIterator[Estate]:
    async with estate() as made:
        yield made


def owner_names(manifest: dict[str, Any]) -> list[str]:
    return [reference["kind"] for reference in manifest["metadata"].get("ownerReferences") or ()]


async def test_the_first_machine_is_made_with_its_objects(world: Estate) -> None:
    await world.make()
    await world.rest()
    (machine,) = await world.machines()
    name = machine["metadata"]["name"]
    config = await world.client.get(KUBEADM_CONFIG, name, PLACE)
    clone = await world.client.get(TEST_MACHINE, name, PLACE)
    assert "joinConfiguration" not in config["spec"]
    assert owner_names(machine) == owner_names(config) == owner_names(clone) == ["KubeadmControlPlane"]
    assert clone["spec"] == {"size": "small"}
    for purpose in ("ca", "etcd", "sa", "proxy"):
        assert owner_names(await world.client.get(SECRET, f"c-{purpose}", PLACE)) == ["KubeadmControlPlane"]
    assert (await world.condition("Available"))["message"] == "Control plane not yet initialized"


async def test_grows_to_its_replicas_one_by_one(world: Estate) -> None:
    await world.make()
    await world.play()
    assert len(await world.machines()) == 3
    assert sorted(world.etcd.members.values()) == sorted(await world.names())
    status = (await world.plane())["status"]
    assert status["initialization"] == {"controlPlaneInitialized": True}
    assert (status["replicas"], status["upToDateReplicas"], status["version"]) == (3, 3, "v1.35.4")
    assert (await world.condition("Available"))["status"] == "True"
