"""Three control planes and two workers with no spare host, and what happens to them and around them in the middle of a rollout."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from simulation.clusters import PLANE, Bare, Manifest
from simulation.estate import FIRST, SPACE, condition
from simulation.managers import KillableEstate
from simulation.sabotage import REPROVISION

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, CONFIG_MAP, KUBEADM_CONTROL_PLANE, MACHINE_INVENTORY
from slipway.simulation.boot import Life


@asynccontextmanager
async def cluster(patience: float, made: KillableEstate | None = None, *, spare: int = 0) -> AsyncIterator[tuple[KillableEstate, Bare]]:
    """At the first version; what must never be was not, when it is over.  ``spare``: so many hosts more in the control plane's pool."""
    async with made or KillableEstate() as estate:
        bare = Bare(estate, await estate.hosts(5 + spare), planes=3 + spare, workers=2)
        bare.control_planes = 3
        await bare.make(FIRST, "v1.35.4", "v1.36.3", replicas=3)
        await bare.at(FIRST, FIRST, patience)
        estate.follow(bare.workload)
        yield estate, bare
        assert bare.wrong == []


async def roll_control_plane(bare: Bare, version: str, **configuration: object) -> None:
    kubeadm = {"kubeadmConfigSpec": {"clusterConfiguration": configuration}} if configuration else {}
    await bare.patch(KUBEADM_CONTROL_PLANE, PLANE, {"spec": {"version": version, **kubeadm}})


# The manager.


@asynccontextmanager
async def killed(estate: KillableEstate, times: int, *, most_writes: int, seed: int) -> AsyncIterator[None]:
    """The manager is killed so many times while the body waits: each time after some writes of anybody, ``most_writes`` at most."""
    chance = random.Random(seed)
    before = estate.kills

    async def kill() -> None:
        for _ in range(times):
            await estate.kill_and_restart(chance.randint(1, most_writes), chance.uniform(0.5, 10.0))

    killer = asyncio.create_task(kill())
    try:
        yield
        assert estate.kills - before == times, f"it was over after {estate.kills - before} kills"
        await killer
    except AssertionError:
        if killer.done() and (failed := killer.exception()) is not None:
            raise failed from None
        raise
    finally:
        killer.cancel()
        await asyncio.gather(killer, return_exceptions=True)


@asynccontextmanager
async def replacing(bare: Bare, number: int) -> AsyncIterator[None]:
    """So many Machines are replaced by the body: each once, by one, on a host that boots once for it."""
    made, boots = bare.watchman.made.copy(), _boots(bare)
    plans = sum(type_ == REPROVISION for _, type_ in bare.watchman.plans)
    yield
    new = bare.watchman.made - made
    # A manager that dies between the two leaves a BaremetalMachine without a Machine, which never gets a host.
    assert new["Machine"] == number, f"{new} were made"
    assert sum(type_ == REPROVISION for _, type_ in bare.watchman.plans) - plans == number
    assert _boots(bare) - boots == number, "a host booted more than once for its node"


def _boots(bare: Bare) -> int:
    return sum(host.machine.boots for host in bare.hosts)


# The catalog.


@asynccontextmanager
async def without_catalog_entry(bare: Bare, version: str) -> AsyncIterator[None]:
    found = await bare.estate.client.get(CONFIG_MAP, "elemental-image-catalog", SPACE)
    await bare.patch(CONFIG_MAP, "elemental-image-catalog", {"data": {version: None}})
    yield
    await bare.patch(CONFIG_MAP, "elemental-image-catalog", {"data": {version: found["data"][version]}})


async def failing(bare: Bare, type_: str, reason: str, patience: float = 60, *, message: str = "") -> Manifest:
    """The first BaremetalMachine that says so, in such words."""
    found: list[Manifest] = []

    async def said() -> bool:
        await asyncio.sleep(0.05)
        listed = await bare.estate.client.list(BAREMETAL_MACHINE, SPACE)
        told = [(each, condition(each, type_)) for each in listed]
        found[:] = [each for each, said in told if said.get("reason") == reason and message in said["message"]]
        return bool(found)

    try:
        await bare.estate.until(said, f"a machine says {reason}", patience)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{await bare.told()}") from None
    return found[0]


# A host between two plans.


async def power_cycle_clean_host(bare: Bare, machine: Manifest) -> Life:
    """Switch a host off and on that was cleaned and has no plan yet, and see that it stays what it is: nothing."""
    name = machine["status"]["machineInventoryRef"]["name"]
    host = next(each for each in bare.hosts if bare.estate.name_of(each) == name)

    async def boot() -> str:
        inventory = await bare.estate.client.get(MACHINE_INVENTORY, name, SPACE)
        return str(((inventory.get("status") or {}).get("hostFacts") or {}).get("bootId", ""))

    before = await boot()
    await host.power_cycle()

    async def told() -> bool:
        return await boot() not in ("", before)

    # The agent is started last, after a kubelet that would run.
    await bare.estate.until(told, "the cleaned host tells of another boot")
    own = host.machine.hardware.address
    assert host.machine.is_masked("kubelet.service")
    assert host.machine.containers == {}
    assert host.machine.addresses[host.machine.hardware.interface] == [own], "it brought the virtual address back"
    peers = {member.peer_url for member in bare.workload.etcd.members.values()}
    assert not any(own.partition("/")[0] in peer for peer in peers), "it is a member of etcd"
    return host
