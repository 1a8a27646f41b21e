"""The init lock.  The rows of Cluster API's control_plane_init_mutex_test.go, on an API server."""

from __future__ import annotations

import msgspec
import pytest
from fleet.world import World

from slipway.api.cluster.kinds import CLUSTER, CONFIG_MAP, MACHINE
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.bootstrap import initlock
from slipway.fleet.bootstrap.initlock import Claim
from slipway.fleet.contract.facts import ClusterFacts, cluster_from
from slipway.runtime.objects import Object

pytestmark = pytest.mark.upstream_table


@pytest.mark.parametrize(
    ("held_by", "holder_exists", "expected"),
    [
        ("", False, Claim.TAKE),
        ("m", True, Claim.HELD),
        ("m", False, Claim.HELD),
        ("other", True, Claim.WAIT),
        ("other", False, Claim.BREAK),
    ],
)
def test_a_machine_may_take_keep_or_break_the_lock(held_by: str, holder_exists: bool, expected: Claim) -> None:
    assert initlock.claim(held_by, "m", holder_exists=holder_exists) is expected


def test_the_lock_is_what_other_providers_write() -> None:
    manifest = initlock.lock_manifest(ClusterFacts("ns", "c", "uid"), "m")
    assert manifest == {
        "metadata": {
            "name": "c-lock",
            "namespace": "ns",
            "labels": {"cluster.x-k8s.io/cluster-name": "c"},
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "uid"}],
        },
        "data": {"lock-information": '{"machineName":"m"}'},
    }
    assert initlock.holder(manifest) == "m"


@pytest.mark.parametrize("data", [{}, {"lock-information": "not JSON"}, {"lock-information": "[]"}])
def test_a_lock_that_does_not_say_who_holds_it_is_named(data: dict[str, str]) -> None:
    with pytest.raises(OperatorError, match="the init lock, ConfigMap ns/c-lock, does not say who holds it"):
        initlock.holder({"metadata": {"name": "c-lock", "namespace": "ns"}, "data": data})


async def prepared(world: World) -> ClusterFacts:
    cluster = cluster_from(Object(CLUSTER, msgspec.json.encode(await world.cluster(initialized=False))))
    await world.machine("first", control_plane=True)
    await world.machine("second", control_plane=True)
    return cluster


@pytest.mark.asyncio
async def test_the_first_one_gets_the_lock_and_may_take_it_again(world: World) -> None:
    cluster = await prepared(world)
    assert await initlock.acquire(world.client, cluster, "first")
    assert await initlock.acquire(world.client, cluster, "first")
    assert not await initlock.acquire(world.client, cluster, "second")
    lock = await world.lock()
    assert lock is not None
    assert initlock.holder(lock) == "first"


@pytest.mark.asyncio
async def test_a_holder_that_is_gone_loses_the_lock(world: World) -> None:
    cluster = await prepared(world)
    assert await initlock.acquire(world.client, cluster, "first")
    await world.client.delete(MACHINE, "first", world.namespace)
    # Released now, and free at the next try.
    assert not await initlock.acquire(world.client, cluster, "second")
    assert await world.lock() is None
    assert await initlock.acquire(world.client, cluster, "second")


@pytest.mark.asyncio
async def test_releasing_the_lock_deletes_it_and_there_may_be_none(world: World) -> None:
    cluster = await prepared(world)
    await initlock.release(world.client, cluster)
    assert await initlock.acquire(world.client, cluster, "first")
    await initlock.release(world.client, cluster, "second")
    assert await world.lock() is not None
    await initlock.release(world.client, cluster, "first")
    assert await world.lock() is None


@pytest.mark.asyncio
async def test_a_lock_that_names_nobody_is_free(world: World) -> None:
    cluster = await prepared(world)
    metadata = {"name": "c-lock", "namespace": world.namespace}
    await world.client.create(CONFIG_MAP, {"metadata": metadata, "data": {"lock-information": "{}"}})
    assert await initlock.acquire(world.client, cluster, "first")


@pytest.mark.asyncio
async def test_of_two_at_the_same_moment_one_gets_the_lock(world: World) -> None:
    import asyncio

    cluster = await prepared(world)
    got = await asyncio.gather(*(initlock.acquire(world.client, cluster, name) for name in ("first", "second") * 5))
    lock = await world.lock()
    assert lock is not None
    winner = initlock.holder(lock)
    losers = [taken for taken, name in zip(got, ("first", "second") * 5, strict=True) if name != winner]
    assert True in got
    assert not any(losers)
