"""The MachineInventory controller: gives each host its Secret and account, and tells what became of its plans.

The cache has the metadata of plan Secrets alone.  When one changes it is read once, and of it only what the status needs is kept: plans
hold the user-data of hosts, and there may be ten thousand of them.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from slipway.api.cluster.infrastructure import names as infrastructure
from slipway.api.cluster.kinds import BAREMETAL_MACHINE, MACHINE_INVENTORY, ROLE, ROLE_BINDING, SECRET, SERVICE_ACCOUNT
from slipway.api.cluster.names import DELETE_FOR_MOVE_ANNOTATION
from slipway.api.elemental import names, plan
from slipway.fleet.contract.conditions import FALSE
from slipway.fleet.contract.references import besides_status, controlled_by
from slipway.fleet.contract.scope import Patcher
from slipway.fleet.contract.status import Status
from slipway.fleet.inventory import accounts, hosts, projection
from slipway.fleet.inventory.accounts import SELECTOR, TakenError
from slipway.fleet.inventory.reset import MAX_FAILURES, reset_plan
from slipway.runtime import finalizers
from slipway.runtime.cache.cache import ON_ITS_WAY
from slipway.runtime.controller import Watch
from slipway.runtime.logs import fields
from slipway.runtime.objects import DONE, Request, Result
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.inventory.projection import PlanFacts
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

_log = logging.getLogger("slipway.fleet.inventory")

NAME = "machineinventory"
# Somebody's Secret or account is in the way: nobody tells when it goes.
TAKEN_RETRY = 30.0

RULES = (
    rule(MACHINE_INVENTORY, *READ, "patch"),
    # By the registration of hosts, which every replica serves.
    rule(MACHINE_INVENTORY, "create", "update"),
    rule(MACHINE_INVENTORY, "patch", subresource="status"),
    *accounts.RULES,
)

_of_owner = controlled_by(MACHINE_INVENTORY)
WATCHES = (
    Watch(MACHINE_INVENTORY, when=besides_status),
    Watch(MACHINE_INVENTORY, hosts.twins, hosts.identity_changed),
    Watch(SECRET, _of_owner, labels=SELECTOR),
    *(Watch(kind, _of_owner, labels=SELECTOR) for kind in (SERVICE_ACCOUNT, ROLE, ROLE_BINDING)),
)


class MachineInventoryReconciler:
    name = NAME
    watches = WATCHES
    rules = RULES
    # A host tells of its plan in several steps, and its owner changes beside: what comes within a second is one write.
    interval = 1.0

    def __init__(self, client: AsyncClient, cache: Cache, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._client = client
        self._cache = cache
        self._clock = clock
        accounts.restrict(cache)
        hosts.add_indices(cache)
        self._cached = accounts.cached(cache)
        # What plan Secrets said at a version of theirs.
        self._known: dict[Request, tuple[str, PlanFacts]] = {}

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(MACHINE_INVENTORY, request.name, request.namespace)
        if found is None:
            self._known.pop(request, None)
            return DONE
        if self._cache.is_behind(MACHINE_INVENTORY, request.name, request.namespace):
            return Result(ON_ITS_WAY)
        manifest = found.content()
        patcher = Patcher(self._client, MACHINE_INVENTORY, manifest, owned_conditions=projection.OWNED_CONDITIONS)
        if DELETE_FOR_MOVE_ANNOTATION in found.metadata.annotations:
            # It lives on elsewhere, and its host with it.
            return await self._let_go(patcher, manifest) if finalizers.is_deleted(manifest) else DONE
        if finalizers.is_deleted(manifest):
            return await self._delete(patcher, manifest)
        if finalizers.add(manifest, names.MACHINE_INVENTORY_FINALIZER):
            # By itself, before anything is made that it guards; a host that registers brings it along.
            await patcher.save(manifest, self._cache)
            return DONE
        problem = await self._equip(manifest)
        told = None if problem else await self._plan_facts(request)
        if told is not None and told.facts_problem:
            _log.warning("%s: %s", request, told.facts_problem)
        projection.tell(Status(manifest, self._clock()), manifest, told, problem=problem, twins=await hosts.elder_twins(self._cache, found))
        await patcher.save(manifest, self._cache)
        if told is not None and told.wants_token:
            # After the status: where no token is to be had, the host can be used all the same.
            await self._give_token(manifest)
        return Result(TAKEN_RETRY) if problem else DONE

    async def _equip(self, manifest: Manifest) -> str:
        """Give the host its Secret and its account; why not, where that cannot be."""
        if (manifest.get("spec") or {}).get("storage"):
            # It gets nothing to do, and what it has already stays.
            return ""
        try:
            await accounts.ensure(self._client, manifest, self._cached)
        except TakenError as error:
            return error.message
        return ""

    async def _plan_facts(self, request: Request) -> PlanFacts | None:
        cached = self._cache.informer(SECRET, labels=SELECTOR).store.get(request.name, request.namespace)
        known = self._known.get(request)
        if cached is not None and known is not None and known[0] == cached.metadata.resource_version:
            return known[1]
        secret = await self._cache.whole(SECRET, request.name, request.namespace, labels=SELECTOR)
        if secret is None:
            return None
        told = projection.facts_of(secret)
        self._known[request] = secret["metadata"]["resourceVersion"], told
        return told

    async def _give_token(self, inventory: Manifest) -> None:
        """Renew the token of a host that asks for it: by its Secret, which nobody can write to without the one that it has."""
        metadata = inventory["metadata"]
        secret = await self._client.get(SECRET, metadata["name"], metadata["namespace"])
        if not projection.facts_of(secret).wants_token or not accounts.is_ours(secret, SECRET, inventory):
            return
        token = await accounts.token(self._client, metadata["name"], metadata["namespace"])
        data = {**secret["data"], **plan.wire({plan.TOKEN: token, plan.TOKEN_REQUEST: b""})}
        await self._client.update(SECRET, {**secret, "data": data})
        _log.info("A host has a new token", extra=fields(inventory=f"{metadata['namespace']}/{metadata['name']}"))

    async def _delete(self, patcher: Patcher, manifest: Manifest) -> Result:
        """Let the inventory go once nobody uses its host; one that is to be reset gets the plan for it first, and must have applied it."""
        if not finalizers.has(manifest, names.MACHINE_INVENTORY_FINALIZER):
            return DONE
        annotations = manifest["metadata"].get("annotations") or {}
        reason, waiting = projection.IN_USE_REASON, _in_use(annotations)
        if not waiting and annotations.get(names.RESETTABLE_ANNOTATION) == "true":
            reason, waiting = projection.RESETTING_REASON, await self._reset(manifest)
        if waiting:
            Status(manifest, self._clock()).set(names.READY_CONDITION, FALSE, reason, waiting)
            await patcher.save(manifest, self._cache)
            return DONE
        return await self._let_go(patcher, manifest)

    async def _let_go(self, patcher: Patcher, manifest: Manifest) -> Result:
        finalizers.remove(manifest, names.MACHINE_INVENTORY_FINALIZER)
        await patcher.save(manifest, self._cache)
        return DONE

    async def _reset(self, manifest: Manifest) -> str:
        """What the deletion waits for; empty where the host is reset, or has no Secret by which it could be told to."""
        metadata = manifest["metadata"]
        secret = await self._client.find(SECRET, metadata["name"], metadata["namespace"])
        if secret is None or not accounts.is_ours(secret, SECRET, manifest):
            return ""
        told = projection.facts_of(secret)
        way_out = f"To let it go as it is, set the annotation {names.RESETTABLE_ANNOTATION} to false"
        wanted = plan.encode(reset_plan(metadata.get("annotations") or {}))
        if told.state.plan_checksum == plan.checksum(wanted):
            if told.state.outcome == "applied":
                return ""
            if told.state.outcome == "failed":
                return f"The reset failed on the host: {told.printed[-projection.LONGEST_SHOWN :] or 'it printed nothing'}. {way_out}"
            return f"Waiting for the host to be reset. {way_out}"
        if told.state.in_flight and told.state.plan_checksum != plan.checksum(plan.EMPTY):
            return f"Waiting for the {told.type or 'current'} plan to end before the host is reset. {way_out}"
        data = {**(secret.get("data") or {}), **plan.written(wanted, names.PLAN_RESET, MAX_FAILURES)}
        annotations = {**(secret["metadata"].get("annotations") or {})}
        annotations |= dict.fromkeys((names.PLAN_TYPE_ANNOTATION, infrastructure.PLAN_TYPE_ANNOTATION), names.PLAN_RESET)
        await self._client.update(SECRET, {**secret, "metadata": {**secret["metadata"], "annotations": annotations}, "data": data})
        return f"Waiting for the host to be reset. {way_out}"


def _in_use(annotations: Mapping[str, str]) -> str:
    """What the deletion waits for while a machine has the host: without its plan Secret it could not be cleaned, and would stay a Node."""
    user = annotations.get(infrastructure.OWNER_BAREMETAL_MACHINE_ANNOTATION)
    if not user:
        return ""
    return (
        f"The host is in use by the {BAREMETAL_MACHINE.kind} {user}: delete its Machine, which gives the host back. Where there is no such "
        f"{BAREMETAL_MACHINE.kind}, remove the annotation {infrastructure.OWNER_BAREMETAL_MACHINE_ANNOTATION}"
    )
