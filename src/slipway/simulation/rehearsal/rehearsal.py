"""A rehearsal, top to bottom: what there is is read, brought onto a stand of simulated hosts, upgraded by the real controllers, and judged.

The upgrade is the one of ``fleet upgrade``: the same decision says what is patched next.  Nothing is written but to the stand.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.kinds import (
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    POD,
)
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.admission import with_prefix
from slipway.fleet.overview.groups import Standing, standing
from slipway.fleet.upgrades.patches import edit
from slipway.fleet.upgrades.steps import Done, Goal, Patch, Refuse, Wait, held, next_step, plan
from slipway.fleet.upgrades.versions import way
from slipway.kube.aio import AsyncClient, PatchType
from slipway.kube.errors import ApiError
from slipway.simulation.rehearsal import course, findings, measured
from slipway.simulation.rehearsal.findings import Finding
from slipway.simulation.rehearsal.likeness import members
from slipway.simulation.rehearsal.observer import Observer
from slipway.simulation.rehearsal.original import Original, read
from slipway.simulation.rehearsal.report import Group, Report
from slipway.simulation.rehearsal.stand import Stand
from slipway.simulation.workload.controllers import BUDGET

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.connection import Connection
    from slipway.simulation.rehearsal.measured import Durations

# For so long nothing happens only where something holds it up: first where a condition says so, then where none does.  It is counted in
# looks and not by a clock, so that a machine that is too busy to look is also given the time.
_TOLD, _UNTOLD = 10.0, 60.0
_LOOK = 0.25
# A webhook may not answer yet when the manager has just started.
_ATTEMPTS = 50


class Wanted(NamedTuple):
    namespace: str
    cluster: str
    to: str
    catalog_namespace: str = ""
    workload: Connection | None = None
    """The way to the workload cluster, where the one of its Secret is not to be used."""
    patience: float = _TOLD


async def rehearse(management: Connection, wanted: Wanted, tell: Callable[[str], None]) -> Report:
    """What would come of an upgrade; ``tell`` is told what happens meanwhile."""
    tell(f"reading the Cluster {wanted.namespace}/{wanted.cluster}")
    async with AsyncClient(management) as client:
        original = await read(
            client, wanted.namespace, wanted.cluster, catalog_namespace=wanted.catalog_namespace, workload=wanted.workload
        )
    return await Rehearsal(original, with_prefix(wanted.to), tell, patience=wanted.patience).run()


class Rehearsal:
    def __init__(self, original: Original, to: str, tell: Callable[[str], None], *, patience: float = _TOLD) -> None:
        self._original, self._to, self._tell, self._patience = original, to, tell, patience
        self._durations: Mapping[str, Durations] = measured.durations(original)
        self._found: list[Finding] = []
        self._quiet, self._seen = 0.0, 0
        self._began = time.monotonic()

    async def run(self) -> Report:
        _check(self._original)
        now = _standing(self._original.cluster, self._original.objects)
        goal = Goal(self._to, way(now.plane.version, self._to, self._original.catalog or ()))
        patches = plan(now, goal)
        if isinstance(patches, Refuse):
            raise OperatorError(patches.why)
        nodes = {each.name: each.replicas for each in now.groups}
        self._found += findings.beforehand(self._original, [each.version for each in patches], self._durations)
        self._found += [Finding(findings.LEFT_OUT, "warning", each) for each in now.left_alone]
        unrest = findings.not_at_rest(self._original)
        unrest += [Finding(findings.REFUSED, "stops", why) for why in dict.fromkeys(held(now, each) for each in patches) if why]
        self._found += unrest
        if unrest or not patches:
            return self._report(now, [], nodes)
        self._tell(f"bringing up {len(members(self._original))} nodes on simulated hosts")
        async with Stand(self._original, self._durations) as stand:
            observer = Observer(stand.core, self._tell)
            await self._upgrade(stand, observer, goal)
            return self._report(now, observer.legs(), nodes)

    async def _upgrade(self, stand: Stand, observer: Observer, goal: Goal) -> None:
        """As ``fleet upgrade`` does it: look, patch, wait until nothing is on its way, and look again."""
        while True:
            step = next_step(_standing(stand.all(CLUSTER)[0], _objects(stand)), goal)
            if isinstance(step, Patch):
                if not await self._patch(stand, observer, step):
                    return
            elif isinstance(step, Done):
                self._tell(f"everything is at {goal.version}")
                return
            elif isinstance(step, Refuse):
                self._found.append(Finding(findings.REFUSED, "stops", step.why))
                return
            elif not await self._goes_on(stand, observer, step):
                return

    async def _patch(self, stand: Stand, observer: Observer, step: Patch) -> bool:
        """Whether it was taken: a guard may refuse it, as it would in the real cluster."""
        change = edit(step, stand.all(KUBEADM_CONTROL_PLANE)[0])
        observer.step += 1
        self._tell(f"{step.group.title} goes to {step.version}")
        for left in reversed(range(_ATTEMPTS)):
            try:
                await stand.plane.client.patch(change.kind, change.name, self._original.namespace, change.body, type=PatchType.MERGE)
            except ApiError as error:
                if left and "failed to call webhook" in error.message:
                    await asyncio.sleep(_LOOK)
                    continue
                self._found.append(Finding(findings.REFUSED, "stops", error.message, step.group.title))
                return False
            observer.move()
            return True
        return False

    async def _goes_on(self, stand: Stand, observer: Observer, step: Wait) -> bool:
        """Wait a moment; whether it is worth while to wait for more."""
        await asyncio.sleep(_LOOK)
        stand.plane.check()
        self._quiet = self._quiet + _LOOK if observer.moves == self._seen else 0.0
        self._seen = observer.moves
        if self._quiet < self._patience:
            return True
        objects = [(kind, each) for kind in findings.TOLD_KINDS for each in stand.all(kind)]
        if not findings.is_known(objects) and self._quiet < _UNTOLD:
            return True
        if await self._let_go(stand, observer):
            return True
        self._found += findings.stuck(objects, self._quiet)
        self._tell(f"{step.group.title} does not go on")
        return False

    async def _let_go(self, stand: Stand, observer: Observer) -> bool:
        """Where a budget holds up a drain, note that, and take it away here, to see what comes after it; whether one did."""
        workload, again = stand.workload.client, False
        for machine in stand.all(MACHINE):
            if not findings.is_held(machine):
                continue
            name, node = str(machine["metadata"]["name"]), str(((machine.get("status") or {}).get("nodeRef") or {}).get("name") or "")
            life = observer.lives[name]
            for budget, pods in findings.blocking(workload.list(POD), workload.list(BUDGET), node):
                self._found.append(findings.held_up(budget, pods, machine, life.host or node))
                life.held = max(life.held, float(findings.forced_after(machine)))
                metadata = budget["metadata"]
                self._tell(
                    f"the PodDisruptionBudget {metadata['namespace']}/{metadata['name']} holds up {life.host}: here it is taken away"
                )
                await workload.delete(BUDGET, metadata["name"], metadata["namespace"])
                again = True
        if again:
            observer.move()
        return again

    def _report(self, now: Standing, legs: list[course.Leg], nodes: dict[str, int]) -> Report:
        moves = course.moves(legs, self._durations)
        levels = course.levels(moves, nodes)
        least = course.lowest(levels)
        return Report(
            namespace=self._original.namespace,
            cluster=self._original.name,
            versions=tuple(sorted({each.version for each in now.groups})),
            to=self._to,
            ok=all(each.weight not in findings.FATAL for each in self._found),
            seconds=course.total(moves),
            rehearsed_in=round(time.monotonic() - self._began, 1),
            groups=tuple(Group(each.name, each.kind, each.replicas, least.get(each.name, each.replicas)) for each in now.groups),
            moves=tuple(moves),
            levels=tuple(levels),
            findings=tuple(_once(self._found)),
            durations={name: each for name, each in self._durations.items() if any(leg.host == name for leg in legs)},
        )


def _check(original: Original) -> None:
    """OperatorError where it is no cluster that can be rehearsed."""
    if original.infrastructure is None:
        raise OperatorError(f"the Cluster {original.name} has no BaremetalCluster: only clusters on bare metal can be rehearsed")
    if original.control_plane is None:
        raise OperatorError(f"the Cluster {original.name} has no KubeadmControlPlane: only clusters with one can be rehearsed")
    configuration = (original.control_plane["spec"].get("kubeadmConfigSpec") or {}).get("clusterConfiguration") or {}
    if (configuration.get("etcd") or {}).get("external"):
        raise OperatorError(f"the Cluster {original.name} has an external etcd, which is not simulated")
    if not ((original.cluster.get("spec") or {}).get("controlPlaneEndpoint") or {}).get("host"):
        raise OperatorError(f"the Cluster {original.name} has no control-plane endpoint yet: it has to be made before it is upgraded")
    if not any(each.control_plane for each in members(original)):
        raise OperatorError(f"the Cluster {original.name} has no control plane that is a Node: it has to be made before it is upgraded")


def _standing(cluster: Manifest, objects: Mapping[Kind, Sequence[Manifest]]) -> Standing:
    return standing(cluster, *(objects[kind] for kind in (KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE)))


def _objects(stand: Stand) -> dict[Kind, list[Manifest]]:
    return {kind: stand.all(kind) for kind in (KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE)}


def _once(found: list[Finding]) -> list[Finding]:
    """What stops comes first, and nothing twice."""
    return sorted(dict.fromkeys(found), key=lambda each: findings.WEIGHTS.index(each.weight))
