"""Leader election by a Lease, by client-go's rules: of several managers one works, and another takes over when it is gone.

Whether a lease has run out is judged by how long it has not been seen to change, never by the times that are written in it: the
clocks of two machines differ.  The holder gives up earlier than anybody else may take over: at ``renew_deadline`` after the moment
at which it sent its last renewal, while others wait ``lease_duration`` from when they saw that renewal.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.cluster.kinds import LEASE
from slipway.api.machinery.errors import OperatorError
from slipway.kube.errors import AlreadyExistsError, ApiError, ConflictError, NotFoundError, UnreachableError
from slipway.runtime.clock import Clock, sleep
from slipway.runtime.logs import fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient


_log = logging.getLogger("slipway.runtime.leader")

# client-go waits up to so many times the retry period more, so that those who wait do not all ask at once.
_JITTER = 1.2


class LeaseLostError(OperatorError):
    """Somebody else leads, or may soon: this process must do nothing more."""


class LeaseTimes(NamedTuple):
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def checked(self) -> LeaseTimes:
        if self.lease_duration <= self.renew_deadline:
            raise OperatorError(
                f"the lease duration ({self.lease_duration:g}s) must be longer than the renew deadline ({self.renew_deadline:g}s), "
                "or another leader could begin before this one has ended"
            )
        if self.renew_deadline <= self.retry_period * _JITTER or self.retry_period <= 0:
            raise OperatorError(
                f"the renew deadline ({self.renew_deadline:g}s) must be longer than {_JITTER} times the retry period "
                f"({self.retry_period:g}s), which is longer than nothing"
            )
        return self


def identity() -> str:
    """A name for this process that no other one has, and that says where it runs."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def timestamp(moment: datetime) -> str:
    """A metav1.MicroTime."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def holder(lease: Manifest) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def taken(
    lease: Manifest | None,
    who: str,
    times: LeaseTimes,
    now: datetime,
    *,
    namespace: str,
    name: str,
    labels: Mapping[str, str] | None = None,
) -> Manifest:
    """The lease as ``who`` writes it to hold it: a renewal where it is theirs, else a transition."""
    written = timestamp(now)
    spec: Manifest = {
        "holderIdentity": who,
        "leaseDurationSeconds": int(times.lease_duration),
        "acquireTime": written,
        "renewTime": written,
        "leaseTransitions": 0,
    }
    if lease is None:
        return {"metadata": {"namespace": namespace, "name": name, **({"labels": dict(labels)} if labels else {})}, "spec": spec}
    if labels:
        metadata = lease["metadata"]
        lease = {**lease, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}}}
    before = lease.get("spec") or {}
    spec["leaseTransitions"] = int(before.get("leaseTransitions") or 0)
    if holder(lease) == who:
        spec["acquireTime"] = before.get("acquireTime") or written
    else:
        spec["leaseTransitions"] += 1
    return {**lease, "spec": {**before, **spec}}


def released(lease: Manifest, now: datetime) -> Manifest:
    """The lease as its holder leaves it: nobody's, and so short that the next one need not wait."""
    written = timestamp(now)
    spec = {**(lease.get("spec") or {}), "holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": written, "renewTime": written}
    return {**lease, "spec": spec}


class Elector:
    """One candidate.  ``acquire``, then ``hold`` beside the work, then ``release`` when the work has ended.

    Who looks at many leases at once tells each by ``observe`` what was seen of it, and may ``attempt`` to take one that ``is_free``.
    """

    def __init__(
        self,
        client: AsyncClient,
        namespace: str,
        name: str,
        *,
        who: str = "",
        times: LeaseTimes = LeaseTimes(),  # noqa: B008 - a value
        labels: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self.namespace, self.name = namespace, name
        self.who = who or identity()
        self.times = times.checked()
        self._labels = labels
        self._given_clock = clock
        self._now = now
        # What was last seen of the lease, and when it was first seen so.
        self._lease: Manifest | None = None
        self._seen: Manifest | None = None
        self._seen_at = 0.0
        self._renewed_at = float("-inf")
        self._leading = False
        self.error = ""
        """Why the lease could not be read or written the last time; empty when it could."""

    @property
    def leader(self) -> str:
        """Who was last seen to hold the lease; empty where nobody was."""
        return holder(self._lease) if self._lease is not None else ""

    def leads(self) -> bool:
        """Whether this process may work at this moment."""
        return self._leading and self._clock.time() < self._deadline

    def is_free(self) -> bool:
        """Whether the lease, as it was last seen, may be taken: nobody's, ours, or unchanged for as long as it lasts."""
        if self._lease is None or holder(self._lease) in ("", self.who):
            return True
        seconds = float((self._lease.get("spec") or {}).get("leaseDurationSeconds") or 0)
        return self._clock.time() >= self._seen_at + seconds

    def observe(self, lease: Manifest | None) -> None:
        """The lease as somebody has just read it; None where there is none."""
        if lease is None:
            self._lease = self._seen = None
        else:
            self._observe(lease)

    async def attempt(self) -> bool:
        """Take the lease, or renew it, if that may be done now; whether it is ours."""
        if not await self._try(float("inf")):
            return False
        self._leading = True
        return True

    async def acquire(self) -> None:
        """Wait until the lease is ours."""
        _log.info("Attempting to acquire leader lease...", extra=self._fields())
        reported = ""
        while not await self.attempt():
            if self.leader and self.leader != reported:
                reported = self.leader
                _log.info("Another one leads", extra=self._fields(holder=reported))
            await sleep(self._clock, self.times.retry_period * (1 + _JITTER * random.random()))
        _log.info("Successfully acquired lease", extra=self._fields())

    async def hold(self) -> None:
        """Renew the lease, and never return: LeaseLostError when that did not succeed in time or somebody else has it."""
        try:
            while True:
                await self._until(self._deadline, sleep(self._clock, self.times.retry_period))
                if await self._until(self._deadline, self._try(self._deadline)):
                    continue
                if self.leader not in ("", self.who):
                    raise LeaseLostError(f"{self.leader} has taken the lease {self.namespace}/{self.name}")
        except TimeoutError:
            raise LeaseLostError(
                f"the lease {self.namespace}/{self.name} could not be renewed within {self.times.renew_deadline:g}s"
            ) from None
        finally:
            # Whoever asks from now on is told no, even before this task is seen to have ended.
            self._leading = False

    async def release(self) -> None:
        """Give the lease to whoever waits.  Only when nothing is worked on any more."""
        self._leading = False
        try:
            async with asyncio.timeout(self.times.renew_deadline):
                # As it is now: a renewal or a take-over that was cancelled on its way may have been written.
                lease = await self._client.find(LEASE, self.name, self.namespace)
                if lease is None or holder(lease) != self.who:
                    return
                await self._client.update(LEASE, released(lease, self._now()))
        except (ApiError, UnreachableError, TimeoutError) as error:
            # It runs out by itself.
            _log.warning("Failed to release lease", extra=self._fields(err=str(error) or "no answer in time"))
        else:
            _log.info("Released lease", extra=self._fields())

    @property
    def _clock(self) -> Clock:
        return self._given_clock if self._given_clock is not None else asyncio.get_running_loop()

    @property
    def _deadline(self) -> float:
        return self._renewed_at + self.times.renew_deadline

    async def _try(self, deadline: float) -> bool:
        """Take or renew the lease if it may be; whether it is ours now."""
        try:
            ours = self._leading and self._lease is not None and holder(self._lease) == self.who and await self._renew(self._lease)
            ours = ours or await self._take()
            self.error = ""
            return ours
        except (ApiError, UnreachableError) as error:
            self.error = error.message
            left = f"{max(deadline - self._clock.time(), 0):.1f}s" if deadline != float("inf") else ""
            _log.error("The lease could not be read or written", extra=self._fields(err=error.message, **({"left": left} if left else {})))
            return False

    async def _renew(self, lease: Manifest) -> bool:
        """The usual case: one request, in the belief that nobody has changed the lease."""
        try:
            await self._write(lease)
        except (ConflictError, NotFoundError):
            return False
        return True

    async def _take(self) -> bool:
        lease = await self._client.find(LEASE, self.name, self.namespace)
        if lease is not None:
            self._observe(lease)
            if not self.is_free():
                return False
        try:
            await self._write(lease)
        except (ConflictError, AlreadyExistsError):
            # Another candidate was faster: who, is seen the next time.
            return False
        return True

    async def _write(self, lease: Manifest | None) -> None:
        began = self._clock.time()
        wanted = taken(lease, self.who, self.times, self._now(), namespace=self.namespace, name=self.name, labels=self._labels)
        written = await (self._client.create(LEASE, wanted) if lease is None else self._client.update(LEASE, wanted))
        self._observe(written)
        # Counted from before the request: others may have seen the renewal at any time since.
        self._renewed_at = began

    def _observe(self, lease: Manifest) -> None:
        self._lease = lease
        spec = lease.get("spec") or {}
        if spec != self._seen:
            self._seen, self._seen_at = spec, self._clock.time()

    async def _until(self, deadline: float, work: Any) -> Any:
        """What ``work`` gives; TimeoutError when the deadline comes first."""
        task = asyncio.ensure_future(work)
        late = False

        def expire() -> None:
            nonlocal late
            late = True
            task.cancel()

        timer = self._clock.call_at(deadline, expire)
        try:
            return await task
        except asyncio.CancelledError:
            if late:
                raise TimeoutError from None
            task.cancel()
            raise
        finally:
            timer.cancel()

    def _fields(self, **more: object) -> dict[str, Any]:
        return fields(lock=f"{self.namespace}/{self.name}", identity=self.who, **more)
