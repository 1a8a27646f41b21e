"""Whose every object of a fleet is, what of it a manager keeps, and how that follows when objects become another's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from fleet.world import lean_crd, preserving_crd
from support.waiting import eventually

from slipway.api.cluster.kinds import (
    CLUSTER,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    MACHINE_REGISTRATION,
    SECRET,
    Kind,
)
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.baremetal.hosts.host import host_from
from slipway.fleet.inventory import hosts
from slipway.fleet.partition import FleetPartition, cluster_of, outline
from slipway.kube.aio import AsyncClient, PatchType
from slipway.runtime.cache.cache import Cache
from slipway.runtime.objects import Object, Outline
from slipway.runtime.sharding.assignment import shard_of
from slipway.runtime.sharding.holding import Holding

SPACE = "default"
OURS, THEIRS = (next(name for name in ("paris", "lyon", "nice", "metz") if shard_of(SPACE, name, 2) == shard) for shard in (0, 1))
POOL = "baremetal.alauda.io/pool"
SELECTOR = "elemental.cattle.io/managed=true"
LABEL = "cluster.x-k8s.io/cluster-name"


def an_object(kind: Kind, **metadata: Any) -> Object:
    spec = metadata.pop("spec", {})
    return Object(kind, msgspec.json.encode({"metadata": {"name": "it", "namespace": SPACE, **metadata}, "spec": spec}))


@pytest.mark.parametrize(
    ("found", "cluster"),
    [
        pytest.param(an_object(CLUSTER, name="paris"), "paris", id="itself"),
        pytest.param(an_object(MACHINE, labels={LABEL: "paris"}, spec={"clusterName": "lyon"}), "paris", id="its label"),
        pytest.param(an_object(MACHINE, spec={"clusterName": "paris"}), "paris", id="its spec, before anybody has labelled it"),
        pytest.param(
            an_object(
                KUBEADM_CONTROL_PLANE, ownerReferences=[{"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "paris"}]
            ),
            "paris",
            id="its owner",
        ),
        pytest.param(
            an_object(MACHINE, ownerReferences=[{"apiVersion": "example.com/v1", "kind": "Cluster", "name": "x"}]), "", id="no Cluster"
        ),
        pytest.param(an_object(MACHINE_REGISTRATION), "", id="nobody's"),
        pytest.param(an_object(MACHINE, spec={"clusterName": 5}), "", id="a field that means something else"),
    ],
)
def test_an_object_says_which_cluster_it_is_of(found: Object, cluster: str) -> None:
    assert cluster_of(found) == cluster


def test_an_outline_of_a_host_says_whose_it_is_how_it_is_found_and_where_it_is_and_cannot_be_written_back() -> None:
    host = an_object(
        MACHINE_INVENTORY,
        uid="1",
        resourceVersion="7",
        labels={"rack": "a"},
        annotations={POOL: "p", "baremetal.alauda.io/owner-baremetalmachine": "m", "slipway.io/cycles": "x" * 1000},
        managedFields=[{"manager": "x" * 1000}],
        spec={"tpmHash": "abc", "observedNetwork": {"interfaces": [{"name": "eth0", "addresses": ["10.0.0.1/24"]}]}},
    )
    made = outline(host)
    assert made is not None
    owner = host_from(made).owner
    assert (made.name, made.metadata.labels, host_from(made).pool, owner and owner.baremetal_machine) == ("it", {"rack": "a"}, "p", "m")
    assert list(hosts.tpm_hashes(made)) == ["abc"]
    assert made.content()["spec"]["observedNetwork"] == {"interfaces": [{"addresses": ["10.0.0.1/24"]}]}
    assert "resourceVersion" not in made.content()["metadata"]
    assert len(made.raw) < 350


def test_there_is_no_outline_of_a_host_that_cannot_be_read() -> None:
    assert outline(an_object(MACHINE_INVENTORY, spec={"tpmHash": 5})) is None


class Town:
    """A cache that holds shard 0 of 2, on a real API server."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client
        self.holding = Holding(FleetPartition(2))
        self.holding.held = {0}
        self.cache = Cache(client, holding=self.holding)
        self.holding.partition.follow(self.cache)

    async def pool(self, name: str, cluster: str) -> None:
        await self.client.create(MACHINE_INVENTORY_POOL, {"metadata": {"name": name, "namespace": SPACE}, "spec": {"clusterName": cluster}})

    async def host(self, name: str, pool: str = "") -> None:
        """A host with its Secret, as the registration makes them."""
        annotations = {POOL: pool} if pool else {}
        made = await self.client.create(
            MACHINE_INVENTORY, {"metadata": {"name": name, "namespace": SPACE, "annotations": annotations}, "spec": {"tpmHash": name}}
        )
        owner = {
            "apiVersion": MACHINE_INVENTORY.api_version,
            "kind": MACHINE_INVENTORY.kind,
            "name": name,
            "uid": made["metadata"]["uid"],
            "controller": True,
        }
        key, _, value = SELECTOR.partition("=")
        metadata = {"name": name, "namespace": SPACE, "labels": {key: value}, "ownerReferences": [owner]}
        await self.client.create(SECRET, {"metadata": metadata})

    async def mark(self, name: str, pool: str | None) -> None:
        await self.client.patch(MACHINE_INVENTORY, name, SPACE, {"metadata": {"annotations": {POOL: pool}}}, type=PatchType.MERGE)

    def kept(self, name: str) -> str:
        """What there is of a host: itself or an outline, and whether with its Secret."""
        host = self.cache.informer(MACHINE_INVENTORY).store.get(name, SPACE)
        secret = self.cache.informer(SECRET, labels=SELECTOR).store.get(name, SPACE)
        sort = "nothing" if host is None else "outline" if isinstance(host, Outline) else "whole"
        return sort if secret is None else f"{sort} with its Secret"

    async def until(self, **wanted: str) -> None:
        await eventually(lambda: {name: self.kept(name) for name in wanted} == wanted, f"{wanted}")


@pytest_asyncio.fixture
async def town() -> AsyncIterator[Town]:
    async with EmbeddedServer(tls=False) as server, AsyncClient(server.connection()) as client:
        for crd in (lean_crd(MACHINE_INVENTORY), lean_crd(MACHINE_INVENTORY_POOL), preserving_crd(MACHINE)):
            await client.create(CUSTOM_RESOURCE_DEFINITION, crd)
        made = Town(client)
        try:
            yield made
        finally:
            await made.holding.partition.close()
            await made.cache.close()


WHOLE = "whole with its Secret"


@pytest.mark.asyncio
async def test_a_host_is_of_the_cluster_whose_pool_it_is_in_and_in_none_of_everybody(town: Town) -> None:
    await town.pool("ours", OURS)
    await town.pool("theirs", THEIRS)
    await town.host("a", "ours")
    await town.host("b", "theirs")
    await town.host("c")
    await town.host("d", "no-such-pool")
    await town.until(a=WHOLE, b="outline", c=WHOLE, d=WHOLE)


@pytest.mark.asyncio
async def test_a_host_that_a_pool_takes_in_or_lets_go_of_changes_hands_with_what_it_has(town: Town) -> None:
    await town.pool("ours", OURS)
    await town.pool("theirs", THEIRS)
    await town.host("a")
    await town.until(a=WHOLE)
    await town.mark("a", "theirs")
    await town.until(a="outline")
    await town.mark("a", "ours")
    await town.until(a=WHOLE)


@pytest.mark.asyncio
async def test_the_hosts_of_a_pool_that_is_deleted_are_everybodys_again(town: Town) -> None:
    await town.pool("theirs", THEIRS)
    await town.host("a", "theirs")
    await town.until(a="outline")
    await town.client.delete(MACHINE_INVENTORY_POOL, "theirs", SPACE)
    await town.until(a=WHOLE)
    await town.pool("theirs", THEIRS)
    await town.until(a="outline")


@pytest.mark.asyncio
async def test_a_shard_that_comes_brings_its_objects_and_one_that_goes_takes_them_along(town: Town) -> None:
    await town.pool("theirs", THEIRS)
    await town.host("a", "theirs")
    for name, cluster in (("one", OURS), ("two", THEIRS)):
        await town.client.create(MACHINE, {"metadata": {"name": name, "namespace": SPACE}, "spec": {"clusterName": cluster}})
    await town.until(a="outline")
    machines = town.cache.informer(MACHINE)
    await eventually(lambda: [each.name for each in machines.store.list()] == ["one"])
    told: list[tuple[str, bool]] = []
    machines.add_handler(lambda old, new: told.append(((new or old).name, new is not None)))  # type: ignore[union-attr]

    town.holding.held.add(1)
    await asyncio.wait_for(town.cache.refill(), 20)
    assert town.kept("a") == WHOLE
    assert {each.name for each in machines.store.list()} == {"one", "two"}

    town.holding.held.discard(0)
    town.cache.reconsider()
    assert [(each.name, b"managedFields" in each.raw) for each in machines.store.list()] == [("two", False)]
    assert told == [("one", True), ("two", True), ("one", False)]
    # And what changes from now on is filtered by what is held now.
    await town.client.patch(MACHINE, "one", SPACE, {"metadata": {"labels": {"x": "y"}}}, type=PatchType.MERGE)
    await town.client.patch(MACHINE, "two", SPACE, {"metadata": {"labels": {"x": "y"}}}, type=PatchType.MERGE)
    await eventually(lambda: told[3:] == [("two", True)])
