"""A control plane tells of itself what Cluster API's own code tells of the same Machines."""

from __future__ import annotations

from typing import Any

import pytest
from fleet.controlplane.planes import NOW, ago, api_machine, plane
from fleet.controlplane.recordings import names, rows

from slipway.fleet.controlplane.status import conditions
from slipway.fleet.controlplane.status.availability import Seen, available
from slipway.fleet.controlplane.status.conditions import Scale
from slipway.fleet.controlplane.status.counts import counts

pytestmark = pytest.mark.recorded

ROWS = rows("status")
COMPARED = (
    "Available",
    "Initialized",
    "MachinesReady",
    "MachinesUpToDate",
    "Remediating",
    "RollingOut",
    "ScalingDown",
    "ScalingUp",
)


@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_tells_what_upstream_tells(row: dict[str, Any]) -> None:
    case, answer = row["case"], row["answer"]
    values, machines = plane({**case, "members": case["members"] or []}), list(map(api_machine, case["machines"]))
    missing = "TestMachineTemplate" if case.get("templateMissing") else ""
    scale = Scale(case["replicas"], machines, NOW, missing=missing, deleting=bool(case.get("deleting")))
    seen = Seen(
        machines,
        NOW,
        None if case.get("uninitialized") else ago(case["initializedAgo"]),
        manages_etcd=values.manages_etcd,
        members=None if case["members"] is None else values.members,
        members_match=case["membersMatch"],
        certificates=values.certificates,
        deleting=bool(case.get("deleting")),
    )
    told = [
        available(seen),
        conditions.initialized(values.initialized),
        conditions.machines_ready(machines),
        conditions.machines_up_to_date(machines, NOW),
        conditions.remediating(machines),
        conditions.rolling_out(machines),
        conditions.scaling_down(scale),
        conditions.scaling_up(scale),
    ]
    found = {condition.type: [condition.status, condition.reason, condition.message] for condition in told}
    assert found == {name: answer["conditions"][name] for name in COMPARED}
    assert list(counts(machines).values()) == answer["counts"]
