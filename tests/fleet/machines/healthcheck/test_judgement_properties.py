"""What holds of every verdict, and of every sum of conditions, whatever was seen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as some

from slipway.fleet.contract.conditions import Condition, ConditionStatus
from slipway.fleet.machines.healthcheck.judgement import Checks, Target, Unhealthy, allowed, judge
from slipway.runtime.objects import timestamp

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
TYPES = ("Ready", "DiskPressure", "InfrastructureReady", "ControlPlaneInitialized")
STATUSES: tuple[ConditionStatus, ...] = ("True", "False", "Unknown")

ages = some.integers(0, 2000).map(lambda seconds: NOW - timedelta(seconds=seconds))
conditions = some.builds(
    lambda name, status, since: Condition(type=name, status=status, reason="R", last_transition_time=timestamp(since)),
    some.sampled_from(TYPES),
    some.sampled_from(STATUSES),
    ages,
)
lists = some.lists(conditions, max_size=4, unique_by=lambda condition: condition.type)
bad = some.lists(some.builds(Unhealthy, some.sampled_from(TYPES), some.sampled_from(STATUSES), some.integers(0, 1000)), max_size=3).map(
    tuple
)
checks = some.builds(Checks, node=bad, machine=bad, startup=some.integers(0, 1000))
targets = some.builds(
    Target,
    conditions=lists,
    created=ages,
    cluster=lists,
    node=some.none() | lists,
    node_missing=some.just(False),
    control_plane=some.booleans(),
    deleting=some.booleans(),
    marked=some.booleans(),
)


@settings(max_examples=60)
@given(targets, checks)
def test_a_machine_is_not_both_and_what_is_not_well_says_why(target: Target, wanted: Checks) -> None:
    verdict = judge(target, wanted, NOW)
    assert not (verdict.healthy and verdict.unhealthy)
    assert bool(verdict.reason) == bool(verdict.message) == verdict.unhealthy
    assert verdict.next_check >= 0
    assert not (verdict.next_check and (verdict.healthy or verdict.unhealthy))


@settings(max_examples=60)
@given(targets, checks)
def test_at_the_next_look_something_has_expired_and_not_long_before(target: Target, wanted: Checks) -> None:
    """Otherwise a Machine would be found out late, or looked at for nothing."""
    verdict = judge(target, wanted, NOW)
    if verdict.next_check:
        assert judge(target, wanted, NOW + timedelta(seconds=verdict.next_check)).unhealthy
        assert not judge(target, wanted, NOW + timedelta(seconds=verdict.next_check - 1)).unhealthy


@settings(max_examples=60)
@given(targets, checks, some.integers(0, 5000))
def test_time_alone_heals_nothing(target: Target, wanted: Checks, seconds: int) -> None:
    if judge(target, wanted, NOW).unhealthy:
        assert judge(target, wanted, NOW + timedelta(seconds=seconds)).unhealthy


@settings(max_examples=60)
@given(some.integers(0, 50), some.data(), some.integers(0, 50) | some.integers(0, 100).map(lambda share: f"{share}%"))
def test_remediation_that_is_allowed_for_some_is_allowed_for_fewer(expected: int, data: some.DataObject, at_most: int | str) -> None:
    healthy = data.draw(some.integers(0, expected))
    found = allowed(expected, healthy, at_most)
    assert found.allowed == (found.more >= 0)
    if found.allowed and healthy < expected:
        assert allowed(expected, healthy + 1, at_most) == (True, found.more + 1)
