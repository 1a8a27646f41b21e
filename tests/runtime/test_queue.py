"""The rules of client-go's workqueue: once in the queue, one worker a key, nothing lost, delays that double."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from runtime.manual_clock import ManualClock, settled

from slipway.runtime.queue import Queue, QueueClosed


def take(queue: Queue[str]) -> str:
    """The next key of a queue that has one."""
    coroutine = queue.get()
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    return str(ended.value.value)


def make() -> tuple[Queue[str], ManualClock]:
    clock = ManualClock()
    return Queue(clock=clock), clock


def test_keys_come_in_the_order_of_their_adds_and_each_once() -> None:
    queue, _ = make()
    for key in "abab":
        queue.add(key)
    assert [take(queue), take(queue), len(queue)] == ["a", "b", 0]


def test_a_key_that_is_added_while_it_is_processed_is_processed_once_more_afterwards() -> None:
    queue, _ = make()
    queue.add("a")
    take(queue)
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert take(queue) == "a"
    queue.done("a")
    assert len(queue) == 0


def test_what_can_wait_comes_after_what_something_has_happened_to() -> None:
    queue, _ = make()
    for key in "xyz":
        queue.add(key, patient=True)
    queue.add("a")
    # Something happens to one that waits: it is there once.
    queue.add("y")
    queue.add("a", patient=True)
    assert [take(queue) for _ in range(4)] == ["a", "y", "x", "z"]
    assert len(queue) == 0


def test_what_can_wait_has_its_turn_however_much_happens() -> None:
    queue, _ = make()
    queue.add("x", patient=True)
    for number in range(20):
        queue.add(str(number))
    first = [take(queue) for _ in range(10)]
    assert "x" in first


def test_a_key_that_can_wait_and_is_in_hand_is_for_the_next_one_afterwards() -> None:
    queue, _ = make()
    queue.add("x", patient=True)
    take(queue)
    queue.add("x", patient=True)
    assert len(queue) == 0
    queue.done("x")
    assert take(queue) == "x"


def test_failures_in_a_row_double_the_delay_from_5_ms_to_1000_s() -> None:
    queue, clock = make()
    delays = []
    for _ in range(20):
        delays.append(queue.add_rate_limited("a"))
        clock.advance(delays[-1])
        take(queue)
        queue.done("a")
    assert delays == [min(0.005 * 2**n, 1000.0) for n in range(20)]
    assert delays[-2:] == [1000.0, 1000.0]


def test_a_success_makes_the_next_failure_the_first() -> None:
    queue, _ = make()
    assert [queue.add_rate_limited("a"), queue.add_rate_limited("a"), queue.failures("a")] == [0.005, 0.01, 2]
    queue.forget("a")
    assert [queue.failures("a"), queue.add_rate_limited("a"), queue.add_rate_limited("b")] == [0, 0.005, 0.005]


def test_a_delayed_add_comes_at_its_time_and_not_before() -> None:
    queue, clock = make()
    queue.add_after("a", 30)
    clock.advance(29.999)
    assert (len(queue), queue.delayed) == (0, 1)
    clock.advance(0.001)
    assert (len(queue), queue.delayed) == (1, 0)


@pytest.mark.parametrize(("first", "second"), [(30, 10), (10, 30)])
def test_of_two_delays_of_one_key_the_shorter_one_counts_and_only_that(first: float, second: float) -> None:
    queue, clock = make()
    queue.add_after("a", first)
    queue.add_after("a", second)
    clock.advance(10)
    assert take(queue) == "a"
    queue.done("a")
    clock.advance(1000)
    assert len(queue) == 0


def test_an_add_leaves_a_delayed_add_of_the_same_key_in_place() -> None:
    queue, clock = make()
    queue.add_after("a", 10)
    queue.add("a")
    take(queue)
    queue.done("a")
    clock.advance(10)
    assert take(queue) == "a"


@pytest.mark.asyncio
async def test_a_worker_that_waits_gets_what_is_added() -> None:
    queue, _ = make()
    waiting = [asyncio.create_task(queue.get()) for _ in range(2)]
    await settled()
    queue.add("a")
    queue.add("b")
    assert await asyncio.gather(*waiting) == ["a", "b"]


@pytest.mark.asyncio
async def test_a_key_for_which_a_worker_was_woken_that_is_cancelled_goes_to_another_one() -> None:
    queue, _ = make()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await settled()
    queue.add("a")
    first.cancel()
    assert await asyncio.wait_for(second, 5) == "a"
    assert first.cancelled()


@pytest.mark.asyncio
async def test_closing_ends_the_workers_that_wait_and_takes_nothing_more() -> None:
    queue, clock = make()
    queue.add("in hand")
    assert await queue.get() == "in hand"
    waiting = asyncio.create_task(queue.get())
    await settled()
    queue.add_after("later", 1)
    queue.close()
    queue.add("more")
    queue.add_rate_limited("more")
    clock.advance(10)
    with pytest.raises(QueueClosed):
        await waiting
    with pytest.raises(QueueClosed):
        await queue.get()
    drained = asyncio.create_task(queue.drained())
    await settled()
    assert not drained.done()
    queue.done("in hand")
    await asyncio.wait_for(drained, 5)


class _Recorder:
    def __init__(self) -> None:
        self.told: list[tuple[str, float]] = []

    def added(self) -> None:
        self.told.append(("added", 0))

    def taken(self, seconds: float) -> None:
        self.told.append(("taken", seconds))

    def finished(self, seconds: float) -> None:
        self.told.append(("finished", seconds))

    def retried(self) -> None:
        self.told.append(("retried", 0))


def test_metrics_hear_of_adds_waiting_and_working_times() -> None:
    clock, told = ManualClock(), _Recorder()
    queue: Queue[str] = Queue(clock=clock, metrics=told)
    queue.add("a")
    clock.advance(2)
    take(queue)
    clock.advance(3)
    queue.done("a")
    assert told.told == [("added", 0), ("taken", 2), ("finished", 3)]


KEYS = st.sampled_from("abcd")


class QueueMachine(RuleBasedStateMachine):
    """Any sequence of calls; the model is what is owed: a key that was added must be handed out after that add."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.queue: Queue[str] = Queue(clock=self.clock)
        self.owed: set[str] = set()
        self.later: dict[str, float] = {}
        self.failures: Counter[str] = Counter()
        self.hands: set[str] = set()

    @rule(key=KEYS, patient=st.booleans())
    def add(self, key: str, patient: bool) -> None:
        self.queue.add(key, patient=patient)
        self.owed.add(key)

    @rule(key=KEYS, seconds=st.integers(1, 20))
    def add_after(self, key: str, seconds: int) -> None:
        self.queue.add_after(key, seconds)
        self.later[key] = min(self.later.get(key, float("inf")), self.clock.now + seconds)

    @rule(key=KEYS)
    def add_rate_limited(self, key: str) -> None:
        delay = self.queue.add_rate_limited(key)
        assert delay == min(0.005 * 2 ** self.failures[key], 1000.0)
        self.failures[key] += 1
        self.later[key] = min(self.later.get(key, float("inf")), self.clock.now + delay)

    @rule(key=KEYS)
    def forget(self, key: str) -> None:
        self.queue.forget(key)
        del self.failures[key]

    @rule(seconds=st.integers(0, 30))
    def advance(self, seconds: int) -> None:
        self.clock.advance(seconds)
        for key in [key for key, when in self.later.items() if when <= self.clock.now]:
            del self.later[key]
            self.owed.add(key)

    @precondition(lambda self: len(self.queue) > 0)
    @rule()
    def get(self) -> None:
        key = take(self.queue)
        assert key not in self.hands, "two workers have one key"
        self.hands.add(key)
        self.owed.remove(key)

    @precondition(lambda self: bool(self.hands))
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.hands)))
        self.hands.remove(key)
        self.queue.done(key)

    @invariant()
    def what_is_owed_waits_unless_it_is_in_hand(self) -> None:
        assert len(self.queue) == len(self.owed - self.hands)
        assert self.queue.delayed == len(self.later)
        assert set(self.queue.processing) == self.hands


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)


@settings(max_examples=60, deadline=None)
@given(
    adds=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=40),
    work=st.lists(st.integers(0, 4), min_size=1, max_size=10),
    workers=st.integers(1, 4),
    cancels=st.lists(st.integers(0, 60), max_size=4),
)
def test_workers_that_come_and_go_lose_nothing_and_never_meet_at_a_key(
    adds: list[tuple[str, int]], work: list[int], workers: int, cancels: list[int]
) -> None:
    async def run() -> None:
        queue: Queue[str] = Queue(clock=ManualClock())
        added: Counter[str] = Counter()
        seen: dict[str, int] = {}
        hands: set[str] = set()
        steps = 0

        async def worker() -> None:
            nonlocal steps
            while True:
                try:
                    key = await queue.get()
                except QueueClosed:
                    return
                assert key not in hands
                hands.add(key)
                seen[key] = added[key]
                try:
                    for _ in range(work[steps % len(work)]):
                        steps += 1
                        await asyncio.sleep(0)
                finally:
                    hands.remove(key)
                    queue.done(key)

        tasks = [asyncio.create_task(worker()) for _ in range(workers)]
        for number, (key, pause) in enumerate(adds):
            added[key] += 1
            queue.add(key)
            if number in cancels:
                tasks.pop(0).cancel()
                tasks.append(asyncio.create_task(worker()))
            for _ in range(pause):
                await asyncio.sleep(0)
        for _ in range(500):
            await asyncio.sleep(0)
        # Each key was taken after its last add.
        assert (seen, hands, len(queue)) == (dict(added), set(), 0)
        queue.close()
        await asyncio.gather(*tasks)

    asyncio.run(run())
