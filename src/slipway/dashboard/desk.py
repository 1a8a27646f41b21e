"""What those who look see, made from the observation when they look: one feed for each namespace and set of kinds that somebody may see.

Who may see the same shares a feed, so a hundred who look cost what one does.  Nobody looks: nothing is made.  A look is taken only so
often, and less often where it takes long, in a thread beside the manager's own work.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from slipway.dashboard.feed import Feed, Revisions
from slipway.dashboard.rows import rows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from slipway.api.cluster.kinds import Kind
    from slipway.dashboard.access import Sight
    from slipway.dashboard.observation import Held, Observation, Part

# Seconds between two looks: at least, at most, and how many times longer than the work of a look took.
_PAUSE, _LONGEST_PAUSE, _SHARE = 0.25, 5.0, 10.0
# Some of what a view says follows from the time alone: how long something has been waited for, when a host counts as silent.
OLDEST = 30.0
# Seconds for which a feed that nobody reads is kept, for who comes back.
_KEPT = 300.0


class Batch(NamedTuple):
    """What a reader is to be sent; ``whole``: it is everything, and takes the place of what they have."""

    whole: bool
    rows: list[bytes]
    gone: list[str]


class Scope(NamedTuple):
    """What a feed is of."""

    namespace: str
    kinds: frozenset[Kind]


class _Kept:
    """A feed, what it was made from, and when somebody last read it."""

    def __init__(self, revisions: Revisions) -> None:
        self.feed = Feed(revisions)
        self.versions: dict[Part, int] = {}
        self.made: dict[Part, float] = {}
        self.read = 0.0


class Desk:
    def __init__(
        self,
        observation: Observation,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        pause: float = _PAUSE,
    ) -> None:
        self._observation, self._clock, self._now, self._pause = observation, clock, now, pause
        self._revisions = Revisions()
        self._feeds: dict[Scope, _Kept] = {}
        self._looking = asyncio.Lock()
        self._next_look = 0.0
        self._epoch = secrets.token_hex(4)

    def reader(self, sight: Sight, last_seen: str = "") -> Reader:
        """For somebody who has seen everything up to what ``last_seen`` names, if anything."""
        return Reader(self, sight, last_seen)

    def scopes(self, sight: Sight, known: Iterable[Scope] = ()) -> dict[Scope, Feed]:
        """The feeds of what somebody may see; a namespace that they know is one of them, even if nothing is left in it."""
        found = {}
        for namespace in sorted({*self._observation.present(), *sight.within, *(scope.namespace for scope in known)}):
            kinds = sight.of(namespace)
            if kinds:
                scope = Scope(namespace, kinds)
                kept = self._feeds.get(scope)
                if kept is None:
                    kept = self._feeds[scope] = _Kept(self._revisions)
                kept.read = self._clock()
                found[scope] = kept.feed
        return found

    async def look(self, scopes: Iterable[Scope]) -> None:
        """Bring feeds up to date; who comes while somebody looks waits for that look."""
        async with self._looking:
            work = 0.0
            for scope in scopes:
                kept = self._feeds.get(scope)
                if kept is not None:
                    work += await self._make(scope, kept)
            self._next_look = self._clock() + min(max(self._pause, work * _SHARE), _LONGEST_PAUSE)
            self._forget()

    async def something_new(self, version: int) -> None:
        """Wait until there is more than at a version, and it is time to look."""
        await self._observation.changed(version)
        delay = self._next_look - self._clock()
        if delay > 0:
            await asyncio.sleep(delay)

    @property
    def version(self) -> int:
        return self._observation.version

    @property
    def revision(self) -> int:
        return self._revisions.last

    def name(self, scopes: Collection[Scope], revision: int) -> str:
        """What has been seen, as an event's id: of which feeds of which process, and up to where."""
        told = sorted((scope.namespace, sorted(kind.plural for kind in scope.kinds)) for scope in scopes)
        return f"{self._epoch}-{sha256(repr(told).encode()).hexdigest()[:16]}-{revision}"

    def missing(self) -> dict[str, str]:
        return self._observation.missing()

    async def _make(self, scope: Scope, kept: _Kept) -> float:
        """Make anew what is not as it was; the seconds of work that it took."""
        wanted, now = self._observation.parts(scope.namespace), self._clock()
        for part in kept.feed.parts - wanted.keys():
            kept.feed.replace(part, {})
        for part in kept.versions.keys() - wanted.keys():
            del kept.versions[part], kept.made[part]
        stale = [part for part, version in wanted.items() if kept.versions.get(part) != version or now - kept.made[part] > OLDEST]
        work = 0.0
        for part in stale:
            made, seconds = await asyncio.to_thread(_rows_of, self._observation.held(part), scope.kinds, self._now())
            kept.versions[part], kept.made[part] = wanted[part], now
            kept.feed.replace(part, made)
            work += seconds
        return work

    def _forget(self) -> None:
        oldest = self._clock() - _KEPT
        for scope in [scope for scope, kept in self._feeds.items() if kept.read < oldest]:
            del self._feeds[scope]


def _rows_of(held: Held, kinds: Collection[Kind], now: datetime) -> tuple[dict[str, bytes], float]:
    """The rows, and the seconds that this thread worked for them."""
    began = time.thread_time()
    return rows(held.decoded(kinds), now), time.thread_time() - began


class Reader:
    """Somebody who looks, with what they have seen."""

    def __init__(self, desk: Desk, sight: Sight, last_seen: str) -> None:
        self._desk, self._sight, self._last_seen = desk, sight, last_seen
        self._seen: dict[Scope, int] | None = None
        self._version = 0

    @property
    def name(self) -> str:
        """The id under which somebody can go on from here."""
        return self._desk.name(self._seen or {}, max((self._seen or {}).values(), default=0))

    def see(self, sight: Sight) -> None:
        """From now on they may see this."""
        self._sight = sight

    async def read(self) -> Batch | None:
        """What is new for them; None where nothing is."""
        self._version = self._desk.version
        feeds = self._desk.scopes(self._sight, self._seen or ())
        await self._desk.look(feeds)
        revision = self._desk.revision
        if self._seen is None:
            self._seen = self._resumed(feeds.keys())
        whole = self._seen is None or not self._seen.keys() <= feeds.keys()
        seen = {} if whole or self._seen is None else self._seen
        rows: list[bytes] = []
        gone: list[str] = []
        for scope, feed in feeds.items():
            delta = feed.since(seen[scope]) if scope in seen else None
            if delta is None and scope in seen:
                # It happened so much that it is not remembered what is gone.
                self._seen = None
                return await self.read()
            rows += feed.all() if delta is None else delta.rows
            gone += [] if delta is None else delta.gone
        self._seen = dict.fromkeys(feeds, revision)
        return Batch(whole, rows, gone) if whole or rows or gone else None

    async def wait(self) -> None:
        """Until there may be something new."""
        await self._desk.something_new(self._version)

    def _resumed(self, scopes: Collection[Scope]) -> dict[Scope, int] | None:
        last, self._last_seen = self._last_seen, ""
        revision = last.rpartition("-")[2]
        if not revision.isdecimal() or last != self._desk.name(scopes, int(revision)):
            return None
        return dict.fromkeys(scopes, int(revision))
