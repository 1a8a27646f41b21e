"""The MachineSets of a MachineDeployment: finding, adopting, making, changing and deleting them, and saying so in Events."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster import names
from slipway.api.cluster.kinds import MACHINE_SET
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract import selectors
from slipway.fleet.contract.apply import Applier
from slipway.fleet.machines.machineset.watches import controlled, uncontrolled
from slipway.fleet.machines.propagation import Propagation
from slipway.fleet.machines.writing import own
from slipway.runtime import owners
from slipway.runtime.logs import fields
from slipway.runtime.objects import Object, Request

if TYPE_CHECKING:
    from slipway.api.cluster.core.machinedeployment import MachineDeployment
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.machines.expectations import Expectations
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.events import EventRecorder

_log = logging.getLogger("slipway.fleet.machines.machinedeployment")


class MachineSets:
    """In all of it, ``deployment`` is whose they are."""

    def __init__(self, client: AsyncClient, cache: Cache, expected: Expectations, events: EventRecorder) -> None:
        self._client, self._cache, self._expected, self._events = client, cache, expected, events
        self._applied = Propagation(Applier(client, cache, names.MACHINE_DEPLOYMENT_FIELD_MANAGER))

    async def gather(self, deployment: Manifest, typed: MachineDeployment) -> list[Object]:
        """Those that it controls; those that its selector chooses and nobody controls become its own."""
        selector, metadata = typed.spec.selector, deployment["metadata"]
        problem = selectors.problem(selector) or ("" if selector else "it is empty, and would choose everything")
        if problem:
            raise OperatorError(f"the label selector of the MachineDeployment cannot be used: {problem}")
        found = list(await controlled(self._cache, MACHINE_SET, metadata["uid"]))
        for one in await uncontrolled(self._cache, MACHINE_SET, metadata["namespace"]):
            if not selectors.matches(selector, one.metadata.labels):
                continue
            try:
                adopted = await own(self._client, self._cache, MACHINE_SET, one.content(), owners.reference(deployment))
            except OperatorError as error:
                self._events.event(deployment, "Warning", "FailedAdopt", f'Failed to adopt MachineSet "{one.name}": {error.message}')
                continue
            self._events.event(deployment, "Normal", "SuccessfulAdopt", f'Adopted MachineSet "{one.name}"')
            self._expected.wrote(_request(deployment), MACHINE_SET, one.name)
            found.append(Object(MACHINE_SET, msgspec.json.encode(adopted)))
        return found

    async def create(self, deployment: Manifest, wanted: Manifest) -> Manifest:
        name, replicas = wanted["metadata"]["name"], wanted["spec"]["replicas"]
        where = f"{wanted['metadata']['namespace']}/{name}"
        try:
            with self._expected.making(_request(deployment), MACHINE_SET, name):
                written = await self._applied.create(MACHINE_SET, wanted)
        except OperatorError as error:
            self._events.event(deployment, "Warning", "FailedCreate", f"Failed to create MachineSet {where}: {error.message}")
            raise
        self._events.event(deployment, "Normal", "SuccessfulCreate", f"Created MachineSet {where} with {replicas} replicas")
        return written

    async def write(self, deployment: Manifest, wanted: Manifest, current: Manifest, reason: str) -> Manifest | None:
        """The MachineSet as it is then; None where it went in the meantime.  ``reason`` is why it has another size."""
        name, before, after = current["metadata"]["name"], current["spec"].get("replicas") or 0, wanted["spec"]["replicas"]
        try:
            written = await self._applied.apply(MACHINE_SET, wanted, current)
        except OperatorError as error:
            if current["metadata"].get("deletionTimestamp"):
                return None
            where = f"{current['metadata']['namespace']}/{name}"
            self._events.event(deployment, "Warning", "FailedUpdate", f"Failed to update MachineSet {where}: {error.message}")
            raise
        if written["metadata"]["resourceVersion"] != current["metadata"]["resourceVersion"]:
            self._expected.wrote(_request(deployment), MACHINE_SET, name)
        if after != before:
            way = "up" if after > before else "down"
            self._events.event(deployment, "Normal", "SuccessfulScale", f"Scaled {way} MachineSet {name}: {before} -> {after}")
            _log.info("Scaled %s MachineSet from %d to %d replicas", way, before, after, extra=fields(machineSet=name, because=reason))
        return written

    async def delete(self, deployment: Manifest, current: Manifest) -> None:
        """Delete one that is no longer needed."""
        metadata = current["metadata"]
        name = metadata["name"]
        try:
            await self._client.delete(MACHINE_SET, name, metadata["namespace"], uid=metadata["uid"])
        except OperatorError as error:
            self._events.event(deployment, "Warning", "FailedDelete", f'Failed to delete MachineSet "{name}": {error.message}')
            raise
        self._expected.deleted(_request(deployment), MACHINE_SET, name, metadata["uid"])
        self._events.event(deployment, "Normal", "SuccessfulDelete", f'Deleted MachineSet "{name}"')


def _request(deployment: Manifest) -> Request:
    return Request(deployment["metadata"]["namespace"], deployment["metadata"]["name"])
