"""Who is rolled out first."""

from __future__ import annotations

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.machines.deployment.order import ORDER_ANNOTATION, Sibling, control_plane_first, earlier, position
from slipway.fleet.machines.machineset.preflight import ControlPlane

PLANE = ControlPlane("KubeadmControlPlane", "ns", "cp", "v1.35.1", ("v1.35.1",))


def test_who_has_no_number_waits_for_nobody() -> None:
    assert earlier(position({}), [Sibling("a", 1, False)]) == []


def test_lower_numbers_that_are_not_finished_are_waited_for() -> None:
    others = [Sibling("c", 2, False), Sibling("a", 1, True), Sibling("b", 1, False), Sibling("same", 3, False), Sibling("later", 4, False)]
    waits = earlier(3, others)
    assert [message.split()[3] for message in waits] == ["b", "c"]
    assert waits[0] == f"Waiting for MachineDeployment b to be rolled out first ({ORDER_ANNOTATION} 1 is before 3)"


def test_a_number_that_is_none_is_told() -> None:
    with pytest.raises(OperatorError, match='is "soon" and must be an integer'):
        position({ORDER_ANNOTATION: "soon"})


@pytest.mark.parametrize(
    ("version", "waits"), [("v1.35.0", False), ("v1.35.1", False), ("v1.35.2", True), ("v1.36.0", True), ("", False), ("x", False)]
)
def test_a_version_above_the_control_planes_is_waited_for(version: str, waits: bool) -> None:
    assert bool(control_plane_first(PLANE, version, frozenset())) == waits


@pytest.mark.parametrize("skipped", ["All", "ControlPlaneVersionSkew"])
def test_the_wait_for_the_control_plane_can_be_skipped(skipped: str) -> None:
    assert control_plane_first(PLANE, "v1.36.0", frozenset({skipped})) == []


def test_without_a_control_plane_nothing_is_waited_for() -> None:
    assert control_plane_first(None, "v1.36.0", frozenset()) == []
