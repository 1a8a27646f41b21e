"""Who watches from outside: a client of its own that hears of every write, and the truth of the hosts.

Each kind has a watch of its own, and one may be behind another.  So a write waits until all that the API server made before it have been
told as well, and they are taken in the order of their resource versions; after each the invariants are looked at that it could have broken.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    CLUSTER,
    KUBEADM_CONFIG,
    KUBEADM_CONFIG_TEMPLATE,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    MACHINE_REGISTRATION,
    MACHINE_SET,
    SECRET,
)
from slipway.runtime.cache.cache import Cache
from slipway.simulation.soak.judging import rest
from slipway.simulation.soak.judging.invariants import INVARIANTS, TRUTHS, Step
from slipway.simulation.soak.judging.snapshot import Snapshot, cluster_of
from slipway.simulation.soak.options import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.objects import Object
    from slipway.simulation.soak.judging.snapshot import Truth
    from slipway.simulation.soak.judging.written import Written
    from slipway.simulation.soak.record import Record

WATCHED = (
    MACHINE_REGISTRATION,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    CLUSTER,
    KUBEADM_CONFIG,
    KUBEADM_CONFIG_TEMPLATE,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    MACHINE,
    SECRET,
)
# How often is looked which writes have been told.
_LOOK = 0.1
# So long after the API server was stopped or started, every watch has noticed it.
_DISTURBED = 5.0
_SAYS = 5.0


class Watcher:
    """``now`` is what was heard of last; ``truth`` says how the hosts really are; ``deadline`` is the longest that anything may take.

    ``written`` is what there is to be heard of.
    """

    def __init__(self, client: AsyncClient, truth: Callable[[], Truth], record: Record, deadline: timedelta, written: Written) -> None:
        self._cache = Cache(client, namespace=NAMESPACE)
        self._truth, self._record, self._deadline, self._written = truth, record, deadline, written
        self.now, self._judged = Snapshot(), Snapshot()
        self.deleted_by_hand: set[str] = set()
        self.edited_by_hand: set[str] = set()
        self.writes = 0
        self.out_of_order = 0
        """Writes that came after one that was made later: they were taken in, and not judged."""
        self.unjudged = 0
        """Writes while watches found back after an outage: of those some states were never told."""
        self._waiting: list[tuple[int, int, Kind, str, Manifest | None]] = []
        self._number = count()
        self._latest = 0
        self._disturbed = 0.0
        self._listed: dict[Kind, float] = {}
        """When each kind was listed last."""
        self._found_back: int | None = 0
        """The last write that may have been missed; None while watches find back."""
        self._last: dict[str, float] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        for kind in WATCHED:
            self._cache.informer(kind).add_handler(lambda old, new, kind=kind: self._seen(kind, old, new))  # type: ignore[misc]
        self._task = asyncio.create_task(self._run(), name="watcher")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._cache.close()

    def check(self) -> None:
        """Raise what the watch has ended with, if it has."""
        if self._task is not None and self._task.done():
            self._task.result()

    def quiet(self, cluster: str = "") -> float:
        """Seconds since anything of a cluster was written, or anything at all."""
        last = self._last.get(cluster, 0.0) if cluster else max(self._last.values(), default=0.0)
        return time.monotonic() - last

    def touch(self, cluster: str) -> None:
        self._last[cluster] = time.monotonic()

    def disturb(self) -> None:
        """The API server is stopped or started: for a while watches tell nothing, and then not all at once."""
        self._disturbed, self._found_back = time.monotonic() + _DISTURBED, None

    async def changed(self, seconds: float) -> None:
        """Until something is written, or for so long."""
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    def _seen(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        known = new if new is not None else old
        assert known is not None
        if new is not None and old is not None and old.metadata.resource_version == new.metadata.resource_version:
            # Only told again.
            return
        manifest = new.content() if new is not None else None
        self.now.put(kind, known.name, manifest)
        self._last[cluster_of(known.content())] = time.monotonic()
        version = int(known.metadata.resource_version or 0)
        heapq.heappush(self._waiting, (version, next(self._number), kind, known.name, manifest))
        self._changed.set()

    async def _run(self) -> None:
        says = 0.0
        while True:
            await asyncio.sleep(_LOOK)
            self._find_back()
            self._judge_told()
            self._judge_truth()
            if time.monotonic() > says:
                says = time.monotonic() + _SAYS
                self._record.checks["says-what-to-do"] += 1
                for broken in rest.says_what_to_do(self.now, rest.utc_now(), self._deadline):
                    self._record.violation("says-what-to-do", broken)

    def _find_back(self) -> None:
        """What is written once all watches are open is told write by write; what was listed has states between that nobody was told."""
        listed = {informer.scope.kind: informer.listed_at for informer in self._cache.informers}
        if listed != self._listed or any(informer.error for informer in self._cache.informers):
            self._listed = listed
            self.disturb()
        elif self._found_back is None and time.monotonic() > self._disturbed:
            self._found_back = self._written.latest

    def _judge_told(self) -> None:
        told = self._written.told(lambda kind: int(self._cache.informer(kind).version))
        while self._waiting and self._waiting[0][0] <= told:
            version, _, kind, name, manifest = heapq.heappop(self._waiting)
            self.writes += 1
            before = self._judged.put(kind, name, manifest)
            if version < self._latest:
                self.out_of_order += 1
                continue
            self._latest = version
            if self._found_back is None or version <= self._found_back:
                self.unjudged += 1
            elif before is not None or manifest is not None:
                self._judge(Step(self._judged, kind, before, manifest, self.deleted_by_hand, self.edited_by_hand))

    def _judge(self, step: Step) -> None:
        for invariant in INVARIANTS:
            if step.kind in invariant.kinds:
                self._record.checks[invariant.name] += 1
                for broken in invariant.check(step):
                    self._record.violation(invariant.name, broken)

    def _judge_truth(self) -> None:
        truth = self._truth()
        for name, _, check in TRUTHS:
            self._record.checks[name] += 1
            for broken in check(truth):
                self._record.violation(name, broken)
