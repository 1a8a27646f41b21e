"""Conditions, Ready, Available and the phase are those of Cluster API's Machine controller, for each recorded case."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from fleet.machines.machine.recorded import NOW, rows

from slipway.api.cluster.core.machinedeployment import MachineDeployment
from slipway.api.cluster.core.machineset import MachineSet
from slipway.api.cluster.meta import decode
from slipway.fleet.liveclusters import Probe
from slipway.fleet.machines.machine.conditions import ClusterState, Templates
from slipway.fleet.machines.machine.status import Observed, tell
from slipway.fleet.machines.machine.values import External, Found, Said, moment

pytestmark = pytest.mark.recorded

# Upstream refers to the log of its controller where ours tells the error.
UNREAD = "Please check controller logs for errors"


def observed(case: dict[str, Any]) -> Observed:
    cluster = case["cluster"]
    initialized: dict[str, Any] = next(
        (each for each in cluster["status"].get("conditions") or () if each["type"] == "ControlPlaneInitialized"), {}
    )
    templates = None
    if "machineSet" in case and "machineDeployment" in case:
        made_from, wanted = decode(case["machineSet"], MachineSet), decode(case["machineDeployment"], MachineDeployment)
        templates = Templates(
            made_from.spec.template.spec,
            wanted.spec.template.spec,
            made_from.metadata.get("creationTimestamp", ""),
            wanted.spec.rollout.after,
        )
    problem = case.get("nodeError", "")
    return Observed(
        cluster=ClusterState(
            (cluster["status"].get("initialization") or {}).get("infrastructureProvisioned") is True,
            initialized.get("status") == "True",
            initialized.get("lastTransitionTime", ""),
        ),
        config=External(case.get("config"), case.get("configNotFound", False)),
        config_problem=UNREAD,
        infrastructure=External(case.get("infra"), case.get("infraNotFound", False)),
        infrastructure_problem=UNREAD,
        found=Found(case.get("node"), problem, problem == "not connected"),
        probe=Probe(succeeded_at=moment(case.get("lastProbe")), failed_in_a_row=case.get("probeFailures", 0)),
        templates=templates,
        deletion=Said(case.get("deletingReason", ""), case.get("deletingMessage", "")),
    )


@pytest.mark.parametrize(("case", "answer"), rows("status"))
def test_the_status_is_upstreams(case: dict[str, Any], answer: dict[str, Any]) -> None:
    machine = deepcopy(case["machine"])
    seconds = tell(machine, observed(case), NOW)

    status = machine["status"]
    said = [[each["type"], each["status"], each["reason"], each["message"]] for each in status["conditions"]]
    assert said == answer["conditions"]
    assert status["phase"] == answer["phase"]
    assert ("lastUpdated" in status) is answer["updated"]
    assert (seconds > 0) is answer["requeue"]


@pytest.mark.parametrize(("case", "answer"), rows("status")[:1])
def test_a_status_that_says_the_same_is_left_as_it_is(case: dict[str, Any], answer: dict[str, Any]) -> None:
    machine = deepcopy(case["machine"])
    tell(machine, observed(case), NOW)
    before = deepcopy(machine)
    tell(machine, observed(case), NOW)
    assert machine == before
