"""The manager: one process's client, cache, controllers and webhooks, from start to graceful stop.

Informers and webhooks run always; controllers once these are there, and when this process leads.  There may be several leases, each for
some of the controllers: a process may lead for some and wait for others.  Where the work is divided, each process has a share of it for
all its controllers.  On stop, reconciles end first, then leases are given up, then everything else goes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AsyncExitStack
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.kube.aio import AsyncClient
from slipway.runtime import healthz
from slipway.runtime.cache.cache import Cache
from slipway.runtime.cache.informer import RESYNC
from slipway.runtime.controller import GRACE, RECONCILE_TIMEOUT, Controller
from slipway.runtime.events import EventRecorder
from slipway.runtime.leader import Elector, LeaseTimes, identity
from slipway.runtime.logs import fields
from slipway.runtime.metrics import Metrics
from slipway.runtime.sharding.coordinator import Coordinator, Division
from slipway.runtime.sharding.holding import Holding
from slipway.runtime.sharding.share import ShardMetrics, Share

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence

    from slipway.kube.connection import Connection
    from slipway.runtime.controller import Reconciler, Watch
    from slipway.runtime.objects import Request
    from slipway.runtime.sharding.holding import Partition

_log = logging.getLogger("slipway.runtime.manager")

# Seconds between two looks whether webhooks are served: they are within some tenths of a second.
_LOOK = 0.02


class Server(Protocol):
    async def run(self, stop: asyncio.Event) -> None: ...


class WebhookServer(Server, Protocol):
    def ready(self) -> str:
        """Why webhooks are not served; empty when they are."""


class Lease(NamedTuple):
    """Which Lease says who leads."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"the lease {self.namespace}/{self.name}"


class ManagerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Times are in seconds; an address of ``0`` switches its server off."""

    name: str = "slipway-manager"
    namespace: str = ""
    """Work in this namespace only."""
    watch_filter: str = ""
    """Reconcile only for objects with this value of the label cluster.x-k8s.io/watch-filter."""
    concurrency: int = 10
    leader_elect: bool = False
    leader_namespace: str = ""
    leader_name: str = "slipway-manager-leader"
    """Where the Lease is of those controllers that are added without naming another one."""
    division: str = ""
    """What the Leases of shards are named after; the manager's name where it is empty."""
    identity: str = ""
    lease: LeaseTimes = LeaseTimes()
    metrics_address: str = "0"
    health_address: str = "0"
    sync_period: float = RESYNC
    reconcile_timeout: float = RECONCILE_TIMEOUT
    grace: float = GRACE
    request_timeout: float = 30.0
    webhook_patience: float = 15.0
    """How long controllers wait for the webhooks of this process: without them, much of what they write is refused."""
    pace: float = 1.0
    """How long a second of waiting takes: less where hosts are simulated, and boot in seconds."""


class Manager:
    """``partition`` divides the work over all processes that have the same, where it has more than one shard."""

    def __init__(self, connection: Connection, options: ManagerOptions, partition: Partition | None = None) -> None:
        self.options = options
        self.metrics = Metrics()
        self.client = AsyncClient(connection, user_agent=options.name, timeout=options.request_timeout)
        self.client.on_request = self.metrics.request(self.client.host)
        holding = Holding(partition) if partition is not None and partition.shards > 1 else None
        self.cache = Cache(self.client, namespace=options.namespace, resync=options.sync_period, metrics=self.metrics, holding=holding)
        self.share = Share(holding, self.cache) if holding is not None else None
        self.electors: dict[Lease, Elector] = {}
        who = options.identity or identity()
        self._who = who
        if options.leader_elect and not options.leader_namespace:
            raise OperatorError("leader election needs a namespace for its Lease: outside of a cluster it must be given")
        if holding is not None and not options.leader_elect:
            raise OperatorError("work is divided over several processes by Leases: it cannot be without leader election")
        self.events = EventRecorder(self.client, options.name, instance=who if options.leader_elect else "")
        self.metrics.events_lost.labels("dropped").set_function(lambda: float(self.events.dropped))
        self.metrics.events_lost.labels("refused").set_function(lambda: float(self.events.failed))
        self._controllers: dict[str, Controller] = {}
        self._led: dict[Lease | None, list[Controller]] = {}
        self._webhooks: list[WebhookServer] = []
        self._servers: list[Server] = []
        self._at_start: list[Callable[[], None]] = []
        self._at_end: list[Callable[[], Awaitable[None]]] = []
        self._stopping = False
        self.health_port = 0
        self.metrics_port = 0

    def add(self, reconciler: Reconciler, *, concurrency: int | None = None, lease: Lease | None = None) -> None:
        """Run the reconciler, with as many workers as the options say or ``concurrency`` does.

        With leader election it works while ``lease`` is held, or that of the options.
        """
        if reconciler.name in self._controllers:
            raise ValueError(f'there is a controller "{reconciler.name}" already')
        elector = self._elector(lease)
        name = reconciler.name
        may_work: Callable[[Request], bool] | None = None
        if self.share is not None:
            may_work = partial(self.share.admits, lambda: self._controllers[name])
        elif elector is not None:
            may_work = lambda request: elector.leads()  # noqa: E731 - one of two
        controller = self._controllers[reconciler.name] = Controller(
            reconciler,
            self.cache,
            self.metrics,
            concurrency=self.options.concurrency if concurrency is None else concurrency,
            timeout=self.options.reconcile_timeout,
            grace=self.options.grace,
            watch_filter=self.options.watch_filter,
            may_work=may_work,
            pace=self.options.pace,
        )
        self._led.setdefault(None if elector is None else Lease(elector.namespace, elector.name), []).append(controller)
        if self.share is not None:
            self.share.add(controller)

    @property
    def controllers(self) -> Collection[Controller]:
        return self._controllers.values()

    def enqueue(self, reconciler: str, request: Request) -> None:
        """Let an object be reconciled because of what happened outside of the management cluster."""
        self._controllers[reconciler].enqueue(request)

    def watch(self, reconciler: str, watch: Watch) -> None:
        """Let a controller watch one more kind; it may be called from inside a reconcile, and again for the same."""
        self._controllers[reconciler].watch(watch)

    def add_webhooks(self, server: WebhookServer) -> None:
        self._webhooks.append(server)

    def add_server(self, server: Server) -> None:
        """Serve something without which the manager is as ready as with it."""
        self._servers.append(server)

    def at_start(self, begin: Callable[[], None]) -> None:
        """Do something when the manager runs, such as following an informer."""
        self._at_start.append(begin)

    def at_end(self, close: Callable[[], Awaitable[None]]) -> None:
        """Close something that a controller has opened, when all work is over."""
        self._at_end.append(close)

    async def run(self, stop: asyncio.Event) -> None:
        """Work until ``stop``.  LeaseLostError when another one leads now: the process must end, and may be started again."""
        try:
            async with AsyncExitStack() as stack:
                stack.push_async_callback(self.client.close)
                stack.push_async_callback(self.cache.close)
                stack.push_async_callback(self.events.close)
                if self.share is not None:
                    partition = self.share.holding.partition
                    stack.push_async_callback(partition.close)
                    partition.follow(self.cache)
                for close in self._at_end:
                    stack.push_async_callback(close)
                for begin in self._at_start:
                    begin()
                await self._serve(stack)
                webhooks_stop = asyncio.Event()
                async with asyncio.TaskGroup() as group:
                    broken = group.create_task(self.cache.broken(), name="watch over the informers")
                    for server in self._webhooks:
                        group.create_task(server.run(webhooks_stop), name="webhooks")
                    for other in self._servers:
                        group.create_task(other.run(webhooks_stop), name="server")
                    try:
                        await self._work(stop)
                    finally:
                        self._stopping = True
                        webhooks_stop.set()
                        broken.cancel()
        except BaseExceptionGroup as group_of_errors:
            raise _only(group_of_errors) from None
        _log.info("Stopped")

    async def _serve(self, stack: AsyncExitStack) -> None:
        options = self.options
        address = healthz.parse_address(options.health_address, "--health-addr")
        if address is not None:
            server = healthz.Server(address, healthz.health_routes(self._healthz, self._readyz), flag="--health-addr")
            await server.start()
            stack.push_async_callback(server.stop)
            self.health_port = server.port
        address = healthz.parse_address(options.metrics_address, "--metrics-bind-address")
        if address is not None:
            server = healthz.Server(address, healthz.metrics_routes(self.metrics), flag="--metrics-bind-address")
            await server.start()
            stack.push_async_callback(server.stop)
            self.metrics_port = server.port

    async def _work(self, stop: asyncio.Event) -> None:
        for controller in self._controllers.values():
            for watch in controller.watches:
                self.cache.informer(watch.kind, labels=watch.labels)
        _log.info("Waiting for the caches", extra=fields(kinds=[str(informer.scope) for informer in self.cache.informers]))
        if not await _unless(stop, self.cache.wait_for_sync()) or not await _unless(stop, self._until_webhooks_are_served()):
            return
        async with asyncio.TaskGroup() as group:
            if self.share is not None:
                group.create_task(self._work_together(self.share, stop), name="a share of the work")
            for lease, controllers in self._led.items() if self.share is None else ():
                elector = None if lease is None else self.electors[lease]
                group.create_task(self._lead(elector, controllers, stop), name=f"controllers of {lease or 'all'}")
            # With no controllers there are still webhooks to serve.
            await stop.wait()

    async def _until_webhooks_are_served(self) -> None:
        """Or until it is plain that something is wrong with them: others may serve them, and much can be done without."""
        ends = time.monotonic() + self.options.webhook_patience
        while problems := [problem for server in self._webhooks if (problem := server.ready())]:
            if time.monotonic() > ends:
                _log.warning("Controllers begin without the webhooks of this process", extra=fields(err="; ".join(problems)))
                return
            await asyncio.sleep(_LOOK)

    async def _lead(self, elector: Elector | None, controllers: Sequence[Controller], stop: asyncio.Event) -> None:
        """Run controllers when and while their lease is held."""
        if elector is None:
            await _run_all(controllers, stop)
            return
        self.metrics.leader.labels(elector.name).set_function(lambda: float(elector.leads()))
        if await _unless(stop, elector.acquire()):
            await self._hold(elector, controllers, stop)
        else:
            # The stop may have come when the lease was just written.
            await elector.release()

    async def _hold(self, elector: Elector, controllers: Sequence[Controller], stop: asyncio.Event) -> None:
        """Work while the lease is held.  When it is lost the work is cancelled at once: nobody else can have it before it has ended."""
        await self._while_held(elector.hold, controllers, stop, elector.release)

    async def _work_together(self, share: Share, stop: asyncio.Event) -> None:
        """Work on our share of it, whichever that is at a time."""
        for elector in (*self.coordinator.guards, *self.coordinator.shards):
            self.metrics.leader.labels(elector.name).set_function(lambda elector=elector: float(elector.leads()))  # type: ignore[misc]
        ShardMetrics(self.coordinator, share.holding, self.cache, list(self._controllers.values())).register(self.metrics.registry)
        await self._while_held(self.coordinator.run, list(self._controllers.values()), stop, self.coordinator.leave)

    async def _while_held(
        self,
        holding: Callable[[], Coroutine[None, None, None]],
        controllers: Sequence[Controller],
        stop: asyncio.Event,
        release: Callable[[], Awaitable[None]],
    ) -> None:
        left = self.options.lease.lease_duration - self.options.lease.renew_deadline
        work = asyncio.create_task(_run_all(controllers, stop), name="controllers")
        hold = asyncio.create_task(holding(), name="lease")
        try:
            await asyncio.wait({work, hold}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            lost = hold.done()
            hold.cancel()
            work.cancel()
            _, late = await asyncio.wait({hold, work}, timeout=left)
            if late:
                _log.critical("Work goes on that was cancelled", extra=fields(tasks=[task.get_name() for task in late], seconds=left))
            if not lost and not late:
                await release()
        if lost:
            hold.result()
        work.result()

    @cached_property
    def coordinator(self) -> Coordinator:
        """Of a manager that shares the work: who has which shards.  To be asked for when all controllers are there."""
        assert self.share is not None
        options, holding = self.options, self.share.holding
        name = options.division or options.name
        division = Division(options.leader_namespace, name, holding.partition.shards)
        made = Coordinator(self.client, division, self.electors, self.share, who=self._who, times=options.lease)
        holding.leads = made.leads
        return made

    def view(self) -> Cache:
        """A cache of everything, for who shows it: the one of the controllers, where the work is not divided."""
        if self.share is None:
            return self.cache
        whole = Cache(self.client, namespace=self.options.namespace, resync=self.options.sync_period)
        self.at_end(whole.close)
        return whole

    def _elector(self, lease: Lease | None) -> Elector | None:
        if not self.options.leader_elect:
            return None
        lease = lease or Lease(self.options.leader_namespace, self.options.leader_name)
        known = self.electors.get(lease)
        if known is None:
            known = self.electors[lease] = Elector(self.client, *lease, who=self._who, times=self.options.lease)
        return known

    def _healthz(self) -> Iterable[tuple[str, str]]:
        # That there is an answer shows that the event loop is alive; what else could end, ends the process.
        return [("ping", "")]

    def _readyz(self) -> Iterable[tuple[str, str]]:
        # What this process serves, and nothing else: a kind that may not be listed or a lease that cannot be renewed is told by metrics and
        # in the log, and behind a Service it would take admission and conversion away from everybody.
        yield "shutdown", "stopping" if self._stopping else ""
        if self.share is not None:
            yield f"shards {sorted(self.share.holding.active)} of {self.share.holding.partition.shards}", ""
        for server in self._webhooks:
            yield "webhooks", server.ready()


async def _run_all(controllers: Sequence[Controller], stop: asyncio.Event) -> None:
    async with asyncio.TaskGroup() as group:
        for controller in controllers:
            group.create_task(controller.run(stop), name=f"controller {controller.name}")


async def _unless(stop: asyncio.Event, work: Awaitable[None]) -> bool:
    """Whether ``work`` was done before ``stop`` was set."""
    task, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if stop.is_set():
            return False
        await task
        return True
    finally:
        task.cancel()
        stopped.cancel()
        await asyncio.wait({task, stopped})


def _only(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error that a group of one is about; else the group."""
    while isinstance(group, BaseExceptionGroup) and len(group.exceptions) == 1:
        first = group.exceptions[0]
        if not isinstance(first, BaseExceptionGroup):
            return first
        group = first
    return group
