"""Rows and their revisions: who reads gets what they do not have, whenever they come."""

from __future__ import annotations

from slipway.dashboard.feed import Delta, Feed, Revisions


def test_a_reader_gets_what_changed_after_their_revision_in_the_order_of_the_changes() -> None:
    revisions = Revisions()
    feed = Feed(revisions)
    feed.replace("part", {"a": b"1", "b": b"1", "c": b"1"})
    seen = revisions.last
    feed.replace("part", {"a": b"1", "b": b"2", "c": b"1"})
    feed.replace("part", {"a": b"2", "b": b"2", "c": b"1"})
    assert feed.since(seen) == Delta([b"2", b"2"], [])
    assert feed.since(revisions.last) == Delta([], [])


def test_a_row_that_changed_often_is_sent_once() -> None:
    revisions = Revisions()
    feed = Feed(revisions)
    for number in range(10):
        feed.replace("part", {"a": b"%d" % number})
    assert feed.since(0) == Delta([b"9"], [])


def test_what_stays_as_it_was_is_no_change() -> None:
    revisions = Revisions()
    feed = Feed(revisions)
    assert feed.replace("part", {"a": b"1"})
    assert not feed.replace("part", {"a": b"1"})
    assert revisions.last == 1


def test_a_row_that_is_gone_is_told_and_one_that_came_back_is_not() -> None:
    revisions = Revisions()
    feed = Feed(revisions)
    feed.replace("part", {"a": b"1", "b": b"1"})
    seen = revisions.last
    feed.replace("part", {})
    assert feed.since(seen) == Delta([], ["a", "b"])
    feed.replace("part", {"a": b"1"})
    assert feed.since(seen) == Delta([b"1"], ["b"])


def test_a_row_that_goes_from_one_part_to_another_is_never_gone() -> None:
    revisions = Revisions()
    feed = Feed(revisions)
    feed.replace("free", {"host": b"free"})
    seen = revisions.last
    feed.replace("cluster", {"host": b"taken"})
    feed.replace("free", {})
    assert feed.since(seen) == Delta([b"taken"], [])


def test_who_comes_from_before_what_is_remembered_is_to_get_everything() -> None:
    revisions = Revisions()
    feed = Feed(revisions)
    for number in range(6000):
        feed.replace("part", {f"{number}": b"1"})
    assert feed.since(1) is None
    assert feed.all() == [b"1"]


def test_a_feed_knows_nothing_of_what_was_before_it() -> None:
    revisions = Revisions()
    revisions.next()
    assert Feed(revisions).since(0) is None
