"""What a rollout waits for, read from the API: its control plane, the MachineDeployments before it, and the checks of new Machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.core.machinedeployment import MachineDeployment
from slipway.api.cluster.core.machineset import MachineSet
from slipway.api.cluster.kinds import MACHINE_DEPLOYMENT, MACHINE_SET
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.facts import read
from slipway.fleet.contract.references import members
from slipway.fleet.machines.deployment import order
from slipway.fleet.machines.deployment.matching import find
from slipway.fleet.machines.deployment.status import is_rolling, limits_of
from slipway.fleet.machines.machineset.preflight import skip_annotation
from slipway.fleet.machines.machineset.watches import controlled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.machines.machineset.checks import Checks
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object

RETRY = 15.0


class Wait(NamedTuple):
    """``closed``: the rollout does not begin, or rests.  ``held``: new Machines may not be made, so old ones stay."""

    closed: tuple[str, ...] = ()
    held: tuple[str, ...] = ()


class Gate:
    def __init__(self, cache: Cache, checks: Checks) -> None:
        self._cache = cache
        self._checks = checks

    async def wait(self, manifest: Manifest, deployment: MachineDeployment, cluster: Object, now: datetime) -> Wait:
        """To be asked while there are machines of an old template."""
        annotations = manifest["metadata"].get("annotations") or {}
        template = deployment.spec.template
        own = order.position(annotations)
        try:
            skip = await self._checks.skipped(skip_annotation(manifest), template, cluster.namespace)
            plane = await self._checks.control_plane(cluster)
            closed = order.control_plane_first(plane, template.spec.version, skip)
            held = await self._checks.failed(cluster, skip_annotation(manifest), template)
        except OperatorError as error:
            closed, held = [], [error.message]
        if own is not None:
            closed += order.earlier(own, await self._siblings(manifest, cluster, now))
        return Wait(tuple(closed), tuple(held))

    async def _siblings(self, manifest: Manifest, cluster: Object, now: datetime) -> list[order.Sibling]:
        found = []
        for one in await members(self._cache, MACHINE_DEPLOYMENT, cluster.namespace, cluster.name):
            if one.name == manifest["metadata"]["name"] or one.metadata.deletion_timestamp is not None:
                continue
            try:
                number = order.position(one.metadata.annotations)
            except OperatorError:
                # Its own condition says so; it does not hold up others.
                continue
            sibling = read(one, MachineDeployment)
            if number is not None and is_rolling(sibling):
                sets = [read(each, MachineSet) for each in await controlled(self._cache, MACHINE_SET, one.metadata.uid)]
                found.append(order.Sibling(one.name, number, is_finished(sibling, sets, now)))
        return found


def is_finished(deployment: MachineDeployment, sets: Sequence[MachineSet], now: datetime) -> bool:
    """Whether no machine of an old template is left, and as many are available as must be."""
    found = find(deployment.spec.template, deployment.spec.rollout.after, sets, now)
    if found.new is None or has_machines(found.old):
        return False
    return (found.new.status.available_replicas or 0) >= (deployment.spec.replicas or 0) - limits_of(deployment).unavailable


def has_machines(sets: Sequence[MachineSet]) -> bool:
    return any(one.spec.replicas or one.status.replicas for one in sets)
