"""What holds of every aggregated condition: the worst decides, and everybody who is not well is shown or counted."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as some

from slipway.fleet.contract.aggregation import Source, aggregate
from slipway.fleet.contract.conditions import Condition, ConditionStatus

STATUSES: tuple[ConditionStatus, ...] = ("True", "False", "Unknown")
_SHOWN = re.compile(r"\* Machines? (?P<names>m\d+(?:, m\d+)*)(?:, \.\.\. \((?P<more>\d+) more\))?:")
_COUNTED = re.compile(r"And (?P<count>\d+) Machines? with ")

said = some.tuples(
    some.sampled_from(STATUSES), some.sampled_from(["no disk", "no power", "no network", "asking", "two\nlines"]), some.booleans()
)
machines = some.lists(said, min_size=1, max_size=12)


def _sources(said: list[tuple[ConditionStatus, str, bool]]) -> list[Source]:
    return [
        Source(f"m{number}", [Condition(type="Ready", status=status, reason="R", message=message)], control_plane=control_plane)
        for number, (status, message, control_plane) in enumerate(said)
    ]


@settings(max_examples=60)
@given(machines)
def test_the_worst_decides(said: list[tuple[ConditionStatus, str, bool]]) -> None:
    statuses = {status for status, _, _ in said}
    expected = "False" if "False" in statuses else "Unknown" if "Unknown" in statuses else "True"
    assert aggregate(_sources(said), "Ready").status == expected


@settings(max_examples=60)
@given(machines)
def test_everybody_who_is_not_well_is_shown_or_counted_and_three_messages_are_enough(said: list[tuple[ConditionStatus, str, bool]]) -> None:
    message = aggregate(_sources(said), "Ready").message
    shown = list(_SHOWN.finditer(message))
    assert len(shown) <= 3
    named = sum(len(one["names"].split(", ")) + int(one["more"] or 0) for one in shown)
    counted = sum(int(one["count"]) for one in _COUNTED.finditer(message))
    sick = sum(status != "True" for status, _, _ in said)
    assert named + counted == (sick or len(said))


@settings(max_examples=60)
@given(machines)
def test_status_and_reason_do_not_depend_on_the_order(said: list[tuple[ConditionStatus, str, bool]]) -> None:
    sources = _sources(said)
    found = aggregate(sources, "Ready")
    turned = aggregate(sources[::-1], "Ready")
    assert (found.status, found.reason) == (turned.status, turned.reason)
