"""Events about objects, for people who look with kubectl: written in the background, so that no reconcile ever waits for one.

What is said again is counted.  An object that says ever new things for one reason gets one Event for all of them.  When the API
server is too slow, the newest Events are dropped and counted.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import OrderedDict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import msgspec

from slipway.api.cluster.kinds import CORE_EVENT
from slipway.api.machinery.errors import OperatorError
from slipway.kube.aio import PatchType
from slipway.kube.errors import NotFoundError
from slipway.runtime import logs
from slipway.runtime.objects import timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient

Value = TypeVar("Value")
EventType = Literal["Normal", "Warning"]

log = logging.getLogger(__name__)

# As client-go has it: after so many different messages for one reason within so many seconds, they become one Event.
_SIMILAR = 10
_SIMILAR_SECONDS = 600.0
_COMBINED = "(combined from similar events): "
# What the API server takes as the message of an Event.
_LONGEST = 1024
_REMEMBERED = 4096
_WAITING = 1000


class Subject(NamedTuple):
    """What an Event is about, and what makes two of them the same."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    type: str
    reason: str
    message: str


class Count(msgspec.Struct):
    """How often a thing was said; ``event`` is the name of its Event, once there is one."""

    subject: Subject
    message: str
    first: datetime
    last: datetime
    times: int = 1
    event: str = ""


class Aggregator:
    """Decides which Event a saying belongs to."""

    def __init__(self) -> None:
        self._counts: OrderedDict[Subject, Count] = OrderedDict()
        self._similar: OrderedDict[Subject, dict[str, datetime]] = OrderedDict()

    def count(self, subject: Subject, now: datetime) -> Count:
        """What was said before of the same kind, one more time; or a new count."""
        message = subject.message
        group = subject._replace(message="")
        recent = {
            text: moment
            for text, moment in self._similar.get(group, {}).items()
            if (now - moment).total_seconds() < _SIMILAR_SECONDS and text != message
        }
        recent[message] = now
        _keep(self._similar, group, recent)
        if len(recent) > _SIMILAR:
            subject, message = group, _COMBINED + message
            # Enough are known to go on combining.
            self._similar[group] = dict(list(recent.items())[-_SIMILAR - 1 :])
        found = self._counts.get(subject)
        if found is None:
            found = Count(subject, message[:_LONGEST], now, now)
        else:
            found.times, found.last, found.message = found.times + 1, now, message[:_LONGEST]
        _keep(self._counts, subject, found)
        return found


def manifest(count: Count, name: str, component: str, instance: str) -> Manifest:
    """A v1 Event.  Those about objects without a namespace live in ``default``, as client-go has it."""
    subject = count.subject
    about = {"apiVersion": subject.api_version, "kind": subject.kind, "name": subject.name, "uid": subject.uid}
    if subject.namespace:
        about["namespace"] = subject.namespace
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": subject.namespace or "default"},
        "involvedObject": about,
        "type": subject.type,
        "reason": subject.reason,
        "message": count.message,
        "count": count.times,
        "firstTimestamp": timestamp(count.first),
        "lastTimestamp": timestamp(count.last),
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": instance,
    }


class EventRecorder:
    """Takes Events at any time and writes them one after another.  ``dropped`` and ``failed`` are for the metrics."""

    def __init__(
        self, client: AsyncClient, component: str, *, instance: str = "", clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._client = client
        self._component = component
        self._instance = instance
        self._clock = clock
        self._aggregator = Aggregator()
        # By subject: what is said again while it waits is counted, and waits no second time.
        self._waiting: OrderedDict[Subject, Count] = OrderedDict()
        self._writer: asyncio.Task[None] | None = None
        self.dropped = 0
        self.failed = 0

    def event(self, about: Manifest, type: EventType, reason: str, message: str) -> None:  # noqa: A002 - as the field is called
        """Say something about an object.  Returns at once."""
        metadata = about["metadata"]
        subject = Subject(
            about.get("apiVersion", ""),
            about.get("kind", ""),
            metadata.get("namespace", ""),
            metadata["name"],
            metadata.get("uid", ""),
            type,
            reason,
            message,
        )
        count = self._aggregator.count(subject, self._clock())
        if count.subject not in self._waiting and len(self._waiting) >= _WAITING:
            self.dropped += 1
            return
        self._waiting[count.subject] = count
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_all(), name="events")

    async def flush(self, timeout: float = 5.0) -> None:
        """Wait until what was said is written, but no longer than ``timeout``."""
        if self._writer is not None and not self._writer.done():
            await asyncio.wait({self._writer}, timeout=timeout)

    async def close(self, timeout: float = 5.0) -> None:
        """Write what is left, if that does not take too long."""
        await self.flush(timeout)
        if self._writer is not None and not self._writer.done():
            self.dropped += len(self._waiting)
            self._writer.cancel()
            await asyncio.wait({self._writer})

    async def _write_all(self) -> None:
        while self._waiting:
            _, count = self._waiting.popitem(last=False)
            try:
                await self._write(count)
            except OperatorError as error:
                # An Event is a courtesy: its loss is counted and told, and nothing else depends on it.
                self.failed += 1
                count.event = ""
                subject = count.subject
                log.warning(
                    "an Event could not be written: %s",
                    error.message,
                    extra=logs.fields(about=f"{subject.kind} {subject.namespace}/{subject.name}", reason=subject.reason),
                )

    async def _write(self, count: Count) -> None:
        namespace = count.subject.namespace or "default"
        if count.event:
            patch = {"count": count.times, "message": count.message, "lastTimestamp": timestamp(count.last)}
            try:
                await self._client.patch(CORE_EVENT, count.event, namespace, patch, type=PatchType.MERGE, field_manager=self._component)
                return
            except NotFoundError:
                # Events end after an hour; the count goes on in a new one.
                pass
        # client-go's form of names: the object's, and sixteen hexadecimal digits; 253 characters are a name's limit.
        name = f"{count.subject.name[:236]}.{secrets.token_hex(8)}"
        await self._client.create(CORE_EVENT, manifest(count, name, self._component, self._instance))
        count.event = name


def _keep(known: OrderedDict[Subject, Value], key: Subject, value: Value) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > _REMEMBERED:
        known.popitem(last=False)
