"""A BaremetalMachine that goes: its host is cleaned, and given back to its pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import BAREMETAL_MACHINE, MACHINE, MACHINE_INVENTORY
from slipway.fleet.baremetal.hosts import claim
from slipway.fleet.baremetal.hosts.host import NOT_CLEAN, QUARANTINE_ANNOTATION, host_of
from slipway.fleet.baremetal.machine.decision import Step
from slipway.fleet.baremetal.machine.run import FORCE_ANNOTATION, RETRY_ANNOTATION
from slipway.fleet.baremetal.plans import planfacts
from slipway.fleet.baremetal.plans.plan import clean
from slipway.fleet.contract import conditions
from slipway.fleet.contract.conditions import FALSE
from slipway.runtime import finalizers
from slipway.runtime.objects import timestamp

if TYPE_CHECKING:
    from datetime import datetime

    from slipway.api.elemental.cycles import Cycle
    from slipway.fleet.baremetal.machine.run import Run
    from slipway.fleet.baremetal.options import BaremetalOptions
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.events import EventRecorder

_RETRY = 30.0
_SOON = 1.0
_FORCE_HINT = f"where the host is dead, set the annotation {FORCE_ANNOTATION} on the BaremetalMachine"


class Removal:
    def __init__(self, client: AsyncClient, cache: Cache, options: BaremetalOptions, events: EventRecorder) -> None:
        self._client = client
        self._cache = cache
        self._options = options
        self._events = events

    async def proceed(self, step: Step, run: Run) -> None:
        run.phase = names.PREPARING_PHASE
        match step:
            case Step.CLEAN:
                await self._clean(run)
            case Step.WAIT_FOR_CLEAN | Step.WAIT_FOR_HOST | Step.WAIT_FOR_SECRET:
                await self._state(run, names.PREPARING, sure=False)
                self._wait(step, run)
            case Step.CLEAN_FAILED:
                await self._failed(run)
            case Step.RELEASE:
                clean = run.plan is not None and (run.plan.type, run.plan.owner) == (names.PLAN_CLEAN, run.name)
                life = self._life(run, cleaned=run.now if clean else None, released=run.now)
                await claim.release(self._client, self._cache, run.claimed.name, run.claimant, life)
                self._events.event(
                    run.manifest, "Normal", "HostReleased", f"The host {run.claimed.name} is back in the pool {run.pool_name}"
                )
                self._let_go(run)
            case Step.GIVE_UP:
                await self._give_up(run)
            case Step.FORGET:
                await self._forget(run)

    async def _clean(self, run: Run) -> bool:
        """Write the clean plan, where the host is ours still, as the API server says: whoever has it by now must not lose it."""
        if not await self._state(run, names.PREPARING):
            run.look_again(_SOON)
            return False
        assert run.secret is not None
        vip = run.vip if run.owner is None or run.owner.control_plane else ""
        plan = clean(f"{run.uid}/{timestamp(run.now)}", vip, scrub=run.scrub)
        marks = planfacts.Marks(names.PLAN_CLEAN, run.name)
        run.secret = await planfacts.write(self._client, self._cache, run.secret, plan, marks, self._options.max_failures, run.now)
        run.plan = planfacts.plan_facts(run.secret)
        if RETRY_ANNOTATION in run.annotations:
            run.manifest["metadata"]["annotations"] = {key: value for key, value in run.annotations.items() if key != RETRY_ANNOTATION}
        run.tell(names.HOST_CLEANED_CONDITION, FALSE, names.CLEANING_REASON, "the clean plan is written: waiting for the host to apply it")
        run.look_again(_RETRY)
        return True

    def _wait(self, step: Step, run: Run) -> None:
        run.look_again(_RETRY)
        reason, message = names.CLEANING_REASON, "waiting for the host to apply the clean plan"
        if step is Step.WAIT_FOR_HOST:
            message = "waiting for the host to end the plan that it works on, before it gets the clean plan"
        elif step is Step.WAIT_FOR_SECRET:
            message = (
                f"the plan Secret {run.namespace}/{run.claimed.name} of the host is missing: whoever keeps the inventory makes it anew; "
                f"{_FORCE_HINT}"
            )
        began = run.plan.written if run.plan is not None else None
        if began is not None and run.now - began > self._options.host_deadline:
            reason = names.CLEAN_DEADLINE_EXCEEDED_REASON
            message = (
                f"the host has a plan since {timestamp(began)} and has not ended it: look whether it has power and whether its agent runs; "
                f"{_FORCE_HINT}"
            )
        run.tell(names.HOST_CLEANED_CONDITION, FALSE, reason, message)

    async def _failed(self, run: Run) -> None:
        assert run.plan is not None
        await self._state(run, names.UNAVAILABLE)
        run.phase = names.FAILED_PHASE
        why = NOT_CLEAN if run.plan.is_dirty else run.plan.printed or "it printed nothing"
        run.tell(
            names.HOST_CLEANED_CONDITION,
            FALSE,
            names.CLEAN_FAILED_REASON,
            f"the host could not be cleaned: {why}\nMend the host and set the annotation "
            f"{RETRY_ANNOTATION} on the BaremetalMachine; {_FORCE_HINT}",
        )
        if not run.plan.is_dirty:
            run.tell(names.PLAN_APPLIED_CONDITION, FALSE, names.PLAN_FAILED_REASON, run.plan.printed)

    async def _give_up(self, run: Run) -> None:
        """The host stays out of use until its agent has applied the clean plan of this machine, should it ever come back."""
        has_it = run.plan is not None and (run.plan.type, run.plan.owner) == (names.PLAN_CLEAN, run.name)
        # Without a Secret there is nowhere to write it: the pool's controller does so when there is one.
        if run.secret is not None and not has_it and not await self._clean(run):
            return
        forced_by = await self._who_forced(run)
        extra = {QUARANTINE_ANNOTATION: run.name}
        life = self._life(run, released=run.now)
        await claim.release(self._client, self._cache, run.claimed.name, run.claimant, life, names.UNAVAILABLE, extra)
        why = run.annotations.get(FORCE_ANNOTATION, "").strip()
        told = (
            f"The host {run.claimed.name} of {run.name} was given up: {FORCE_ANNOTATION}{f' says: {why}' if why else ''}, set by "
            f"{forced_by}. It is Unavailable until it has applied its clean plan"
        )
        self._events.event(run.manifest, "Warning", "HostGivenUp", told)
        # The machine goes with its events; the host stays.
        inventory = self._cache.informer(MACHINE_INVENTORY).store.get(run.claimed.name, run.namespace)
        if inventory is not None:
            self._events.event(inventory.content(), "Warning", "HostGivenUp", told)
        self._let_go(run)

    async def _forget(self, run: Run) -> None:
        """Asked of the API server: a claim that the cache has not seen yet must not be left behind."""
        found = await self._client.find(MACHINE_INVENTORY, run.intent, run.namespace) if run.intent else None
        if found is not None and claim.is_of(host_of(found), run.claimant):
            run.look_again(_SOON)
            return
        self._let_go(run)

    def _let_go(self, run: Run) -> None:
        finalizers.remove(run.manifest, names.BAREMETAL_MACHINE_FINALIZER)

    async def _state(self, run: Run, state: str, *, sure: bool = True) -> bool:
        return await claim.set_state(self._client, self._cache, run.claimed.name, run.claimant, state, self._life(run), sure=sure)

    def _life(self, run: Run, **moments: datetime | None) -> Cycle:
        """What is known of the life that ends: when its Machine was deleted, and when that had drained the Node and let go of the host."""
        machine = self._cache.informer(MACHINE).store.get(run.owner.name, run.namespace) if run.owner is not None else None
        deleted = machine.metadata.deletion_timestamp if machine is not None else None
        ours = run.plan is not None and (run.plan.type, run.plan.owner) == (names.PLAN_REPROVISION, run.name)
        applied = run.status.fields.get("planAppliedTime") if ours else None
        drained = conditions.moment(run.manifest["metadata"].get("deletionTimestamp"))
        return run.life(applied=conditions.moment(applied), draining=conditions.moment(deleted), drained=drained, **moments)

    async def _who_forced(self, run: Run) -> str:
        """Who the API server has written down as having set the annotation, and when; asked of it, as the cache does not keep that."""
        field = f"f:{FORCE_ANNOTATION}"
        found = await self._client.find(BAREMETAL_MACHINE, run.name, run.namespace)
        for entry in (found["metadata"].get("managedFields") or ()) if found is not None else ():
            annotations = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:annotations") or {}
            if field in annotations:
                return f"{entry.get('manager') or 'somebody'} at {entry.get('time') or 'some time'}"
        return "somebody whom the API server has not written down"
