"""The metrics of a fleet, as Prometheus gets them from a manager's caches."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from fleet.baremetal.estate import NS, Estate, estate

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, MACHINE, MACHINE_INVENTORY, MACHINE_INVENTORY_POOL
from slipway.fleet.metrics import facts
from slipway.fleet.metrics.following import FleetMetrics, Share, Tally
from slipway.runtime.metrics import Metrics
from slipway.runtime.objects import Object


class Seen:
    """What is scraped from a manager that has the caches of an estate."""

    def __init__(self, metal: Estate) -> None:
        self.metrics = Metrics()
        self.leads = True
        self._metal = metal
        share = Share(lambda found: 0, lambda shard: self.leads)
        self.fleet = FleetMetrics(metal.cache, self.metrics.registry, share=share, clock=lambda: metal.now)
        self.fleet.follow()

    async def value(self, name: str, **labels: str) -> float | None:
        await self._metal.settle()
        return self.metrics.registry.get_sample_value(name, labels)


@pytest_asyncio.fixture(name="metal")
async def _metal() -> AsyncIterator[Estate]:
    async with estate() as made:
        await made.cluster()
        yield made


@pytest_asyncio.fixture(name="seen")
async def _seen(metal: Estate) -> Seen:
    return Seen(metal)


async def plan_ended(metal: Estate, host: str, state: str, checksum: str, type_: str = "reprovision") -> None:
    """What the inventory's controller tells of a host's plan."""
    plan = {"state": state, "checksum": checksum * 64, "type": type_}
    await metal.patch(MACHINE_INVENTORY, host, {"status": {"plan": plan}}, subresource="status")


@pytest.mark.asyncio
async def test_hosts_are_counted_by_their_states_and_pools_by_theirs(metal: Estate, seen: Seen) -> None:
    for number in (1, 2, 3):
        await metal.host(f"rack-{number}")
    await metal.pool("rack-1", "rack-2")
    await metal.machine("m")
    await metal.reconcile("pool", metal.pools)
    await metal.reconcile("m")
    await metal.reconcile("pool", metal.pools)
    states = {state: await seen.value("slipway_hosts", namespace=NS, state=state) for state in ("Available", "Reprovisioning", "InNoPool")}
    assert states == {"Available": 1, "Reprovisioning": 1, "InNoPool": 1}
    assert await seen.value("slipway_hosts", namespace=NS, state="Unavailable") == 0
    assert await seen.value("slipway_pool_hosts", namespace=NS, pool="pool", state="Available") == 1
    assert await seen.value("slipway_pool_hosts", namespace=NS, pool="pool", state="Reprovisioning") == 1
    assert await seen.value("slipway_baremetal_machines", namespace=NS, cluster="c", phase="Reprovisioning") == 1
    await metal.client.delete(MACHINE_INVENTORY_POOL, "pool", NS)
    await metal.client.delete(MACHINE_INVENTORY, "rack-3", NS)
    assert await seen.value("slipway_pool_hosts", namespace=NS, pool="pool", state="Available") is None
    assert await seen.value("slipway_hosts", namespace=NS, state="InNoPool") == 0


@pytest.mark.asyncio
async def test_plans_are_counted_when_they_end_and_by_how(metal: Estate, seen: Seen) -> None:
    await metal.host("rack-1")
    await metal.host("rack-2")
    await plan_ended(metal, "rack-1", "Applied", "0", "clean")
    await metal.settle()
    for state, checksum in (("", "a"), ("Applied", "a"), ("Applied", "a"), ("", "b"), ("Failed", "b"), ("", "c")):
        await plan_ended(metal, "rack-1", state, checksum)
        await metal.settle()
    assert await seen.value("slipway_plans_total", type="reprovision", outcome="applied") == 1
    assert await seen.value("slipway_plans_total", type="reprovision", outcome="failed") == 1
    assert await seen.value("slipway_plans_in_flight", namespace=NS, type="reprovision") == 1


@pytest.mark.asyncio
async def test_the_oldest_wait_is_told_by_its_reason(metal: Estate, seen: Seen) -> None:
    await metal.pool("rack-9")
    await metal.machine("a")
    await metal.reconcile("a")
    metal.later(minutes=5)
    await metal.machine("b")
    await metal.reconcile("b")
    metal.later(minutes=1)
    reason = {"kind": "BaremetalMachine", "condition": "InventoryAllocated", "reason": "PoolExhausted"}
    assert await seen.value("slipway_waiting_objects", **reason) == 2
    assert await seen.value("slipway_oldest_wait_seconds", **reason) == 6 * 60


@pytest.mark.asyncio
async def test_how_long_a_node_was_out_is_told_when_its_host_is_one_again(metal: Estate, seen: Seen) -> None:
    await metal.host("rack-1")
    await metal.pool("rack-1")
    for name in ("m", "n"):
        await metal.machine(name)
        await metal.becomes_a_node(name, "rack-1", boot_id=f"boot-{name}")
        if name == "m":
            await metal.client.delete(BAREMETAL_MACHINE, name, NS)
            await metal.reconcile(name)
            metal.later(minutes=2)
            await metal.applies("rack-1")
            await metal.reconcile(name)
            await metal.client.delete(MACHINE, name, NS)
            await metal.joins("rack-1", boot_id="boot-m", ready=False)
            metal.later(minutes=40)
    assert await seen.value("slipway_node_out_seconds_count") == 1
    out = await seen.value("slipway_node_out_seconds_sum")
    assert out is not None
    assert 60 < out < 180, "cleaned for two minutes, by clocks that differ by seconds; forty in the pool do not count"
    assert await seen.value("slipway_host_stage_seconds_count", stage="boot") == 2


@pytest.mark.asyncio
async def test_a_manager_that_does_not_lead_tells_nothing_of_the_fleet(metal: Estate, seen: Seen) -> None:
    await metal.host("rack-1")
    await plan_ended(metal, "rack-1", "", "a")
    await metal.settle()
    seen.leads = False
    await plan_ended(metal, "rack-1", "Applied", "a")
    assert await seen.value("slipway_hosts", namespace=NS, state="InNoPool") is None
    assert await seen.value("slipway_plans_total", type="reprovision", outcome="applied") is None


def test_an_object_that_cannot_be_read_is_left_out() -> None:
    def made(status: Any) -> Object:
        return Object(MACHINE_INVENTORY, msgspec.json.encode({"metadata": {"name": "x", "namespace": NS}, "status": status}))

    tally = Tally(facts.host)
    tally(None, made({}))
    assert len(list(tally.values())) == 1
    tally(made({}), made(7))
    assert list(tally.values()) == []
    tally(made(7), None)


@pytest.mark.asyncio
async def test_what_nobody_follows_is_not_followed_for_metrics(metal: Estate, seen: Seen) -> None:
    await seen.value("slipway_hosts", namespace=NS, state="Available")
    before = {str(informer.scope) for informer in metal.cache.informers}
    seen.metrics.render()
    assert {str(informer.scope) for informer in metal.cache.informers} == before
