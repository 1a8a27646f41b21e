"""What the demonstration is told: steps between versions, and a sentence for every bad value."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.api.machinery.errors import UsageError
from slipway.demo import faults
from slipway.demo.options import Options, steps


@pytest.mark.parametrize(
    ("start", "to", "expected"),
    [
        ("v1.34.10", "v1.35.4", ["v1.35.4"]),
        ("v1.35.3", "v1.35.4", ["v1.35.4"]),
        ("v1.33.13", "v1.36.3", ["v1.34.10", "v1.35.4", "v1.36.3"]),
        ("v1.35.4", "v1.35.4", []),
    ],
)
def test_a_control_plane_goes_one_minor_at_a_time(start: str, to: str, expected: list[str]) -> None:
    assert steps(start, to) == expected


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"control_planes": 2}, "odd number"),
        ({"control_planes": 0}, "odd number"),
        ({"workers": -1}, "--workers"),
        ({"hosts": 5}, "too few: 3 control planes and 3 workers need 6"),
        ({"hosts": 2, "control_planes": 1, "workers": 1}, "need 3, and one more"),
        ({"hosts": 201}, "more than 200"),
        ({"speed": 0.0}, "--speed"),
        ({"start": "v1.35.4"}, "what --from is already"),
        ({"start": "v1.36.3"}, "cannot go back"),
        ({"to": "1.35"}, "--to"),
        ({"start": "v1.20.0"}, "not known here"),
        ({"to": "v1.99.0"}, "not known here"),
        ({"fault": "flood"}, "is not a value of --fault"),
        ({"fault": "host-dead", "upgrade": False}, "does not go with --no-upgrade"),
        ({"fault": "pool-exhausted", "hosts": 6}, "say --hosts 7"),
        ({"fault": "plan-failed", "workers": 0}, "raise --workers"),
    ],
)
def test_a_bad_value_gets_a_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        faults.made(Options(**given))


def test_pools_have_exactly_the_hosts_that_are_needed() -> None:
    assert (Options().needed, Options().spare) == (6, 2)
    assert Options(control_planes=1, workers=1, hosts=3).spare == 0


def test_every_fault_of_the_flag_is_there() -> None:
    from slipway.cli.argv.flags import FLAGS

    assert tuple(faults.FAULTS) == FLAGS["fault"].completes
