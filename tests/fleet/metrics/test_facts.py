"""What objects contribute to the metrics of a fleet."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, KUBEADM_CONTROL_PLANE, MACHINE_INVENTORY, Kind
from slipway.api.elemental.cycles import Cycle
from slipway.fleet.metrics import facts
from slipway.fleet.metrics.facts import Finished, Wait
from slipway.runtime.objects import Object

AT = datetime(2026, 3, 1, 10, 0, 0, tzinfo=UTC)
TIME = "2026-03-01T10:00:00Z"


def minutes(number: float) -> datetime:
    return AT + timedelta(minutes=number)


def made(kind: Kind, annotations: dict[str, str] | None = None, **fields: Any) -> Object:
    metadata = {"name": "x", "namespace": "ns", "annotations": annotations or {}, "labels": {"cluster.x-k8s.io/cluster-name": "c"}}
    return Object(kind, msgspec.json.encode({"metadata": metadata, **fields}))


def condition(type_: str, status: str, reason: str) -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "lastTransitionTime": TIME}


@pytest.mark.parametrize(
    ("annotations", "ready", "state"),
    [
        ({}, "True", "InNoPool"),
        ({"pool": "p"}, "True", "Available"),
        ({"pool": "p", "allocation-state": "Available"}, "False", "Unavailable"),
        ({"pool": "p", "allocation-state": "Preparing"}, "True", "Preparing"),
        ({"pool": "p", "allocation-state": "nonsense"}, "True", "Unavailable"),
    ],
)
def test_a_host_is_in_one_state(annotations: dict[str, str], ready: str, state: str) -> None:
    named = {f"baremetal.alauda.io/{key}": value for key, value in annotations.items()}
    assert facts.host(made(MACHINE_INVENTORY, named, status={"conditions": [condition("Ready", ready, "x")]})).state == state


def test_a_plan_of_a_type_that_nobody_knows_is_no_label_of_its_own() -> None:
    plan = {"type": "surprise", "checksum": "0" * 64, "state": "Applied"}
    assert facts.host(made(MACHINE_INVENTORY, status={"plan": plan})).plan_type == "Other"


def test_conditions_that_do_not_hold_are_waits_with_the_reasons_of_the_reference() -> None:
    told = [
        condition("InventoryAllocated", "True", "Allocated"),
        condition("ImageResolved", "False", "ImageCatalogMiss"),
        condition("PlanApplied", "False", "somebody-wrote-this"),
        condition("Ready", "False", "NotReady"),
        condition("Paused", "False", "NotPaused"),
        condition("Invented", "False", "x"),
    ]
    assert facts.waits(made(BAREMETAL_MACHINE, status={"conditions": told})) == (
        Wait("BaremetalMachine", "ImageResolved", "ImageCatalogMiss", AT),
        Wait("BaremetalMachine", "PlanApplied", "Other", AT),
    )


def test_a_control_plane_that_rolls_out_tells_since_when_and_how_far_it_is() -> None:
    status = {"conditions": [condition("RollingOut", "True", "RollingOut")], "replicas": 3, "upToDateReplicas": 1}
    found = facts.group(made(KUBEADM_CONTROL_PLANE, status=status))
    assert (found.cluster, found.kind, found.rolling_since, found.machines, found.up_to_date) == ("c", "KubeadmControlPlane", AT, 3, 1)


def test_one_that_does_not_roll_out_tells_so() -> None:
    status = {"conditions": [condition("RollingOut", "False", "NotRollingOut")], "replicas": 3, "upToDateReplicas": 3}
    assert facts.group(made(KUBEADM_CONTROL_PLANE, status=status)).rolling_since is None


def host(checksum: str, state: str) -> facts.HostFacts:
    return facts.HostFacts("ns", "Allocated", False, "clean", state, checksum)


@pytest.mark.parametrize(
    ("before", "after", "ended"),
    [
        (host("a", ""), host("a", "Applied"), True),
        (host("a", ""), host("a", "Failed"), True),
        (host("a", "Applied"), host("b", ""), False),
        (host("a", "Applied"), host("b", "Applied"), True),
        (host("a", "Applied"), host("a", "Applied"), False),
    ],
)
def test_a_plan_is_ended_once(before: facts.HostFacts, after: facts.HostFacts, ended: bool) -> None:
    assert facts.ended_plan(before, after) == ended


OLD = Cycle(
    machine="old", claimed=AT, running=minutes(9), draining=minutes(100), drained=minutes(103), cleaned=minutes(104), released=minutes(105)
)
NEW = Cycle(machine="new", claimed=minutes(205), planned=minutes(206), applied=minutes(210), joined=minutes(213))
RUNS = msgspec.structs.replace(NEW, running=minutes(215))


def test_the_parts_of_a_life_are_told_when_they_are_over() -> None:
    assert facts.finished((OLD, NEW), (OLD, RUNS)) == [Finished("ready", 120.0)]
    assert facts.finished((OLD,), (OLD, NEW)) == [Finished("prepare", 60.0), Finished("reprovision", 240.0), Finished("boot", 180.0)]
    assert facts.finished((OLD, RUNS), (OLD, RUNS)) == []


def test_clocks_that_differ_make_no_negative_time() -> None:
    skewed = Cycle(machine="m", draining=minutes(1), drained=minutes(0))
    assert facts.finished((), (skewed,)) == [Finished("drain", 0.0)]


def test_a_node_is_out_from_its_drain_to_the_next_ready_but_for_the_time_in_the_pool() -> None:
    assert facts.node_out((OLD, NEW), (OLD, RUNS)) == (5 + 10) * 60


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((OLD, RUNS), (OLD, RUNS)),
        ((OLD,), (OLD, NEW)),
        ((), (RUNS,)),
        ((NEW,), (Cycle(machine="never-drained", claimed=AT), RUNS)),
    ],
)
def test_a_node_that_was_not_out_is_not_told(before: tuple[Cycle, ...], after: tuple[Cycle, ...]) -> None:
    assert facts.node_out(before, after) is None


def test_a_host_that_was_given_up_is_out_until_it_is_clean() -> None:
    given_up = msgspec.structs.replace(OLD, released=minutes(103), cleaned=minutes(200))
    assert facts.node_out((given_up, NEW), (given_up, RUNS)) == (100 + 10) * 60
