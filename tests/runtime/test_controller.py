"""A controller on an API server: which events lead to which reconciles, and what becomes of those that fail."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from support.waiting import eventually

from slipway.api.cluster.kinds import CONFIG_MAP, SECRET
from slipway.api.machinery.errors import OperatorError
from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient
from slipway.kube.errors import ConflictError
from slipway.runtime import controller
from slipway.runtime.cache.cache import Cache
from slipway.runtime.controller import Controller, Watch
from slipway.runtime.metrics import Metrics
from slipway.runtime.objects import DONE, Object, Request, Result
from slipway.runtime.rbac import Rule

pytestmark = pytest.mark.asyncio


class Recording:
    """A reconciler that keeps what it was asked, and does what the test wants."""

    name = "recording"
    rules: Sequence[Rule] = ()
    interval = respite = 0.0

    def __init__(self, *watches: Watch, work: Callable[[Request], Awaitable[Result]] | None = None) -> None:
        self.watches: Sequence[Watch] = watches or (Watch(CONFIG_MAP),)
        self.asked: list[str] = []
        self._work = work

    async def reconcile(self, request: Request) -> Result:
        self.asked.append(request.name)
        return await self._work(request) if self._work is not None else DONE


@pytest_asyncio.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with EmbeddedServer(tls=False) as server, AsyncClient(server.connection()) as made:
        yield made


class Run:
    def __init__(self, client: AsyncClient, reconciler: Recording, resync: float = 0.0, **options: Any) -> None:
        self.metrics = Metrics()
        self.cache = Cache(client, resync=resync, metrics=self.metrics)
        # The one that every namespace has is not the tests' business.
        self.cache.restrict(CONFIG_MAP, labels="test=yes")
        self.controller = Controller(reconciler, self.cache, self.metrics, **options)
        self.stop = asyncio.Event()
        self.task = asyncio.create_task(self.controller.run(self.stop))

    def metric(self, name: str, /, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, {"controller": "recording", **labels}) or 0.0


@asynccontextmanager
async def running(client: AsyncClient, reconciler: Recording, **options: Any) -> AsyncIterator[Run]:
    run = Run(client, reconciler, **options)
    try:
        yield run
    finally:
        run.stop.set()
        await asyncio.wait({run.task}, timeout=10)
        await run.cache.close()
    run.task.result()


def manifest(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default", "labels": {"test": "yes", **labels}}, "data": {"k": "v"}}


async def test_what_is_there_and_what_changes_is_reconciled(client: AsyncClient) -> None:
    await client.create(CONFIG_MAP, manifest("there"))
    reconciler = Recording()
    async with running(client, reconciler) as run:
        await eventually(lambda: reconciler.asked == ["there"])
        await client.create(CONFIG_MAP, manifest("new"))
        await eventually(lambda: reconciler.asked == ["there", "new"])
        await client.delete(CONFIG_MAP, "there", "default")
        await eventually(lambda: reconciler.asked == ["there", "new", "there"])
        await eventually(lambda: run.metric("controller_runtime_reconcile_total", result="success") == 3)
        assert run.metric("controller_runtime_reconcile_time_seconds_count") == 3
        assert run.metric("workqueue_adds_total", name="recording") == 3
        assert run.metric("controller_runtime_max_concurrent_reconciles") == 10


async def test_what_changes_comes_before_what_was_there_at_the_start(client: AsyncClient) -> None:
    for number in range(20):
        await client.create(CONFIG_MAP, manifest(f"there-{number}"))
    began, gate = asyncio.Event(), asyncio.Event()

    async def wait(request: Request) -> Result:
        began.set()
        await gate.wait()
        return DONE

    reconciler = Recording(work=wait)
    async with running(client, reconciler, concurrency=1) as run:
        await began.wait()
        await client.create(CONFIG_MAP, manifest("new"))
        await eventually(lambda: run.metric("workqueue_depth", name="recording") == 20)
        gate.set()
        await eventually(lambda: len(reconciler.asked) == 21)
    assert reconciler.asked[1] == "new"


async def test_a_watch_of_another_kind_asks_for_the_objects_that_both_its_states_name(client: AsyncClient) -> None:
    async def named(known: Object, cache: Cache) -> Iterable[Request]:
        found = await cache.list(CONFIG_MAP, labels={"of": known.metadata.labels["of"]})
        return [each.request for each in found]

    for name, of in (("a", "x"), ("b", "y")):
        await client.create(CONFIG_MAP, manifest(name, of=of))
    reconciler = Recording(Watch(CONFIG_MAP), Watch(SECRET, requests=named))
    async with running(client, reconciler):
        await eventually(lambda: sorted(reconciler.asked) == ["a", "b"])
        await client.create(SECRET, {"metadata": {"name": "s", "namespace": "default", "labels": {"of": "x"}}})
        await eventually(lambda: sorted(reconciler.asked) == ["a", "a", "b"])
        # It names another one now: both who lost it and who got it must look.
        await client.update(SECRET, {"metadata": {"name": "s", "namespace": "default", "labels": {"of": "y"}}})
        await eventually(lambda: sorted(reconciler.asked) == ["a", "a", "a", "b", "b"])


async def test_at_a_look_at_everything_objects_are_asked_for_by_themselves_and_not_by_others_that_name_them(client: AsyncClient) -> None:
    mapped = []

    async def named(known: Object, cache: Cache) -> Iterable[Request]:
        mapped.append(known.name)
        return [Request("default", "a")]

    await client.create(CONFIG_MAP, manifest("a"))
    await client.create(SECRET, {"metadata": {"name": "s", "namespace": "default"}})
    reconciler = Recording(Watch(CONFIG_MAP), Watch(SECRET, requests=named))
    async with running(client, reconciler, resync=0.05):
        await eventually(lambda: reconciler.asked.count("a") > 5)
    assert mapped == ["s"]


async def test_changes_that_do_not_count_are_left_out_and_a_filter_that_fails_lets_all_through(client: AsyncClient) -> None:
    def only_created(old: Object | None, new: Object | None) -> bool:
        if new is not None and new.name == "odd":
            raise KeyError("x")
        return old is None

    reconciler = Recording(Watch(CONFIG_MAP, when=only_created))
    async with running(client, reconciler):
        await client.create(CONFIG_MAP, manifest("a"))
        await eventually(lambda: reconciler.asked == ["a"])
        await client.update(CONFIG_MAP, manifest("a", more="yes"))
        await client.create(CONFIG_MAP, manifest("odd"))
        await eventually(lambda: reconciler.asked == ["a", "odd"])


async def test_the_watch_filter_leaves_all_others_alone(client: AsyncClient) -> None:
    reconciler = Recording()
    async with running(client, reconciler, watch_filter="mine"):
        await client.create(CONFIG_MAP, manifest("other", **{"cluster.x-k8s.io/watch-filter": "theirs"}))
        await client.create(CONFIG_MAP, manifest("none"))
        await client.create(CONFIG_MAP, manifest("mine", **{"cluster.x-k8s.io/watch-filter": "mine"}))
        await eventually(lambda: reconciler.asked == ["mine"])


async def test_a_failed_reconcile_is_run_again_until_it_succeeds(client: AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    outcomes = [
        OperatorError("the network is down"),
        ValueError("a bug"),
        ConflictError("changed", code=409, reason="Conflict"),
    ]

    async def work(request: Request) -> Result:
        if outcomes:
            raise outcomes.pop(0)
        return DONE

    reconciler = Recording(work=work)
    with caplog.at_level(logging.INFO):
        async with running(client, reconciler) as run:
            await client.create(CONFIG_MAP, manifest("a"))
            await eventually(lambda: run.metric("controller_runtime_reconcile_total", result="success") == 1)
    assert reconciler.asked == ["a"] * 4
    assert run.metric("controller_runtime_reconcile_total", result="error") == 3
    assert run.metric("controller_runtime_reconcile_errors_total") == 3
    assert run.metric("controller_runtime_reconcile_panics_total") == 1
    assert run.metric("workqueue_retries_total", name="recording") == 3
    told = [(record.levelname, record.getMessage(), record.__dict__["fields"].get("err", "")) for record in caplog.records]
    assert ("ERROR", "Reconciler error", "the network is down") in told
    assert ("INFO", "The object was changed meanwhile: reconciling again", "changed") in told
    # A bug comes with where it is; an operator's error does not.
    assert [record.exc_info is not None for record in caplog.records if record.levelname == "ERROR"] == [False, True]


async def test_a_reconcile_that_hangs_is_ended_and_run_again(client: AsyncClient) -> None:
    hang = [True]

    async def work(request: Request) -> Result:
        if hang:
            hang.pop()
            await asyncio.Event().wait()
        return DONE

    reconciler = Recording(work=work)
    async with running(client, reconciler, timeout=0.1) as run:
        await client.create(CONFIG_MAP, manifest("a"))
        await eventually(lambda: run.metric("controller_runtime_reconcile_total", result="success") == 1)
        assert run.metric("controller_runtime_reconcile_timeouts_total") == 1
        assert run.metric("controller_runtime_reconcile_panics_total") == 0


async def test_a_result_may_ask_to_look_again_later(client: AsyncClient) -> None:
    async def work(request: Request) -> Result:
        return Result(requeue_after=0.01) if len(reconciler.asked) < 3 else DONE

    reconciler = Recording(work=work)
    async with running(client, reconciler) as run:
        await client.create(CONFIG_MAP, manifest("a"))
        await eventually(lambda: run.metric("controller_runtime_reconcile_total", result="success") == 1)
        assert run.metric("controller_runtime_reconcile_total", result="requeue_after") == 2


async def test_waits_are_as_short_as_the_pace_says(client: AsyncClient) -> None:
    async def work(request: Request) -> Result:
        return Result(requeue_after=3600) if len(reconciler.asked) < 2 else DONE

    reconciler = Recording(work=work)
    reconciler.interval = 3600.0
    async with running(client, reconciler, pace=1e-6) as run:
        await client.create(CONFIG_MAP, manifest("a"))
        await eventually(lambda: run.metric("controller_runtime_reconcile_total", result="success") == 1)


async def test_workers_work_at_once_but_never_two_on_one_object(client: AsyncClient) -> None:
    at_work: Counter[str] = Counter()
    most: Counter[str] = Counter()
    gate = asyncio.Event()

    async def work(request: Request) -> Result:
        at_work[request.name] += 1
        most[request.name] = max(most[request.name], at_work[request.name])
        most["all"] = max(most["all"], at_work.total())
        await gate.wait()
        at_work[request.name] -= 1
        return DONE

    reconciler = Recording(work=work)
    async with running(client, reconciler, concurrency=3) as run:
        for name in ("a", "b", "c", "d"):
            await client.create(CONFIG_MAP, manifest(name))
        await eventually(lambda: len(reconciler.asked) == 3)
        await client.update(CONFIG_MAP, manifest("a", again="yes"))
        assert run.metric("controller_runtime_active_workers") == 3
        gate.set()
        await eventually(lambda: sorted(reconciler.asked) == ["a", "a", "b", "c", "d"])
    assert most == {"a": 1, "b": 1, "c": 1, "d": 1, "all": 3}


async def test_an_event_that_cannot_be_mapped_is_mapped_later(client: AsyncClient) -> None:
    failures = [OperatorError("not now")]

    async def named(known: Object, cache: Cache) -> Iterable[Request]:
        if failures:
            raise failures.pop()
        return [Request("default", "mapped")]

    reconciler = Recording(Watch(CONFIG_MAP), Watch(SECRET, requests=named))
    async with running(client, reconciler) as run:
        await client.create(SECRET, {"metadata": {"name": "s", "namespace": "default"}})
        await eventually(lambda: reconciler.asked == ["mapped"])
        assert run.metric("slipway_watch_mapping_errors_total") == 1


async def test_events_that_cannot_be_mapped_for_one_reason_are_told_once(client: AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    failures = [OperatorError("another reason"), *(OperatorError("the server is away") for _ in range(5))]

    async def named(known: Object, cache: Cache) -> Iterable[Request]:
        if failures:
            raise failures.pop()
        return [Request("default", known.name)]

    for name in ("a", "b", "c"):
        await client.create(SECRET, {"metadata": {"name": name, "namespace": "default"}})
    reconciler = Recording(Watch(CONFIG_MAP), Watch(SECRET, requests=named))
    async with running(client, reconciler) as run:
        await eventually(lambda: sorted(reconciler.asked) == ["a", "b", "c"])
        assert run.metric("slipway_watch_mapping_errors_total") == 6
    told = [record for record in caplog.records if record.message == "An event could not be mapped to requests"]
    assert len(told) == 2


async def test_a_kind_may_be_watched_from_inside_a_reconcile_and_again(client: AsyncClient) -> None:
    async def named(known: Object, cache: Cache) -> Iterable[Request]:
        return [Request("default", f"of-{known.name}")]

    async def work(request: Request) -> Result:
        run.controller.watch(Watch(SECRET, requests=named))
        return DONE

    await client.create(SECRET, {"metadata": {"name": "s", "namespace": "default"}})
    reconciler = Recording(work=work)
    async with running(client, reconciler) as run:
        await client.create(CONFIG_MAP, manifest("a"))
        await eventually(lambda: reconciler.asked == ["a", "of-s"])
        assert len(run.controller.watches) == 2


async def test_on_stop_what_runs_ends_and_what_waits_is_left(client: AsyncClient) -> None:
    gate, ended = asyncio.Event(), []

    async def work(request: Request) -> Result:
        await gate.wait()
        ended.append(request.name)
        return DONE

    reconciler = Recording(work=work)
    async with running(client, reconciler, concurrency=1) as run:
        for name in ("a", "b"):
            await client.create(CONFIG_MAP, manifest(name))
        await eventually(lambda: run.metric("workqueue_depth", name="recording") == 1)
        run.stop.set()
        await eventually(lambda: run.metric("workqueue_depth", name="recording") == 0)
        gate.set()
        await asyncio.wait_for(run.task, 10)
    assert (reconciler.asked, ended) == (["a"], ["a"])


async def test_on_stop_what_does_not_end_in_its_grace_is_cancelled(client: AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    cancelled: list[str] = []

    async def work(request: Request) -> Result:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(request.name)
            raise
        return DONE

    reconciler = Recording(work=work)
    async with running(client, reconciler, grace=0.05) as run:
        await client.create(CONFIG_MAP, manifest("a"))
        await eventually(lambda: reconciler.asked == ["a"])
        run.stop.set()
        await asyncio.wait_for(run.task, 10)
    assert cancelled == ["a"]
    assert "Cancelling reconciles that did not end" in caplog.text


async def test_who_may_not_work_does_not(client: AsyncClient) -> None:
    allowed = False
    reconciler = Recording()
    async with running(client, reconciler, may_work=lambda _: allowed) as run:
        await client.create(CONFIG_MAP, manifest("a"))
        await eventually(lambda: run.metric("workqueue_work_duration_seconds_count", name="recording") == 1)
        assert reconciler.asked == []


async def test_a_controller_without_workers_is_refused(client: AsyncClient) -> None:
    with pytest.raises(OperatorError, match="cannot work with a concurrency of 0"):
        Controller(Recording(), Cache(client), Metrics(), concurrency=0)


async def test_an_object_can_be_asked_for_without_an_event(client: AsyncClient) -> None:
    reconciler = Recording()
    async with running(client, reconciler) as run:
        await eventually(lambda: run.controller._running is not None)
        run.controller.enqueue(Request("default", "elsewhere"))
        await eventually(lambda: reconciler.asked == ["elsewhere"])


@pytest.mark.parametrize(
    ("interval", "pause", "respite"),
    [(0.2, 0.0, 0.0), (0.0, 0.2, 0.0), (0.1, 0.2, 0.0), (0.2, 0.1, 0.0), (0.0, 0.1, 10.0), (0.1, 0.0, 10.0)],
)
async def test_an_object_that_changes_often_is_reconciled_once_in_an_interval(
    client: AsyncClient, interval: float, pause: float, respite: float
) -> None:
    began: list[float] = []

    async def note(request: Request) -> Result:
        began.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.02)
        return Result(pause=pause if request.name == "busy" else 0.0)

    reconciler = Recording(work=note)
    reconciler.interval, reconciler.respite = interval, respite
    await client.create(CONFIG_MAP, manifest("busy"))
    async with running(client, reconciler) as run:
        await eventually(lambda: reconciler.asked)
        for _ in range(5):
            run.controller.enqueue(Request("default", "busy"))
            await asyncio.sleep(0)
        run.controller.enqueue(Request("default", "other"))
        await eventually(lambda: "other" in reconciler.asked)
        await eventually(lambda: reconciler.asked.count("busy") == 2)
    # The time counts from when the first was taken up, which on a busy machine is some time before it gets there.
    assert began[-1] - began[0] > 0.15


async def test_what_took_longest_is_left_alone_as_long_as_anything(client: AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "_LONGEST_RESPITE", 0.1)
    began: list[float] = []

    async def note(request: Request) -> Result:
        began.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.15)
        return DONE

    reconciler = Recording(work=note)
    reconciler.respite = 1000.0
    async with running(client, reconciler) as run:
        await eventually(lambda: run.controller._running is not None)
        run.controller.enqueue(Request("default", "slow"))
        await eventually(lambda: began)
        run.controller.enqueue(Request("default", "slow"))
        await eventually(lambda: len(began) == 2)
    assert began[1] - began[0] > 0.24
