"""How processes agree on who has which shards: with Leases of a real API server, in a time that the test moves."""

from __future__ import annotations

import asyncio

import pytest
from runtime.sharding.members import NAMESPACE, NOW, town
from support.waiting import eventually

from slipway.api.cluster.kinds import LEASE
from slipway.kube.aio import AsyncClient
from slipway.runtime.leader import LeaseLostError, LeaseTimes, taken

pytestmark = pytest.mark.asyncio
TIMES = LeaseTimes()
# What was seen last may be as old as a look, and the next one comes a look later.
LOOK = 1.2 * TIMES.retry_period


async def test_the_first_one_has_all_shards_and_a_second_one_gets_its_share() -> None:
    async with town() as place:
        first = place.join("a", 4)
        await place.until(lambda: first.working == {0, 1, 2, 3}, 5)
        second = place.join("b", 4)
        await place.until(lambda: len(first.working) == len(second.working) == 2, 15)
        assert first.working | second.working == {0, 1, 2, 3}
        assert first.coordinator.members == {"a", "b"}


async def test_those_who_start_together_deal_the_shards_out_once() -> None:
    async with town() as place:
        members = [place.join(who, 4) for who in "ab"]
        await place.until(lambda: all(len(member.working) == 2 for member in members), 15)
        transitions = [await members[0].client.get(LEASE, f"manager-shard-{shard}", NAMESPACE) for shard in range(4)]
        assert [lease["spec"]["leaseTransitions"] for lease in transitions] == [0, 0, 0, 0]


async def test_the_shards_of_one_who_dies_are_taken_within_the_lease() -> None:
    async with town() as place:
        first, second = place.join("a"), place.join("b")
        await place.until(lambda: len(first.working) == len(second.working) == 1, 15)
        second.die()
        took = await place.until(lambda: first.may_work_on() == {0, 1}, 60)
        assert TIMES.renew_deadline < took <= TIMES.lease_duration + 2 * LOOK
        # And before that it stopped by itself.
        assert second.may_work_on() == set()
        assert isinstance(second.task.exception(), LeaseLostError)


async def test_a_shard_is_given_to_another_one_only_when_its_reconciles_have_ended() -> None:
    async with town() as place:
        first = place.join("a")
        first.gate = asyncio.Event()
        await place.until(lambda: first.working == {0, 1}, 5)
        second = place.join("b")
        await place.pass_(20)
        assert (first.working, second.working) == ({0, 1}, set())
        first.gate.set()
        await place.until(lambda: len(first.working) == len(second.working) == 1, 10)


async def test_one_who_stops_gives_its_shards_to_those_who_are_left_at_once() -> None:
    async with town() as place:
        first, second = place.join("a"), place.join("b")
        await place.until(lambda: len(first.working) == len(second.working) == 1, 15)
        await second.stop()
        took = await place.until(lambda: first.may_work_on() == {0, 1}, 60)
        assert took <= 2 * LOOK


async def test_the_last_one_to_stop_leaves_nothing_held() -> None:
    async with town() as place:
        first, second = place.join("a"), place.join("b")
        await place.until(lambda: len(first.working) == len(second.working) == 1, 15)
        await second.stop()
        assert await place.holder_of("machines") == "default/manager in 2 shards"
        await first.stop()
        leases = await first.client.list(LEASE, NAMESPACE)
        assert {lease["metadata"]["name"]: lease["spec"]["holderIdentity"] for lease in leases} == dict.fromkeys(
            ["machines", "baremetal", "manager-member-0", "manager-member-1", "manager-shard-0", "manager-shard-1"], ""
        )


async def test_one_more_than_there_are_shards_is_a_spare_and_takes_the_place_of_one_who_goes() -> None:
    async with town() as place:
        members = [place.join(who) for who in "ab"]
        await place.until(lambda: all(len(member.working) == 1 for member in members), 15)
        spare = place.join("c")
        await place.pass_(20)
        assert spare.working == set()
        assert spare.coordinator.waits_for == "all 2 shards have members, and this process is a spare"
        await members[0].stop()
        await place.until(lambda: len(spare.may_work_on()) == 1, 30)


async def test_who_divides_the_work_otherwise_waits_until_the_last_of_the_others_has_gone() -> None:
    async with town() as place:
        old = [place.join(who, 2) for who in "ab"]
        await place.until(lambda: all(len(member.working) == 1 for member in old), 15)
        new = [place.join(who, 3) for who in "cd"]
        await place.pass_(20)
        assert new[0].coordinator.waits_for == "default/manager in 2 shards holds the lease default/baremetal"
        await old[0].stop()
        await place.until(lambda: old[1].may_work_on() == {0, 1}, 15)
        assert [member.working for member in new] == [set(), set()]
        await old[1].stop()
        await place.until(lambda: set().union(*(member.may_work_on() for member in new)) == {0, 1, 2}, 15)


async def test_a_manager_that_works_alone_and_those_who_share_the_work_never_work_at_the_same_time() -> None:
    async with town() as place, AsyncClient(place.server.connection()) as client:
        alone = taken(None, "alone", LeaseTimes(lease_duration=3600), NOW, namespace=NAMESPACE, name="machines")
        await client.create(LEASE, alone)
        member = place.join("a")
        await place.pass_(20)
        assert member.working == set()
        assert member.coordinator.waits_for == "alone holds the lease default/machines"
        await client.delete(LEASE, "machines", NAMESPACE)
        await place.until(lambda: member.working == {0, 1}, 15)
        # And somebody who takes the guard by force ends it.
        lease = await client.get(LEASE, "machines", NAMESPACE)
        await client.update(LEASE, taken(lease, "alone", TIMES, NOW, namespace=NAMESPACE, name="machines"))
        await place.until(lambda: member.task.done(), 10)
        with pytest.raises(LeaseLostError, match="alone has taken the lease default/machines"):
            member.task.result()


async def test_a_guard_is_written_by_one_of_those_who_hold_it_and_read_by_the_others() -> None:
    async with town() as place:
        members = [place.join(who, 3) for who in "abc"]
        await place.until(lambda: all(len(member.working) == 1 for member in members), 20)
        seen: list[tuple[str, int]] = []
        for member in members:
            member.client.on_request = lambda verb, code, _: seen.append((verb, code))
        await place.pass_(20)
        # 20 s are ten renewals of 3 seats and of 3 shards; those of 2 guards would be 60 more if each of the three made them.
        assert 60 <= seen.count(("update", 200)) <= 60 + 2 * 20
        assert all(len(member.may_work_on()) == 1 for member in members)


async def test_an_api_server_that_is_away_ends_all_before_anybody_could_take_their_place() -> None:
    async with town() as place:
        members = [place.join(who) for who in "ab"]
        await place.until(lambda: all(len(member.working) == 1 for member in members), 15)
        await place.server.stop()
        await place.pass_(TIMES.renew_deadline + LOOK)
        assert [member.may_work_on() for member in members] == [set(), set()]
        await eventually(lambda: all(member.task.done() for member in members))
        assert all(isinstance(member.task.exception(), LeaseLostError) for member in members)


async def test_a_shard_whose_lease_is_just_being_released_is_not_taken_back_before_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async with town() as place:
        first = place.join("a")
        await place.until(lambda: first.working == {0, 1}, 5)
        leaving = first.coordinator.shards[1]
        release, slow = leaving.release, asyncio.Event()

        async def released_late() -> None:
            await slow.wait()
            await release()

        monkeypatch.setattr(leaving, "release", released_late)
        second = place.join("b")
        await place.until(lambda: first.working == {0}, 15)
        # Now there is nobody else to have it.
        second.die()
        await place.pass_(TIMES.lease_duration + 2 * LOOK)
        slow.set()
        await place.quiet()
        assert 1 not in first.may_work_on() or await place.holder_of("manager-shard-1") == "a"
        await place.until(lambda: first.may_work_on() == {0, 1}, 10)


async def test_one_who_sits_down_while_the_last_one_leaves_keeps_the_guards_shut() -> None:
    async with town() as place:
        last = place.join("a")
        await place.until(lambda: last.working == {0, 1}, 10)
        last.task.cancel()
        await asyncio.wait({last.task})
        assert last.coordinator.seat is not None
        await last.coordinator.seat.release()
        # It has read that nobody sits, and is about to open the guards, when another one sits down.
        guards = [await last.client.get(LEASE, name, NAMESPACE) for name in ("machines", "baremetal")]
        # At the very moment of the last renewal the same would be written, which is no change.
        place.clock.advance(0.5)
        new = place.join("b")

        async def written_anew() -> bool:
            now = [await last.client.get(LEASE, name, NAMESPACE) for name in ("machines", "baremetal")]
            return all(
                one["metadata"]["resourceVersion"] != other["metadata"]["resourceVersion"] for one, other in zip(guards, now, strict=True)
            )

        await eventually(written_anew, "who sits down has written the guards")
        # The server has written them before the one who asked for it knows that.
        await eventually(lambda: new.coordinator.seat is not None, "it sits")
        await last.coordinator._open_guards()
        assert await place.holder_of("machines") == "default/manager in 2 shards"
