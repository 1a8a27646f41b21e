"""etcd keeps its quorum: whatever is allowed leaves one, and what is not says why."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from slipway.fleet.controlplane.workload import quorum
from slipway.fleet.controlplane.workload.view import EtcdMember, MachineFacts

NOW = datetime(2026, 6, 1, tzinfo=UTC)

members_and_health = st.lists(
    st.tuples(st.booleans(), st.sampled_from([None, True, False]), st.sampled_from([None, True, False]), st.booleans()),
    min_size=1,
    max_size=9,
)


def built(drawn: list[tuple[bool, bool | None, bool | None, bool]]) -> tuple[list[EtcdMember], dict[str, bool]]:
    """Members, of which each is a learner or not, has answered or not, has a Machine that says it is healthy or not, or an alarm."""
    members = [
        EtcdMember(number + 1, f"n{number}", learner=learner, healthy=answered, alarms=("NOSPACE",) if alarm else ())
        for number, (learner, answered, _, alarm) in enumerate(drawn)
    ]
    return members, {f"n{number}": well for number, (_, _, well, _) in enumerate(drawn) if well is not None}


def works(member: EtcdMember, healthy: dict[str, bool]) -> bool:
    return not member.learner and member.healthy is not False and healthy.get(member.name, not member.alarms)


@given(members_and_health, st.integers(0, 8))
def test_what_may_be_removed_leaves_a_working_majority(drawn: list[tuple[bool, bool | None, bool | None, bool]], chosen: int) -> None:
    members, healthy = built(drawn)
    name = f"n{chosen % len(members)}"
    stay = [member for member in members if member.name != name]
    if quorum.can_remove(members, name, healthy):
        assert sum(works(member, healthy) for member in stay) > len(stay) / 2
    else:
        assert quorum.can_remove(members, name, healthy).why_not


@given(members_and_health)
def test_a_member_may_come_only_where_its_failure_does_no_harm(drawn: list[tuple[bool, bool | None, bool | None, bool]]) -> None:
    members, healthy = built(drawn)
    if len(members) > 1 and quorum.can_add(members, healthy):
        assert sum(works(member, healthy) for member in members) > (len(members) + 1) / 2


def test_a_refusal_counts_and_names() -> None:
    members = [EtcdMember(number, f"n{number}") for number in (1, 2, 3)]
    assert quorum.can_remove(members, "n1", {"n2": False, "n3": True}).why_not == (
        "etcd would have 1 healthy of 2 members (not healthy: n2), and needs 2"
    )


def test_a_member_that_does_not_answer_is_sick_whatever_its_machine_says() -> None:
    members = [EtcdMember(1, "n1"), EtcdMember(2, "n2"), EtcdMember(3, "n3", healthy=False)]
    assert not quorum.can_remove(members, "n1", dict.fromkeys(("n1", "n2", "n3"), True))
    assert quorum.can_remove(members, "n3", dict.fromkeys(("n1", "n2", "n3"), True))


def test_a_stranger_that_must_stay_says_what_for() -> None:
    members = [EtcdMember(1, "a"), EtcdMember(2, "x")]
    removal = quorum.unknown_member(members, [MachineFacts("m", "a")], {}, {"a": False}, NOW)
    assert removal.problem == (
        "etcd member x has no Machine, and cannot be removed: etcd would have 0 healthy of 1 members (not healthy: a), and needs 1; "
        "check the state of etcd"
    )
    waits = quorum.unknown_member(members, [MachineFacts("m", "a"), MachineFacts("new")], {}, {"a": True}, NOW)
    assert waits.waits_for == "etcd members x have no Machine, and may be those of new"
