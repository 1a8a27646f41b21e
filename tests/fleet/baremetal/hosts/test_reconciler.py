"""Pools: counters that add up whatever hosts say of themselves, members, and the one pool that has a host."""

from __future__ import annotations

import json
import time

import pytest
from fleet.baremetal.estate import NS, REGISTRY, Estate
from hypothesis import given
from hypothesis import strategies as st
from support.waiting import eventually

from slipway.api.cluster.infrastructure.pool import PoolMember
from slipway.api.cluster.kinds import BAREMETAL_MACHINE, CORE_EVENT, MACHINE_INVENTORY, MACHINE_INVENTORY_POOL, NODE, SECRET
from slipway.api.cluster.meta import LabelSelector
from slipway.api.elemental import plan as plans
from slipway.fleet.baremetal.hosts.host import QUARANTINE_ANNOTATION, Host, HostOwner
from slipway.fleet.baremetal.hosts.pool import OtherPool, adopted, counters, problems, selected, state_of
from slipway.fleet.baremetal.hosts.reconciler import WATCHES, of_pool
from slipway.runtime.objects import Object, Request

COUNTERS = ("available", "allocated", "preparing", "reprovisioning", "unavailable")
NAMES = [f"rack-{number}" for number in range(5)]

hosts = st.builds(
    Host,
    name=st.just(""),
    pool=st.sampled_from(["", "pool", "other"]),
    state=st.sampled_from(["", "Available", "Allocated", "Preparing", "Reprovisioning", "Unavailable", "nonsense"]),
    owner=st.sampled_from([None, HostOwner("c", "m", "m")]),
    ready=st.booleans(),
    deleting=st.booleans(),
    volumes=st.booleans(),
)


@given(st.lists(st.sampled_from(NAMES), max_size=8), st.dictionaries(st.sampled_from(NAMES), hosts))
def test_the_counters_add_up_for_any_hosts(listed: list[str], known: dict[str, Host]) -> None:
    found = counters([PoolMember(name=name) for name in listed], known, "pool")
    assert found["total"] == len(set(listed)) == sum(found[counter] for counter in COUNTERS)


@pytest.mark.parametrize(
    ("host", "state"),
    [
        (Host("a", pool="pool", state="Available", ready=True), "Available"),
        (Host("a", ready=True), "Available"),
        (Host("a", pool="pool", state="Available"), "Unavailable"),
        (Host("a", pool="other", state="Available", ready=True), "Unavailable"),
        (Host("a", pool="pool", state="Available", ready=True, volumes=True), "Unavailable"),
        (Host("a", pool="pool", state="Allocated", owner=HostOwner("c", "m", "m")), "Allocated"),
        (Host("a", pool="pool", state="Preparing", owner=HostOwner("c", "m", "m")), "Preparing"),
        (Host("a", pool="pool", state="Allocated", deleting=True), "Unavailable"),
        (None, "Unavailable"),
    ],
)
def test_a_member_is_in_one_state(host: Host | None, state: str) -> None:
    assert state_of(host, "pool") == state


@pytest.mark.parametrize(
    ("marked", "owned", "rivals", "taken"),
    [
        ("", False, [], True),
        ("mine", False, [], False),
        ("gone", False, [], True),
        ("gone", True, [], False),
        ("older", False, ["older"], False),
        ("", False, ["older"], False),
        ("", False, ["younger"], True),
        ("younger", False, ["younger"], False),
    ],
)
def test_of_two_pools_the_older_one_takes_a_host_and_one_that_has_it_keeps_it(
    marked: str, owned: bool, rivals: list[str], taken: bool
) -> None:
    ages = {"older": "2025", "mine": "2026", "younger": "2027"}
    pools = [OtherPool(name, frozenset({"a"}), (ages[name], name)) for name in ("mine", *rivals)]
    host = Host("a", pool=marked, owner=HostOwner("c", "m", "m") if owned else None)
    assert adopted("a", host, pools[0], pools) is taken


def chooses(**labels: str) -> LabelSelector:
    return LabelSelector(match_labels=labels)


@pytest.mark.parametrize(
    ("host", "labels", "others", "chosen"),
    [
        (Host("a"), {"role": "worker"}, [], True),
        (Host("a"), {"role": "storage"}, [], False),
        (Host("a"), {"role": "worker"}, [OtherPool("b", frozenset({"a"}), ("2027", "b"))], False),
        (Host("a"), {"role": "worker"}, [OtherPool("b", frozenset(), ("2025", "b"), chooses(role="worker"))], False),
        (Host("a"), {"role": "worker"}, [OtherPool("b", frozenset(), ("2027", "b"), chooses(role="worker"))], True),
        (Host("a", pool="b", owner=HostOwner("c", "m", "m")), {"role": "worker"}, [OtherPool("b", frozenset(), ("2027", "b"))], False),
        (Host("a", pool="mine", owner=HostOwner("c", "m", "m")), {}, [], True),
        (Host("a", pool="mine"), {}, [], False),
    ],
    ids=[
        "its labels fit",
        "they do not",
        "another pool names it",
        "an older pool selects it",
        "a younger pool selects it",
        "a machine of another pool has it",
        "a machine of this pool has it",
        "its labels do not fit any more",
    ],
)
def test_a_pool_selects_hosts_by_their_labels(host: Host, labels: dict[str, str], others: list[OtherPool], chosen: bool) -> None:
    mine = OtherPool("mine", frozenset(), ("2026", "mine"), chooses(role="worker"))
    assert selected({"a": (host, labels)}, mine, others) == (["a"] if chosen else [])


def test_a_pool_is_looked_at_again_for_the_hosts_that_somebody_wrote_into_its_status_and_not_for_its_counters() -> None:
    def seen(available: int, *selected: str) -> Object:
        metadata = {"name": "pool", "namespace": NS, "uid": "1", "generation": 1, "resourceVersion": str(available)}
        return Object(
            MACHINE_INVENTORY_POOL, json.dumps({"metadata": metadata, "status": {"available": available, "selected": selected}}).encode()
        )

    own = [watch.when for watch in WATCHES if watch.kind == MACHINE_INVENTORY_POOL and watch.requests is None and watch.when is not None]
    assert not any(when(seen(1, "rack-0"), seen(2, "rack-0")) for when in own)
    assert any(when(seen(1, "rack-0"), seen(2, "rack-0", "rack-1")) for when in own)


@pytest.mark.asyncio
async def test_hosts_that_a_pool_selects_are_members_after_those_that_it_names(metal: Estate) -> None:
    await metal.cluster()
    for number, role in enumerate(("worker", "worker", "worker", "storage")):
        await metal.host(f"rack-{number}", metadata={"labels": {"role": role}})
    selector = {"matchLabels": {"role": "worker"}}
    spec = {"clusterName": "c", "machineInventories": [{"name": "rack-2"}], "selector": selector}
    await metal.create(MACHINE_INVENTORY_POOL, "pool", spec=spec)
    await metal.reconcile("pool", metal.pools)
    assert (await metal.get(MACHINE_INVENTORY_POOL, "pool"))["status"]["selected"] == ["rack-0", "rack-1"]
    assert await status(metal) == {**dict.fromkeys(COUNTERS, 0), "total": 3, "available": 3}
    for machine, host in (("m", "rack-2"), ("n", "rack-0")):
        await metal.machine(machine)
        await metal.reconcile(machine)
        assert (await metal.status(machine))["machineInventoryRef"]["name"] == host
    # One that is in use stays, whatever its labels become.
    for name in ("rack-0", "rack-1"):
        await metal.patch(MACHINE_INVENTORY, name, {"metadata": {"labels": {"role": None}}})
    await metal.reconcile("pool", metal.pools)
    assert (await metal.get(MACHINE_INVENTORY_POOL, "pool"))["status"]["selected"] == ["rack-0"]
    assert "pool" not in await metal.annotations("rack-1")


@pytest.mark.asyncio
async def test_a_selector_that_means_nothing_selects_nothing_and_is_told(metal: Estate) -> None:
    await metal.cluster()
    await metal.host("rack-1")
    selector = {"matchExpressions": [{"key": "role", "operator": "Near", "values": ["x"]}]}
    await metal.create(MACHINE_INVENTORY_POOL, "pool", spec={"clusterName": "c", "selector": selector})
    await metal.reconcile("pool", metal.pools)
    told = await metal.condition("pool", "MembersValid", MACHINE_INVENTORY_POOL)
    assert told[:2] == ("False", "SelectorInvalid")
    assert '"Near" is not a valid label selector operator' in told[2]


async def status(metal: Estate, name: str = "pool") -> dict[str, int]:
    found = (await metal.get(MACHINE_INVENTORY_POOL, name))["status"]
    return {counter: found[counter] for counter in ("total", *COUNTERS)}


@pytest.mark.asyncio
async def test_a_pool_marks_its_hosts_and_counts_them_through_a_machines_life(metal: Estate) -> None:
    await metal.cluster()
    await metal.host("rack-1")
    await metal.host("rack-2", ready=False)
    await metal.pool("rack-1", "rack-2", "rack-3")

    async def counted() -> dict[str, int]:
        await metal.reconcile("pool", metal.pools)
        found = {name: count for name, count in (await status(metal)).items() if count}
        assert sum(found.values()) == 2 * found["total"]
        return found

    assert await counted() == {"total": 3, "available": 1, "unavailable": 2}
    assert await metal.annotations("rack-1") == {"pool": "pool", "allocation-state": "Available"}
    await metal.machine("m", data=None)
    await metal.reconcile("m")
    assert await counted() == {"total": 3, "allocated": 1, "unavailable": 2}
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")
    await metal.machine("n")
    await metal.reconcile("n")
    assert await counted() == {"total": 3, "reprovisioning": 1, "unavailable": 2}
    await metal.applies("rack-1")
    await metal.joins("rack-1")
    await metal.reconcile("n")
    assert await counted() == {"total": 3, "allocated": 1, "unavailable": 2}
    await metal.client.delete(BAREMETAL_MACHINE, "n", NS)
    await metal.reconcile("n")
    assert await counted() == {"total": 3, "preparing": 1, "unavailable": 2}
    await metal.applies("rack-1")
    await metal.reconcile("n")
    assert await counted() == {"total": 3, "available": 1, "unavailable": 2}


@pytest.mark.asyncio
async def test_a_host_that_a_pool_does_not_name_any_more_goes_over_to_the_one_that_does(metal: Estate) -> None:
    await metal.cluster()
    await metal.host("rack-1")
    await metal.pool("rack-1", name="a")
    await metal.pool("rack-1", name="b")
    await metal.reconcile("b", metal.pools)
    await metal.reconcile("a", metal.pools)
    assert (await metal.annotations("rack-1"))["pool"] == "a"
    await metal.patch(MACHINE_INVENTORY_POOL, "a", {"spec": {"machineInventories": []}})
    await metal.reconcile("a", metal.pools)
    await metal.reconcile("b", metal.pools, times=2)
    assert (await metal.annotations("rack-1"))["pool"] == "b"
    assert (await metal.condition("b", "MembersValid", MACHINE_INVENTORY_POOL))[0] == "True"


@pytest.mark.asyncio
async def test_a_host_that_was_given_up_comes_back_once_it_has_been_cleaned(metal: Estate) -> None:
    await metal.cluster()
    await metal.host("rack-1")
    await metal.pool("rack-1")
    await metal.machine("m")
    await metal.becomes_a_node("m", "rack-1")
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")
    await metal.patch(BAREMETAL_MACHINE, "m", {"metadata": {"annotations": {"slipway.io/force-release": "ticket 7: burnt"}}})
    await metal.reconcile("m")
    assert await metal.find(BAREMETAL_MACHINE, "m") is None
    assert await metal.annotations("rack-1") == {"pool": "pool", "allocation-state": "Unavailable"}
    await metal.reconcile("pool", metal.pools)
    assert (await status(metal))["unavailable"] == 1
    await metal.events.flush()
    told = {event["involvedObject"]["kind"]: event for event in await metal.client.list(CORE_EVENT, NS) if event["reason"] == "HostGivenUp"}
    assert sorted(told) == ["BaremetalMachine", "MachineInventory"], "the machine goes with its events, the host stays"
    assert "slipway.io/force-release says: ticket 7: burnt, set by slipway at " in told["MachineInventory"]["message"]
    await metal.applies("rack-1")
    await metal.reconcile("pool", metal.pools)
    assert await metal.annotations("rack-1") == {"pool": "pool", "allocation-state": "Available"}
    assert (await status(metal))["available"] == 1
    found = (await metal.get(MACHINE_INVENTORY, "rack-1"))["metadata"]["annotations"]
    assert "slipway.io/quarantined-by" not in found


@pytest.mark.asyncio
async def test_the_node_that_a_given_up_host_became_again_when_it_came_back_goes_once_the_host_is_clean(metal: Estate) -> None:
    await metal.cluster()
    await metal.host("rack-1")
    await metal.host("rack-2")
    await metal.pool("rack-1", "rack-2")
    await metal.machine("m")
    await metal.becomes_a_node("m", "rack-1")
    await metal.joins("rack-2")
    await metal.patch(BAREMETAL_MACHINE, "m", {"metadata": {"annotations": {"slipway.io/force-release": ""}}})
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")
    await metal.reconcile("pool", metal.pools)
    assert await metal.client.find(NODE, "rack-1") is not None, "its kubelet may still run"
    await metal.applies("rack-1")
    await metal.reconcile("pool", metal.pools)
    assert await metal.client.find(NODE, "rack-1") is None
    assert await metal.client.find(NODE, "rack-2") is not None


@pytest.mark.asyncio
async def test_a_host_that_was_given_up_comes_back_also_where_its_cluster_does_not_answer(metal: Estate) -> None:
    await metal.cluster()
    await metal.host("rack-1")
    await metal.pool("rack-1")
    await metal.machine("m")
    await metal.becomes_a_node("m", "rack-1")
    await metal.patch(BAREMETAL_MACHINE, "m", {"metadata": {"annotations": {"slipway.io/force-release": ""}}})
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")
    await metal.applies("rack-1")
    await metal.client.delete(SECRET, "c-kubeconfig", NS)
    metal.process()
    result = await metal.reconcile("pool", metal.pools)
    assert result.requeue_after
    assert await metal.annotations("rack-1") == {"pool": "pool", "allocation-state": "Unavailable"}, "the cluster was not asked yet"
    await eventually(lambda: metal.workload.probe(NS, "c").failed_in_a_row, "the cluster does not answer")
    await metal.reconcile("pool", metal.pools)
    assert await metal.annotations("rack-1") == {"pool": "pool", "allocation-state": "Available"}


async def replaced(metal: Estate) -> None:
    """A dead host was given up, and the pool names another one in its place."""
    await metal.cluster()
    await metal.host("rack-1")
    await metal.host("rack-2")
    await metal.pool("rack-1")
    await metal.machine("m")
    await metal.becomes_a_node("m", "rack-1")
    await metal.patch(MACHINE_INVENTORY_POOL, "pool", {"spec": {"machineInventories": [{"name": "rack-2"}]}})
    await metal.patch(BAREMETAL_MACHINE, "m", {"metadata": {"annotations": {"slipway.io/force-release": ""}}})
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")
    await metal.reconcile("pool", metal.pools)
    assert await metal.annotations("rack-1") == {"pool": "pool", "allocation-state": "Unavailable"}


@pytest.mark.asyncio
async def test_the_node_of_a_given_up_host_goes_also_where_another_one_has_its_place_in_the_pool(metal: Estate) -> None:
    await replaced(metal)
    assert (await status(metal))["total"] == 1
    await metal.applies("rack-1")
    await metal.reconcile("pool", metal.pools)
    assert await metal.client.find(NODE, "rack-1") is None
    assert await metal.annotations("rack-1") == {"allocation-state": "Available"}
    assert (await status(metal))["total"] == 1


@pytest.mark.asyncio
async def test_a_given_up_host_that_was_replaced_gets_its_clean_plan_again_where_its_secret_was_lost(metal: Estate) -> None:
    await replaced(metal)
    secret = await metal.get(SECRET, "rack-1")
    await metal.client.delete(SECRET, "rack-1", NS)
    await metal.create(SECRET, "rack-1", type=secret["type"])
    await metal.reconcile("pool", metal.pools)
    assert (await metal.get(SECRET, "rack-1"))["metadata"]["annotations"]["baremetal.alauda.io/plan.type"] == "clean"


@pytest.mark.asyncio
@pytest.mark.parametrize("gone", [False, True], ids=["the pool stays", "the pool is deleted"])
async def test_a_given_up_host_goes_over_to_another_pool_once_it_is_clean_or_the_pool_is_gone(metal: Estate, gone: bool) -> None:
    await replaced(metal)
    await metal.pool("rack-1", name="other", cluster="d")
    await metal.reconcile("other", metal.pools)
    assert (await metal.annotations("rack-1"))["pool"] == "pool"
    told = await metal.condition("other", "MembersValid", MACHINE_INVENTORY_POOL)
    assert told[1] == "MemberInOtherPool"
    assert "was given up in the pool pool, which has it until it has been cleaned" in told[2]
    if gone:
        there = await metal.cache.get(MACHINE_INVENTORY_POOL, "pool", NS)
        assert there is not None
        assert Request(NS, "other") in await of_pool(there, metal.cache)
        await metal.client.delete(MACHINE_INVENTORY_POOL, "pool", NS)
    else:
        await metal.applies("rack-1")
        await metal.reconcile("pool", metal.pools)
    await metal.reconcile("other", metal.pools)
    assert (await metal.annotations("rack-1"))["pool"] == "other"


@pytest.mark.asyncio
async def test_a_host_that_is_not_clean_is_cleaned_each_time_that_somebody_follows_the_message(metal: Estate) -> None:
    await metal.cluster()
    await metal.host("rack-1")
    await metal.pool("rack-1")
    await metal.patch(MACHINE_INVENTORY, "rack-1", {"metadata": {"annotations": {QUARANTINE_ANNOTATION: "m"}}})
    given = []
    for second in range(3):
        await metal.reconcile("pool", metal.pools)
        given.append(await metal.plan("rack-1"))
        await metal.applies("rack-1")
        await metal.says("rack-1", clean=False)
        await metal.reconcile("pool", metal.pools)
        _, reason, message = await metal.condition("pool", "MembersValid", MACHINE_INVENTORY_POOL)
        assert reason == "MemberNotClean"
        name, _, value = message.partition("kubectl annotate --overwrite machineinventory rack-1 ")[2].partition("=")
        changes = {name: value.replace("$(date +%s)", str(second))}
        await metal.patch(MACHINE_INVENTORY, "rack-1", {"metadata": {"annotations": changes}})
        metal.later(seconds=1)
    assert len({plans.encode(each) for each in given}) == 3


def test_a_pool_of_ten_thousand_hosts_is_checked_in_a_moment() -> None:
    members = [PoolMember(name=f"rack-{number}") for number in range(10_000)]
    began = time.thread_time()
    assert len(problems(members, {}, "pool")) == 10_000
    assert time.thread_time() - began < 0.5


@pytest.mark.asyncio
async def test_hosts_of_a_pool_are_told_which_registry_to_try_unless_they_work_on_a_plan(metal: Estate) -> None:
    await metal.cluster()
    await metal.host("rack-1")
    await metal.host("rack-2")
    await metal.patch(SECRET, "rack-2", {"data": {"applied-checksum": ""}})
    await metal.pool("rack-1", "rack-2")
    await metal.settle()
    await eventually(metal.cache.informer(SECRET, labels="elemental.cattle.io/managed=true").synced.is_set, "the Secrets are known")
    await metal.reconcile("pool", metal.pools)

    async def told(host: str) -> str | None:
        annotations = (await metal.get(SECRET, host))["metadata"].get("annotations") or {}
        found: str | None = annotations.get("slipway.io/registry-address")
        return found

    assert (await told("rack-1"), await told("rack-2")) == (REGISTRY, None)
