"""Who should have which shards, for whoever is there and whatever they have."""

from __future__ import annotations

from collections import Counter
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.runtime.sharding.assignment import Moves, assignment, shard_of, targets

SHARDS = st.integers(1, 12)
MEMBERS = st.sets(st.sampled_from("abcdef"), min_size=1)


@st.composite
def situations(draw: st.DrawFn) -> tuple[set[str], int, dict[int, str]]:
    """Members, shards, and who holds what: members, and some who were members."""
    shards = draw(SHARDS)
    return draw(MEMBERS), shards, draw(st.dictionaries(st.integers(0, shards - 1), st.sampled_from("abcdefgh")))


def settle(members: set[str], shards: int, holders: dict[int, str], order: list[str]) -> tuple[dict[int, str], int]:
    """Let members act one after the other, as each sees it then, until nobody has anything to do; and how many shards were released."""
    released = 0
    for _ in range(4 * shards * len(members) + 1):
        acted = False
        for member in order:
            moves = assignment(members, shards, holders)[member]
            for shard in moves.release:
                assert holders.pop(shard) == member
                released += 1
            for shard in moves.take:
                assert shard not in holders, "it was somebody's"
                holders[shard] = member
            acted = acted or moves != Moves()
        if not acted:
            return holders, released
    raise AssertionError("it never ends")


@settings(max_examples=50)
@given(situations(), st.randoms())
def test_in_the_end_every_shard_is_held_by_a_member_and_no_member_has_two_more_than_another(
    situation: tuple[set[str], int, dict[int, str]], random: object
) -> None:
    members, shards, holders = situation
    gone = {shard: holder for shard, holder in holders.items() if holder in members}
    order = sorted(members)
    random.shuffle(order)  # type: ignore[attr-defined]
    settled, _ = settle(members, shards, gone, order)
    assert sorted(settled) == list(range(shards))
    counts = Counter(dict.fromkeys(members, 0)) + Counter(settled.values())
    assert max(counts.values()) - min([*counts.values(), *([0] if len(counts) < len(members) else [])]) <= 1


@settings(max_examples=50)
@given(situations(), st.randoms())
def test_no_more_moves_than_somebody_has_too_much(situation: tuple[set[str], int, dict[int, str]], random: object) -> None:
    members, shards, holders = situation
    held = {shard: holder for shard, holder in holders.items() if holder in members}
    fair = targets(members, shards, held)
    needed = sum(max(0, [*held.values()].count(member) - fair[member]) for member in members)
    order = sorted(members)
    random.shuffle(order)  # type: ignore[attr-defined]
    assert settle(members, shards, dict(held), order)[1] == needed


@settings(max_examples=50)
@given(situations())
def test_what_one_who_is_gone_still_holds_is_taken_by_nobody(situation: tuple[set[str], int, dict[int, str]]) -> None:
    members, shards, holders = situation
    taken = [shard for moves in assignment(members, shards, holders).values() for shard in moves.take]
    assert not set(taken) & set(holders)
    assert len(taken) == len(set(taken))


@pytest.mark.parametrize(
    ("members", "shards", "holders", "moves"),
    [
        pytest.param("a", 2, {}, {"a": Moves((0, 1))}, id="the first takes all"),
        pytest.param("ab", 2, {0: "a", 1: "a"}, {"a": Moves(release=(1,)), "b": Moves()}, id="a second one gets its share"),
        pytest.param("ab", 3, {0: "a", 1: "a", 2: "b"}, {"a": Moves(), "b": Moves()}, id="whoever has one more keeps it"),
        pytest.param("ab", 4, {0: "a", 2: "c", 3: "c"}, {"a": Moves((1,)), "b": Moves()}, id="what c has is not free yet"),
        pytest.param("abc", 2, {0: "a", 1: "b"}, {"a": Moves(), "b": Moves(), "c": Moves()}, id="more members than shards"),
    ],
)
def test_what_members_do(members: str, shards: int, holders: dict[int, str], moves: dict[str, Moves]) -> None:
    assert assignment(list(members), shards, holders) == moves


def test_a_name_has_the_same_shard_wherever_it_is_asked_for() -> None:
    # CRC-32 of "123456789" is cbf43926 by every table of checksums.
    assert crc32(b"123456789") == 0xCBF43926
    assert shard_of("fleet", "paris", 7) == crc32(b"fleet/paris") % 7
