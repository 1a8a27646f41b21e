"""Local reads: one informer for each kind that somebody asked about, shared by all who do.

What is read here may be a moment old; what is written with a resource version that is too old is refused by the server, and the
reconcile is run again.  Who tells the cache what it wrote can ask whether that has come back yet.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from slipway.api.machinery.errors import OperatorError
from slipway.runtime.cache.informer import RESYNC, SILENCE, Informer, Scope
from slipway.runtime.cache.whole import Whole

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Iterable, Mapping

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.metrics import Metrics
    from slipway.runtime.objects import Object
    from slipway.runtime.sharding.holding import Holding

T = TypeVar("T")
ON_ITS_WAY = 30.0
"""How long, in seconds, the cache may be behind what we wrote: after a restore of etcd it is behind for ever."""
# So many writes are remembered before those that have come back are looked for.
_WRITES = 1000


class NotSyncedError(OperatorError):
    """The objects of a kind cannot be read, since the server has not given the list of them."""


class _Write(NamedTuple):
    version: str
    at: float


class Cache:
    """``namespace`` restricts everything that is in namespaces to one.  Informers run until ``close``.

    ``most`` bounds the objects of each kind, where the server is somebody else's; ``holding`` says what is kept of objects where
    several processes share the work.
    """

    def __init__(
        self,
        client: AsyncClient,
        *,
        namespace: str = "",
        resync: float = RESYNC,
        silence: float = SILENCE,
        most: int = 0,
        sync_timeout: float = 30.0,
        metrics: Metrics | None = None,
        clock: Callable[[], float] = time.monotonic,
        holding: Holding | None = None,
    ) -> None:
        self._client = client
        self._holding = holding
        self._namespace = namespace
        self._resync, self._silence, self._sync_timeout, self._most = resync, silence, sync_timeout, most
        self._metrics = metrics
        self._informers: dict[Scope, Informer] = {}
        self._tasks: dict[Scope, asyncio.Task[None]] = {}
        self._restrictions: dict[Kind, tuple[str, bool]] = {}
        self._clock = clock
        self._writes: dict[tuple[Kind, str, str], _Write] = {}
        self._whole = Whole(client, clock=clock)
        self._indices: dict[Kind, dict[str, Callable[[Object], Iterable[str]]]] = {}
        self._broken: asyncio.Future[None] | None = None
        self._closed = False

    @property
    def informers(self) -> list[Informer]:
        return list(self._informers.values())

    def restrict(self, kind: Kind, *, labels: str = "", metadata_only: bool = False) -> None:
        """Keep only the objects of the kind that a label selector chooses, or their metadata alone; to be said before the first use."""
        if self._restrictions.get(kind) == (labels, metadata_only):
            return
        if kind in self._restrictions or any(scope.kind == kind for scope in self._informers):
            raise ValueError(f"{kind.plural} are cached already: what of them is cached must be said before")
        self._restrictions[kind] = labels, metadata_only

    def add_index(self, kind: Kind, name: str, keys: Callable[[Object], Iterable[str]]) -> None:
        """Let ``list`` find objects by what ``keys`` gives for them."""
        known = self._indices.setdefault(kind, {})
        if known.get(name, keys) is not keys:
            raise ValueError(f'{kind.plural} have an index "{name}" already, by another function')
        known[name] = keys
        for scope, informer in self._informers.items():
            if scope.kind == kind:
                informer.store.add_index(name, keys)

    def informer(self, kind: Kind, *, namespace: str = "", labels: str = "") -> Informer:
        """The informer of a kind, started when it is the first time; a namespace or a selector of its own makes it another one."""
        within = namespace or self._namespace if kind.namespaced else ""
        default, metadata_only = self._restrictions.get(kind, ("", False))
        scope = Scope(kind, within, labels or default, metadata_only)
        found = self._informers.get(scope)
        if found is None:
            if self._closed:
                raise RuntimeError(f"the cache was closed before {scope} was asked for")
            divided = self._holding is not None and self._holding.divides(kind)
            found = self._informers[scope] = Informer(
                self._client,
                scope,
                metrics=self._metrics,
                resync=self._resync,
                silence=self._silence,
                most=self._most,
                keep=self._holding.kept if self._holding is not None and divided else None,
                now=self._clock,
            )
            for name, keys in self._indices.get(kind, {}).items():
                found.store.add_index(name, keys)
            task = self._tasks[scope] = asyncio.get_running_loop().create_task(self._run(found), name=f"informer of {scope}")
            task.add_done_callback(self._ended)
        return found

    async def _run(self, informer: Informer) -> None:
        """Whose an object is may depend on objects of other kinds, which are to be there first."""
        if self._holding is not None:
            for kind in self._holding.after(informer.scope.kind):
                await self.informer(kind).tried.wait()
        await informer.run()

    async def refill(self) -> None:
        """Bring in what is to be kept and was not, of all kinds that are divided: first of those on which others depend."""
        assert self._holding is not None
        divided = [informer for informer in self.informers if self._holding.divides(informer.scope.kind)]
        needed = {kind for informer in divided for kind in self._holding.after(informer.scope.kind)}
        for first in (True, False):
            stage = [informer for informer in divided if (informer.scope.kind in needed) is first]
            await asyncio.gather(*(informer.refill() for informer in stage))

    def reconsider(self) -> None:
        """Let go of what is not to be kept any more."""
        for informer in self.informers:
            informer.reconsider()

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        """The object as it was last seen; NotSyncedError where the server did not let the kind be listed in time."""
        if kind.namespaced and not namespace:
            raise ValueError(f'the {kind.kind} "{name}" is asked for without saying in which namespace it is')
        return (await self._synced(kind, namespace)).store.get(name, namespace if kind.namespaced else "")

    async def list(
        self, kind: Kind, namespace: str = "", *, labels: Mapping[str, str] | None = None, index: tuple[str, str] | None = None
    ) -> list[Object]:
        """The objects of a namespace, or of all of them, that have all the ``labels`` and are under the key of an index."""
        store = (await self._synced(kind, namespace)).store
        found = store.list(namespace) if index is None else store.indexed(*index)
        if index is not None and namespace:
            found = [known for known in found if known.metadata.namespace == namespace]
        if labels:
            found = [known for known in found if labels.items() <= known.metadata.labels.items()]
        return found

    async def some(self, kind: Kind, names: Iterable[str], namespace: str = "") -> builtins.list[Object]:
        """Those of the names that there are: what ``get`` finds for each, asked once for all."""
        store = (await self._synced(kind, namespace)).store
        return [found for name in names if (found := store.get(name, namespace)) is not None]

    async def facts(self, kind: Kind, of: Callable[[Object], T], namespace: str = "") -> builtins.list[T]:
        """What ``of`` says of each object of a namespace, or of all of them; it is asked once for every state of one."""
        return (await self._synced(kind, namespace)).store.facts(of, namespace)

    async def whole(self, kind: Kind, name: str, namespace: str, *, labels: str = "") -> Manifest | None:
        """All of an object of which the metadata alone is cached, at least as new as that is.  Nobody changes it: others read it, too."""
        return await self._whole.get(self.informer(kind, labels=labels), name, namespace)

    def wrote_whole(self, kind: Kind, manifest: Manifest) -> None:
        """Remember what the server gave back for a write of ours, for who asks for the whole of it."""
        self._whole.put(kind, manifest)

    def wrote(self, kind: Kind, manifest: Manifest) -> None:
        """Remember what the server gave back for a write of ours."""
        if len(self._writes) >= _WRITES:
            self._writes = {place: write for place, write in self._writes.items() if self._is_coming(place, write)}
        metadata = manifest["metadata"]
        place = kind, metadata.get("namespace", ""), metadata["name"]
        self._writes[place] = _Write(metadata["resourceVersion"], self._clock())

    def is_behind(self, kind: Kind, name: str, namespace: str = "") -> bool:
        """Whether our last write of the object is not here yet; when it comes, there is an event."""
        place = kind, namespace, name
        write = self._writes.get(place)
        if write is None:
            return False
        if self._is_coming(place, write):
            return True
        del self._writes[place]
        return False

    def open_for(self, kind: Kind) -> float:
        """For how many seconds changes of the kind have been heard of; 0 while they are not."""
        return self.informer(kind).open_for

    def _is_coming(self, place: tuple[Kind, str, str], write: _Write) -> bool:
        kind, namespace, name = place
        informer = self.informer(kind)
        known = informer.store.get(name, namespace)
        # However long a watch was broken, what it has not told yet comes when it is open again.
        seconds = min(self._clock() - write.at, informer.open_for)
        # What was deleted since is not here, and the watch has told of more than our write.
        return all(behind(seen, write.version, seconds) for seen in (known.metadata.resource_version if known else "0", informer.version))

    async def wait_for_sync(self) -> None:
        """Wait until every informer that was started has its list, however long that takes, or knows why it has not.

        Who reads a kind that cannot be listed is told so; those who do not need it can go on.
        """
        for informer in self.informers:
            await informer.tried.wait()

    async def broken(self) -> None:
        """Wait for ever, unless an informer ends by itself, which only an error of this program does: then raise it."""
        if self._broken is None:
            self._broken = asyncio.get_running_loop().create_future()
            for task in self._tasks.values():
                if task.done():
                    self._ended(task)
        await asyncio.shield(self._broken)

    async def close(self) -> None:
        self._closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _synced(self, kind: Kind, namespace: str) -> Informer:
        if kind.namespaced and self._namespace and namespace and namespace != self._namespace:
            raise OperatorError(
                f"{kind.plural} of the namespace {namespace} are asked for, and this manager works in the namespace {self._namespace} only"
            )
        informer = self.informer(kind)
        if not informer.synced.is_set():
            try:
                async with asyncio.timeout(self._sync_timeout):
                    await informer.tried.wait()
            except TimeoutError:
                why = "the server has not answered yet"
                raise NotSyncedError(f"{informer.scope} could not be listed within {self._sync_timeout:g}s: {why}") from None
            if not informer.synced.is_set():
                raise NotSyncedError(f"{informer.scope} could not be listed: {informer.error}")
        return informer

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or self._closed or self._broken is None or self._broken.done():
            return
        error = task.exception()
        self._broken.set_exception(error if error is not None else RuntimeError(f"the {task.get_name()} ended"))


def behind(version: str, written: str, seconds: float) -> bool:
    """Whether what was seen is older than what we wrote some seconds ago; versions that are no numbers are not compared."""
    return seconds < ON_ITS_WAY and version.isdecimal() and written.isdecimal() and int(version) < int(written)
