"""The health of Machines and how many may be remediated, as Cluster API 1.14.2 judges (tests/oracles/clusterapi_status_record.py)."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from slipway.api.cluster.core.machinehealthcheck import MachineHealthCheck
from slipway.api.cluster.kinds import CLUSTER, MACHINE, NODE
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.machines.healthcheck import observed
from slipway.fleet.machines.healthcheck.judgement import allowed, judge
from slipway.runtime.objects import Object

pytestmark = pytest.mark.recorded

GOLDEN = Path(__file__).parents[3] / "golden/clusterapi/healthcheck"


def _rows(subject: str) -> list[Any]:
    return [pytest.param(row, id=row["case"]["name"]) for row in json.loads((GOLDEN / f"{subject}.json").read_text())]


@pytest.mark.parametrize("row", _rows("target"))
def test_the_verdict_over_a_machine(row: dict[str, Any]) -> None:
    case, wanted = row["case"], row["answer"]
    machine = observed.machine(Object(MACHINE, msgspec.json.encode(case["machine"])))
    node = Object(NODE, msgspec.json.encode(case["node"])) if case.get("node") else None
    cluster = observed.conditions_of(Object(CLUSTER, msgspec.json.encode(case["cluster"])))
    check = msgspec.convert(case["check"], MachineHealthCheck)
    target = observed.target(machine, cluster, node, looked=node is not None or case.get("nodeMissing", False))
    found = judge(target, observed.checks(check), datetime.fromisoformat(case["now"]))
    assert machine.skipped == wanted["skipped"]
    assert (found.healthy, found.unhealthy, found.next_check) == (wanted["healthy"], wanted["unhealthy"], wanted["next"])
    condition, older = wanted["condition"] or {}, wanted["deprecated"] or {}
    if found.unhealthy:
        assert (found.reason, found.message) == (condition["reason"], condition["message"])
        assert (found.deprecated_reason, found.deprecated_message) == (older["reason"], older.get("message", ""))
    else:
        assert condition.get("status") == ("True" if found.healthy else None)


@pytest.mark.parametrize("row", _rows("allowed"))
def test_how_many_may_be_remediated(row: dict[str, Any]) -> None:
    case = row["case"]
    trigger, status = case["spec"]["remediation"]["triggerIf"], case["status"]

    def found() -> Any:
        at_most, within = trigger.get("unhealthyLessThanOrEqualTo"), trigger.get("unhealthyInRange", "")
        return allowed(status["expectedMachines"], status["currentHealthy"], at_most, within)

    if "error" in row:
        with pytest.raises(OperatorError):
            found()
    else:
        assert found() == (row["answer"]["allowed"], row["answer"]["count"])
