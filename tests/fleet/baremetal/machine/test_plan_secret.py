"""A plan Secret that somebody changes by hand, or deletes, while its host has a plan of ours: told, and written again, or taken as done."""

from __future__ import annotations

import pytest
from fleet.baremetal.estate import NS, Estate, encoded

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, SECRET
from slipway.api.elemental import plan as plans

pytestmark = pytest.mark.asyncio
FOREIGN = b'{"instructions":[{"name":"by-hand","command":"/bin/true"}]}'


async def a_plan(metal: Estate) -> plans.Plan:
    await metal.cluster()
    await metal.host("rack-1")
    await metal.pool("rack-1")
    await metal.machine("m")
    await metal.reconcile("m")
    assert await metal.plan_type("rack-1") == "reprovision"
    return await metal.plan("rack-1")


async def edit(metal: Estate) -> None:
    await metal.patch(SECRET, "rack-1", {"data": encoded({"plan": FOREIGN})})


async def lose(metal: Estate) -> None:
    """The Secret is deleted, and made anew by the inventory's controller, whose empty plan the agent applies."""
    await metal.client.delete(SECRET, "rack-1", NS)
    await metal.reconcile("m")
    assert (await metal.condition("m", "PlanApplied"))[1] == "PlanSecretMissing"
    data = encoded({"plan": plans.EMPTY, "applied-checksum": plans.checksum(plans.EMPTY)})
    await metal.create(SECRET, "rack-1", data=data, metadata={"labels": {"elemental.cattle.io/managed": "true"}})


async def test_a_plan_that_somebody_changed_is_told_and_written_again_when_the_host_has_ended_that_one(metal: Estate) -> None:
    ours = await a_plan(metal)
    await edit(metal)
    await metal.reconcile("m")
    _, reason, message = await metal.condition("m", "PlanApplied")
    assert (reason, "somebody changed the plan in the Secret metal/rack-1" in message) == ("PlanEdited", True)
    await metal.applies("rack-1")
    await metal.reconcile("m")
    assert await metal.plan("rack-1") == ours
    await metal.applies("rack-1")
    await metal.joins("rack-1")
    await metal.reconcile("m")
    assert (await metal.status("m"))["phase"] == "Running"


async def test_a_host_that_does_not_end_the_plan_that_somebody_gave_it_is_told_as_silent(metal: Estate) -> None:
    await a_plan(metal)
    await edit(metal)
    metal.later(minutes=31)
    await metal.reconcile("m")
    assert (await metal.condition("m", "PlanApplied"))[1] == "HostSilent"


async def test_a_machine_that_goes_lets_its_host_end_a_changed_plan_and_then_cleans_it(metal: Estate) -> None:
    await a_plan(metal)
    await edit(metal)
    await metal.begins("rack-1")
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    metal.later(minutes=5)
    await metal.reconcile("m")
    assert plans.encode(await metal.plan("rack-1")) == plans.encode(plans.decode(FOREIGN))
    await metal.applies("rack-1")
    await metal.reconcile("m")
    assert await metal.plan_type("rack-1") == "clean"
    await metal.applies("rack-1")
    await metal.reconcile("m")
    assert await metal.find(BAREMETAL_MACHINE, "m") is None


async def test_a_plan_whose_secret_was_deleted_is_written_again(metal: Estate) -> None:
    ours = await a_plan(metal)
    await lose(metal)
    await metal.reconcile("m")
    assert await metal.plan("rack-1") == ours
    await metal.applies("rack-1")
    await metal.joins("rack-1")
    await metal.reconcile("m")
    assert (await metal.status("m"))["phase"] == "Running"


@pytest.mark.parametrize("how", [lose, edit], ids=["deleted", "changed"])
async def test_a_host_that_became_the_node_by_a_plan_that_its_secret_lost_is_not_made_one_again(metal: Estate, how: object) -> None:
    await a_plan(metal)
    await how(metal)  # type: ignore[operator]
    if how is edit:
        await metal.applies("rack-1")
    await metal.joins("rack-1")
    # It served its purpose.
    await metal.client.delete(SECRET, "bootstrap-token-abcdef", "kube-system")
    await metal.reconcile("m")
    assert await metal.condition("m", "PlanApplied") == ("True", "PlanApplied", "its Secret has lost it, and the host is the Node")
    assert (await metal.status("m"))["phase"] == "Running"
    assert (await metal.condition("m", "Ready"))[0] == "True"


async def test_a_node_that_was_left_behind_before_the_lost_plan_is_not_taken_for_the_one_that_it_makes(metal: Estate) -> None:
    await metal.cluster()
    await metal.host("rack-1")
    await metal.pool("rack-1")
    await metal.joins("rack-1", ready=False, boot_id="long-ago", name="left-behind")
    await metal.machine("m")
    await metal.reconcile("m")
    await lose(metal)
    await metal.reconcile("m")
    assert await metal.plan_type("rack-1") == "reprovision"
    # The kubelet of the plan has registered, and is not Ready yet, when the plan is lost once more.
    await metal.joins("rack-1", ready=False)
    await lose(metal)
    await metal.reconcile("m")
    assert await metal.condition("m", "NodeJoined") == ("True", "NodeJoined", "Node rack-1, v1.34.5")


async def test_a_machine_whose_plan_a_manager_of_before_wrote_takes_a_ready_node_for_what_the_lost_plan_made(metal: Estate) -> None:
    await a_plan(metal)
    await metal.patch(BAREMETAL_MACHINE, "m", {"status": {"bootsBefore": None}}, subresource="status")
    await metal.joins("rack-1", ready=False, boot_id="long-ago", name="left-behind")
    await lose(metal)
    await metal.joins("rack-1")
    await metal.reconcile("m")
    assert await metal.condition("m", "NodeJoined") == ("True", "NodeJoined", "Node rack-1, v1.34.5")
