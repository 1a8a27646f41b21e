"""Getting a host for a BaremetalMachine: the intent first, then the claim."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.infrastructure.machine import BaremetalMachine
from slipway.api.cluster.kinds import BAREMETAL_MACHINE, MACHINE_INVENTORY
from slipway.fleet.baremetal.hosts import claim
from slipway.fleet.baremetal.hosts.claim import LostClaimError, SameHostError
from slipway.fleet.baremetal.hosts.host import host_of, hosts_of
from slipway.fleet.baremetal.hosts.pool import member_names
from slipway.fleet.contract.conditions import FALSE
from slipway.fleet.contract.facts import read

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.cluster.infrastructure.pool import PoolMember
    from slipway.fleet.baremetal.machine.run import Run
    from slipway.fleet.baremetal.options import BaremetalOptions
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object

POOL_INDEX = "machineInventoryPool"
# A host that comes back is told by a watch; this is for what no watch tells.
_RETRY = 60.0


def pool_key(found: Object) -> Iterable[str]:
    """The index of BaremetalMachines by their pool."""
    return [f"{found.namespace}/{read(found, BaremetalMachine).spec.machine_inventory_pool_ref.name}"]


class Allocation:
    def __init__(self, client: AsyncClient, cache: Cache, options: BaremetalOptions) -> None:
        self._client = client
        self._cache = cache
        self._options = options
        self._claiming: set[tuple[str, str]] = set()

    async def allocate(self, run: Run) -> bool:
        """Whether there is a host now."""
        run.phase = names.PENDING_PHASE
        if run.pool is None:
            return self._none(
                run,
                names.POOL_MISSING_REASON,
                f"there is no MachineInventoryPool {run.namespace}/{run.pool_name}: make it, or make a template that names another one",
            )
        if run.pool.spec.cluster_name != run.cluster.name:
            return self._none(
                run,
                names.POOL_INVALID_REASON,
                f"the MachineInventoryPool {run.pool_name} is for the Cluster {run.pool.spec.cluster_name}, not for {run.cluster.name}: "
                "name a pool of this cluster in a template",
            )
        try:
            await self._claim(run, run.pool.members)
        except SameHostError as error:
            return self._none(run, names.WAITING_FOR_SAME_HOST_REASON, error.message)
        except LostClaimError as error:
            return self._none(
                run,
                names.POOL_EXHAUSTED_REASON,
                f"{error.message}. Add a MachineInventory to the pool, or wait for a host that is being cleaned",
            )
        run.phase = names.ALLOCATED_PHASE
        return True

    async def _claim(self, run: Run, members: list[PoolMember]) -> None:
        """Claim the host that is meant, else the first that is free; the intent is written down before each attempt."""
        hosts = await hosts_of(self._cache, run.namespace, member_names(members))
        if run.intent and run.intent not in hosts and await self._has(run):
            return
        meant, leaving = await self._meant_by_others(run)
        claimant = run.claimant
        if claimant.same and _age(run) > self._options.host_deadline:
            # A host whose clean does not end is not waited for any longer than for one that does not end its plan.
            claimant = claimant._replace(same=False)
        while True:
            name = run.intent
            if name not in hosts:
                name = claim.choose(members, hosts, claimant, meant | self._on_their_way(run.namespace, hosts), leaving)
            self._claiming.add((run.namespace, name))
            try:
                if name != run.intent:
                    run.mean(name)
                    await run.save()
                run.host = host_of(await claim.take(self._client, self._cache, name, run.claimant, run.life(claimed=run.now)))
                return
            except LostClaimError:
                # What the API server says of it is newer than what the cache does.
                hosts.pop(name, None)
                run.mean("")
            finally:
                self._claiming.discard((run.namespace, name))

    def _on_their_way(self, namespace: str, hosts: Iterable[str]) -> set[str]:
        """The hosts that others of this process are about to claim or have just claimed, of which the cache knows nothing yet.

        Many machines that are made at once would else all mean the first host of their pool, one after the other.
        """
        return {name for name in hosts if (namespace, name) in self._claiming or self._cache.is_behind(MACHINE_INVENTORY, name, namespace)}

    async def _has(self, run: Run) -> bool:
        """Whether the host that is meant, which the pool does not name any more, was claimed by a write whose answer was lost."""
        found = await self._client.find(MACHINE_INVENTORY, run.intent, run.namespace)
        if found is None or not claim.is_of(host_of(found), run.claimant):
            return False
        run.host = host_of(found)
        return True

    async def _meant_by_others(self, run: Run) -> tuple[set[str], set[str]]:
        """The hosts that other machines mean or have, and those of machines that are being deleted."""
        meant: set[str] = set()
        leaving: set[str] = set()
        for found in await self._cache.list(BAREMETAL_MACHINE, index=(POOL_INDEX, f"{run.namespace}/{run.pool_name}")):
            reference = read(found, BaremetalMachine).status.machine_inventory_ref
            if reference is not None and found.name != run.name:
                (meant if found.metadata.deletion_timestamp is None else leaving).add(reference.name)
        return meant | leaving, leaving

    def _none(self, run: Run, reason: str, message: str) -> bool:
        run.mean("")
        run.tell(names.INVENTORY_ALLOCATED_CONDITION, FALSE, reason, message)
        run.look_again(_RETRY)
        return False


def _age(run: Run) -> timedelta:
    return run.now - datetime.fromisoformat(run.manifest["metadata"]["creationTimestamp"])
