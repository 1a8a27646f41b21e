"""Claiming a host: which one, and how, so that no host is ever had by two.

A BaremetalMachine first notes in its own status which host it means, then writes itself into the inventory, by a patch that names the
version of the inventory that it read.  Of two that mean the same host the API server lets one through; the other sees who has it, and
means another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import MACHINE_INVENTORY, SECRET
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.baremetal.hosts import record
from slipway.fleet.baremetal.hosts.host import NOT_CLEAN, HostOwner, annotations_patch, host_of
from slipway.fleet.baremetal.plans.planfacts import plan_facts
from slipway.kube.aio import PatchType
from slipway.kube.errors import ConflictError
from slipway.runtime.objects import Outline

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from slipway.api.cluster.infrastructure.pool import PoolMember
    from slipway.api.elemental.cycles import Cycle
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.baremetal.hosts.host import Host
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

# Others write inventories as well: what a host reports, for one.
_ATTEMPTS = 5


class Claimant(NamedTuple):
    """Who wants a host of which pool."""

    namespace: str
    pool: str
    owner: HostOwner
    group: str = ""
    """The control plane or deployment that it is of, as cluster/name."""
    failure_domain: str = ""
    """Where its host should be, if there is one that is free."""
    same: bool = False
    """Hosts that machines of the same group had come first."""


class LostClaimError(OperatorError):
    """The host that was meant cannot be had."""


class SameHostError(OperatorError):
    """A host that a machine of the same group had is being cleaned, and worth waiting for."""


def is_of(host: Host, claimant: Claimant) -> bool:
    """Whether the claimant has the host: by its name, which is one of a kind in its namespace and outlives a move to another cluster."""
    return host.owner is not None and host.owner.baremetal_machine == claimant.owner.baremetal_machine


def why_not(host: Host, claimant: Claimant) -> str:
    """Why a host cannot be claimed; empty where it can, or is the claimant's already."""
    if is_of(host, claimant):
        return ""
    if host.owner is not None:
        return f"it is of the BaremetalMachine {host.owner.baremetal_machine or '(unnamed)'}"
    if host.deleting:
        return "it is being deleted"
    if host.pool not in ("", claimant.pool):
        return f"it is in the pool {host.pool}"
    if host.volumes:
        return "it declares data volumes, which are not supported"
    if host.quarantined_by:
        return f"{host.quarantined_by} gave it up: it is in quarantine until it has applied its clean plan and says that it is clean"
    if host.state not in ("", names.AVAILABLE):
        return f"it is {host.state}"
    if host.dirty:
        return NOT_CLEAN
    if not host.ready:
        return f"it is not ready: {host.why_not_ready}"
    return ""


def choose(
    members: Sequence[PoolMember], hosts: Mapping[str, Host], claimant: Claimant, meant: Collection[str], leaving: Collection[str] = ()
) -> str:
    """The first host of the pool, in its order, that is free; a sentence with the reasons of all of them where none is.

    Before the order counts whose a host was, where the claimant prefers that, and where it is.  ``meant`` are those that other
    BaremetalMachines mean and have not claimed yet: they come last, as they may be free again.  ``leaving`` are the hosts of machines that
    are being deleted.
    """
    refused, free = [], []
    for name in dict.fromkeys(member.name for member in members):
        host = hosts.get(name)
        why = "there is no such MachineInventory" if host is None else why_not(host, claimant)
        if host is None or why:
            refused.append(f"{name}: {why}")
        else:
            free.append(host)
    if claimant.same and not any(_is_same(host, claimant) and host.name not in meant for host in free):
        coming = (names.ALLOCATED, names.PREPARING)
        awaited = [name for name, host in hosts.items() if name in leaving and _is_same(host, claimant) and host.state in coming]
        if awaited:
            raise SameHostError(f"waiting for {awaited[0]}, which a machine of {claimant.group} has, to be given back and cleaned")
    if free:
        return min(free, key=lambda host: _rank(host, claimant, meant)).name
    told = "; ".join(refused[:10]) + (f"; and {len(refused) - 10} more" if len(refused) > 10 else "") if refused else "it names no host"
    raise LostClaimError(f"the MachineInventoryPool {claimant.pool} has no host that is free: {told}")


def _is_same(host: Host, claimant: Claimant) -> bool:
    return bool(claimant.group) and host.group == claimant.group


def _rank(host: Host, claimant: Claimant, meant: Collection[str]) -> tuple[bool, bool, bool]:
    """Lower for a better host; the order of the pool decides between equals."""
    elsewhere = bool(claimant.failure_domain) and host.failure_domain != claimant.failure_domain
    return host.name in meant, elsewhere, claimant.same and not _is_same(host, claimant)


def _cached(cache: Cache, name: str, namespace: str) -> Manifest | None:
    """An inventory as the cache has it, to write to: whoever has written since, and is not in the cache yet, makes that a conflict.

    None where the cache is known to be behind, or has an outline alone.
    """
    found = cache.informer(MACHINE_INVENTORY).store.get(name, namespace)
    if found is None or isinstance(found, Outline) or cache.is_behind(MACHINE_INVENTORY, name, namespace):
        return None
    return found.content()


async def take(client: AsyncClient, cache: Cache, name: str, claimant: Claimant, life: Cycle) -> Manifest:
    """Write the claimant into the inventory, unless somebody else has it; the inventory then.

    A claim names the version that was read, and may be of the cache; that there can be none is believed of the API server alone.
    A conflict is looked at anew.  ``life`` is what the host's record gets.
    """
    found = _cached(cache, name, claimant.namespace)
    if found is not None and (is_of(host_of(found), claimant) or why_not(host_of(found), claimant)):
        found = None
    for _ in range(_ATTEMPTS):
        found = found or await client.find(MACHINE_INVENTORY, name, claimant.namespace)
        if found is None:
            raise LostClaimError(f"the MachineInventory {name} is gone")
        host = host_of(found)
        if is_of(host, claimant):
            return found
        why = why_not(host, claimant) or await _busy(client, name, claimant.namespace)
        if why:
            raise LostClaimError(f"the MachineInventory {name} cannot be claimed: {why}")
        owners = dict(zip(names.OWNER_ANNOTATIONS, claimant.owner, strict=True))
        state = {names.POOL_ANNOTATION: claimant.pool, names.ALLOCATION_STATE_ANNOTATION: names.ALLOCATED}
        state |= {names.GROUP_ANNOTATION: claimant.group} if claimant.group else {}
        patch = annotations_patch(found["metadata"]["resourceVersion"], {**owners, **state, **record.noted(found, life)})
        try:
            written = await client.patch(MACHINE_INVENTORY, name, claimant.namespace, patch, type=PatchType.MERGE)
        except ConflictError:
            found = None
            continue
        cache.wrote(MACHINE_INVENTORY, written)
        return written
    raise LostClaimError(f"the MachineInventory {name} is changed by others all the time")


async def _busy(client: AsyncClient, name: str, namespace: str) -> str:
    """Why the plan Secret of a host cannot take a plan now."""
    secret = await client.find(SECRET, name, namespace)
    if secret is None:
        return "its plan Secret is missing"
    found = plan_facts(secret)
    if found.is_dirty:
        return NOT_CLEAN
    return "its host works on a plan" if found.in_flight else ""


async def set_state(
    client: AsyncClient, cache: Cache, name: str, claimant: Claimant, state: str, seen: Cycle, *, sure: bool = True
) -> bool:
    """Write the allocation state of a host that is the claimant's; whether it still is.  What was ``seen`` goes with it, never alone.

    Who need not be ``sure`` of that is content where the cache has it so already.
    """
    return await _change(client, cache, name, claimant, {names.ALLOCATION_STATE_ANNOTATION: state}, seen, sure=sure)


async def release(
    client: AsyncClient,
    cache: Cache,
    name: str,
    claimant: Claimant,
    seen: Cycle,
    state: str = names.AVAILABLE,
    extra: Mapping[str, str] | None = None,
) -> bool:
    """Give a host back to its pool; whether it was the claimant's."""
    cleared = dict.fromkeys(names.OWNER_ANNOTATIONS)
    return await _change(client, cache, name, claimant, {**cleared, names.ALLOCATION_STATE_ANNOTATION: state, **(extra or {})}, seen)


async def note(client: AsyncClient, cache: Cache, name: str, claimant: Claimant, seen: Cycle) -> bool:
    """Write what was seen of the claimant's life, and nothing else; whether the host is still its."""
    return await _change(client, cache, name, claimant, {}, seen)


async def _change(
    client: AsyncClient,
    cache: Cache,
    name: str,
    claimant: Claimant,
    changes: dict[str, str | None],
    seen: Cycle,
    *,
    sure: bool = True,
) -> bool:
    """A change names the version that was read, and may be of the cache; that the host is another's is believed of the API server alone."""
    found = _cached(cache, name, claimant.namespace)
    if found is not None and (not is_of(host_of(found), claimant) or (sure and _is_so(found, changes))):
        found = None
    for _ in range(_ATTEMPTS):
        found = found or await client.find(MACHINE_INVENTORY, name, claimant.namespace)
        if found is None or not is_of(host_of(found), claimant):
            return False
        if _is_so(found, changes):
            return True
        annotations = found["metadata"].get("annotations") or {}
        # Whose the host is stands there: a Machine that is gone by now cannot be asked for its name.
        machine = annotations.get(names.OWNER_MACHINE_ANNOTATION) or seen.machine
        written_down = record.noted(found, msgspec.structs.replace(seen, machine=machine))
        if not changes and not written_down:
            return True
        patch = annotations_patch(found["metadata"]["resourceVersion"], {**changes, **written_down})
        try:
            written = await client.patch(MACHINE_INVENTORY, name, claimant.namespace, patch, type=PatchType.MERGE)
        except ConflictError:
            found = None
            continue
        cache.wrote(MACHINE_INVENTORY, written)
        return True
    raise OperatorError(f"the MachineInventory {claimant.namespace}/{name} is changed by others all the time")


def _is_so(found: Manifest, changes: Mapping[str, str | None]) -> bool:
    """Whether there are changes, and they have been made."""
    annotations = found["metadata"].get("annotations") or {}
    return bool(changes) and all(annotations.get(key) == value for key, value in changes.items())
