"""A cluster of one control plane and one worker with a spare host, for what happens to hosts in the middle of a rollout."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from simulation.clusters import NAME, Bare
from simulation.estate import FIRST, SPACE, Estate
from simulation.rollouts import failing

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, CORE_EVENT, MACHINE, MACHINE_HEALTH_CHECK, MACHINE_INVENTORY, NODE
from slipway.fleet.baremetal.options import BaremetalOptions
from slipway.fleet.baremetal.plans import planfacts
from slipway.simulation.boot import Life

Manifest = dict[str, Any]
STATE, QUARANTINE = "baremetal.alauda.io/allocation-state", "slipway.io/quarantined-by"


@asynccontextmanager
async def small_cluster() -> AsyncIterator[Bare]:
    """Hosts that take longer than two seconds for a plan are told; one that failed is not tried again by itself."""
    async with Estate(options=BaremetalOptions(max_failures=1, host_deadline=timedelta(seconds=2))) as estate:
        made = Bare(estate, await estate.hosts(4), planes=2, workers=2)
        made.control_planes = made.replicas = 1
        await made.make(FIRST, replicas=1)
        await made.scale_workers(1)
        await made.at(FIRST, FIRST)
        yield made
        assert made.wrong == []


def spares(bare: Bare) -> list[Life]:
    """The two hosts of the workers' pool."""
    return bare.hosts[2:]


async def worker(bare: Bare) -> Life:
    """The host that the worker is on."""
    (name,) = await bare.hosts_of(control_plane=False)
    return bare.host(name)


async def delete_machine_of(bare: Bare, machine: Manifest) -> None:
    await bare.estate.client.delete(MACHINE, machine["metadata"]["ownerReferences"][0]["name"], SPACE)


async def in_plan(bare: Bare, type_: str = "reprovision") -> tuple[Life, Manifest]:
    """The host that works on such a plan, and its Secret."""
    found: list[tuple[Life, Manifest]] = []

    async def working() -> bool:
        for host in spares(bare):
            secret = await bare.estate.secret(host)
            facts = planfacts.plan_facts(secret)
            if facts.type == type_ and facts.outcome == "in-progress":
                found.append((host, secret))
        return bool(found)

    await bare.estate.until(working, f"a host works on its {type_} plan")
    return found[0]


async def version_of_worker(bare: Bare) -> str:
    (machine,) = [each for each in await bare.machines() if "cluster.x-k8s.io/control-plane" not in each["metadata"]["labels"]]
    return str(machine["spec"]["version"])


# A dead host.


async def health_check(bare: Bare, name: str, labels: dict[str, str]) -> None:
    """Of the Machines with such labels."""
    metadata = {"name": name, "namespace": SPACE, "labels": {"cluster.x-k8s.io/cluster-name": NAME}}
    # However long a host takes to become a Node here.
    checks = {"nodeStartupTimeoutSeconds": 0, "unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 0}]}
    spec = {"clusterName": NAME, "selector": {"matchLabels": labels}, "checks": checks}
    await bare.estate.client.create(MACHINE_HEALTH_CHECK, {"metadata": metadata, "spec": spec})


async def give_up(bare: Bare, host: str, why: str) -> None:
    """What the condition says to do, once it says so; then nothing of the machine is left but the host's quarantine."""
    held = await failing(bare, "HostCleaned", "CleanDeadlineExceeded", message="slipway.io/force-release")
    assert held["status"]["machineInventoryRef"]["name"] == host
    name = held["metadata"]["name"]
    await bare.patch(BAREMETAL_MACHINE, name, {"metadata": {"annotations": {"slipway.io/force-release": why}}})

    async def gone() -> bool:
        return await bare.estate.client.find(MACHINE, held["metadata"]["ownerReferences"][0]["name"], SPACE) is None

    await bare.estate.until(gone, "the Machine of the dead host is gone")
    assert await bare.estate.client.find(BAREMETAL_MACHINE, name, SPACE) is None
    left = (await bare.estate.client.get(MACHINE_INVENTORY, host, SPACE))["metadata"]["annotations"]
    assert (left[STATE], left[QUARANTINE]) == ("Unavailable", name)

    async def audited() -> bool:
        events = [each for each in await bare.estate.client.list(CORE_EVENT, SPACE) if each["reason"] == "HostGivenUp"]
        return any(each["involvedObject"]["name"] == host and why in each["message"] for each in events)

    await bare.estate.until(audited, "who gave the host up is told of the host")


async def comes_back_clean(bare: Bare, host: Life) -> None:
    name = bare.estate.name_of(host)
    host.machine.faults.dead = False
    await host.power_on()

    def is_free(found: Manifest) -> bool:
        annotations = found["metadata"]["annotations"]
        return annotations.get(STATE) == "Available" and QUARANTINE not in annotations

    await bare.estate.when(MACHINE_INVENTORY, name, is_free, "the host that was mended is free", 60)
    assert host.machine.is_masked("kubelet.service")
    assert host.machine.containers == {}
    assert [node for node in bare.workload.client.list(NODE) if node["spec"].get("providerID") == f"baremetal:///{name}"] == []
