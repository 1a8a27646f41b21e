"""Upgrades over several minor versions: which step comes next, and what it waits for."""

from __future__ import annotations

from typing import Any

import pytest
from fleet.controlplane.planes import NOW

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.controlplane.decisions.machines import ETCD_CHECKS, KUBERNETES_CHECKS, Check, ControlPlane, Machine
from slipway.fleet.controlplane.decisions.upgrade import next_version, wait_for

WELL = dict.fromkeys((*KUBERNETES_CHECKS, *ETCD_CHECKS), Check("True"))


@pytest.mark.parametrize(
    ("current", "target", "following"),
    [
        ("v1.33.13", "v1.35.4", "v1.34.10"),
        ("v1.34.10", "v1.35.4", "v1.35.4"),
        ("v1.34.2", "v1.34.10", "v1.34.10"),
        ("v1.33.0", "v1.36.1", "v1.34.10"),
        ("v1.28.3", "v1.31.0", "v1.29.0"),
        ("v1.35.0-rc.1", "v1.35.4", "v1.35.4"),
    ],
)
def test_goes_one_minor_version_at_a_time(current: str, target: str, following: str) -> None:
    assert next_version(current, target) == following


@pytest.mark.parametrize(("current", "target"), [("v1.35.4", "v1.34.10"), ("v1.35.4", "v2.0.0"), ("v1.35.4", "latest")])
def test_refuses_what_is_no_way_up(current: str, target: str) -> None:
    with pytest.raises(OperatorError):
        next_version(current, target)


def plane(*machines: Machine) -> ControlPlane:
    return ControlPlane(len(machines), machines, NOW, version="v1.34.10")


def machine(name: str, **changes: Any) -> Machine:
    return Machine(name, NOW, version="v1.34.10", node=name, checks=WELL)._replace(**changes)


def test_waits_for_every_machine_to_be_at_the_step() -> None:
    waiting = wait_for(plane(machine("a"), machine("b", version="v1.33.13", up_to_date=False)), "v1.35.4", [])
    assert waiting == "1 of 2 Machines to be at v1.34.10"


def test_waits_for_every_machine_to_be_healthy() -> None:
    assert wait_for(plane(machine("a"), machine("b", checks={})), "v1.35.4", []) == "the Machines b to be healthy at v1.34.10"


def test_waits_for_workers_whose_kubelets_would_fall_too_far_behind() -> None:
    assert "Machines at v1.31.2 to be upgraded" in wait_for(plane(machine("a")), "v1.35.4", ["v1.31.2", "v1.32.0"])


def test_goes_on_when_all_are_there_and_well() -> None:
    assert wait_for(plane(machine("a")), "v1.35.4", ["v1.34.10", "v1.32.0", "garbage"]) == ""
