"""Hosts that go, come into other hands, or are given up, while a machine has them."""

from __future__ import annotations

import pytest
from fleet.baremetal.estate import NS, Estate, encoded

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, MACHINE, MACHINE_INVENTORY, MACHINE_INVENTORY_POOL, SECRET
from slipway.api.elemental import plan as plans
from slipway.runtime.objects import Request

pytestmark = [pytest.mark.asyncio]

OWNER = "baremetal.alauda.io/owner-baremetalmachine"


async def two_hosts(metal: Estate) -> None:
    await metal.cluster()
    for name in ("rack-1", "rack-2"):
        await metal.host(name)
    await metal.pool("rack-1", "rack-2")


async def test_a_machine_whose_host_goes_before_it_has_a_plan_gets_another(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("m", data=None)
    await metal.reconcile("m")
    assert (await metal.status("m"))["machineInventoryRef"]["name"] == "rack-1"
    assert "providerID" not in (await metal.get(BAREMETAL_MACHINE, "m"))["spec"], "it never changes, so it is not set before it is certain"

    await metal.client.delete(MACHINE_INVENTORY, "rack-1", NS)
    await metal.patch(MACHINE, "m", {"spec": {"bootstrap": {"dataSecretName": "m-data"}}})
    await metal.data("m", "#cloud-config\nwrite_files: [\n")
    await metal.reconcile("m")

    assert (await metal.status("m"))["machineInventoryRef"]["name"] == "rack-2"
    assert "providerID" not in (await metal.get(BAREMETAL_MACHINE, "m"))["spec"]


async def test_a_machine_that_lost_its_status_and_its_host_does_not_become_another_node(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("m")
    await metal.becomes_a_node("m", "rack-1")
    # As after a move to a management cluster that its inventory did not come to.
    await metal.patch(BAREMETAL_MACHINE, "m", {"status": None}, subresource="status")
    await metal.client.delete(MACHINE_INVENTORY, "rack-1", NS)

    await metal.reconcile("m")

    assert (await metal.condition("m", "InventoryAllocated"))[1] == "InventoryLost"
    assert await metal.annotations("rack-2") == {}


async def test_a_host_that_somebody_else_has_by_now_is_not_cleaned_under_them(metal: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    await two_hosts(metal)
    await metal.machine("m")
    await metal.becomes_a_node("m", "rack-1")
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.settle()
    known = await metal.cache.get(MACHINE_INVENTORY, "rack-1", NS)
    await metal.patch(MACHINE_INVENTORY, "rack-1", {"metadata": {"annotations": {OWNER: "other"}}})
    await metal.settle()
    fresh = metal.cache.get

    async def stale(kind: object, name: str, namespace: str = "") -> object:
        return known if (kind, name) == (MACHINE_INVENTORY, "rack-1") else await fresh(kind, name, namespace)  # type: ignore[arg-type]

    monkeypatch.setattr(metal.cache, "get", stale)
    await metal.machines.reconcile(Request(NS, "m"))

    assert await metal.plan_type("rack-1") == "reprovision"
    assert await metal.find(BAREMETAL_MACHINE, "m"), "its finalizer holds until the cache has seen whose the host is"
    monkeypatch.undo()
    await metal.reconcile("m")
    assert await metal.find(BAREMETAL_MACHINE, "m") is None
    assert (await metal.annotations("rack-1"))["owner-baremetalmachine"] == "other"


async def test_a_claim_whose_answer_was_lost_outlives_an_edit_of_the_pool(metal: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    await two_hosts(metal)
    await metal.machine("m", data=None)
    await metal.reconcile("m")
    fresh = metal.cache.get

    async def before_the_claim(kind: object, name: str, namespace: str = "") -> object:
        return None if (kind, name) == (MACHINE_INVENTORY, "rack-1") else await fresh(kind, name, namespace)  # type: ignore[arg-type]

    async def no_index(*_: object, **__: object) -> list[object]:
        return []

    await metal.patch(MACHINE_INVENTORY_POOL, "pool", {"spec": {"machineInventories": [{"name": "rack-2"}]}})
    await metal.settle()
    monkeypatch.setattr(metal.cache, "get", before_the_claim)
    monkeypatch.setattr(metal.cache, "list", no_index)
    await metal.machines.reconcile(Request(NS, "m"))

    assert await metal.annotations("rack-2") == {}
    assert (await metal.status("m"))["machineInventoryRef"]["name"] == "rack-1"


async def force(metal: Estate, name: str) -> None:
    await metal.patch(BAREMETAL_MACHINE, name, {"metadata": {"annotations": {"slipway.io/force-release": ""}}})
    await metal.client.delete(BAREMETAL_MACHINE, name, NS)
    await metal.reconcile(name)
    assert await metal.find(BAREMETAL_MACHINE, name) is None


async def test_a_host_that_nothing_was_done_to_is_not_quarantined(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("old")
    await metal.becomes_a_node("old", "rack-1")
    await metal.client.delete(BAREMETAL_MACHINE, "old", NS)
    await metal.reconcile("old")
    await metal.applies("rack-1")
    await metal.reconcile("old")
    await metal.machine("m", data=None)
    await metal.reconcile("m")

    await force(metal, "m")

    assert await metal.annotations("rack-1") == {"pool": "pool", "allocation-state": "Available"}


async def test_a_host_that_was_given_up_without_a_plan_secret_is_cleaned_when_it_has_one_again(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("m")
    await metal.becomes_a_node("m", "rack-1")
    await metal.client.delete(SECRET, "rack-1", NS)
    await force(metal, "m")
    await metal.reconcile("pool", metal.pools)
    assert (await metal.annotations("rack-1"))["allocation-state"] == "Unavailable"

    data = encoded({"plan": plans.EMPTY, "applied-checksum": plans.checksum(plans.EMPTY)})
    await metal.create(SECRET, "rack-1", data=data, metadata={"labels": {"elemental.cattle.io/managed": "true"}})
    await metal.reconcile("pool", metal.pools)
    assert await metal.plan_type("rack-1") == "clean"
    await metal.reconcile("pool", metal.pools)
    assert (await metal.annotations("rack-1"))["allocation-state"] == "Unavailable"
    await metal.applies("rack-1")
    await metal.reconcile("pool", metal.pools)
    assert (await metal.annotations("rack-1"))["allocation-state"] == "Available"
