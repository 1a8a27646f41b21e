"""Workload clusters that are watched: a cache of their Nodes, and a probe that tells whether they answer.

A connection is made when somebody asks for it first, and made anew for as long as the Cluster is there.  It is probed every ten seconds;
after five failures in a row it is dropped, with the cache: what is old is not shown as if it were new.  Cluster API's clustercache has
these figures.  Of more than fifty clusters those that answer are probed less often: at rest that is two thirds of what a large fleet asks.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.cluster.kinds import NODE
from slipway.api.machinery.errors import OperatorError
from slipway.kube.aio import AsyncClient
from slipway.kube.errors import UnauthorizedError
from slipway.runtime.cache.cache import Cache
from slipway.runtime.logs import fields

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from slipway.kube.connection import Connection
    from slipway.runtime.objects import Object

_log = logging.getLogger("slipway.fleet.liveclusters")

PROVIDER_ID = "providerID"
"""The index of Nodes by their provider's ID."""
INTERVAL = 10.0
# So many probes a second, where that does not take longer than this: after 50 s without an answer a Cluster says that it has none.
_PROBES_A_SECOND = 5
_LONGEST_INTERVAL = 40.0
# A cluster that was never reached is about to come up: it is tried again sooner.
_FIRST_RETRY = 0.5
_TIMEOUT = 5.0
# The smallest answer that has to be authenticated with what is at hand: the list of all paths takes twice as long to read.
_QUESTION = "/version"
_FAILURES = 5
# The moments of an interval at which clusters are probed: a thousand clusters are a hundred questions at a time, which take 30 ms.
_SLOTS = 10
# Whoever may make a Cluster says which server is asked, and all Clusters share this process: a server may send so much at once, and have
# so many objects of a kind.  Kubernetes itself is for 5,000 Nodes, and a page of 500 has about 10 MiB.
LARGEST = 64 << 20
_MOST = 20_000


class DisconnectedError(OperatorError):
    """There is no connection to a workload cluster at present."""


class Probe(NamedTuple):
    """How the last probes of a workload cluster went."""

    connected: bool = False
    succeeded_at: datetime | None = None
    failed_in_a_row: int = 0
    why: str = "it was not asked yet"


class _NodeSpec(msgspec.Struct):
    provider_id: str = msgspec.field(default="", name="providerID")


class _Node(msgspec.Struct):
    spec: _NodeSpec = msgspec.field(default_factory=_NodeSpec)


def provider_id(node: Object) -> Iterable[str]:
    found = node.decode(_Node).spec.provider_id
    return [found] if found else []


class LiveCluster:
    """The connection to one workload cluster.  ``connect`` finds out where it is; ``on_node`` hears of its Nodes, ``on_change`` of probes
    that say something else than the one before."""

    def __init__(
        self,
        name: str,
        connect: Callable[[], Awaitable[Connection]],
        *,
        on_node: Callable[[Object | None, Object | None], None],
        on_change: Callable[[], None],
        on_request: Callable[[str, int, float], None] | None = None,
        interval: float = INTERVAL,
        calm: Callable[[], float] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """``calm`` says how long one that answers is left alone; by default for the ``interval``, too."""
        self._name = name
        self._connect = connect
        self._on_node, self._on_change, self._on_request = on_node, on_change, on_request
        self._interval = interval
        self._calm = calm if calm is not None else lambda: interval
        self._now = now
        self.probe = Probe()
        self._cache: Cache | None = None
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"connection to {name}")

    @property
    def cache(self) -> Cache:
        if self._cache is None:
            raise DisconnectedError(f"there is no connection to the workload cluster {self._name}: {self.probe.why}")
        return self._cache

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                connection = await self._connect()
                async with AsyncClient(connection, timeout=INTERVAL, largest=LARGEST, on_request=self._on_request) as client:
                    await _ask(client)
                    await self._stay(client)
            except OperatorError as error:
                # A kubeconfig that is garbage and a server that is somebody else's are told here, and concern no other cluster.
                self._tell(self._failed(error.message))
            except Exception as error:
                _log.exception("The connection to a workload cluster failed by a mistake of ours", extra=fields(cluster=self._name))
                self._tell(self._failed(f"{type(error).__name__}: {error}"))
            await asyncio.sleep(self._pause())

    def _pause(self) -> float:
        if self.probe.succeeded_at is not None:
            return self._interval
        return min(self._interval, _FIRST_RETRY * 2.0 ** min(self.probe.failed_in_a_row - 1, 10))

    async def _stay(self, client: AsyncClient) -> None:
        """Keep the cache while the cluster answers."""
        cache = Cache(client, most=_MOST)
        try:
            cache.add_index(NODE, PROVIDER_ID, provider_id)
            self._cache = cache
            cache.informer(NODE).add_handler(self._on_node)
            self._tell(Probe(connected=True, succeeded_at=self._now(), why=""))
            _log.info("Connected", extra=fields(cluster=self._name))
            while self.probe.failed_in_a_row < _FAILURES:
                interval = self._interval if self.probe.failed_in_a_row else self._calm()
                await asyncio.sleep(until_next(asyncio.get_running_loop().time(), interval))
                try:
                    await _ask(client)
                except UnauthorizedError:
                    # The kubeconfig was renewed: the new one is read at once.
                    raise
                except OperatorError as error:
                    self._tell(self._failed(error.message)._replace(connected=True))
                else:
                    self._tell(Probe(connected=True, succeeded_at=self._now(), why=""))
            raise OperatorError(self.probe.why)
        finally:
            self._cache = None
            await cache.close()

    def _failed(self, why: str) -> Probe:
        return Probe(succeeded_at=self.probe.succeeded_at, failed_in_a_row=self.probe.failed_in_a_row + 1, why=why)

    def _tell(self, probe: Probe) -> None:
        before, self.probe = self.probe, probe
        if (before.connected, before.why) != (probe.connected, probe.why):
            self._on_change()


def calm_interval(clusters: int) -> float:
    """How long a cluster that answers is left alone where there are so many."""
    return min(max(INTERVAL, clusters / _PROBES_A_SECOND), _LONGEST_INTERVAL)


def until_next(now: float, interval: float) -> float:
    """The seconds until the next probe: in about an interval, at one of the few moments of it that all clusters share.

    To wake up for one question costs more than the question, and of many that are asked together only the first pays for it.
    """
    slot = interval / _SLOTS
    return round((now + interval) / slot) * slot - now


async def _ask(client: AsyncClient) -> None:
    try:
        async with asyncio.timeout(_TIMEOUT):
            await client.raw(_QUESTION)
    except TimeoutError:
        raise OperatorError(f"it did not answer within {_TIMEOUT:g}s") from None
