"""Two managers that share a fleet of two clusters, from the registration of its hosts on; one is cut off in the middle of a rollout."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from typing import Any

import pytest
from simulation.clusters import catalog, manifests
from simulation.estate import FIRST, SPACE, condition, virtual_address
from simulation.replicas import TIMES, Replica, ReplicatedEstate
from simulation.sabotage import REPROVISION
from simulation.watchman import Watchman
from support.waiting import eventually

from slipway.api.cluster.kinds import (
    BAREMETAL_MACHINE,
    CONFIG_MAP,
    KUBEADM_CONFIG,
    LEASE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    SECRET,
    SERVICE_ACCOUNT,
)
from slipway.kube.aio import PatchType
from slipway.runtime.leader import LeaseLostError
from slipway.runtime.objects import Outline
from slipway.runtime.sharding.assignment import shard_of
from slipway.simulation.workload.local import LocalClient

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.skipif(os.environ.get("SLIPWAY_E2E") != "1", reason="takes the time of a lease: run it with `make e2e`"),
]
OLDER = "v1.34.9"
PATIENCE = 180.0
# One of each shard.
CLUSTERS = [next(name for name in ("paris", "lyon", "nice", "metz") if shard_of(SPACE, name, 2) == shard) for shard in (0, 1)]
_PER_CLUSTER = {"machines", "machinesets", "machinedeployments", "kubeadmconfigs", "baremetalmachines", "kubeadmcontrolplanes"}


async def test_a_rollout_goes_on_when_one_of_two_managers_is_cut_off_and_nothing_is_done_twice() -> None:
    async with ReplicatedEstate() as estate:
        hosts = [estate.name_of(host) for host in await estate.hosts(6)]
        estate.world.registry.push("os", OLDER, OLDER)
        watchman = Watchman(estate, clusters=2)
        await estate.client.create(CONFIG_MAP, catalog(estate, FIRST, OLDER))
        for number, name in enumerate(CLUSTERS):
            own = hosts[3 * number : 3 * number + 3]
            # A virtual address wants two hosts, and a control plane one machine.
            for kind, manifest in manifests(estate, virtual_address(), own[:2], own[2:], name=name, vrid=51 + number, replicas=1):
                await estate.client.create(kind, manifest)
        await _at(estate, FIRST)
        first, second = sorted(estate.replicas, key=lambda replica: sorted(replica.shards))
        assert [first.shards, second.shards] == [{0}, {1}]
        _keeps_its_own(first, CLUSTERS[0], hosts[:3])
        _keeps_its_own(second, CLUSTERS[1], hosts[3:])
        assert [_clusters_written_by(estate, each) for each in (first, second)] == [{CLUSTERS[0]}, {CLUSTERS[1]}]

        for name in CLUSTERS:
            patch = {"spec": {"template": {"spec": {"version": OLDER}}}}
            await estate.client.patch(MACHINE_DEPLOYMENT, f"{name}-workers", SPACE, patch, type=PatchType.MERGE)
        await eventually(lambda: "deletionTimestamp" in _worker(estate, CLUSTERS[1])["metadata"], "the rollout is under way", PATIENCE)
        await second.wire.cut()
        loop = asyncio.get_running_loop()
        began = loop.time()
        await eventually(lambda: first.shards == {0, 1}, "the other one has both shards", PATIENCE)
        # Seen to be unchanged for as long as it lasts, by who looks several times a second; and then all is listed anew.
        assert loop.time() - began < TIMES.lease_duration + 3.0
        with pytest.raises(LeaseLostError, match=f"could not be renewed within {TIMES.renew_deadline:g}s"):
            await asyncio.wait_for(second.task, 30)
        await _at(estate, OLDER, planes=FIRST)
        _keeps_its_own(first, *CLUSTERS, hosts)

        assert watchman.wrong == []
        # Two control planes and two workers were made, and then two workers in the place of those; each has got one plan.
        assert watchman.made["Machine"] == 6
        assert Counter(type_ for _, type_ in watchman.plans.elements())[REPROVISION] == 6
        written = [write for of_one in estate.writes.values() for write in of_one]
        assert len({write.name for write in written if (write.verb, write.resource) == ("delete", "machines")}) == 2
        assert [host.machine.boots for host in estate.world.hosts.values()] == [2, 1, 3, 2, 1, 3]
        await _leave_in_order(estate, first)


def _keeps_its_own(replica: Replica, *given: object) -> None:
    """Whole objects of its clusters, and of others outlines of hosts alone."""
    *clusters, hosts = given
    for kind in (MACHINE, BAREMETAL_MACHINE, KUBEADM_CONFIG):
        found = {each.metadata.labels["cluster.x-k8s.io/cluster-name"] for each in replica.kept(kind)}
        assert found == set(clusters), kind
    whole = {each.name for each in replica.kept(MACHINE_INVENTORY) if not isinstance(each, Outline)}
    assert whole == set(hosts)  # type: ignore[call-overload]
    assert len(replica.kept(MACHINE_INVENTORY)) == 6
    cache = replica.manager.cache
    secrets = cache.informer(SECRET, labels="elemental.cattle.io/managed=true").store.list()
    assert {each.name for each in secrets} == whole
    accounts = cache.informer(SERVICE_ACCOUNT).store.list()
    assert {each.name for each in accounts} == {f"host-{name}" for name in whole}


def _clusters_written_by(estate: ReplicatedEstate, replica: Replica) -> set[str]:
    named = [write.name for write in estate.writes[replica.who] if write.resource in _PER_CLUSTER]
    return {cluster for cluster in CLUSTERS for name in named if name.startswith(cluster)}


def _worker(estate: ReplicatedEstate, cluster: str) -> dict[str, Any]:
    found = LocalClient(estate.server.core).list(MACHINE, SPACE)
    return next(each for each in found if each["metadata"]["name"].startswith(f"{cluster}-workers"))


async def _at(estate: ReplicatedEstate, version: str, *, planes: str = "") -> None:
    """Until every machine is there and well: workers in a version, and control planes in that or another one."""
    local = LocalClient(estate.server.core)

    async def there() -> bool:
        await asyncio.sleep(0.1)
        ready = [each for each in local.list(MACHINE, SPACE) if condition(each, "Ready").get("status") == "True"]
        found = Counter(each["spec"]["version"] for each in ready if "deletionTimestamp" not in each["metadata"])
        return found == Counter([version, version, planes or version, planes or version])

    await estate.until(there, f"workers are at {version}", PATIENCE)


async def _leave_in_order(estate: ReplicatedEstate, last: Replica) -> None:
    last.stop.set()
    await asyncio.wait_for(last.task, 30)
    held = {lease["metadata"]["name"] for lease in await estate.client.list(LEASE, "home") if lease["spec"]["holderIdentity"]}
    # Those of the one that was cut off run out by themselves.
    assert not any("shard" in name for name in held)
