"""How the answers of a probe are counted: as elemental-system-agent does."""

from __future__ import annotations

import pytest

from slipway.agent.plan import probes
from slipway.agent.plan.probes import Status
from slipway.api.elemental.plan import HTTPGet, Probe

DEFAULTS = Probe(HTTPGet("http://127.0.0.1/"))
STRICT = Probe(HTTPGet("http://127.0.0.1/"), success_threshold=2, failure_threshold=1)


@pytest.mark.parametrize(
    ("probe", "answers", "expected"),
    [
        (DEFAULTS, "+", Status(healthy=True, success_count=1)),
        (DEFAULTS, "+++", Status(healthy=True, success_count=1)),
        (DEFAULTS, "+-", Status(healthy=True, failure_count=1)),
        (DEFAULTS, "+--", Status(healthy=True, failure_count=2)),
        (DEFAULTS, "+---", Status(healthy=False, failure_count=3)),
        (DEFAULTS, "+-----", Status(healthy=False, failure_count=3)),
        (DEFAULTS, "+---+", Status(healthy=True, success_count=1)),
        (STRICT, "+", Status(healthy=False, success_count=1)),
        (STRICT, "++", Status(healthy=True, success_count=2)),
        (STRICT, "++-", Status(healthy=False, failure_count=1)),
        (STRICT, "++-+", Status(healthy=False, success_count=1)),
    ],
)
def test_a_probe_is_healthy_after_as_many_answers_as_it_wants(probe: Probe, answers: str, expected: Status) -> None:
    status = Status()
    for answer in answers:
        status = probes.counted(status, probe, answer == "+")
    assert status == expected


def test_statuses_that_cannot_be_read_are_counted_anew() -> None:
    assert probes.read(b"rubbish") == {}
    assert probes.read(b'{"kubelet":{"healthy":true,"successCount":1}}') == {"kubelet": Status(healthy=True, success_count=1)}
