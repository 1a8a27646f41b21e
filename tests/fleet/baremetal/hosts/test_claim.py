"""Claims: which host is chosen, and that no host is ever had by two."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from fleet.baremetal.estate import NS, Estate
from support.waiting import eventually

from slipway.api.cluster.infrastructure.pool import PoolMember
from slipway.api.cluster.kinds import BAREMETAL_MACHINE, MACHINE_INVENTORY, SECRET
from slipway.api.elemental.cycles import Cycle
from slipway.fleet.baremetal.hosts import claim
from slipway.fleet.baremetal.hosts.claim import Claimant, LostClaimError, SameHostError, choose
from slipway.fleet.baremetal.hosts.host import Host, HostOwner
from slipway.kube.aio import AsyncClient
from slipway.runtime.objects import Request

ME = Claimant(NS, "pool", HostOwner("c", "m", "m"))
FREE = Host("a", pool="pool", state="Available", ready=True)
OTHER = HostOwner("c", "x", "x")


def life(claimant: Claimant) -> Cycle:
    return Cycle(machine=claimant.owner.machine)


def members(*names: str) -> list[PoolMember]:
    return [PoolMember(name=name) for name in names]


def test_the_first_host_of_the_pool_that_is_free_is_chosen() -> None:
    hosts = {"a": FREE._replace(owner=OTHER), "b": FREE._replace(name="b"), "c": FREE._replace(name="c")}
    assert choose(members("a", "c", "b"), hosts, ME, meant=()) == "c"


def test_a_host_that_another_machine_means_is_left_to_it_while_there_is_another_one() -> None:
    hosts = {"a": FREE, "b": FREE._replace(name="b")}
    assert choose(members("a", "b"), hosts, ME, meant={"a"}) == "b"
    assert choose(members("a"), hosts, ME, meant={"a"}) == "a"


def test_a_host_that_nobody_marked_yet_can_be_had() -> None:
    assert choose(members("a"), {"a": FREE._replace(pool="", state="")}, ME, meant=()) == "a"


@pytest.mark.parametrize(
    ("host", "says"),
    [
        (FREE._replace(owner=OTHER), "of the BaremetalMachine x"),
        (FREE._replace(deleting=True), "it is being deleted"),
        (FREE._replace(pool="other"), "it is in the pool other"),
        (FREE._replace(volumes=True), "data volumes"),
        (FREE._replace(state="Unavailable"), "it is Unavailable"),
        (FREE._replace(state="Preparing"), "it is Preparing"),
        (FREE._replace(ready=False, why_not_ready="its agent is silent"), "it is not ready: its agent is silent"),
        (FREE._replace(dirty=True), "says that its kubelet would start again"),
        (FREE._replace(quarantined_by="x"), "in quarantine"),
        (None, "there is no such MachineInventory"),
    ],
)
def test_a_host_that_cannot_be_had_is_told_with_its_reason(host: Host | None, says: str) -> None:
    with pytest.raises(LostClaimError) as error:
        choose(members("a"), {} if host is None else {"a": host}, ME, meant=())
    assert says in error.value.message


def test_a_host_that_is_ones_own_already_is_chosen_whatever_its_state() -> None:
    assert choose(members("a"), {"a": FREE._replace(owner=ME.owner, state="Allocated", ready=False)}, ME, meant=()) == "a"


GROUP = "c/workers"
SAME = ME._replace(group=GROUP, same=True)


def test_a_host_that_a_machine_of_the_same_group_had_comes_first_where_that_is_preferred() -> None:
    hosts = {"a": FREE, "b": FREE._replace(name="b", group="c/others"), "c": FREE._replace(name="c", group=GROUP)}
    assert choose(members("a", "b", "c"), hosts, SAME, meant=()) == "c"
    assert choose(members("a", "b", "c"), hosts, SAME._replace(same=False), meant=()) == "a"
    assert choose(members("a", "b"), hosts, SAME, meant=()) == "a"


def test_a_host_of_the_same_group_that_is_being_given_back_is_waited_for() -> None:
    leaving = FREE._replace(name="b", group=GROUP, state="Preparing", owner=OTHER)
    with pytest.raises(SameHostError) as error:
        choose(members("a", "b"), {"a": FREE, "b": leaving}, SAME, meant={"b"}, leaving={"b"})
    assert error.value.message == "waiting for b, which a machine of c/workers has, to be given back and cleaned"


@pytest.mark.parametrize(
    ("host", "leaving"),
    [
        (FREE._replace(name="b", group="c/others", state="Preparing", owner=OTHER), {"b"}),
        (FREE._replace(name="b", group=GROUP, state="Unavailable", owner=OTHER), {"b"}),
        (FREE._replace(name="b", group=GROUP, state="Allocated", owner=OTHER), set()),
    ],
    ids=["another group's", "one whose clean failed", "one in use"],
)
def test_no_other_host_is_waited_for(host: Host, leaving: set[str]) -> None:
    assert choose(members("a", "b"), {"a": FREE, "b": host}, SAME, meant=(), leaving=leaving) == "a"


def test_a_host_in_the_failure_domain_of_the_machine_comes_first_and_another_one_will_do() -> None:
    hosts = {"a": FREE._replace(failure_domain="rack-a"), "b": FREE._replace(name="b", failure_domain="rack-b")}
    assert choose(members("a", "b"), hosts, ME._replace(failure_domain="rack-b"), meant=()) == "b"
    assert choose(members("a", "b"), hosts, ME._replace(failure_domain="rack-c"), meant=()) == "a"


async def _race(racers: list[tuple[Claimant, AsyncClient]], metal: Estate, host: str) -> list[Claimant]:
    """The winners of a race for one host, each racer in a manager of its own."""
    outcomes = await asyncio.gather(
        *(claim.take(client, metal.cache, host, claimant, life(claimant)) for claimant, client in racers), return_exceptions=True
    )
    assert all(isinstance(each, dict | LostClaimError) for each in outcomes), outcomes
    return [claimant for (claimant, _), each in zip(racers, outcomes, strict=True) if isinstance(each, dict)]


@pytest.mark.asyncio
@pytest.mark.parametrize(("racers", "races"), [(2, 1000), (21, 20)])
async def test_of_machines_that_race_for_the_last_host_one_has_it_every_time(metal: Estate, racers: int, races: int) -> None:
    await metal.host("rack-1")
    claimants = [Claimant(NS, "pool", HostOwner("c", f"m{number}", f"m{number}")) for number in range(racers)]
    won: Counter[str] = Counter()
    async with AsyncClient(metal.server.connection()) as other:
        clients = [metal.client if number % 2 else other for number in range(racers)]
        for number in range(races):
            # Who is asked to begin first must not decide it every time.
            pairs = list(zip(claimants, clients, strict=True))[:: 1 if number % 2 else -1]
            (winner,) = await _race(pairs, metal, "rack-1")
            won[winner.owner.baremetal_machine] += 1
            # Only who has a host can give it back, so that this also says whose name is in the inventory.
            assert await claim.release(metal.client, metal.cache, "rack-1", winner, life(winner))
    assert won.total() == races
    assert len(won) > 1, "it was no race"


@pytest.mark.asyncio
async def test_a_host_is_given_back_by_who_has_it_alone(metal: Estate) -> None:
    await metal.host("rack-1")
    await claim.take(metal.client, metal.cache, "rack-1", ME, life(ME))
    assert not await claim.release(metal.client, metal.cache, "rack-1", Claimant(NS, "pool", OTHER), life(ME))
    assert (await metal.annotations("rack-1"))["owner-baremetalmachine"] == "m"
    assert await claim.release(metal.client, metal.cache, "rack-1", ME, life(ME))


@pytest.mark.asyncio
async def test_of_two_machines_that_race_for_the_last_host_one_gets_it_and_the_other_says_that_it_waits(metal: Estate) -> None:
    await metal.cluster()
    await metal.host("rack-1")
    await metal.pool("rack-1")
    for name in ("m1", "m2"):
        await metal.machine(name, data=None)
    await metal.settle()
    await asyncio.gather(*(metal.machines.reconcile(Request(NS, name)) for name in ("m1", "m2")))
    phases = sorted([str((await metal.status(name))["phase"]) for name in ("m1", "m2")])
    assert phases == ["Allocated", "Pending"]


@pytest.mark.asyncio
async def test_a_host_of_somebody_else_is_never_written_to(metal: Estate) -> None:
    owner = {"baremetal.alauda.io/owner-machine": "by-hand"}
    await metal.host("rack-1", metadata={"annotations": owner})
    before = (await metal.get(MACHINE_INVENTORY, "rack-1"))["metadata"]["resourceVersion"]
    with pytest.raises(LostClaimError):
        await claim.take(metal.client, metal.cache, "rack-1", ME, life(ME))
    assert not await claim.set_state(metal.client, metal.cache, "rack-1", ME, "Available", life(ME))
    assert (await metal.get(MACHINE_INVENTORY, "rack-1"))["metadata"]["resourceVersion"] == before


@pytest.mark.asyncio
async def test_a_host_that_works_on_a_plan_cannot_be_claimed(metal: Estate) -> None:
    await metal.host("rack-1")
    await metal.patch(SECRET, "rack-1", {"data": {"applied-checksum": ""}})
    with pytest.raises(LostClaimError, match="works on a plan"):
        await claim.take(metal.client, metal.cache, "rack-1", ME, life(ME))


@pytest.mark.asyncio
async def test_a_host_whose_inventory_does_not_tell_yet_that_it_is_not_clean_is_not_claimed(metal: Estate) -> None:
    await metal.cluster()
    await metal.host("rack-1")
    await metal.pool("rack-1")
    await metal.machine("m")
    await metal.becomes_a_node("m", "rack-1")
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")
    await metal.applies("rack-1")
    await metal.reconcile("m")
    assert await metal.annotations("rack-1") == {"pool": "pool", "allocation-state": "Available"}
    await metal.says("rack-1", clean=False)
    await metal.patch(MACHINE_INVENTORY, "rack-1", {"status": {"hostFacts": None}}, subresource="status")
    with pytest.raises(LostClaimError, match="says that its kubelet would start again"):
        await claim.take(metal.client, metal.cache, "rack-1", ME, life(ME))
    await metal.says("rack-1", clean=True)
    await claim.take(metal.client, metal.cache, "rack-1", ME, life(ME))


@pytest.mark.asyncio
async def test_a_life_of_a_claim_reads_no_inventory_while_the_cache_has_it(metal: Estate) -> None:
    await metal.host("rack-1")
    asked: list[str] = []
    async with AsyncClient(metal.server.connection(), on_request=lambda verb, status, seconds: asked.append(verb)) as client:

        async def heard() -> None:
            await eventually(lambda: not metal.cache.is_behind(MACHINE_INVENTORY, "rack-1", NS))

        await metal.cache.get(MACHINE_INVENTORY, "rack-1", NS)
        await claim.take(client, metal.cache, "rack-1", ME, life(ME))
        await heard()
        assert await claim.set_state(client, metal.cache, "rack-1", ME, "Preparing", life(ME))
        await heard()
        assert await claim.set_state(client, metal.cache, "rack-1", ME, "Preparing", life(ME), sure=False)
        assert await claim.release(client, metal.cache, "rack-1", ME, life(ME))
    # Of the plan Secret it is always asked whether the host works.
    assert asked == ["get", "patch", "patch", "patch"]


@pytest.mark.asyncio
async def test_that_there_is_nothing_to_write_is_asked_of_the_api_server_by_who_must_be_sure(metal: Estate) -> None:
    await metal.host("rack-1")
    await claim.take(metal.client, metal.cache, "rack-1", ME, life(ME))
    await eventually(lambda: not metal.cache.is_behind(MACHINE_INVENTORY, "rack-1", NS))
    await metal.deafen()
    owners = {f"baremetal.alauda.io/owner-{part}": "other" for part in ("cluster", "machine", "baremetalmachine")}
    await metal.patch(MACHINE_INVENTORY, "rack-1", {"metadata": {"annotations": owners}})
    assert not await claim.set_state(metal.client, metal.cache, "rack-1", ME, "Allocated", life(ME))
    assert not await claim.set_state(metal.client, metal.cache, "rack-1", ME, "Preparing", life(ME))
    assert not await claim.release(metal.client, metal.cache, "rack-1", ME, life(ME))
