"""Clients of workload clusters, made from the kubeconfig that each Cluster has as a Secret, and kept while it stays the same.

A kubeconfig is read again when it is older than a minute, and at once when the workload cluster does not accept what it says.  A cluster
that did not answer is not asked again for a while, unless its kubeconfig changes: who waits for it holds up the machines of others.  All
controllers of a manager share the clients; those of a Cluster that is deleted are closed.  Clusters whose Nodes or whose health somebody
asked for are watched besides, by :mod:`slipway.fleet.liveclusters`.
"""

from __future__ import annotations

import asyncio
import errno
import time
from base64 import b64decode
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from slipway.api.cluster.kinds import SECRET
from slipway.api.machinery.errors import ConfigurationError, OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.fleet.liveclusters import INTERVAL, LARGEST, LiveCluster, Probe, calm_interval
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import from_kubeconfig
from slipway.kube.errors import UnauthorizedError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

    from slipway.kube.connection import Connection
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.cache.informer import Informer
    from slipway.runtime.objects import Object

    NodeHandler = Callable[[str, str, Object | None, Object | None], None]

_FRESH = 60.0
# More clusters than a manager talks to within a minute; the one that was not used for longest goes first.
_KEPT = 200
_TIMEOUT = 10.0
_LEFT_ALONE = 20.0
_NEXT_TRY = 1.0


def secret_name(cluster: str) -> str:
    return f"{cluster}-kubeconfig"


def connection_from(secret: Mapping[str, Any]) -> Connection:
    """The connection of a kubeconfig Secret.  It cannot name files: they would be those of the manager."""
    metadata = secret["metadata"]
    source = f"of Secret {metadata['namespace']}/{metadata['name']}"
    value = (secret.get("data") or {}).get("value")
    if not value:
        raise OperatorError(f'the Secret {metadata["namespace"]}/{metadata["name"]} has no kubeconfig: its key "value" is missing or empty')
    try:
        documents = goyaml.load(b64decode(value).decode(), f"the kubeconfig {source}")
    except (ValueError, ConfigurationError) as error:
        raise OperatorError(f"the kubeconfig {source} cannot be read: {error}") from None
    document = documents[0].value if documents else None
    if not isinstance(document, dict):
        raise OperatorError(f"the kubeconfig {source} is not a YAML mapping")
    return from_kubeconfig(document, _no_files, source=source)


class _Entry:
    """A client and who uses it: one that was replaced is closed when the last user leaves."""

    def __init__(self, client: AsyncClient, revision: tuple[str, str], now: float) -> None:
        self.client = client
        self.revision = revision
        self.checked = now
        self.users = 0
        self.retired = False

    async def close_if_unused(self) -> None:
        if self.retired and not self.users:
            await self.client.close()


class Health(NamedTuple):
    """How a cluster answered last: when it did, by the clock, how often in a row it has not since, and why not."""

    answered: float | None = None
    failures: int = 0
    why: str = ""
    # Until when it is left alone, and with which kubeconfig it was asked.
    until: float = 0.0
    revision: tuple[str, str] = ("", "")


class WorkloadClusters:
    """The clients, by namespace and name of the Cluster.  ``pace`` is how long a second of waiting takes."""

    def __init__(
        self,
        management: AsyncClient,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_request: Callable[[str, int, float], None] | None = None,
        pace: float = 1.0,
    ) -> None:
        self.pace = pace
        self._management = management
        self._clock = clock
        self._on_request = on_request
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._opening: dict[tuple[str, str], asyncio.Lock] = {}
        self._health: dict[tuple[str, str], Health] = {}
        self._live: dict[tuple[str, str], LiveCluster] = {}
        self._on_node: list[NodeHandler] = []
        self._on_probe: list[Callable[[str, str], None]] = []
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def client(self, namespace: str, cluster: str) -> AsyncIterator[AsyncClient]:
        """A client for the time of the block.  What it fails with decides whether the kubeconfig is read anew the next time."""
        entry = await self._entry((namespace, cluster))
        entry.users += 1
        try:
            yield entry.client
            self._health[namespace, cluster] = Health(self._clock())
        except UnauthorizedError:
            self._retire((namespace, cluster), entry)
            raise
        except UnreachableError as error:
            self._retire((namespace, cluster), entry)
            before = self.health(namespace, cluster)
            # One that is watched and answers there has an address behind which one of several is away: the next try finds another.
            watched = self._live.get((namespace, cluster))
            until = self._clock() + self.pace * (_LEFT_ALONE if watched is None or not watched.probe.connected else _NEXT_TRY)
            self._health[namespace, cluster] = Health(before.answered, before.failures + 1, error.message, until, entry.revision)
            raise
        finally:
            entry.users -= 1
            await entry.close_if_unused()

    def health(self, namespace: str, cluster: str) -> Health:
        """How the cluster has answered to those who used its client."""
        return self._health.get((namespace, cluster), Health())

    async def nodes(self, namespace: str, cluster: str) -> Cache:
        """The cache of the workload cluster; DisconnectedError while there is none, and ``on_probe`` is told when there is.

        It has all Nodes, by the index ``providerID`` too, and other kinds from the first time that they are asked for.
        """
        return self._watched(namespace, cluster).cache

    def probe(self, namespace: str, cluster: str) -> Probe:
        """How the last probe went; whoever asks first has the cluster watched from then on."""
        return self._watched(namespace, cluster).probe

    def on_node(self, handler: NodeHandler) -> None:
        """Be told of every change of a Node of a cluster that is watched."""
        self._on_node.append(handler)

    def on_probe(self, handler: Callable[[str, str], None]) -> None:
        """Be told when a cluster that is watched can be reached, or no longer, or not for another reason."""
        self._on_probe.append(handler)

    def _watched(self, namespace: str, cluster: str) -> LiveCluster:
        key = namespace, cluster
        known = self._live.get(key)
        if known is None:
            known = self._live[key] = LiveCluster(
                f"{namespace}/{cluster}",
                lambda: self._connection(namespace, cluster),
                on_node=lambda old, new: self._tell_node(namespace, cluster, old, new),
                on_change=lambda: self._tell_probe(namespace, cluster),
                on_request=self._on_request,
                interval=INTERVAL * self.pace,
                calm=lambda: calm_interval(len(self._live)) * self.pace,
            )
        return known

    async def _connection(self, namespace: str, cluster: str) -> Connection:
        secret = await self._management.find(SECRET, secret_name(cluster), namespace)
        if secret is None:
            raise _no_kubeconfig(namespace, cluster)
        return connection_from(secret)

    def _tell_node(self, namespace: str, cluster: str, old: Object | None, new: Object | None) -> None:
        for handler in self._on_node:
            handler(namespace, cluster, old, new)

    def _tell_probe(self, namespace: str, cluster: str) -> None:
        for handler in self._on_probe:
            handler(namespace, cluster)

    def follow(self, clusters: Informer) -> None:
        """Let go of what belongs to Clusters that are deleted."""
        clusters.add_handler(self._seen)

    def _seen(self, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None:
            self._let_go((old.namespace, old.name))

    def keep_only(self, ours: Callable[[str, str], bool]) -> None:
        """Let go of what belongs to Clusters that another manager works on now."""
        for key in {*self._health, *self._entries, *self._live}:
            if not ours(*key):
                self._let_go(key)

    def _let_go(self, key: tuple[str, str]) -> None:
        self._health.pop(key, None)
        self._opening.pop(key, None)
        entry = self._entries.get(key)
        if entry is not None:
            self._retire(key, entry)
            self._end(entry.close_if_unused())
        live = self._live.pop(key, None)
        if live is not None:
            self._end(live.close())

    def _end(self, closing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(closing)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        await asyncio.gather(*self._closing, *(live.close() for live in self._live.values()))
        for key, entry in list(self._entries.items()):
            self._retire(key, entry)
            await entry.close_if_unused()

    async def _entry(self, key: tuple[str, str]) -> _Entry:
        entry = self._entries.get(key)
        if entry is None or self._clock() - entry.checked > _FRESH:
            # Workers that need the same cluster wait for one of them.
            async with self._opening.setdefault(key, asyncio.Lock()):
                entry = self._entries.get(key)
                if entry is None or self._clock() - entry.checked > _FRESH:
                    entry = await self._open(key, entry)
        # Last used, last to go.
        self._entries[key] = self._entries.pop(key, entry)
        return entry

    async def _open(self, key: tuple[str, str], known: _Entry | None) -> _Entry:
        namespace, cluster = key
        secret = await self._management.find(SECRET, secret_name(cluster), namespace)
        if secret is None:
            if known is not None:
                self._retire(key, known)
                await known.close_if_unused()
            raise _no_kubeconfig(namespace, cluster)
        metadata = secret["metadata"]
        revision = (metadata.get("uid", ""), metadata.get("resourceVersion", ""))
        health = self.health(namespace, cluster)
        if health.why and health.revision == revision and self._clock() < health.until:
            raise UnreachableError(f"the workload cluster {namespace}/{cluster} did not answer a moment ago: {health.why}")
        if known is not None and known.revision == revision:
            known.checked = self._clock()
            return known
        connection = connection_from(secret)
        if known is not None:
            self._retire(key, known)
            await known.close_if_unused()
        # The next reconcile asks again; a cluster that does not answer must not hold up the others for long.
        entry = _Entry(AsyncClient(connection, timeout=_TIMEOUT, largest=LARGEST, on_request=self._on_request), revision, self._clock())
        self._entries[key] = entry
        while len(self._entries) > _KEPT:
            oldest = next(iter(self._entries))
            out = self._entries[oldest]
            self._retire(oldest, out)
            await out.close_if_unused()
        return entry

    def _retire(self, key: tuple[str, str], entry: _Entry) -> None:
        entry.retired = True
        if self._entries.get(key) is entry:
            del self._entries[key]


def _no_kubeconfig(namespace: str, cluster: str) -> OperatorError:
    return OperatorError(
        f"cannot reach the workload cluster {namespace}/{cluster}: there is no Secret {namespace}/{secret_name(cluster)} with its "
        "kubeconfig yet; the control-plane provider makes it"
    )


def _no_files(path: str) -> NoReturn:
    raise OSError(errno.EPERM, f"a kubeconfig in a Secret must hold its certificates and tokens itself, and cannot name {path}")
