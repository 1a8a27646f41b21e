"""etcd keeps its quorum: whatever is allowed leaves a majority that works."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from slipway.fleet.controlplane.decisions.machines import ETCD_MEMBER, Check, ControlPlane, Machine, Member
from slipway.fleet.controlplane.decisions.quorum import etcd_survives

NOW = datetime(2026, 6, 1, tzinfo=UTC)

# Whether each member is a learner, what the check of its Machine says, if it has one, and whether it raises an alarm.
Drawn = list[tuple[bool, str, bool]]
drawn_members = st.lists(st.tuples(st.booleans(), st.sampled_from(["", "True", "False", "Unknown"]), st.booleans()), min_size=1, max_size=9)


def built(drawn: Drawn) -> ControlPlane:
    members = [Member(number, f"n{number}", learner, alarm) for number, (learner, _, alarm) in enumerate(drawn)]
    machines = [
        Machine(f"m{number}", NOW, node=f"n{number}", checks={ETCD_MEMBER: Check(status)})
        for number, (_, status, _) in enumerate(drawn)
        if status
    ]
    return ControlPlane(len(machines), tuple(machines), NOW, members=tuple(members))


def working(drawn: Drawn) -> int:
    return sum(not learner and (status == "True" if status else not alarm) for learner, status, alarm in drawn)


@given(drawn_members, st.integers(0, 8))
def test_what_may_be_removed_leaves_a_working_majority(drawn: Drawn, chosen: int) -> None:
    leaving = chosen % len(drawn)
    stay = drawn[:leaving] + drawn[leaving + 1 :]
    if etcd_survives(built(drawn), without=f"n{leaving}"):
        assert working(stay) > len(stay) / 2


@given(drawn_members)
def test_a_member_may_come_only_where_its_failure_does_no_harm(drawn: Drawn) -> None:
    if len(drawn) > 1 and etcd_survives(built(drawn), with_new=True):
        assert working(drawn) > (len(drawn) + 1) / 2
