"""Conditions; the rows of the merge and of the order are those of Cluster API's own tests (util/conditions 1.14.2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slipway.fleet.contract import conditions
from slipway.fleet.contract.conditions import Condition, ConditionConflictError, ConditionStatus
from slipway.fleet.contract.status import DeprecatedCondition, Severity, deprecated_summary, set_deprecated, well

NOW = datetime(2026, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)
THEN = "2026-04-01T00:00:00Z"
_NOW = "2026-05-01T12:00:00Z"


def _condition(condition_type: str, status: str, **fields: Any) -> dict[str, Any]:
    return {"type": condition_type, "status": status, "reason": "", "message": "", "lastTransitionTime": THEN, **fields}


def test_a_new_condition_gets_the_time_in_whole_seconds() -> None:
    found = conditions.set_condition([], Condition(type="Ready", status="True", reason="Ready"), NOW)
    assert found == [{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": _NOW}]


def test_the_time_stays_while_the_status_stays() -> None:
    before = [_condition("Ready", "False", reason="A", message="a")]
    found = conditions.set_condition(before, Condition(type="Ready", status="False", reason="B", message="b", observed_generation=3), NOW)
    assert found == [
        {"type": "Ready", "status": "False", "reason": "B", "message": "b", "observedGeneration": 3, "lastTransitionTime": THEN}
    ]


def test_the_time_changes_with_the_status() -> None:
    found = conditions.set_condition([_condition("Ready", "False")], Condition(type="Ready", status="True", reason="Ready"), NOW)
    assert found[0]["lastTransitionTime"] == _NOW


def test_a_given_time_is_kept() -> None:
    found = conditions.set_condition([], Condition(type="Ready", status="True", last_transition_time=THEN), NOW)
    assert found[0]["lastTransitionTime"] == THEN


def test_setting_what_is_there_changes_nothing_not_even_the_order() -> None:
    before = [_condition("Z", "True"), _condition("Ready", "True")]
    assert conditions.set_condition(before, Condition(type="Ready", status="True"), NOW) == before


def test_a_new_one_stands_between_the_others() -> None:
    """TestSet, "Phase3Obj object with conditions"."""
    found = conditions.set_condition(
        [_condition("barCondition", "True"), _condition("zzzCondition", "True")], Condition(type="fooCondition", status="True"), NOW
    )
    assert [one["type"] for one in found] == ["barCondition", "fooCondition", "zzzCondition"]


def test_the_order() -> None:
    """TestDefaultSortLessFunc."""
    given = [_condition(name, "True") for name in ("Deleting", "B", "Available", "A", "Paused", "Ready", "C!")]
    assert [one["type"] for one in conditions.ordered(given)] == ["Available", "Ready", "A", "B", "C!", "Paused", "Deleting"]


def test_the_order_of_a_kubeadm_config() -> None:
    given = [_condition(name, "True") for name in ("Paused", "DataSecretAvailable", "ControlPlaneKubernetesVersionAvailable", "Ready")]
    given.append(_condition("CertificatesAvailable", "True"))
    assert [one["type"] for one in conditions.ordered(given)] == [
        "Ready",
        "CertificatesAvailable",
        "ControlPlaneKubernetesVersionAvailable",
        "DataSecretAvailable",
        "Paused",
    ]


def test_finding() -> None:
    given = [_condition("Ready", "True", observedGeneration=4)]
    assert conditions.find(given, "Ready") == Condition(type="Ready", status="True", observed_generation=4, last_transition_time=THEN)
    assert conditions.find(given, "Paused") is None
    assert conditions.is_true(given, "Ready")
    assert not conditions.is_true(given, "Paused")
    assert not conditions.is_true([_condition("Ready", "Unknown")], "Ready")
    assert conditions.remove(given, "Ready") == []
    assert conditions.of({"metadata": {}}) == []
    assert conditions.of({"status": {"conditions": given}}) == given


_TRUE, _FALSE = _condition("foo", "True"), _condition("foo", "False")
_FALSE_2 = _condition("foo", "False", reason="SomethingElse")
_CONFLICT = None


@pytest.mark.parametrize(
    ("before", "after", "latest", "owned", "expected"),
    [
        pytest.param([_TRUE], [_TRUE], [_TRUE], False, [_TRUE], id="no patch"),
        pytest.param([], [_TRUE], [], False, [_TRUE], id="add: does not exist"),
        pytest.param([], [_TRUE], [_TRUE], False, [_TRUE], id="add: exists without conflict"),
        pytest.param([], [_TRUE], [_FALSE], False, _CONFLICT, id="add: exists with conflict"),
        pytest.param([], [_TRUE], [_FALSE], True, [_TRUE], id="add: exists with conflict, owned"),
        pytest.param([_TRUE], [], [], False, [], id="remove: already deleted"),
        pytest.param([_TRUE], [], [_TRUE], False, [], id="remove: exists without conflict"),
        pytest.param([_TRUE], [], [_FALSE], False, _CONFLICT, id="remove: exists with conflict"),
        pytest.param([_TRUE], [], [_FALSE], True, [], id="remove: exists with conflict, owned"),
        pytest.param([_TRUE], [_FALSE], [_TRUE], False, [_FALSE], id="change: without conflict"),
        pytest.param([_FALSE], [_TRUE], [_TRUE], False, [_TRUE], id="change: agreement on the final state"),
        pytest.param([_FALSE], [_FALSE_2], [_TRUE], False, _CONFLICT, id="change: no agreement"),
        pytest.param([_FALSE], [_FALSE_2], [_TRUE], True, [_FALSE_2], id="change: no agreement, owned"),
        pytest.param([_TRUE], [_FALSE], [], False, _CONFLICT, id="change: deleted"),
        pytest.param([_TRUE], [_FALSE], [], True, [_FALSE], id="change: deleted, owned"),
    ],
)
def test_three_way_merge(before: list[Any], after: list[Any], latest: list[Any], owned: bool, expected: list[Any] | None) -> None:
    """TestApply."""
    if expected is None:
        with pytest.raises(ConditionConflictError, match='the condition "foo"'):
            conditions.merge_changes(before, after, latest, owned={"foo"} if owned else ())
    else:
        assert conditions.merge_changes(before, after, latest, owned={"foo"} if owned else ()) == expected


def test_conditions_of_others_stay_in_a_merge() -> None:
    latest = [_condition("Ready", "True"), _condition("theirs", "True")]
    found = conditions.merge_changes([], [_TRUE], latest, owned={"foo"})
    assert [one["type"] for one in found] == ["Ready", "foo", "theirs"]


def _deprecated(
    condition_type: str, status: ConditionStatus, severity: Severity = "", reason: str = "", message: str = ""
) -> dict[str, Any]:
    return set_deprecated(
        [], DeprecatedCondition(type=condition_type, status=status, severity=severity, reason=reason, message=message), NOW
    )[0]


def test_a_deprecated_condition_as_cluster_api_writes_it() -> None:
    """v1beta1 has omitempty on reason, severity and message."""
    assert _deprecated("DataSecretAvailable", "True") == {"type": "DataSecretAvailable", "status": "True", "lastTransitionTime": _NOW}
    assert _deprecated("DataSecretAvailable", "False", "Info", "WaitingForClusterInfrastructure") == {
        "type": "DataSecretAvailable",
        "status": "False",
        "severity": "Info",
        "reason": "WaitingForClusterInfrastructure",
        "lastTransitionTime": _NOW,
    }


def test_the_time_of_a_deprecated_condition_moves_with_every_change() -> None:
    before = [_deprecated("A", "False", "Info", "One")]
    later = NOW + timedelta(hours=1)
    same = set_deprecated(before, DeprecatedCondition(type="A", status="False", severity="Info", reason="One"), later)
    other = set_deprecated(before, DeprecatedCondition(type="A", status="False", severity="Info", reason="Two"), later)
    assert same == before
    assert other[0]["lastTransitionTime"] == "2026-05-01T13:00:00Z"


def test_deprecated_conditions_are_in_the_order_of_their_names_behind_ready() -> None:
    found: list[dict[str, Any]] = []
    for name in ("DataSecretAvailable", "Ready", "CertificatesAvailable"):
        found = set_deprecated(found, well(name), NOW)
    assert [one["type"] for one in found] == ["Ready", "CertificatesAvailable", "DataSecretAvailable"]


_OF = ("DataSecretAvailable", "CertificatesAvailable")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], None),
        ([_deprecated("Other", "False", "Error")], None),
        ([_deprecated("DataSecretAvailable", "True"), _deprecated("CertificatesAvailable", "True")], ("True", "", "", "")),
        ([_deprecated("DataSecretAvailable", "True")], ("True", "", "", "")),
        (
            [_deprecated("DataSecretAvailable", "False", "Info", "Waiting"), _deprecated("CertificatesAvailable", "True")],
            ("False", "Info", "Waiting", ""),
        ),
        (
            [
                _deprecated("DataSecretAvailable", "False", "Info", "Waiting"),
                _deprecated("CertificatesAvailable", "False", "Error", "CertificatesCorrupted", "bad"),
            ],
            ("False", "Error", "CertificatesCorrupted", "bad"),
        ),
        (
            [
                _deprecated("CertificatesAvailable", "False", "Warning", "Second", "b"),
                _deprecated("DataSecretAvailable", "False", "Warning", "First", "a"),
            ],
            ("False", "Warning", "First", "a"),
        ),
        ([_deprecated("DataSecretAvailable", "Unknown", "", "R", "m"), _deprecated("CertificatesAvailable", "True")], ("True", "", "", "")),
        ([_deprecated("DataSecretAvailable", "Unknown", "", "R", "m")], ("Unknown", "", "R", "m")),
    ],
)
def test_the_deprecated_ready(given: list[dict[str, Any]], expected: tuple[str, ...] | None) -> None:
    """The priorities that upstream's merge states: False by severity, then True, then Unknown."""
    found = deprecated_summary(given, _OF)
    assert (None if found is None else (found.status, found.severity, found.reason, found.message)) == expected
    assert found is None or found.type == "Ready"


_MERGED = {
    "error": _deprecated("a", "False", "Error", "reason falseError1", "message falseError1"),
    "warning": _deprecated("b", "False", "Warning", "reason falseWarning1", "message falseWarning1"),
    "info": _deprecated("c", "False", "Info", "reason falseInfo1", "message falseInfo1"),
    "unknown": _deprecated("d", "Unknown", "", "reason unknown1", "message unknown1"),
    "true": _deprecated("e", "True"),
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["error", "warning", "info", "unknown", "true"], ("False", "Error", "reason falseError1", "message falseError1")),
        (["warning", "info", "unknown", "true"], ("False", "Warning", "reason falseWarning1", "message falseWarning1")),
        (["info", "unknown", "true"], ("False", "Info", "reason falseInfo1", "message falseInfo1")),
        (["unknown", "true"], ("True", "", "", "")),
        (["unknown"], ("Unknown", "", "reason unknown1", "message unknown1")),
        ([], None),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_the_deprecated_ready_respects_priority(given: list[str], expected: tuple[str, ...] | None) -> None:
    """TestMergeRespectPriority of util/conditions/deprecated/v1beta1, whose conditions come in any order."""
    for order in (given, given[::-1]):
        found = deprecated_summary([_MERGED[name] for name in order], ["e", "d", "c", "b", "a"])
        assert (None if found is None else (found.status, found.severity, found.reason, found.message)) == expected


def test_the_deprecated_ready_respects_the_order_of_relevance() -> None:
    """TestSummary there, "Ready condition respects merge order"."""
    bar = _deprecated("bar", "False", "Info", "reason falseInfo1", "message falseInfo1")
    baz = _deprecated("baz", "False", "Info", "reason falseInfo2", "message falseInfo2")
    found = deprecated_summary([bar, baz], ["baz", "bar"])
    assert found is not None
    assert (found.reason, found.message) == ("reason falseInfo2", "message falseInfo2")


def test_a_message_is_no_longer_than_the_schemas_take() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    found = conditions.set_condition([], Condition(type="A", status="False", message="é" * 40_000), now)
    assert found[0]["message"] == "é" * 32_768
    older = set_deprecated([], DeprecatedCondition(type="A", status="False", message="é" * 40_000), now)
    assert older[0]["message"] == "é" * 10_240
