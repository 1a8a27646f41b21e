"""An upgrade, from where the cluster is to the version that is wanted: look, decide, patch or wait, and look again.

What is decided is in :mod:`.steps`, from the objects alone; nothing is remembered here that would be missed after a kill.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.kinds import CLUSTER
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
from slipway.fleet.overview.waits import World
from slipway.fleet.upgrades import events, patches, progress, reading, steps
from slipway.fleet.upgrades.events import Check, Event
from slipway.fleet.upgrades.steps import Done, Goal, Patch, Refuse
from slipway.fleet.upgrades.versions import way
from slipway.kube.aio import PatchType
from slipway.kube.errors import ApiError, ConflictError, is_transient

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slipway.fleet.overview.groups import Group, Standing
    from slipway.fleet.overview.objects import Objects
    from slipway.fleet.upgrades.estimate import Pace
    from slipway.fleet.upgrades.patches import Edit, Tags
    from slipway.kube.aio import AsyncClient


class StoppedError(OperatorError):
    """The upgrade does not go on by itself."""


class Patience(NamedTuple):
    """In seconds: how often is looked, and how long is waited for what may well pass."""

    interval: float = 2.0
    seen: float = 10.0
    """A problem that somebody has just mended is told for a moment longer."""
    observed: float = 120.0
    """A manager acts on a patch."""
    prerequisites: float = 60.0
    """In the middle of an upgrade: the last node is Ready a moment before everything is at rest."""
    answer: float = 300.0
    """The management cluster answers."""
    stall: float = 3600.0
    """Nothing happens at all."""


class Options(NamedTuple):
    namespace: str
    cluster: str
    to: str
    control_plane: bool = True
    workers: bool = True
    tags: Tags = patches.Tags()
    catalog_namespace: str = ""
    ignore_preflight: bool = False
    dry_run: bool = False
    timeout: float = 0.0
    """Seconds; 0 for no limit."""
    patience: Patience = Patience()


class Upgrade:
    """``tell`` hears of everything that happens; ``agree`` is asked once before anything is written, and may say no."""

    def __init__(self, client: AsyncClient, options: Options, tell: Callable[[Event], None], agree: Callable[[], bool]) -> None:
        self._client, self._options, self._agree = client, options, agree
        self._tell_event = tell
        self._goal: Goal | None = None
        self._total = 0
        self._pace: Pace | None = None
        self._began: datetime | None = None
        """When the rollout that is on its way began, where it began here."""
        self._standing: Standing | None = None
        self._moved = False
        """Whether anything was on its way while this was looking."""
        self._stages: dict[str, str] = {}
        self._since: dict[str, datetime] = {}
        """When something was seen first that must not last."""
        self._told: progress.Progress | None = None

    async def run(self) -> None:
        """Until all is done; a StoppedError with what to do where it does not go on."""
        try:
            limit = self._options.timeout or None
            async with asyncio.timeout(limit):
                await self._run()
        except TimeoutError:
            raise StoppedError(f"it is not done after {self._options.timeout:.0f} s. {self._goes_on()}") from None
        except asyncio.CancelledError:
            self._tell(Event(events.INTERRUPTED, text=self._goes_on()))
            raise

    async def _run(self) -> None:
        objects = await self._look()
        now = self._stand(objects)
        self._goal = goal = await self._wanted(objects, now)
        planned = steps.plan(now, goal)
        if isinstance(planned, Refuse):
            raise OperatorError(planned.why)
        self._total = progress.total(now, goal)
        await self._announce(objects, now, planned)
        if self._options.dry_run:
            return
        if planned and not self._agree():
            raise OperatorError("nothing was changed, as that was not wanted")
        while True:
            step = steps.next_step(now, goal)
            if isinstance(step, Done):
                self._tell(Event(events.DONE, text=_finished(now, goal), version=goal.version, done=self._total, total=self._total))
                return
            if isinstance(step, Refuse):
                raise OperatorError(step.why)
            if isinstance(step, Patch):
                await self._patch(step, objects)
            else:
                self._moved = True
                self._pace = progress.learned(self._pace, step.group, self._began)
                self._report(objects, now)
                await self._check(objects, now, step.group)
            await asyncio.sleep(self._options.patience.interval)
            objects = await self._look()
            now = self._stand(objects)

    # What there is.

    async def _look(self) -> Objects:
        """Read, however often the management cluster has to be asked."""
        while True:
            try:
                found = await reading.read(self._client, self._options.namespace, self._options.cluster)
            except OperatorError as error:
                if not is_transient(error) or self._standing is None:
                    raise
                if self._for("answer") > self._options.patience.answer:
                    raise StoppedError(f"the management cluster does not answer: {error.message}. {self._goes_on()}") from None
                if self._for("answer") == 0.0:
                    self._tell(Event(events.NOTE, text=f"the management cluster does not answer, and is asked again: {error.message}"))
                self._since.setdefault("answer", _now())
                await asyncio.sleep(self._options.patience.interval)
            else:
                if self._since.pop("answer", None) is not None:
                    self._tell(Event(events.NOTE, text="the management cluster answers again"))
                return found

    def _stand(self, objects: Objects) -> Standing:
        found = standing(objects.clusters[0], objects.control_planes, objects.machine_deployments, objects.machine_sets, objects.machines)
        if found != self._standing:
            self._since.pop("stall", None)
        self._standing = found
        return found

    async def _wanted(self, objects: Objects, now: Standing) -> Goal:
        options, to = self._options, with_prefix(self._options.to)
        if not options.control_plane:
            return Goal(to, control_plane=False)
        keys = await reading.catalog_keys(self._client, objects, options.catalog_namespace or options.namespace)
        return Goal(to, way(now.plane.heading or now.plane.version, to, keys), workers=options.workers)

    # Before anything is written.

    async def _announce(self, objects: Objects, now: Standing, planned: Sequence[Patch]) -> None:
        options = self._options
        edits = [self._edit(each, objects) for each in planned]
        moving = [each for each in now.groups if not each.settled]
        on_its_way = f"The {moving[0].title} is on its way to {moving[0].heading or moving[0].version} already. " if moving else ""
        if planned:
            text = f"{on_its_way}{_listed(planned)}: {self._total} machines are replaced."
        else:
            text = on_its_way or _finished(now, self._reached)
        commands = tuple(each.command(options.namespace) for each in edits)
        self._tell(
            Event(events.PLANNED, text=text, version=self._reached.version, commands=commands, total=self._total, dry_run=options.dry_run)
        )
        for note in dict.fromkeys([*(note for each in edits for note in each.notes), *now.left_alone]):
            self._tell(Event(events.NOTE, text=note))
        if planned and not moving:
            rows = await self._rows(planned[0].version)
            self._tell(Event(events.PREFLIGHT, version=planned[0].version, checks=tuple(Check(*row) for row in rows)))
            self._require(rows, planned[0].version)

    @property
    def _reached(self) -> Goal:
        assert self._goal is not None
        return self._goal

    def _edit(self, step: Patch, objects: Objects) -> Edit:
        plane = next(each for each in objects.control_planes if each["metadata"]["name"] == self._plane_name(objects))
        # Tags that are asked for are those of the version in the end.
        tags = self._options.tags if step.version == self._reached.version else patches.Tags()
        return patches.edit(step, plane, tags)

    @staticmethod
    def _plane_name(objects: Objects) -> str:
        return str(objects.clusters[0]["spec"]["controlPlaneRef"]["name"])

    async def _rows(self, version: str) -> list[preflight.Row]:
        options = self._options
        found = await survey(self._client, options.namespace, options.cluster, registry.leases(), options.catalog_namespace)
        return preflight.rows(found, version)

    def _require(self, rows: Sequence[preflight.Row], version: str) -> None:
        failed = [row for row in rows if row.status == preflight.FAILED]
        if failed and not self._options.ignore_preflight:
            why = "; ".join(f"{row.check}: {row.message}" for row in failed)
            raise StoppedError(
                f"{len(failed)} of {len(rows)} prerequisites of {version} are not met, so nothing was patched: {why}. "
                "Mend that and run the command again; --ignore-preflight goes on all the same"
            )

    # A step.

    async def _patch(self, step: Patch, objects: Objects) -> None:
        """One patch, if its prerequisites are met by now, of the very object that was read."""
        rows = await self._rows(step.version)
        if (
            self._moved
            and any(row.status == preflight.FAILED for row in rows)
            and self._for("prerequisites") < self._options.patience.prerequisites
        ):
            self._since.setdefault("prerequisites", _now())
            return
        self._since.pop("prerequisites", None)
        self._require(rows, step.version)
        edit = self._edit(step, objects)
        kinds = objects.control_planes if step.group.is_control_plane else objects.machine_deployments
        read = next(
            each for each in kinds if each["metadata"]["name"] == edit.name and each["metadata"]["namespace"] == self._options.namespace
        )
        body = {**edit.body, "metadata": {"resourceVersion": read["metadata"]["resourceVersion"]}}
        command = edit.command(self._options.namespace)
        try:
            await self._client.patch(edit.kind, edit.name, self._options.namespace, body, type=PatchType.MERGE)
        except ConflictError:
            # Somebody has changed it since: what is next is decided anew.
            return
        except ApiError as error:
            if is_transient(error):
                return
            raise StoppedError(f"the patch was refused: {error.message}. The command was: {command}") from None
        self._moved, self._began = True, _now()
        self._tell(Event(events.PATCH, kind=edit.kind.kind, name=edit.name, version=step.version, command=command))

    # While something is on its way.

    def _report(self, objects: Objects, now: Standing) -> None:
        ours = {str(each["metadata"]["name"]): each for each in objects.baremetal_machines}
        seen = {}
        for machine in objects.machines:
            name = str(machine["metadata"]["name"])
            below = ours.get(str(((machine.get("spec") or {}).get("infrastructureRef") or {}).get("name") or ""))
            stage, _ = stages.machine_stage(machine, below)
            seen[name] = stage
            if self._stages and stage != self._stages.get(name):
                version = str((machine.get("spec") or {}).get("version") or "")
                host = stages.host_of(below) if below is not None else ""
                self._tell(
                    Event(events.MACHINE, kind="Machine", name=name, version=version, stage=stage, host=host, text=stages.MEANINGS[stage])
                )
        for name in self._stages.keys() - seen.keys():
            self._tell(Event(events.MACHINE, kind="Machine", name=name, stage="gone", text="is gone"))
        self._stages = seen
        found = progress.progress(self._total, now, self._reached, self._pace, _now())
        if self._told is None or found[:2] != self._told[:2] or _differs(found.estimate, self._told.estimate):
            self._told = found
            seconds = None if found.estimate is None else round(found.estimate)
            moving = next(each for each in now.groups if not each.settled)
            self._tell(
                Event(
                    events.PROGRESS,
                    kind=moving.kind,
                    name=moving.name,
                    version=moving.version,
                    done=found.done,
                    total=found.total,
                    estimate_seconds=seconds,
                )
            )

    async def _check(self, objects: Objects, now: Standing, group: Group) -> None:
        """Stop for what does not end by itself."""
        patience, moment = self._options.patience, _now()
        ref = Ref(group.kind, now.namespace, group.name)
        world = World(objects, moment)
        causes = [link.cause for link in world.account(ref) if link.cause is not None and link.cause.lasts(moment)]
        if now.paused or group.paused:
            await self._stop("Paused")
        if causes:
            self._since.setdefault("trouble", moment)
            if self._for("trouble") >= patience.seen:
                await self._stop(causes[0].reason or causes[0].condition)
        else:
            self._since.pop("trouble", None)
        if group.observed:
            self._since.pop("observed", None)
        else:
            self._since.setdefault("observed", moment)
            if self._for("observed") > patience.observed:
                await self._stop("NotObserved")
        self._since.setdefault("stall", moment)
        if self._for("stall") > patience.stall:
            await self._stop("Stalled")

    async def _stop(self, reason: str) -> None:
        """With all that can be read, in words."""
        objects = await gather(self._client, self._options.namespace)
        told = explain(objects, Ref(CLUSTER.kind, self._options.namespace, self._options.cluster), _now())
        self._tell(Event(events.PROBLEM, reason=reason, text=told.sentences[-1], sentences=told.sentences, to_do=told.to_do))
        raise StoppedError(f"the upgrade does not go on by itself ({reason}): mend it and run the command again")

    def _goes_on(self) -> str:
        """What happens without us, and what does not."""
        again = "Run the same command again to go on from there"
        now = self._standing
        moving = next((each for each in now.groups if not each.settled), None) if now is not None else None
        if now is None or moving is None or self._goal is None:
            return f"Nothing is on its way. {again}"
        ahead = steps.plan(now, self._goal)
        left = [] if isinstance(ahead, Refuse) else ahead
        by_itself = f"The {moving.title} goes on to {moving.heading or moving.version} by itself ({len(moving.done)} of {moving.replicas} machines are done)"
        return f"{by_itself}; {_listed(left)} is not begun. {again}" if left else f"{by_itself}, and that is all. {again}, to see the end"

    def _for(self, what: str) -> float:
        """For how many seconds something has been seen."""
        return (_now() - self._since[what]).total_seconds() if what in self._since else 0.0

    def _tell(self, event: Event) -> None:
        import msgspec

        self._tell_event(msgspec.structs.replace(event, at=_now()))


def _now() -> datetime:
    return datetime.now(UTC)


def _listed(planned: Sequence[Patch]) -> str:
    return ", then ".join(f"{each.group.title} from {each.group.version} to {each.version}" for each in planned)


def _finished(now: Standing, goal: Goal) -> str:
    parts = [each for each in now.groups if goal.workers or each.is_control_plane]
    machines = sum(each.replicas for each in parts)
    return f"{now.cluster} is at {goal.version}: {len(parts)} of its parts, {machines} machines"


def _differs(estimate: float | None, told: float | None) -> bool:
    """An estimate that counts down as time passes is no news."""
    return (estimate is None) != (told is None)
