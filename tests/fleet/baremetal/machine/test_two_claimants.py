"""Two BaremetalMachines that name one host: when that can be, and that only the one that has it ever writes to it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from fleet.baremetal.estate import NS, Estate
from fleet.baremetal.machine.test_killed import killed, two_hosts

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, MACHINE_INVENTORY, SECRET
from slipway.kube.errors import ConflictError
from slipway.runtime.objects import Request

pytestmark = [pytest.mark.asyncio]
OWNERS = ("owner-cluster", "owner-machine", "owner-baremetalmachine")


async def claims(metal: Estate, *names: str) -> list[tuple[str, str, str]]:
    """Who says of itself that it has which host."""
    found = [(name, await metal.status(name)) for name in names]
    return [(name, (await metal.condition(name, "InventoryAllocated"))[0], status["machineInventoryRef"]["name"]) for name, status in found]


async def released_and_killed(metal: Estate) -> None:
    """The machine "old" has given rack-1 back, and its manager died before it could say so: "new" has it since."""
    await metal.cluster()
    await metal.host("rack-1")
    await metal.pool("rack-1")
    await metal.machine("old")
    await metal.becomes_a_node("old", "rack-1", boot_id="boot-1")
    await metal.client.delete(BAREMETAL_MACHINE, "old", NS)
    await metal.reconcile("old")
    await metal.applies("rack-1")
    # The release is the first write, and the finalizer the next.
    assert await killed(metal, "old", 1)
    await metal.joins("rack-1", boot_id="boot-1", ready=False)
    await metal.machine("new")
    await metal.reconcile("new")


async def test_a_machine_that_goes_may_still_name_the_host_that_it_gave_back_and_leaves_it_alone(metal: Estate) -> None:
    await released_and_killed(metal)
    assert await claims(metal, "old", "new") == [("old", "True", "rack-1"), ("new", "True", "rack-1")]
    assert (await metal.get(BAREMETAL_MACHINE, "old"))["metadata"]["deletionTimestamp"]
    inventory, secret = [(await metal.get(kind, "rack-1"))["metadata"]["resourceVersion"] for kind in (MACHINE_INVENTORY, SECRET)]

    await metal.reconcile("old")

    assert await metal.find(BAREMETAL_MACHINE, "old") is None
    assert (await metal.get(MACHINE_INVENTORY, "rack-1"))["metadata"]["resourceVersion"] == inventory
    assert (await metal.get(SECRET, "rack-1"))["metadata"]["resourceVersion"] == secret


async def test_two_that_mean_one_host_do_not_both_have_it(metal: Estate) -> None:
    """The intent comes before the claim, so that two may mean the same host; only one says that it has it, and only one plan is written."""
    await two_hosts(metal)
    for name in ("m1", "m2"):
        await metal.machine(name)
        # The finalizer, then the intent.
        assert await killed(metal, name, 2)
    # m2 would leave rack-1 to m1, which means it: this one was decided on before m1 was seen.
    await metal.patch(BAREMETAL_MACHINE, "m2", {"status": {"machineInventoryRef": {"name": "rack-1"}}}, subresource="status")
    await metal.settle()
    await metal.machines.reconcile(Request(NS, "m2"))
    plan = (await metal.get(SECRET, "rack-1"))["data"]["plan"]
    await metal.reconcile("m1")
    assert await claims(metal, "m1", "m2") == [("m1", "True", "rack-2"), ("m2", "True", "rack-1")]
    assert (await metal.get(SECRET, "rack-1"))["data"]["plan"] == plan


async def test_many_machines_at_once_cost_no_more_requests_than_one_after_the_other(metal: Estate) -> None:
    """None of them tries a host that another one of the same process is about to claim."""
    hosts, machines = [f"rack-{number}" for number in range(6)], [f"m{number}" for number in range(6)]
    await metal.cluster()
    for host in hosts:
        await metal.host(host)
    await metal.pool(*hosts)
    for machine in machines:
        await metal.machine(machine)
    asked: list[str] = []
    metal.process(lambda verb, code, seconds: asked.append(verb))
    await metal.reconcile(machines[0])
    alone = asked.copy()
    asked.clear()
    await metal.settle()
    await asyncio.gather(*(metal.machines.reconcile(Request(NS, machine)) for machine in machines[1:]))
    assert sorted(host for _, _, host in await claims(metal, *machines)) == hosts
    assert len(asked) <= len(alone) * 5


@pytest.mark.parametrize("outcome", ["pending", "applied"])
async def test_a_manager_that_hears_nothing_any_more_does_not_clean_a_host_that_another_machine_has_by_now(
    metal: Estate, outcome: str
) -> None:
    """Its cache still says that the host is the old machine's, while the plan Secret that it asks for is the new one's."""
    await metal.cluster()
    await metal.host("rack-1")
    await metal.pool("rack-1")
    await metal.machine("old")
    await metal.becomes_a_node("old", "rack-1", boot_id="boot-1")
    await metal.client.delete(BAREMETAL_MACHINE, "old", NS)
    await metal.settle()
    deaf = metal.machines
    await metal.deafen()
    # Another manager goes on meanwhile.
    metal.process()
    await metal.reconcile("old")
    await metal.applies("rack-1")
    assert await killed(metal, "old", 1)
    await metal.joins("rack-1", boot_id="boot-1", ready=False)
    await metal.machine("new")
    await metal.reconcile("new")
    if outcome == "applied":
        await metal.applies("rack-1")
        metal.later(minutes=10)
    before = await metal.get(SECRET, "rack-1")

    with suppress(ConflictError):
        await deaf.reconcile(Request(NS, "old"))

    after = await metal.get(SECRET, "rack-1")
    assert after["data"]["plan"] == before["data"]["plan"], "the node of the new machine was cleaned"
    assert after["metadata"]["annotations"]["slipway.io/plan-owner"] == "new"
    assert {(await metal.annotations("rack-1"))[each] for each in OWNERS} == {"c", "new"}
