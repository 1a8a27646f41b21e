"""Has a snapshot of etcd taken before a control plane is rolled, and holds the rollout until there is one.

It is taken beside the reconciles: a large database takes minutes, and the control planes of other clusters must not wait for a worker.
What a killed manager has not noted is taken again; what it left behind goes with the retention.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.conditions import FALSE, TRUE
from slipway.fleet.contract.status import Status
from slipway.fleet.controlplane.decisions import snapshot as decision
from slipway.fleet.controlplane.decisions.preflight import Blocked
from slipway.fleet.controlplane.status import counts
from slipway.fleet.snapshots import places
from slipway.fleet.snapshots import store as stores
from slipway.fleet.snapshots.options import STORE_FLAG, SnapshotOptions
from slipway.fleet.snapshots.taking import Subject, take
from slipway.runtime.objects import Request, Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.fleet.controlplane.decisions.snapshot import Note, Wish
    from slipway.fleet.controlplane.inspection import Inspection
    from slipway.fleet.controlplane.work import Work
    from slipway.fleet.snapshots.record import Snapshot
    from slipway.fleet.snapshots.store import Store
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.events import EventRecorder

_log = logging.getLogger("slipway.fleet.controlplane")

RETRY = 30.0
# A rollout is looked at as soon as its snapshot is there.
FRESH = 300.0
# They share the disk and the network of one machine.
_AT_ONCE = 2
_WAY_OUT = f"mend that, or take the annotation {decision.BEFORE_ANNOTATION} away to go on without"


class _Taken(NamedTuple):
    """What came of an attempt: a snapshot that is kept in a store, and why older ones could not be deleted, where that is so."""

    snapshot: Snapshot
    store: str
    at: float
    """When it was kept, by the monotonic clock."""
    not_pruned: str = ""


class _Attempt(NamedTuple):
    """A snapshot that is being taken, or was, for some place."""

    place: places.Place
    task: asyncio.Task[_Taken]

    def is_of_use(self, place: places.Place) -> bool:
        """Whether a rollout may rely on it: where it is meant to be, and of now.

        A rollout may have been blocked since, or another manager have rolled the control plane while it had the shard.
        """
        task = self.task
        if self.place != place or (task.done() and task.cancelled()):
            return False
        return not task.done() or task.exception() is not None or time.monotonic() - task.result().at < FRESH


class Snapshots:
    """``again`` has a control plane looked at once its snapshot is taken, or is not."""

    def __init__(
        self,
        client: AsyncClient,
        inspection: Inspection,
        events: EventRecorder,
        options: SnapshotOptions,
        again: Callable[[Request], None] = lambda request: None,
    ) -> None:
        self._client = client
        self._inspection = inspection
        self._events = events
        self._options = options
        self._again = again
        self._attempts: dict[Request, _Attempt] = {}
        self._failures: dict[Request, tuple[float, OperatorError]] = {}
        """The last attempt that failed, and from when on there may be another one."""
        self._turn = asyncio.Semaphore(_AT_ONCE)

    async def close(self) -> None:
        tasks = [attempt.task for attempt in self._attempts.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def forget(self, request: Request) -> None:
        """What was taken, or not, for a rollout that is over."""
        self._failures.pop(request, None)
        attempt = self._attempts.pop(request, None)
        if attempt is not None:
            attempt.task.cancel()

    def tell(self, work: Work, *, outdated: bool) -> None:
        """What there is to say while nothing is taken: whether the annotations can be followed, and on what was relied."""
        status = Status(work.manifest, work.now)
        if not outdated:
            self.forget(Request(work.namespace, work.name))
        note = decision.note_from(work.annotations)
        if not outdated and (over := decision.ended(note)) is not None:
            work.annotate(decision.NOTE_ANNOTATION, over.text())
        try:
            wish = decision.wish_from(work.annotations)
            if wish is None:
                status.remove(decision.CONDITION)
                return
            self._place(work, wish)
        except OperatorError as error:
            status.set(decision.CONDITION, FALSE, "Invalid", error.message)
            return
        if not outdated:
            told = f"The last rollout relied on the snapshot {note}" if note is not None else "A snapshot is taken before the next rollout"
            status.set(decision.CONDITION, TRUE, "NoRollout", told)

    async def hold(self, work: Work) -> Result | None:
        """Before a step of a rollout: when to look again where it has to wait for a snapshot; None where it may go on."""
        status = Status(work.manifest, work.now)
        generation = int(work.manifest["metadata"].get("generation") or 0)
        note = decision.note_from(work.annotations)
        try:
            wish = decision.wish_from(work.annotations)
            if wish is None:
                return None
            if note is not None and decision.is_relied_on(note, generation):
                self._rely(status, note)
                return None
            taken = self._outcome(work, wish)
        except OperatorError as error:
            return self._failed(work, status, error)
        if taken is None:
            status.set(decision.CONDITION, FALSE, "Taking", "A snapshot of etcd is being taken, and the rollout waits for it")
            work.blocked = Blocked(others=("a snapshot of etcd, which is being taken",))
            return Result(RETRY)
        note = decision.note_of(taken.snapshot, taken.store, generation)
        # Written down before the first machine goes, so that it is known what a rollout relies on that nobody has seen through.
        work.annotate(decision.NOTE_ANNOTATION, note.text())
        await work.save_spec()
        self._rely(status, note)
        message = f"The rollout to {work.plane.spec.version} relies on the snapshot {note}"
        self._events.event(work.manifest, "Normal", "SnapshotTaken", message)
        if taken.not_pruned:
            self._events.event(work.manifest, "Warning", "SnapshotsNotPruned", taken.not_pruned)
        return None

    def _rely(self, status: Status, note: Note) -> None:
        status.set(decision.CONDITION, TRUE, "Taken", f"The rollout relies on the snapshot {note}")

    def _failed(self, work: Work, status: Status, error: OperatorError) -> Result:
        message = f"No snapshot of etcd could be taken, and the rollout waits: {error.message}; {_WAY_OUT}"
        status.set(decision.CONDITION, FALSE, "Failed", message)
        work.blocked = Blocked(others=(f"a snapshot of etcd: {error.message}",))
        self._events.event(work.manifest, "Warning", "SnapshotFailed", message)
        return Result(RETRY)

    def _outcome(self, work: Work, wish: Wish) -> _Taken | None:
        """What came of the attempt that has ended; None while there is one, which is begun where there is none."""
        request = Request(work.namespace, work.name)
        place, namespace = self._place(work, wish)
        attempt = self._attempts.get(request)
        if attempt is not None and not attempt.is_of_use(place):
            self.forget(request)
            attempt = None
        if attempt is None:
            if not work.manages_etcd:
                raise OperatorError("etcd is external to this cluster: its owner takes its snapshots")
            until, failure = self._failures.get(request, (0.0, None))
            if failure is not None and time.monotonic() < until:
                raise failure
            keep = self._options.keep if wish.keep is None else wish.keep
            made = asyncio.create_task(self._take(work, place, namespace, keep), name=f"snapshot of {request}")
            self._attempts[request] = _Attempt(place, made)
            made.add_done_callback(lambda _: self._again(request))
            return None
        if not attempt.task.done():
            return None
        del self._attempts[request]
        self._failures.pop(request, None)
        error = attempt.task.exception()
        if error is None:
            return attempt.task.result()
        failure = error if isinstance(error, OperatorError) else OperatorError(f"{type(error).__name__}: {error}")
        self._failures[request] = time.monotonic() + RETRY, failure
        raise failure from error

    def _place(self, work: Work, wish: Wish) -> tuple[places.Place, str]:
        """Where snapshots go, and the namespace of the Secret that says how."""
        if wish.place is not None:
            return wish.place, work.namespace
        if not self._options.store:
            raise OperatorError(
                f"the annotation {decision.BEFORE_ANNOTATION} is {decision.DEFAULT}, and the manager has no store: "
                f"start it with --{STORE_FLAG}, or write s3://BUCKET[/PREFIX]"
            )
        return places.place(self._options.store, self._options.secret), self._options.namespace

    async def _take(self, work: Work, place: places.Place, namespace: str, keep: int) -> _Taken:
        versions = counts.versions([owned.machine for owned in work.machines.values()])
        subject = Subject(work.namespace, work.cluster.name, versions[0]["version"] if versions else work.plane.spec.version)
        async with self._turn:
            store = await places.opened(self._client, place, namespace)
            _log.info("Taking a snapshot of etcd before the rollout, for %s", store.shown)
            async with self._inspection.workload(work) as workload:
                taken = await take(workload, store, subject, work.now)
            not_pruned = await _pruned(store, taken, keep)
            return _Taken(taken, store.shown, time.monotonic(), not_pruned)


async def _pruned(store: Store, taken: Snapshot, keep: int) -> str:
    """Delete older ones; why that was not possible."""
    try:
        await stores.prune(store, taken.namespace, taken.cluster, keep, taken.taken)
    except OperatorError as error:
        return f"The snapshot {taken.name} is kept, and older ones could not be deleted: {error.message}"
    return ""
