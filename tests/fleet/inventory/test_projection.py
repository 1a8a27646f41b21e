"""What an inventory's status says, from its plan Secret: a table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from fleet.inventory.management import condition

from slipway.api.elemental import plan
from slipway.fleet.contract.status import Status
from slipway.fleet.inventory import projection

RAW = b'{"instructions":[{"name":"x"}]}'
SUM = plan.checksum(RAW).encode()
OTHER = plan.checksum(b"{}").encode()


def told(data: dict[str, bytes], spec: dict[str, Any] | None = None, *, problem: str = "", twins: tuple[str, ...] = ()) -> dict[str, Any]:
    manifest: dict[str, Any] = {"metadata": {"name": "m-1", "namespace": "hosts", "generation": 1}, "spec": spec or {}}
    secret = {"metadata": {}, "data": plan.wire({key.replace("_", "-"): value for key, value in data.items()})}
    facts = projection.facts_of(secret) if data else None
    projection.tell(Status(manifest, datetime(2026, 1, 1, tzinfo=UTC)), manifest, facts, problem=problem, twins=twins)
    return manifest


@pytest.mark.parametrize(
    ("data", "state", "reason"),
    [
        ({}, None, "WaitingForPlan"),
        ({"plan": RAW}, None, "WaitingForPlan"),
        ({"plan": RAW, "plan_state": b"in-progress"}, None, "WaitingForPlan"),
        ({"plan": RAW, "applied_checksum": SUM}, "Applied", "PlanSuccessfullyApplied"),
        ({"plan": RAW, "applied_checksum": OTHER}, None, "WaitingForPlan"),
        ({"plan": RAW, "applied_checksum": OTHER, "plan_state": b"succeeded"}, None, "WaitingForPlan"),
        ({"plan": RAW, "failed_checksum": SUM, "failure_count": b"1"}, "Failed", "PlanFailure"),
        ({"plan": RAW, "failed_checksum": OTHER, "failure_count": b"9"}, None, "WaitingForPlan"),
        ({"plan": RAW, "applied_checksum": OTHER, "failed_checksum": SUM}, "Failed", "PlanFailure"),
        ({"plan": RAW, "failed_checksum": SUM, "failure_count": b"1", "max_failures": b"3"}, None, "WaitingForPlan"),
        ({"plan": b"not json", "failed_checksum": plan.checksum(b"not json").encode()}, "Failed", "PlanFailure"),
    ],
)
def test_an_outcome_counts_by_the_checksum_of_the_plan(data: dict[str, bytes], state: str | None, reason: str) -> None:
    found = told(data)
    assert (found["status"]["plan"].get("state"), condition(found, "Ready")["reason"]) == (state, reason)


@pytest.mark.parametrize(
    ("network", "status", "reason"),
    [
        ({}, "True", "NoNetworkConfig"),
        ({"configurator": "none"}, "True", "NoNetworkConfig"),
        ({"configurator": "nmc"}, "False", "UnsupportedConfigurator"),
        ({"configurator": "nmstate", "config": {}}, "False", "UnsupportedConfigurator"),
    ],
)
def test_who_configures_the_network(network: dict[str, Any], status: str, reason: str) -> None:
    found = condition(told({}, {"network": network}), "NetworkConfigReady")
    assert (found["status"], found["reason"]) == (status, reason)


def test_what_is_wrong_with_the_inventory_itself_comes_before_its_plan() -> None:
    applied = {"plan": RAW, "applied_checksum": SUM}
    assert condition(told(applied, {"storage": {"volumes": []}}), "Ready")["reason"] == "StorageUnsupported"
    assert condition(told(applied, problem="taken"), "Ready")["reason"] == "PlanCreationFailure"
    assert condition(told(applied, twins=("hosts/m-0",)), "Ready")["reason"] == "DuplicateIdentity"


@pytest.mark.parametrize(
    "facts", [b"{", b"[]", b'{"freeBytes": {"/": "x"}}', b"x" * 70_000, b'{"observedAt": "noon"}', b'{"observedAt": "2026-01-01"}']
)
def test_facts_that_cannot_be_read_are_not_taken(facts: bytes) -> None:
    assert "hostFacts" not in told({"plan": RAW, "slipway-host-facts": facts})["status"]


def test_what_a_host_printed_is_told_in_part() -> None:
    output = plan.pack_output({"x": b"line " * 10_000})
    found = told({"plan": RAW, "failed-checksum": SUM, "failure-count": b"1", "failed-output": output})
    assert len(found["status"]["plan"]["message"]) == 4096
    assert len(condition(found, "Ready")["message"]) < 1200


def test_of_what_hosts_print_only_what_is_told_is_kept() -> None:
    """It is kept for each of ten thousand hosts, and each may print some megabytes."""
    secret = {
        "metadata": {},
        "data": plan.wire({"plan": RAW, "failed-checksum": SUM, "failed-output": plan.pack_output({"x": b"y" * (4 << 20)})}),
    }
    assert len(msgspec.json.encode(projection.facts_of(secret))) < 8192
