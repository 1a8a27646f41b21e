"""The Machines of a MachineSet and their clones: finding, adopting, changing in place and deleting them."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from slipway.api.cluster import names
from slipway.api.cluster.kinds import MACHINE
from slipway.api.cluster.meta import ContractVersionedObjectReference as Reference
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract import selectors
from slipway.fleet.contract.clones import delete_orphans
from slipway.fleet.contract.ownership import give_up_updates
from slipway.fleet.contract.scope import Patcher, merge_patch
from slipway.fleet.contract.status import Status
from slipway.fleet.contract.templates import kind_from
from slipway.fleet.machines import decoded
from slipway.fleet.machines.machineset import desired
from slipway.fleet.machines.machineset.watches import controlled, uncontrolled
from slipway.fleet.machines.writing import own
from slipway.kube.aio import PatchType
from slipway.kube.errors import NotFoundError
from slipway.runtime import owners
from slipway.runtime.logs import fields

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from slipway.api.cluster.core.machine import Machine
    from slipway.api.cluster.core.machineset import MachineSet
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.references import References
    from slipway.fleet.machines.expectations import Expectations
    from slipway.fleet.machines.machineset.remediation import Remediation, Verdict
    from slipway.fleet.machines.propagation import Propagation
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.events import EventRecorder
    from slipway.runtime.objects import Object, Request

_log = logging.getLogger("slipway.fleet.machines.machineset")

T = TypeVar("T")
_AT_ONCE = 10
_REMEMBERED = 50_000
_CONDITION = names.OWNER_REMEDIATED_CONDITION


class Member(NamedTuple):
    """A Machine, as it was read and decoded."""

    found: Object
    machine: Machine


class Members:
    """``machines`` applies Machines, ``metadata`` the labels and annotations of clones."""

    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        references: References,
        machines: Propagation,
        metadata: Propagation,
        expected: Expectations,
        events: EventRecorder,
        clock: Callable[[], datetime],
    ) -> None:
        self._client, self._cache, self._references = client, cache, references
        self._machines, self._metadata = machines, metadata
        self._decoded = decoded.machines(cache)
        self._expected, self._events, self._clock = expected, events, clock
        # By the uid of a Machine: what it and its clones were when all was as it is to be.
        self._done: dict[str, tuple[object, ...]] = {}

    async def gather(self, manifest: Manifest, machine_set: MachineSet) -> list[Member]:
        """The Machines that the selector chooses and that the MachineSet controls; those that nobody controls become its own."""
        metadata, selector = manifest["metadata"], machine_set.spec.selector
        if not selector:
            raise OperatorError("the label selector of the MachineSet is empty, and would choose every Machine")
        found = await controlled(self._cache, MACHINE, metadata["uid"])
        loose = await uncontrolled(self._cache, MACHINE, metadata["namespace"])
        members = [one for one in found if selectors.matches(selector, one.metadata.labels)]
        members += [one for one in loose if selectors.matches(selector, one.metadata.labels) and await self._adopt(manifest, one)]
        return [Member(one, self._decoded(one)) for one in members]

    async def _adopt(self, manifest: Manifest, machine: Object) -> bool:
        try:
            await own(self._client, self._cache, MACHINE, machine.content(), owners.reference(manifest))
        except OperatorError as error:
            self._events.event(manifest, "Warning", "FailedAdopt", f'Failed to adopt Machine "{machine.name}": {error.message}')
            _log.warning("A Machine could not be adopted", extra=fields(machine=machine.name, err=error.message))
            return False
        self._events.event(manifest, "Normal", "SuccessfulAdopt", f'Adopted Machine "{machine.name}"')
        return True

    async def delete(self, request: Request, machines: Sequence[Object], why: str) -> list[str]:
        """Delete those that are not going already; their names.  ``request`` is whose they are."""
        going = [one for one in machines if one.metadata.deletion_timestamp is None]

        async def one(machine: Object) -> None:
            await self._client.delete(MACHINE, machine.name, machine.namespace, uid=machine.metadata.uid)
            self._expected.deleted(request, MACHINE, machine.name, machine.metadata.uid)
            _log.info("Deleting Machine (%s)", why, extra=fields(machine=machine.name))

        await _each(one, going)
        return [machine.name for machine in going]

    async def say(self, members: Mapping[str, Member], decision: Remediation) -> None:
        """Write what was decided about sick Machines to them."""
        for machine in decision.recovered:
            await self._patch_status(members[machine.metadata["name"]].found, _take_back)
        for verdict in decision.said:
            await self._patch_status(members[verdict.machine.metadata["name"]].found, partial(_tell, verdict))

    async def _patch_status(self, machine: Object, change: Callable[[Manifest, datetime], None]) -> None:
        manifest = machine.content()
        patcher = Patcher(self._client, MACHINE, manifest, owned_conditions=(_CONDITION,), owned_deprecated_conditions=(_CONDITION,))
        change(manifest, self._clock())
        written = await patcher.patch(manifest)
        if written["metadata"]["resourceVersion"] != machine.metadata.resource_version:
            self._cache.wrote(MACHINE, written)

    async def propagate(self, manifest: Manifest, members: Sequence[Member]) -> None:
        """Let Machines and their clones follow what may change without a new Machine."""
        intent = _intent(manifest)
        await _each(lambda member: self._follow(manifest, intent, member), [one for one in members if not self._is_done(intent, one)])

    def _is_done(self, intent: bytes, member: Member) -> bool:
        """What :meth:`_follow` would find, without a wait: most of hundreds are as they are to be."""
        metadata, spec = member.found.metadata, member.machine.spec
        if metadata.deletion_timestamp is not None:
            return False
        versions = [metadata.resource_version]
        for reference in (spec.infrastructure_ref, spec.bootstrap.config_ref):
            if reference.name:
                kind = self._references.known(reference)
                if kind is None:
                    return False
                clone = self._cache.informer(kind).store.get(reference.name, metadata.namespace)
                if clone is not None:
                    versions.append(clone.metadata.resource_version)
        return self._done.get(metadata.uid) == (intent, *versions)

    async def _follow(self, manifest: Manifest, intent: bytes, member: Member) -> None:
        found, spec = member.found, member.machine.spec
        if found.metadata.deletion_timestamp is not None:
            await self._follow_deleting(manifest, found)
            return
        clones = [await self._clone(reference, found.namespace) for reference in (spec.infrastructure_ref, spec.bootstrap.config_ref)]
        known = [clone for clone in clones if clone is not None]
        state = (intent, found.metadata.resource_version, *(clone.metadata.resource_version for clone in known))
        if self._done.get(found.metadata.uid) == state:
            return
        current = found.content()
        written = await self._machines.apply(MACHINE, desired.machine(manifest, current), current)
        versions = [written["metadata"]["resourceVersion"]]
        for clone in known:
            content = clone.content()
            applied = await self._metadata.apply(clone.kind, desired.clone_metadata(manifest, content), content)
            after = await give_up_updates(self._client, clone.kind, applied, names.MACHINE_SET_FIELD_MANAGER)
            versions.append(after["metadata"]["resourceVersion"])
        if len(self._done) >= _REMEMBERED:
            self._done.clear()
        self._done[found.metadata.uid] = (intent, *versions)

    async def _follow_deleting(self, manifest: Manifest, machine: Object) -> None:
        current = machine.content()
        patch = merge_patch(current["spec"], desired.deleting_machine(manifest, current))
        if patch:
            try:
                written = await self._client.patch(MACHINE, machine.name, machine.namespace, {"spec": patch}, type=PatchType.MERGE)
            except NotFoundError:
                return
            self._cache.wrote(MACHINE, written)

    async def _clone(self, reference: Reference, namespace: str) -> Object | None:
        """A clone from the cache; None where there is none, which the Machine's own controller tells."""
        if not reference.name:
            return None
        kind = await self._references.kind(reference)
        return await self._cache.get(kind, reference.name, namespace)

    async def delete_orphans(self, manifest: Manifest, machine_set: MachineSet, members: Iterable[Member]) -> bool:
        """Delete clones that the MachineSet still owns and that no Machine has; whether all its Machines are known."""
        spec, uid = machine_set.spec.template.spec, manifest["metadata"]["uid"]
        members, known = list(members), True
        for reference, used in (
            (spec.bootstrap.config_ref, {member.machine.spec.bootstrap.config_ref.name for member in members}),
            (spec.infrastructure_ref, {member.machine.spec.infrastructure_ref.name for member in members}),
        ):
            if not reference.name:
                continue
            try:
                kind = await self._references.kind(Reference(kind=kind_from(reference.kind), name="", api_group=reference.api_group))
            except NotFoundError:
                # Of a kind that is not there, nothing was ever made.
                continue
            known &= await delete_orphans(self._client, self._cache, kind, uid, used)
        return known


async def _each(do: Callable[[T], Awaitable[None]], objects: Iterable[T]) -> None:
    """Do it for all, some at a time; one for which it fails does not keep the others from it."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(each: T) -> None:
        async with gate:
            await do(each)

    for result in await asyncio.gather(*(one(each) for each in objects), return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


def _intent(manifest: Manifest) -> bytes:
    """All of a MachineSet that its Machines follow."""
    metadata, spec = manifest["metadata"], manifest["spec"]
    said = [metadata["uid"], (metadata.get("labels") or {}).get(names.DEPLOYMENT_NAME_LABEL), spec["clusterName"], spec["template"]]
    return blake2b(msgspec.json.encode(said, order="deterministic"), digest_size=16).digest()


def _tell(verdict: Verdict, manifest: Manifest, now: datetime) -> None:
    Status(manifest, now).say(verdict.condition)
    if verdict.deprecated is not None:
        Status(manifest, now).set_deprecated(verdict.deprecated)


def _take_back(manifest: Manifest, now: datetime) -> None:
    Status(manifest, now).remove(_CONDITION)
    older = ((manifest.get("status") or {}).get("deprecated") or {}).get("v1beta1") or {}
    if older.get("conditions"):
        older["conditions"] = [one for one in older["conditions"] if one.get("type") != _CONDITION]
