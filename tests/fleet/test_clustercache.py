"""Clients of workload clusters: what makes a new one, and what does not."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from fleet.world import World, kubeconfig
from support.waiting import eventually

from slipway.api.cluster.kinds import CLUSTER, NAMESPACE, SECRET
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.clustercache import WorkloadClusters, connection_from
from slipway.kube.connection import Connection
from slipway.kube.errors import UnreachableError


def secret(text: str | None) -> dict[str, Any]:
    data = {} if text is None else {"value": b64encode(text.encode()).decode()}
    return {"metadata": {"namespace": "ns", "name": "c-kubeconfig"}, "data": data}


def test_a_kubeconfig_gives_a_connection() -> None:
    connection = Connection(server="https://10.0.0.1:6443", ca=b"ca", client_certificate=b"cert", client_key=b"key")
    assert connection_from(secret(kubeconfig(connection))) == connection


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, 'has no kubeconfig: its key "value" is missing or empty'),
        ("", 'has no kubeconfig: its key "value" is missing or empty'),
        ("a: [", "this is not valid YAML"),
        ("- a", "is not a YAML mapping"),
        ("{}", "has no current-context"),
    ],
)
def test_a_kubeconfig_that_is_none_is_named(text: str | None, message: str) -> None:
    with pytest.raises(OperatorError, match=message) as caught:
        connection_from(secret(text))
    assert "ns/c-kubeconfig" in caught.value.message


def test_a_kubeconfig_cannot_name_files_of_the_manager() -> None:
    document = kubeconfig(Connection(server="https://10.0.0.1:6443", token="t")).replace('"token":"t"', '"tokenFile":"/var/run/token"')
    with pytest.raises(OperatorError, match="must hold its certificates and tokens itself"):
        connection_from(secret(document))


@pytest.mark.asyncio
async def test_a_client_is_kept_until_the_kubeconfig_changes(world: World) -> None:
    await world.kubeconfig()
    now, asked = [0.0], 0

    def count(verb: str, code: int, seconds: float) -> None:
        nonlocal asked
        asked += 1

    clusters = WorkloadClusters(world.client, clock=lambda: now[0], on_request=count)
    async with clusters.client(world.namespace, "c") as first:
        assert await first.get(NAMESPACE, world.namespace)
    async with clusters.client(world.namespace, "c") as again:
        assert again is first
    now[0] = 100.0
    async with clusters.client(world.namespace, "c") as again:
        assert again is first
    await world.patch(SECRET, "c-kubeconfig", {"metadata": {"labels": {"changed": "yes"}}})
    async with clusters.client(world.namespace, "c") as again:
        assert again is first
    now[0] = 200.0
    async with clusters.client(world.namespace, "c") as renewed:
        assert renewed is not first
        assert await renewed.get(NAMESPACE, world.namespace)
    assert asked == 2
    await clusters.close()


@pytest.mark.asyncio
async def test_a_kubeconfig_that_does_not_work_is_read_again_at_once(world: World) -> None:
    nowhere = Connection(server="https://127.0.0.1:1", token="t")
    await world.secret("c-kubeconfig", {"value": kubeconfig(nowhere).encode()})
    clusters = WorkloadClusters(world.client)
    with pytest.raises(UnreachableError):
        async with clusters.client(world.namespace, "c") as client:
            await client.get(NAMESPACE, world.namespace)
    fixed = b64encode(kubeconfig(world.connection).encode()).decode()
    await world.patch(SECRET, "c-kubeconfig", {"data": {"value": fixed}})
    async with clusters.client(world.namespace, "c") as client:
        assert await client.get(NAMESPACE, world.namespace)
    await clusters.close()


@pytest.mark.asyncio
async def test_a_cluster_that_does_not_answer_is_left_alone_for_a_while(world: World) -> None:
    nowhere = Connection(server="https://127.0.0.1:1", token="t")
    await world.secret("c-kubeconfig", {"value": kubeconfig(nowhere).encode()})
    now, asked = [0.0], []
    clusters = WorkloadClusters(world.client, clock=lambda: now[0], on_request=lambda verb, code, seconds: asked.append(verb))

    async def ask() -> None:
        async with clusters.client(world.namespace, "c") as client:
            await client.get(NAMESPACE, world.namespace)

    for moment, requests in ((0.0, 1), (1.0, 1), (19.0, 1), (21.0, 2)):
        now[0] = moment
        with pytest.raises(UnreachableError):
            await ask()
        assert len(asked) == requests
    health = clusters.health(world.namespace, "c")
    assert (health.answered, health.failures) == (None, 2)
    assert "127.0.0.1:1" in health.why
    await clusters.close()


@pytest.mark.asyncio
async def test_a_cluster_whose_kubeconfig_is_gone_is_not_reached_any_more(world: World) -> None:
    await world.kubeconfig()
    now = [0.0]
    clusters = WorkloadClusters(world.client, clock=lambda: now[0])
    async with clusters.client(world.namespace, "c"):
        pass
    await world.client.delete(SECRET, "c-kubeconfig", world.namespace)
    now[0] = 100.0
    with pytest.raises(OperatorError, match=f"there is no Secret {world.namespace}/c-kubeconfig with its kubeconfig yet"):
        async with clusters.client(world.namespace, "c"):
            pass
    await clusters.close()


@pytest.mark.asyncio
async def test_what_belongs_to_a_cluster_goes_with_it(world: World) -> None:
    await world.cluster()
    await world.kubeconfig()
    clusters = WorkloadClusters(world.client, clock=lambda: 7.0)
    clusters.follow(world.cache.informer(CLUSTER))
    await world.settle()
    async with clusters.client(world.namespace, "c") as first:
        assert await first.get(NAMESPACE, world.namespace)
    assert clusters.health(world.namespace, "c").answered == 7.0
    await world.client.delete(CLUSTER, "c", world.namespace)

    async def forgotten() -> bool:
        return clusters.health(world.namespace, "c").answered is None

    await eventually(forgotten, "the deletion is seen")
    # A Cluster of the same name is another one.
    async with clusters.client(world.namespace, "c") as second:
        assert second is not first
    await clusters.close()


@pytest.mark.asyncio
async def test_a_cluster_that_answers_its_watch_is_asked_again_at_once_when_one_request_is_lost(world: World) -> None:
    await world.kubeconfig()
    now = [0.0]
    clusters = WorkloadClusters(world.client, clock=lambda: now[0])
    clusters.probe(world.namespace, "c")
    await eventually(lambda: clusters.probe(world.namespace, "c").connected)
    with pytest.raises(UnreachableError):
        async with clusters.client(world.namespace, "c"):
            raise UnreachableError("the connection to one of several API servers is lost")
    now[0] = 1.5
    async with clusters.client(world.namespace, "c") as client:
        assert await client.get(NAMESPACE, world.namespace)
    await clusters.close()
