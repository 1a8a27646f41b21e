"""A reconcile that is killed, or loses the answer of the API server, at any of its requests, and is run again by another process."""

from __future__ import annotations

import itertools
from base64 import b64decode
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fleet.fuse import Fuse, Killed
from fleet.world import MakeWorld, World

from slipway.api.cluster.kinds import KUBEADM_CONTROL_PLANE, MACHINE_POOL, SECRET
from slipway.fleet.bootstrap.reconciler import KubeadmConfigReconciler
from slipway.kube.errors import UnreachableError

pytestmark = [pytest.mark.asyncio]

NOW = datetime.now(UTC)


async def killed(world: World, name: str, fuse: Fuse, now: datetime = NOW) -> bool:
    """Whether the reconcile was cut short."""
    reconciler = world.reconciler(on_request=fuse, now=lambda: now)
    try:
        await world.reconcile(reconciler, name)
    except (Killed, UnreachableError):
        return True
    except Exception as error:
        # A lost answer shows itself in the words of whatever was being done.
        if "the answer is lost" not in str(error):
            raise
        return True
    return fuse.left <= 0


async def settle(world: World, name: str, now: datetime = NOW) -> KubeadmConfigReconciler:
    """The next process, which gets as far as it gets."""
    reconciler = world.reconciler(now=lambda: now)
    for _ in range(3):
        await world.reconcile(reconciler, name)
    return reconciler


async def tokens_of(world: World, name: str) -> list[str]:
    uid = (await world.config(name))["metadata"]["uid"]
    mine = [token for token in await world.tokens() if uid in token["metadata"]["annotations"].values()]
    return [b64decode(token["data"]["token-id"]).decode() + "." + b64decode(token["data"]["token-secret"]).decode() for token in mine]


async def data_is_whole(world: World, name: str) -> dict[str, Any]:
    """One data Secret, of this KubeadmConfig, and a status that says so."""
    config = await world.config(name)
    assert config["status"]["initialization"] == {"dataSecretCreated": True}
    assert config["status"]["dataSecretName"] == name
    assert [condition["status"] for condition in config["status"]["conditions"] if condition["type"] == "Ready"] == ["True"]
    owned = [
        secret["metadata"]["name"]
        for secret in await world.client.list(SECRET, world.namespace)
        if any(owner["uid"] == config["metadata"]["uid"] for owner in secret["metadata"].get("ownerReferences") or ())
        and "value" in secret["data"]
    ]
    assert owned == [name]
    return config


async def join(world: World, name: str) -> None:
    """As a host does: the one token of the KubeadmConfig is the one in the data."""
    config = await data_is_whole(world, name)
    token = config["spec"]["joinConfiguration"]["discovery"]["bootstrapToken"]["token"]
    assert await tokens_of(world, name) == [token]
    assert token in await world.data(name)
    assert await world.lock() is None


async def worker(world: World) -> None:
    await world.ready()
    await world.machine("m")


async def control_plane(world: World) -> None:
    await world.ready()
    await world.machine("m", control_plane=True)


async def pool(world: World) -> None:
    await world.ready()
    await world.pool("m")


async def outdated(world: World) -> None:
    """Data that is to be rendered anew."""
    await world.ready("v1.34.0")
    await world.machine("m")
    await world.reconcile(world.reconciler(now=lambda: NOW), "m")
    await world.patch(KUBEADM_CONTROL_PLANE, "cp", {"spec": {"version": "v1.35.0"}})


async def lost(world: World) -> None:
    """Data that somebody deleted."""
    await worker(world)
    await world.reconcile(world.reconciler(now=lambda: NOW), "m")
    await world.client.delete(SECRET, "m", world.namespace)


@pytest.mark.parametrize("error", [Killed, UnreachableError])
@pytest.mark.parametrize("prepare", [worker, control_plane, pool, outdated, lost], ids=lambda prepare: prepare.__name__)
async def test_a_join_that_is_cut_short_leaves_one_secret_one_token_and_no_lock(
    make_world: MakeWorld, prepare: Callable[[World], Awaitable[None]], error: type[BaseException]
) -> None:
    for at in itertools.count(1):
        world = await make_world()
        await prepare(world)
        cut = await killed(world, "m", Fuse(at, error))
        await settle(world, "m")
        await join(world, "m")
        if prepare is outdated:
            assert "v1.35.0" in await world.data("m")
        if not cut:
            break
    assert at > 4


@pytest.mark.parametrize("error", [Killed, UnreachableError])
async def test_an_init_that_is_cut_short_leaves_one_ca_and_its_own_lock(make_world: MakeWorld, error: type[BaseException]) -> None:
    for at in itertools.count(1):
        world = await make_world()
        await world.cluster(initialized=False, reference=False)
        await world.machine("m", {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}}, control_plane=True)
        cut = await killed(world, "m", Fuse(at, error))
        reconciler = await settle(world, "m")
        await data_is_whole(world, "m")
        ca = await world.client.get(SECRET, "c-ca", world.namespace)
        indented = b64decode(ca["data"]["tls.crt"]).decode().splitlines()[1]
        assert indented in await world.data("m")
        lock = await world.lock()
        assert lock is not None
        assert lock["data"] == {"lock-information": '{"machineName":"m"}'}
        await world.cluster_status(initialized=True)
        await world.reconcile(reconciler, "m")
        assert await world.lock() is None
        if not cut:
            break
    assert at > 10


@pytest.mark.parametrize("error", [Killed, UnreachableError])
async def test_never_two_machines_initialize_a_cluster(make_world: MakeWorld, error: type[BaseException]) -> None:
    for at in itertools.count(1):
        world = await make_world()
        await world.cluster(initialized=False)
        await world.control_plane("v1.35.0")
        await world.certificates()
        await world.machine("a", control_plane=True)
        await world.machine("b", control_plane=True)
        cut = await killed(world, "a", Fuse(at, error))
        await settle(world, "b")
        await settle(world, "a")
        data = [name for name in ("a", "b") if await world.client.find(SECRET, name, world.namespace) is not None]
        assert len(data) == 1
        if not cut:
            break
    assert at > 5


@pytest.mark.parametrize("error", [Killed, UnreachableError])
async def test_a_rotation_that_is_cut_short_leaves_the_old_token_and_one_new_one(make_world: MakeWorld, error: type[BaseException]) -> None:
    later = NOW + timedelta(minutes=70)
    for at in itertools.count(1):
        world = await make_world()
        await pool(world)
        await world.reconcile(world.reconciler(now=lambda: NOW), "m")
        await world.patch(MACHINE_POOL, "m", {"status": {"nodeRefs": [{"name": "n"}]}}, subresource="status")
        [old] = await tokens_of(world, "m")
        cut = await killed(world, "m", Fuse(at, error), later)
        await settle(world, "m", later)
        config = await data_is_whole(world, "m")
        new = config["spec"]["joinConfiguration"]["discovery"]["bootstrapToken"]["token"]
        assert new != old
        assert sorted(await tokens_of(world, "m")) == sorted([old, new])
        assert new in await world.data("m")
        if not cut:
            break
    assert at > 4
