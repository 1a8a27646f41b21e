"""Where a machine and its host are, by what their objects say."""

from __future__ import annotations

import pytest
from fleet.overview.fleets import Manifest, at, condition, host_machine, machine

from slipway.fleet.overview.stages import machine_stage

ALLOCATED = condition("InventoryAllocated", minutes=9)
APPLIED = condition("PlanApplied", minutes=5)
CLEANING = condition("HostCleaned", "False", "Cleaning", minutes=2)
UP = condition("InfrastructureReady", minutes=4)


@pytest.mark.parametrize(
    ("ours", "infrastructure", "expected"),
    [
        (machine("m", phase="Pending"), host_machine("m", "", condition("Paused", "False"), phase="Pending"), ("pending", at(60))),
        (machine("m", phase="Provisioning"), host_machine("m", "h", ALLOCATED, phase="Allocated"), ("allocated", at(9))),
        (machine("m"), host_machine("m", "h", ALLOCATED, phase="Reprovisioning", planWrittenTime=at(8)), ("reprovisioning", at(8))),
        (machine("m"), host_machine("m", "h", APPLIED, phase="Reprovisioning", planWrittenTime=at(8)), ("booting", at(5))),
        (machine("m", node="h"), host_machine("m", "h"), ("node", at(30))),
        (machine("m", node="h", deleted=3), host_machine("m", "h"), ("draining", at(3))),
        (machine("m", node="h", deleted=3), host_machine("m", "h", CLEANING, phase="Preparing"), ("cleaning", at(2))),
        (machine("m", deleted=3), None, ("deleting", at(3))),
        (machine("m"), host_machine("m", "h", condition("ImageResolved", "False", minutes=7), phase="Failed"), ("failed", at(7))),
    ],
)
def test_a_machine_of_ours_is_where_its_host_is(ours: Manifest, infrastructure: Manifest | None, expected: tuple[str, str]) -> None:
    assert machine_stage(ours, infrastructure) == expected


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        (machine("m", phase="Pending"), ("pending", at(60))),
        (machine("m", phase="Provisioning"), ("provisioning", at(60))),
        (machine("m", UP, phase="Provisioned"), ("booting", at(4))),
        (machine("m", UP, condition("NodeHealthy", minutes=2), node="n"), ("node", at(2))),
        (machine("m", condition("Deleting", "True", "DrainingNode"), node="n", phase="Deleting", deleted=3), ("draining", at(3))),
        (
            machine("m", condition("Deleting", "True", "WaitingForInfrastructureDeletion"), node="n", phase="Deleting", deleted=3),
            ("deleting", at(3)),
        ),
        (machine("m", phase="Failed"), ("failed", at(60))),
        (machine("m", phase=""), ("pending", at(60))),
    ],
)
def test_a_machine_of_other_infrastructure_is_where_its_phase_says(theirs: Manifest, expected: tuple[str, str]) -> None:
    assert machine_stage(theirs, None) == expected
