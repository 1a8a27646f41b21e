"""An informer through everything that lists and watches go through: pages, bookmarks, 410, silence, refusals, a server that is away."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from runtime.manual_clock import ManualClock
from runtime.replay_server import EXPIRED, EXPIRED_EVENT, FORBIDDEN, NO_SUCH_RESOURCE, ReplayServer, bookmark, event, item, page
from support.waiting import eventually

from slipway.api.cluster.kinds import CONFIG_MAP
from slipway.kube.aio import AsyncClient
from slipway.runtime.cache.informer import Informer, Scope
from slipway.runtime.clock import Backoff
from slipway.runtime.metrics import Metrics
from slipway.runtime.objects import Object

pytestmark = pytest.mark.asyncio


class Followed:
    """An informer that runs, and the changes that it told, as (name, old version, new version)."""

    def __init__(self, server: ReplayServer, *, resync: float = 0.0, silence: float = 60.0, most: int = 0, labels: str = "") -> None:
        self.client = AsyncClient(server.connection)
        self.metrics = Metrics()
        self.backoff = Backoff(0.01, 0.01, jitter=0)
        self.informer = Informer(
            self.client,
            Scope(CONFIG_MAP, "", labels),
            metrics=self.metrics,
            resync=resync,
            silence=silence,
            most=most,
            backoff=self.backoff,
        )
        self.told: list[tuple[str, str, str]] = []
        self.informer.add_handler(self._handle)
        self.task = asyncio.create_task(self.informer.run())

    def _handle(self, old: Object | None, new: Object | None) -> None:
        name = (new or old).name  # type: ignore[union-attr]
        self.told.append((name, _version(old), _version(new)))

    def take(self) -> list[tuple[str, str, str]]:
        told, self.told = self.told, []
        return told

    def metric(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, {"kind": "configmaps", "namespace": "", **labels}) or 0.0


def _version(known: Object | None) -> str:
    return known.metadata.resource_version if known is not None else ""


@pytest_asyncio.fixture
async def server() -> AsyncIterator[ReplayServer]:
    async with ReplayServer() as started:
        yield started


Follow = Callable[..., Followed]


@pytest_asyncio.fixture
async def follow(server: ReplayServer) -> AsyncIterator[Follow]:
    made: list[Followed] = []

    def start(**options: float) -> Followed:
        made.append(Followed(server, **options))  # type: ignore[arg-type]
        return made[-1]

    yield start
    for each in made:
        each.task.cancel()
        await asyncio.wait({each.task})
        await each.client.close()


async def test_a_list_comes_in_pages_and_the_watch_begins_where_it_ended(server: ReplayServer, follow: Follow) -> None:
    followed = follow()
    first = await server.next_list()
    assert (first.request.path, first.query) == ("/api/v1/configmaps", {"limit": "500"})
    await first.answer(page(10, item("a", 5), more="next"))
    second = await server.next_list()
    assert second.query == {"limit": "500", "continue": "next"}
    assert not followed.informer.synced.is_set()
    await second.answer(page(10, item("b", 7)))
    watch = await server.next_watch()
    assert (watch.query["resourceVersion"], watch.query["allowWatchBookmarks"]) == ("10", "true")
    assert 300 <= int(watch.query["timeoutSeconds"]) <= 600
    assert followed.informer.synced.is_set()
    assert followed.take() == [("a", "", "5"), ("b", "", "7")]
    found = followed.informer.store.get("a", "default")
    assert found is not None
    # Items of a list come without their kind, and the whole object has it.
    assert found.content()["kind"] == "ConfigMap"
    assert found.content()["data"] == {"k": "5"}


async def test_changes_are_told_with_the_state_before_and_after(server: ReplayServer, follow: Follow) -> None:
    followed = follow()
    await (await server.next_list()).answer(page(10, item("a", 5)))
    watch = await server.next_watch()
    followed.take()
    await watch.send(event("ADDED", "b", 11), event("MODIFIED", "a", 12), event("DELETED", "b", 13))
    await eventually(lambda: len(followed.told) == 3)
    assert followed.take() == [("b", "", "11"), ("a", "5", "12"), ("b", "13", "")]
    assert [known.name for known in followed.informer.store.list()] == ["a"]
    assert {kind: followed.metric("slipway_informer_events_total", type=kind) for kind in ("ADDED", "MODIFIED", "DELETED")} == {
        "ADDED": 2,
        "MODIFIED": 1,
        "DELETED": 1,
    }


async def test_a_watch_that_ended_is_resumed_from_the_last_bookmark(server: ReplayServer, follow: Follow) -> None:
    followed = follow()
    await (await server.next_list()).answer(page(10))
    watch = await server.next_watch()
    await watch.send(event("ADDED", "a", 11), bookmark(400))
    await watch.end()
    again = await server.next_watch()
    assert again.query["resourceVersion"] == "400"
    assert followed.metric("slipway_informer_lists_total") == 1


async def test_a_connection_that_breaks_is_resumed_without_a_list(server: ReplayServer, follow: Follow) -> None:
    followed = follow()
    await (await server.next_list()).answer(page(10))
    watch = await server.next_watch()
    await watch.send(event("ADDED", "a", 11))
    await eventually(lambda: followed.told)
    await watch.break_off()
    again = await server.next_watch()
    assert again.query["resourceVersion"] == "11"
    assert followed.informer.error != ""
    await again.send(bookmark(12))
    await eventually(lambda: followed.informer.error == "")
    assert followed.metric("slipway_informer_errors_total", reason="Unreachable") == 1


@pytest.mark.parametrize("how", ["event", "status"])
async def test_a_watch_that_is_too_old_leads_to_a_list_that_tells_what_was_deleted_meanwhile(
    server: ReplayServer, follow: Follow, how: str
) -> None:
    followed = follow()
    await (await server.next_list()).answer(page(10, item("stays", 1), item("changes", 2), item("goes", 3)))
    watch = await server.next_watch()
    followed.take()
    await (watch.send(EXPIRED_EVENT) if how == "event" else watch.answer(EXPIRED, 410))
    again = await server.next_list()
    assert again.query == {"limit": "500"}
    await again.answer(page(500, item("stays", 1), item("changes", 499), item("comes", 498)))
    assert (await server.next_watch()).query["resourceVersion"] == "500"
    assert followed.take() == [("changes", "2", "499"), ("comes", "", "498"), ("goes", "3", "")]
    assert followed.metric("slipway_informer_errors_total", reason="Expired") == 1
    assert followed.metric("slipway_informer_objects") == 3


async def test_a_list_that_the_server_forgot_half_way_is_made_in_one_piece(server: ReplayServer, follow: Follow) -> None:
    followed = follow()
    await (await server.next_list()).answer(page(10, item("a", 5), more="next"))
    await (await server.next_list()).answer(EXPIRED, 410)
    whole = await server.next_list()
    assert whole.query == {}
    await whole.answer(page(20, item("b", 6)))
    await server.next_watch()
    # What the first page had told and the whole list has not is gone.
    assert followed.take() == [("a", "", "5"), ("b", "", "6"), ("a", "5", "")]


async def test_a_watch_on_which_not_even_bookmarks_come_is_opened_anew(server: ReplayServer, follow: Follow) -> None:
    followed = follow(silence=0.3)
    await (await server.next_list()).answer(page(10))
    watch = await server.next_watch()
    await watch.send(bookmark(11))
    again = await server.next_watch()
    assert again.query["resourceVersion"] == "11"
    assert "said nothing for 0.3s" in followed.informer.error
    assert followed.metric("slipway_informer_errors_total", reason="Silent") == 1


async def test_a_refusal_is_told_and_tried_again_until_it_is_allowed(server: ReplayServer, follow: Follow) -> None:
    followed = follow()
    for _ in range(3):
        await (await server.next_list()).answer(FORBIDDEN, 403)
    allowed = await server.next_list()
    assert 'configmaps is forbidden: User "nobody" cannot list resource' in followed.informer.error
    assert not followed.informer.synced.is_set()
    assert followed.metric("slipway_informer_errors_total", reason="Forbidden") == 3
    assert followed.metric("slipway_informer_failing") == 1
    await allowed.answer(page(10))
    # A list alone is not enough: only an open watch is the end of the trouble.
    watch = await server.next_watch()
    assert followed.informer.error != ""
    await watch.send(bookmark(11))
    await eventually(lambda: followed.informer.error == "")
    assert followed.metric("slipway_informer_failing") == 0


async def test_a_refused_watch_leads_to_a_list_after_a_growing_delay(server: ReplayServer, follow: Follow) -> None:
    followed = follow()
    for failures in range(3):
        await (await server.next_list()).answer(page(10))
        await (await server.next_watch()).answer(FORBIDDEN, 403)
        await eventually(lambda expected=failures + 1: followed.backoff.failures == expected)  # type: ignore[misc]


async def test_a_kind_that_the_server_does_not_know_is_empty_until_it_does(server: ReplayServer, follow: Follow) -> None:
    followed = follow()
    await (await server.next_list()).answer(NO_SUCH_RESOURCE, 404)
    await asyncio.wait_for(followed.informer.synced.wait(), 10)
    assert followed.take() == []
    await (await server.next_list()).answer(page(10, item("a", 5)))
    await server.next_watch()
    assert followed.take() == [("a", "", "5")]


async def test_of_a_kind_that_is_not_installed_the_log_says_so_once(
    server: ReplayServer, follow: Follow, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "slipway.runtime.informer")
    followed = follow()
    for _ in range(3):
        await (await server.next_list()).answer(NO_SUCH_RESOURCE, 404)
    await (await server.next_list()).answer(FORBIDDEN, 403)
    await server.next_list()
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert told == [
        ("INFO", "The kind is not installed: it is asked for from time to time"),
        ("WARNING", "A list or watch failed and is tried again"),
    ]
    assert followed.metric("slipway_informer_errors_total", reason="404") == 3
    assert followed.metric("slipway_informer_failing") == 1


async def test_a_watch_that_ends_at_once_again_and_again_is_waited_for(server: ReplayServer, follow: Follow) -> None:
    followed = follow()
    await (await server.next_list()).answer(page(10))
    for failures in range(4):
        watch = await server.next_watch()
        assert (watch.query["resourceVersion"], followed.backoff.failures) == ("10", failures)
        await watch.end()
    # After five failures in a row the version is no longer trusted.
    await (await server.next_watch()).end()
    await server.next_list()


async def test_something_that_is_no_object_of_kubernetes_is_told_and_waited_out(server: ReplayServer, follow: Follow) -> None:
    followed = follow()
    await (await server.next_list()).answer(page(10, '{"metadata":{"name":7}}'))
    await (await server.next_list()).answer(page(10, item("a", 5)))
    watch = await server.next_watch()
    assert "an object of configmaps is not one of Kubernetes: Expected `str`, got `int`" in followed.informer.error
    await watch.send('{"type":"SURPRISE","object":{"metadata":{"name":"b"}}}\n')
    await (await server.next_list()).answer(page(11, item("a", 5)))
    await (await server.next_watch()).send(bookmark(12))
    await eventually(lambda: followed.informer.error == "")
    assert followed.metric("slipway_informer_errors_total", reason="InvalidAnswer") == 2
    assert followed.take() == [("a", "", "5")]


async def test_no_more_objects_are_kept_than_a_server_may_have(server: ReplayServer, follow: Follow) -> None:
    followed = follow(most=2)
    await (await server.next_list()).answer(page(10, item("a", 5), item("b", 6), item("c", 7)))
    await eventually(lambda: "more than 2 configmaps" in followed.informer.error)
    assert len(followed.informer.store) == 2
    await (await server.next_list()).answer(page(12, item("a", 5), item("b", 11)))
    watch = await server.next_watch()
    await watch.send(f'{{"type":"MODIFIED","object":{item("a", 13)}}}\n')
    await eventually(lambda: ("a", "5", "13") in followed.told)
    await watch.send(f'{{"type":"ADDED","object":{item("c", 14)}}}\n')
    await eventually(lambda: "more than 2 configmaps" in followed.informer.error)


async def test_a_resync_tells_everything_again(server: ReplayServer, follow: Follow) -> None:
    followed = follow(resync=0.2)
    await (await server.next_list()).answer(page(10, item("a", 5)))
    await eventually(lambda: ("a", "5", "5") in followed.told)


async def test_many_objects_are_told_again_some_at_a_time_and_not_those_that_changed_meanwhile(
    server: ReplayServer, follow: Follow
) -> None:
    followed, clock = follow(), ManualClock()
    await (await server.next_list()).answer(page(10, *(item(f"n{number:02d}", 5) for number in range(30))))
    watch = await server.next_watch()
    followed.told.clear()
    look = asyncio.create_task(followed.informer._look_again(clock))
    await eventually(lambda: len(followed.told) == 25)
    await watch.send(event("MODIFIED", "n29", 11))
    await eventually(lambda: followed.told[-1] == ("n29", "5", "11"))
    # With thousands of objects that takes up to an hour, in which all of them may change.
    held = {each.metadata.resource_version for each in gc.get_objects() if isinstance(each, Object) and each.name == "n29"}
    assert held == {"11"}
    clock.advance(25 / 3)
    await look
    assert [name for name, old, new in followed.told if old == new] == [f"n{number:02d}" for number in range(29)]


async def test_who_comes_late_is_told_what_is_there_and_who_leaves_nothing_more(server: ReplayServer, follow: Follow) -> None:
    followed = follow()
    await (await server.next_list()).answer(page(10, item("a", 5)))
    watch = await server.next_watch()
    late: list[str] = []
    remove = followed.informer.add_handler(lambda old, new: late.append(_version(new)))
    assert late == ["5"]
    await watch.send(event("MODIFIED", "a", 11))
    await eventually(lambda: late == ["5", "11"])
    remove()
    await watch.send(event("MODIFIED", "a", 12))
    await eventually(lambda: followed.told[-1][2] == "12")
    assert late == ["5", "11"]


async def test_the_delays_of_a_back_off_double_to_their_longest_with_jitter_on_top() -> None:
    still = Backoff(random=lambda: 0.0)
    assert [still.next() for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    still.reset()
    assert still.next() == 0.8
    assert Backoff(random=lambda: 0.5).next() == pytest.approx(1.2)
