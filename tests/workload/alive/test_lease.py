"""Who gives way when two hosts have the address: the decision, told as a sequence of looks at the Lease."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from slipway.workload.alive import lease
from slipway.workload.alive.lease import Action, Memory, Situation

ME, OTHER = "host-1", "host-2"


def of(holder: str, version: int = 1) -> dict[str, Any]:
    return {"metadata": {"name": "alive", "resourceVersion": str(version)}, "spec": {"holderIdentity": holder}}


def looks(*steps: tuple[float, bool, bool, dict[str, Any] | None]) -> list[Action]:
    """What is decided at each step: the time, whether this host has the address and has given way, and the Lease."""
    memory, found = Memory(), []
    for now, master, given_way, seen in steps:
        action, memory = lease.decide(memory, Situation(ME, master, given_way, now), seen)
        found.append(action)
    return found


@pytest.mark.parametrize("seen", [None, of(""), of(ME)], ids=["no Lease", "no holder", "ours"])
def test_the_master_holds_a_lease_that_nobody_else_has(seen: dict[str, Any] | None) -> None:
    assert looks((0, True, False, seen)) == [Action.HOLD]


def test_a_new_master_waits_until_a_dead_holders_lease_has_run_out() -> None:
    assert looks((0, True, False, of(OTHER)), (9, True, False, of(OTHER)), (10, True, False, of(OTHER))) == [
        Action.NOTHING,
        Action.NOTHING,
        Action.HOLD,
    ]


def test_a_master_that_sees_another_one_renew_gives_way() -> None:
    assert looks((0, True, False, of(OTHER, 1)), (2, True, False, of(OTHER, 2)), (4, True, False, of(OTHER, 3)))[-1] is Action.GIVE_WAY


def test_a_last_renewal_that_was_on_its_way_is_no_second_master() -> None:
    steps = [(0.0, True, False, of(OTHER, 1)), (2.0, True, False, of(OTHER, 2)), (4.0, True, False, of(OTHER, 2))]
    assert Action.GIVE_WAY not in looks(*steps)


def test_renewals_of_two_others_are_not_added_up() -> None:
    assert looks((0, True, False, of(OTHER, 1)), (2, True, False, of(OTHER, 2)), (4, True, False, of("host-3", 3)))[-1] is Action.NOTHING


def test_renewals_before_this_host_had_the_address_do_not_count() -> None:
    before = [(float(now), False, False, of(OTHER, now)) for now in range(0, 10, 2)]
    assert looks(*before, (10, True, False, of(OTHER, 9)))[-1] is Action.NOTHING


def test_who_gave_way_stays_away_as_long_as_the_other_renews() -> None:
    assert set(looks(*((float(now), False, True, of(OTHER, now)) for now in range(0, 60, 2)))) == {Action.NOTHING}


@pytest.mark.parametrize(
    "after",
    [(30.0, False, True, of("")), (30.0, False, True, None), (30.0, False, True, of(OTHER, 1))],
    ids=["released", "deleted", "run out"],
)
def test_who_gave_way_comes_back_when_nobody_holds_the_lease(after: tuple[float, bool, bool, dict[str, Any] | None]) -> None:
    assert looks((0, False, True, of(OTHER, 1)), after)[-1] is Action.COME_BACK


def test_who_gave_way_tries_again_when_its_patience_ends() -> None:
    waiting = Situation(ME, master=False, given_way=True, now=1.0, patient=False)
    assert lease.decide(Memory(OTHER, "1", 5, 0.0), waiting, of(OTHER, 2))[0] is Action.COME_BACK


@pytest.mark.parametrize(
    ("before", "back_for", "after"), [(60, 10_000, 60), (60, 5, 120), (2400, 5, 3600), (3600, 5, 3600), (3600, 4000, 60)]
)
def test_who_has_to_give_way_again_and_again_stays_away_for_longer(before: float, back_for: float, after: float) -> None:
    assert lease.patience(before, back_for) == after


def test_a_host_that_lost_the_address_takes_its_name_out() -> None:
    assert looks((0, False, False, of(ME))) == [Action.RELEASE]


def test_a_renewal_keeps_when_the_lease_was_acquired() -> None:
    first = lease.held(None, ME, datetime(2030, 1, 1, tzinfo=UTC))
    second = lease.held(first, ME, datetime(2030, 1, 2, tzinfo=UTC))
    assert second["spec"]["acquireTime"] == "2030-01-01T00:00:00.000000Z"
    assert second["spec"]["renewTime"] == "2030-01-02T00:00:00.000000Z"
    assert second["spec"]["leaseTransitions"] == 0


def test_a_lease_that_is_taken_over_counts_its_transitions() -> None:
    before = lease.held(None, OTHER, datetime(2030, 1, 1, tzinfo=UTC))
    after = lease.held(before, ME, datetime(2030, 1, 2, tzinfo=UTC))
    assert (after["spec"]["holderIdentity"], after["spec"]["leaseTransitions"]) == (ME, 1)
