"""Which host is to have which image ahead, and which of them are asked for it now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from slipway.api.elemental.inventory import StagingFacts
from slipway.api.elemental.staging import Wanted
from slipway.fleet.baremetal.staging.decision import Member, Rolled, condition, images, next_version, questions, wanted_versions

OLD, NEW, NEWEST = "v1.34.5", "v1.35.4", "v1.36.3"
CATALOG = ("v1.33.1", OLD, "v1.34.9", "v1.35.1", NEW, "v1.35.9-rc.1", NEWEST, "no-version")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
IMAGE = Wanted("r/os:new", NEW)


@pytest.mark.parametrize(
    ("rolled", "named", "expected"),
    [
        (Rolled({"cp": OLD}, OLD, is_plane=True), "", NEW),
        (Rolled({"cp": NEW}, NEW, is_plane=True), "", NEWEST),
        (Rolled({"cp": NEWEST}, NEWEST, is_plane=True), "", ""),
        (Rolled({"md": OLD}, OLD), "", NEW),
        (Rolled({"md": OLD}, NEWEST), "", NEWEST),
        (Rolled({"md": OLD, "slow": "v1.33.1"}, NEW), "", NEW),
        (Rolled({"cp": OLD}, OLD, is_plane=True), "v1.34.9", "v1.34.9"),
        (Rolled({"cp": OLD}, OLD, is_plane=True), "v1.35.9-rc.1", "v1.35.9-rc.1"),
        (Rolled({"cp": NEW}, NEW, is_plane=True), OLD, NEWEST),
        (Rolled({}), "", ""),
        (Rolled({}), NEW, NEW),
        (Rolled({"cp": "rubbish"}, "rubbish", is_plane=True), "", ""),
    ],
    ids=[
        *("one-minor-up", "from-the-middle", "the-newest-already", "workers-with-their-plane", "workers-follow-their-plane"),
        *(
            "several-deployments",
            "named",
            "named-and-not-released",
            "named-long-ago",
            "nobody-takes-hosts",
            "named-for-nobody",
            "no-version",
        ),
    ],
)
def test_the_next_version_is_the_one_that_is_named_or_that_an_upgrade_leads_to(rolled: Rolled, named: str, expected: str) -> None:
    assert next_version(rolled, CATALOG, named) == expected


@pytest.mark.parametrize(
    ("members", "targets", "next_", "expected"),
    [
        ([Member("a", version=OLD, group="md")], {"md": OLD}, NEW, {"a": NEW}),
        ([Member("a", version=OLD, group="md")], {"md": OLD}, "", {}),
        ([Member("a", version=OLD, group="md")], {"md": NEW}, NEWEST, {"a": NEW}),
        ([Member("a", version=NEW, group="md"), Member("b", version=OLD, group="md")], {"md": NEW}, NEWEST, {"a": NEWEST, "b": NEW}),
        ([Member("a"), Member("b", version=OLD, group="md")], {"md": NEW}, NEWEST, {"a": NEW, "b": NEW}),
        ([Member("a"), Member("b", version=OLD, group="md")], {"md": OLD}, NEW, {"a": NEW, "b": NEW}),
        ([Member("a"), Member("b", version=OLD, group="md")], {"md": OLD}, "", {"a": OLD}),
        ([Member("a", version=OLD, group="x"), Member("b", version=NEW, group="y")], {"x": OLD, "y": NEWEST}, "", {"b": NEWEST}),
        ([Member("a")], {}, "", {}),
    ],
    ids=[
        *("at-rest", "at-rest-and-nothing-foreseen", "asked-for", "half-rolled", "free-while-it-is-rolled", "free-before-a-rollout"),
        *("free-for-one-that-fails", "two-groups", "nobody-takes-hosts"),
    ],
)
def test_a_host_is_to_have_what_its_machine_or_the_next_one_boots(
    members: list[Member], targets: dict[str, str], next_: str, expected: dict[str, str]
) -> None:
    assert wanted_versions(members, Rolled(targets), next_) == expected


def test_a_host_that_was_given_back_is_for_the_rollout_until_every_machine_of_it_is_there() -> None:
    """Else it would drop, between two machines, the very image that the second one boots."""
    rolled = Rolled({"md": NEW}, replicas={"md": 2})
    done = Member("a", version=NEW, group="md")
    assert wanted_versions([done, Member("b")], rolled, NEWEST) == {"a": NEWEST, "b": NEW}
    assert wanted_versions([done, Member("b", version=NEW, group="md", serves=False), Member("c")], rolled, NEWEST)["c"] == NEW
    assert wanted_versions([done, done._replace(name="b"), Member("c")], rolled, NEWEST)["c"] == NEWEST


def test_a_host_that_is_about_to_boot_what_it_was_asked_for_is_left_alone() -> None:
    member = Member("a", "Allocated", version=NEW, group="md", serves=False, asked=asked(), told=told("Staged"))
    assert questions([member], {}, 2, timedelta(minutes=30), NOW) == {}
    assert questions([member._replace(serves=True)], {}, 2, timedelta(minutes=30), NOW) == {"a": None}


def told(state: str, message: str = "") -> StagingFacts:
    return StagingFacts(image=IMAGE.image, state=state, message=message)


def asked(minutes: int = 0) -> Wanted:
    return Wanted(IMAGE.image, NEW, (NOW - timedelta(minutes=minutes)).isoformat())


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([Member("a"), Member("b"), Member("c")], {"a": IMAGE, "b": IMAGE}),
        ([Member("a", "Allocated"), Member("b", "Allocated"), Member("c")], {"c": IMAGE, "a": IMAGE}),
        ([Member("a", asked=asked()), Member("b", asked=asked()), Member("c")], {}),
        ([Member("a", asked=asked(), told=told("Staged")), Member("b", asked=asked()), Member("c")], {"c": IMAGE}),
        ([Member("a", asked=asked(), told=told("Failed")), Member("b", asked=asked()), Member("c")], {"c": IMAGE}),
        ([Member("a", asked=asked(31)), Member("b", asked=asked()), Member("c")], {"c": IMAGE}),
        ([Member("a", "Preparing"), Member("b", "Reprovisioning"), Member("c", "Unavailable")], {}),
        ([Member("a", asked=Wanted("r/os:old", OLD))], {"a": IMAGE}),
        ([Member("b", asked=asked()), Member("c", asked=asked()), Member("a", asked=Wanted("r/os:old", OLD))], {"a": None}),
        ([Member("other", asked=asked())], {"other": None}),
        ([Member("other", "Reprovisioning", asked=asked())], {}),
    ],
    ids=[
        *("two-at-a-time", "those-that-wait-first", "both-fetch", "one-has-it", "one-failed", "one-does-not-answer", "at-work"),
        *("another-image", "another-image-and-no-room", "not-wanted", "not-wanted-and-at-work"),
    ],
)
def test_some_hosts_are_asked_at_a_time(members: list[Member], expected: dict[str, Wanted | None]) -> None:
    wanted = dict.fromkeys("abc", IMAGE)
    assert questions(members, wanted, 2, timedelta(minutes=30), NOW) == expected


def test_the_pool_counts_by_image_and_tells_what_hosts_said() -> None:
    other = Wanted("r/os:newest", NEWEST)
    members = [
        Member("a", asked=asked(), told=told("Staged")),
        Member("b", asked=asked(), told=told("Failed", "no room")),
        Member("c", asked=Wanted("r/os:newest", NEWEST), told=told("Staged")),
    ]
    wanted = {"a": IMAGE, "b": IMAGE, "c": other}
    assert images(members, wanted) == [
        {"version": NEWEST, "image": "r/os:newest", "hosts": 1, "staged": 0, "failed": 0},
        {"version": NEW, "image": "r/os:new", "hosts": 2, "staged": 1, "failed": 1},
    ]
    assert condition(members, wanted, []) == ("False", "StagingFailed", f"1 of 3 hosts have {NEW}, {NEWEST}; b: no room")
