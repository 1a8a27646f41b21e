"""The bootstrap provider while its leader dies and its API server goes away: nobody notices but by a pause."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.planes import connection_of, real_server
from e2e.test_bootstrap_provider import service_account
from e2e.upstream import Plane, Running, plane
from fleet.bootstrap.test_killed import data_is_whole
from fleet.bootstrap.test_provider import has_data
from fleet.world import World, preserving_crd
from support.waiting import eventually

from slipway.api.cluster import crds
from slipway.api.cluster.kinds import LEASE, MACHINE_POOL
from slipway.fleet import registry

pytestmark = [*real_server, pytest.mark.asyncio]
NAMESPACE = "outage"
LEASE_NAME = registry.declarations(["bootstrap"]).leases[0].name


async def test_leaders_die_and_the_api_server_goes_away(tmp_path: Path) -> None:
    with plane(tmp_path) as management:
        async with World(connection_of(management.kubeconfig), NAMESPACE, service_account) as world:
            await world.install_crds(*crds.crds(), preserving_crd(MACHINE_POOL))
            await world.ready()
            managers = {running.process.pid: running for running in (_start(management, name) for name in ("first", "second", "third"))}
            names: list[str] = []

            async def machines(wave: str) -> None:
                made = [f"{wave}-{number}" for number in range(8)]
                for name in made:
                    await world.machine(name)
                names.extend(made)

            await machines("calm")
            await has_data(world, *names)
            # Killed, the leader cannot give its Lease up: the next one waits until it has run out.
            dead = await _leader(world, managers)
            managers.pop(dead).kill()
            await machines("orphaned")
            await has_data(world, *names)
            assert await _leader(world, managers) != dead
            # Ended in order, it does.
            assert managers.pop(await _leader(world, managers)).stop() == 0
            await machines("handed-over")
            await has_data(world, *names)
            # Without a Lease a manager outlives the API server; the objects are there before it sees that server again.
            for leader in managers.values():
                assert leader.stop() == 0
            lonely = management.start_slipway("--controllers=bootstrap", "--webhook-port=0", f"--namespace={NAMESPACE}", name="lonely")
            lonely.await_health()
            management.restart()
            # The test's own connections ended with the server, and nothing that changes something is asked twice.
            await world.client.close()
            await machines("restarted")
            await has_data(world, *names)
            assert lonely.process.poll() is None
            for name in names:
                await data_is_whole(world, name)
            assert len(await world.tokens()) == len(names)


async def _leader(world: World, managers: dict[int, Running]) -> int:
    """The process that holds the Lease; it must be one that lives."""

    async def holder() -> int:
        lease = await world.client.find(LEASE, LEASE_NAME, NAMESPACE)
        identity = str((lease or {}).get("spec", {}).get("holderIdentity") or "nobody")
        return next((pid for pid, running in managers.items() if f'identity="{identity}"' in running.log.read_text()), 0)

    return int(await eventually(holder, "a living leader", 60))


def _start(management: Plane, name: str) -> Running:
    return management.start_slipway(
        *("--controllers=bootstrap", "--webhook-port=0", "--leader-elect", f"--leader-elect-namespace={NAMESPACE}"),
        f"--namespace={NAMESPACE}",
        name=name,
    )
