"""An upgrade, from where the cluster is to the version that is wanted: look, decide, patch or wait, and look again.

What is decided is in :mod:`.steps`, from the objects alone; nothing is remembered here that would be missed after a kill.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.cluster.kinds import CLUSTER, MACHINE
from slipway.api.machinery.errors import OperatorError
from slipway.fleet import registry
from slipway.fleet.baremetal.rollouts import preflight
from slipway.fleet.baremetal.rollouts.survey import survey
from slipway.fleet.contract.admission import with_prefix
from slipway.fleet.overview import stages
from slipway.fleet.overview.explanation import explain
from slipway.fleet.overview.groups import standing
from slipway.fleet.overview.objects import gather
from slipway.fleet.overview.problems import Ref
from slipway.fleet.upgrades import events, patches, progress, reading, steps, words
from slipway.fleet.upgrades.events import Check, Event
from slipway.fleet.upgrades.steps import Done, Goal, Patch, Refuse
from slipway.fleet.upgrades.versions import way
from slipway.fleet.upgrades.vigil import Patience, Vigil
from slipway.kube.aio import PatchType
from slipway.kube.errors import ConflictError, is_transient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from slipway.fleet.overview.groups import Standing
    from slipway.fleet.overview.objects import Objects
    from slipway.fleet.upgrades.estimate import Pace
    from slipway.fleet.upgrades.patches import Edit, Tags
    from slipway.fleet.upgrades.steps import Wait
    from slipway.kube.aio import AsyncClient


class StoppedError(OperatorError):
    """The upgrade does not go on by itself."""


class Options(NamedTuple):
    namespace: str
    cluster: str
    to: str
    control_plane: bool = True
    workers: bool = True
    tags: Tags = patches.Tags()
    """Of components, where the operator names them."""
    catalog_namespace: str = ""
    ignore_preflight: bool = False
    dry_run: bool = False
    timeout: float = 0.0
    """Seconds; 0 for no limit."""
    patience: Patience = Patience()


class Upgrade:
    """``tell`` hears of everything that happens."""

    def __init__(self, options: Options, tell: Callable[[Event], None]) -> None:
        self._options, self._listener = options, tell
        self._vigil = Vigil(options.patience)
        self._total = 0
        self._pace: Pace | None = None
        self._began: datetime | None = None
        """When the rollout that is on its way began, where it began here."""
        self._moved = False
        """Whether anything was on its way while this was looking."""
        self._standing: Standing | None = None
        self._goal: Goal | None = None
        self._stages: dict[str, str] = {}
        self._told: progress.Progress | None = None

    async def prepare(self, client: AsyncClient) -> bool:
        """Tell what will be done, and check whether it can be; whether anything is to be patched.  Nothing is written."""
        with self._ending():
            anything = await self._prepare(client)
            if self._options.dry_run:
                self._tell(Event(events.DONE, text=words.DRY, dry_run=True, ok=True))
            return anything

    async def _prepare(self, client: AsyncClient) -> bool:
        objects = await self._look(client)
        now = self._stand(objects)
        goal = self._goal = await self._wanted(client, objects, now)
        planned = steps.plan(now, goal)
        if isinstance(planned, Refuse):
            raise OperatorError(planned.why)
        if held := next(filter(None, (steps.held(now, each) for each in planned)), ""):
            raise OperatorError(held)
        edits = [self._edit(each, objects, goal) for each in planned]
        if isinstance(steps.next_step(now, goal), Done):
            if self._options.dry_run:
                self._tell(Event(events.PLANNED, text=words.finished(now, goal), version=goal.version, total=0, dry_run=True))
            return False
        self._tell(
            Event(
                events.PLANNED,
                text=words.planned(now, goal, planned),
                version=goal.version,
                commands=tuple(each.command(self._options.namespace) for each in edits),
                total=progress.total(now, goal),
                dry_run=self._options.dry_run,
            )
        )
        pools = await reading.machine_pools(client, self._options.namespace, self._options.cluster)
        for note in dict.fromkeys([*(note for each in edits for note in each.notes), *now.left_alone, *pools]):
            self._tell(Event(events.NOTE, text=note))
        if planned and all(each.settled for each in now.groups):
            await self._require(client, planned[0].version, later=[each.version for each in planned], told=True)
        return bool(planned)

    async def run(self, client: AsyncClient) -> None:
        """Until all is done; a StoppedError with what to do where it does not go on."""
        with self._ending():
            try:
                async with asyncio.timeout(self._options.timeout or None):
                    await self._run(client)
            except TimeoutError:
                raise StoppedError(f"it is not done after {self._options.timeout:g} s. {self._goes_on()}") from None

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Whatever ends it, the last event says so."""
        try:
            yield
        except OperatorError as error:
            self._tell(Event(events.STOPPED if self._moved else events.REFUSED, text=error.message, ok=False))
            raise
        except asyncio.CancelledError:
            self._tell(Event(events.INTERRUPTED, text=self._goes_on(), ok=False))
            raise

    async def _run(self, client: AsyncClient) -> None:
        objects = await self._look(client)
        now = self._stand(objects)
        goal = self._goal = self._goal or await self._wanted(client, objects, now)
        self._total = progress.total(now, goal)
        while not isinstance(step := steps.next_step(now, goal), Done):
            if isinstance(step, Refuse):
                raise OperatorError(step.why)
            if isinstance(step, Patch):
                if held := steps.held(now, step):
                    raise StoppedError(f"{held}. {self._goes_on()}")
                await self._patch(client, step, objects, goal)
            else:
                await self._wait(client, step, objects, now, goal)
            await asyncio.sleep(self._options.patience.interval)
            objects = await self._look(client)
            now = self._stand(objects)
        self._tell(Event(events.DONE, text=words.finished(now, goal), version=goal.version, done=self._total, total=self._total, ok=True))

    # What there is.

    async def _look(self, client: AsyncClient) -> Objects:
        """Read; a management cluster that does not answer for a while is asked again."""
        patience = self._options.patience
        while True:
            try:
                found = await reading.read(client, self._options.namespace, self._options.cluster)
            except OperatorError as error:
                if not is_transient(error) or self._standing is None:
                    raise
                if not self._vigil.lasts("silence"):
                    self._tell(Event(events.NOTE, text=f"the management cluster does not answer, and is asked again: {error.message}"))
                if self._vigil.too_long("silence", _now(), patience.answer, holds=True):
                    raise StoppedError(f"the management cluster does not answer: {error.message}. {self._goes_on()}") from None
                await asyncio.sleep(patience.interval)
                continue
            if self._vigil.lasts("silence"):
                self._tell(Event(events.NOTE, text="the management cluster answers again"))
                self._vigil.over("silence")
            return found

    def _stand(self, objects: Objects) -> Standing:
        self._standing = standing(
            objects.clusters[0], objects.control_planes, objects.machine_deployments, objects.machine_sets, objects.machines
        )
        return self._standing

    async def _wanted(self, client: AsyncClient, objects: Objects, now: Standing) -> Goal:
        options, to = self._options, with_prefix(self._options.to)
        if not options.control_plane:
            return Goal(to, control_plane=False)
        keys = await reading.catalog_keys(client, objects, options.catalog_namespace or options.namespace)
        return Goal(to, way(now.plane.heading or now.plane.version, to, keys), workers=options.workers)

    # A patch.

    def _edit(self, step: Patch, objects: Objects, goal: Goal) -> Edit:
        name = objects.clusters[0]["spec"]["controlPlaneRef"]["name"]
        plane = next(each for each in objects.control_planes if each["metadata"]["name"] == name)
        # Tags that are asked for are those of the version in the end.
        return patches.edit(step, plane, self._options.tags if step.version == goal.version else patches.Tags())

    async def _patch(self, client: AsyncClient, step: Patch, objects: Objects, goal: Goal) -> None:
        """One patch, if its prerequisites are met by now, of the very object that was read."""
        if not await self._require(client, step.version):
            return
        edit, namespace = self._edit(step, objects, goal), self._options.namespace
        of_kind = objects.control_planes if step.group.is_control_plane else objects.machine_deployments
        read = next(each for each in of_kind if each["metadata"]["name"] == edit.name)
        body = {**edit.body, "metadata": {"resourceVersion": read["metadata"]["resourceVersion"]}}
        try:
            await client.patch(edit.kind, edit.name, namespace, body, type=PatchType.MERGE)
        except OperatorError as error:
            if isinstance(error, ConflictError) or is_transient(error):
                # Somebody has changed it since, or nobody answers: what is next is decided anew.
                self._try_again(error, f"{edit.kind.kind} {edit.name} cannot be patched")
                return
            raise StoppedError(f"the patch was refused: {error.message}. It was: {edit.command(namespace)}") from None
        self._vigil.over("refusal")
        self._moved, self._began = True, _now()
        self._tell(Event(events.PATCH, kind=edit.kind.kind, name=edit.name, version=step.version, command=edit.command(namespace)))

    async def _require(self, client: AsyncClient, version: str, *, later: Iterable[str] = (), told: bool = False) -> bool:
        """Whether the prerequisites of a version are met; a StoppedError where they will not be, False where they may be in a moment.

        Of versions that come ``later`` there must be images.
        """
        options = self._options
        try:
            found = await survey(client, options.namespace, options.cluster, registry.leases(), options.catalog_namespace)
        except OperatorError as error:
            if told or not is_transient(error):
                raise
            self._try_again(error, "the prerequisites cannot be read")
            return False
        rows = preflight.rows(found, version)
        rows += preflight.images(found, (each for each in dict.fromkeys(later) if each != version))
        if told:
            self._tell(Event(events.PREFLIGHT, version=version, checks=tuple(Check(*row) for row in rows)))
        failed = [] if options.ignore_preflight else [row for row in rows if row.status == preflight.FAILED]
        too_long = self._vigil.too_long("prerequisites", _now(), options.patience.prerequisites, holds=bool(failed))
        if failed and (too_long or not self._moved):
            raise StoppedError(words.unmet(failed, len(rows), self._goal.version if self._goal is not None and told else version))
        return not failed

    def _try_again(self, error: OperatorError, what: str) -> None:
        """A StoppedError where that was tried for long enough: a webhook that does not answer may well stay away."""
        if not self._vigil.lasts("refusal"):
            self._tell(Event(events.NOTE, text=f"{what}, which is tried again: {error.message}"))
        if self._vigil.too_long("refusal", _now(), self._options.patience.answer, holds=True):
            raise StoppedError(f"{what}: {error.message}. {self._goes_on()}")

    # While something is on its way.

    async def _wait(self, client: AsyncClient, step: Wait, objects: Objects, now: Standing, goal: Goal) -> None:
        self._moved = True
        # What was in the way of a patch before is no longer, as something moves.
        self._vigil.over("refusal", "prerequisites")
        self._pace = progress.learned(self._pace, step.group, self._began)
        self._report_machines(objects)
        self._report_progress(step, now, goal)
        reason = self._vigil.reason_to_stop(objects, now, step.group, (now, self._stages), _now())
        if reason:
            await self._stop(client, reason)

    def _report_machines(self, objects: Objects) -> None:
        """A machine in another stage than a moment ago is news."""
        ours = {str(each["metadata"]["name"]): each for each in objects.baremetal_machines}
        before, self._stages = self._stages, {}
        for machine in objects.machines:
            name, spec = str(machine["metadata"]["name"]), machine.get("spec") or {}
            below = ours.get(str((spec.get("infrastructureRef") or {}).get("name") or ""))
            stage, _ = stages.machine_stage(machine, below)
            self._stages[name] = stage
            if before and stage != before.get(name):
                host = stages.host_of(below) if below is not None else ""
                version = str(spec.get("version") or "")
                self._tell(Event(events.MACHINE, kind=MACHINE.kind, name=name, version=version, stage=stage, host=host))
        for name in before.keys() - self._stages.keys():
            self._tell(Event(events.MACHINE, kind=MACHINE.kind, name=name, stage=events.GONE))

    def _report_progress(self, step: Wait, now: Standing, goal: Goal) -> None:
        found = progress.progress(self._total, now, goal, self._pace, _now())
        # An estimate that merely counts down is no news.
        if self._told is not None and found[:2] == self._told[:2] and (found.estimate is None) == (self._told.estimate is None):
            return
        self._told = found
        self._tell(
            Event(
                events.PROGRESS,
                kind=step.group.kind,
                name=step.group.name,
                version=step.group.version,
                done=found.done,
                total=found.total,
                estimate_seconds=None if found.estimate is None else round(found.estimate),
            )
        )

    async def _stop(self, client: AsyncClient, reason: str) -> None:
        """With all that can be read, in words."""
        told = explain(
            await gather(client, self._options.namespace), Ref(CLUSTER.kind, self._options.namespace, self._options.cluster), _now()
        )
        self._tell(Event(events.PROBLEM, reason=reason, sentences=told.sentences, to_do=told.to_do))
        raise StoppedError(f"the upgrade does not go on by itself ({reason}): mend that and run the same command again")

    def _goes_on(self) -> str:
        return words.goes_on(self._standing, self._goal)

    def _tell(self, event: Event) -> None:
        self._listener(msgspec.structs.replace(event, at=_now()))


def _now() -> datetime:
    return datetime.now(UTC)
