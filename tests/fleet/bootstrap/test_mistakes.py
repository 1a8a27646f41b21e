"""What happens where the provider itself is wrong: on a server of the test's own, since that takes a CRD without a schema."""

from __future__ import annotations

import pytest
from fleet.world import World

from slipway.api.cluster.kinds import CUSTOM_RESOURCE_DEFINITION

pytestmark = pytest.mark.asyncio


async def test_a_mistake_of_ours_is_told_by_the_condition_and_releases_the_lock(world: World) -> None:
    await world.cluster(initialized=False)
    await world.certificates()
    crd = await world.client.get(CUSTOM_RESOURCE_DEFINITION, "kubeadmconfigs.bootstrap.cluster.x-k8s.io")
    for version in crd["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    await world.client.update(CUSTOM_RESOURCE_DEFINITION, crd)
    # Nothing here expects what the schema of the CRD would have refused.
    await world.machine("cp-0", {"bootCommands": 5}, control_plane=True)
    with pytest.raises(TypeError):
        await world.reconcile(world.reconciler(), "cp-0")
    condition = await world.condition("cp-0", "DataSecretAvailable")
    assert (condition["status"], condition["reason"]) == ("False", "NotAvailable")
    assert condition["message"].startswith("Failed to create bootstrap data: this is a bug in slipway: TypeError: ")
    assert await world.lock() is None
