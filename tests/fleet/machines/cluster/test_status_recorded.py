"""The status of a Cluster, as Cluster API 1.14.2 tells it of the same objects (tests/oracles/clusterapi_status_record.py)."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from slipway.api.cluster.kinds import MACHINE, MACHINE_DEPLOYMENT, MACHINE_POOL, MACHINE_SET, Kind
from slipway.fleet.contract.status import Status
from slipway.fleet.liveclusters import Probe
from slipway.fleet.machines.cluster import deletion, deprecated, observed
from slipway.fleet.machines.cluster.initialization import take_over
from slipway.fleet.machines.cluster.observed import Descendants, External, Observed
from slipway.fleet.machines.cluster.status import Deletion, fill
from slipway.runtime.objects import Object, timestamp

pytestmark = pytest.mark.recorded

GOLDEN = Path(__file__).parents[3] / "golden/clusterapi/cluster"
NOW = datetime(2026, 2, 1, tzinfo=UTC)

# Without a reference, upstream says InternalError of what is referred to: for good, as if reading it had failed.
ON_PURPOSE = {
    "alone: control plane machines without nodes": {"ControlPlaneAvailable": ("Unknown", "AvailableUnknown")},
    "alone: a control plane machine has its node": {"ControlPlaneAvailable": ("Unknown", "AvailableUnknown")},
    "alone: neither reference": {
        "InfrastructureReady": ("True", "Ready"),
        "ControlPlaneAvailable": ("False", "ObjectDoesNotExist"),
        "Available": ("False", "NotAvailable"),
    },
    "phase: pending": {
        "InfrastructureReady": ("True", "Ready"),
        "ControlPlaneAvailable": ("False", "ObjectDoesNotExist"),
        "Available": ("False", "NotAvailable"),
    },
}


def _rows(subject: str) -> list[Any]:
    return [pytest.param(row, id=row["case"]["name"]) for row in json.loads((GOLDEN / f"{subject}.json").read_text())]


def _objects(case: dict[str, Any], field: str, kind: Kind) -> list[Object]:
    found = []
    for manifest in case.get(field, ()):
        age = case.get("ages", {}).get(manifest["metadata"]["name"])
        # Without an age, upstream takes the beginning of time.
        created = "0001-01-01T00:00:00Z" if age is None else timestamp(NOW - timedelta(seconds=age))
        metadata = {**manifest["metadata"], "creationTimestamp": created}
        found.append(Object(kind, msgspec.json.encode({**manifest, "metadata": metadata})))
    return sorted(found, key=lambda one: one.name)


def _descendants(case: dict[str, Any]) -> Descendants:
    return Descendants(
        [observed.group(found) for found in _objects(case, "machineDeployments", MACHINE_DEPLOYMENT)],
        [observed.group(found) for found in _objects(case, "machineSets", MACHINE_SET)],
        [observed.group(found) for found in _objects(case, "machinePools", MACHINE_POOL)],
        [observed.machine(found) for found in _objects(case, "machines", MACHINE)],
    )


def _observed(case: dict[str, Any]) -> Observed:
    ago = case.get("probe", {}).get("succeededAgo")
    contract = case.get("controlPlaneContract", "v1beta2")
    return Observed(
        deepcopy(case["cluster"]),
        External(case.get("infrastructure"), case.get("infrastructureGone", False)),
        External(case.get("controlPlane"), case.get("controlPlaneGone", False), contract),
        None if case.get("listFailed") else _descendants(case),
        Probe(
            succeeded_at=None if ago is None else NOW - timedelta(seconds=ago),
            failed_in_a_row=case.get("probe", {}).get("failures", 0),
            why="",
        ),
    )


@pytest.mark.parametrize("row", _rows("status"))
def test_the_status_of_a_cluster(row: dict[str, Any]) -> None:
    case, wanted = row["case"], row["answer"]
    seen = _observed(case)
    fill(Status(seen.cluster, NOW), seen, NOW, Deletion(*case["deleting"]) if "deleting" in case else None)
    found = seen.cluster["status"]
    for counters in ("controlPlane", "workers"):
        assert (found.get(counters) or {}) == (wanted.get(counters) or {}), counters
    assert found["phase"] == wanted["phase"]
    assert _said(found) == {**_said(wanted), **ON_PURPOSE.get(case["name"], {})}
    if case["name"] not in ON_PURPOSE:
        assert _messages(found) == _messages(wanted)


def _said(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    own = [condition for condition in status["conditions"] if condition["type"] not in ("Ingress", "Backup")]
    return {condition["type"]: (condition["status"], condition["reason"]) for condition in own}


def _messages(status: dict[str, Any]) -> dict[str, str]:
    return {
        condition["type"]: re.sub(r"(last succeeded at) [0-9T:Z-]+", r"\1 T", condition["message"]) for condition in status["conditions"]
    }


@pytest.mark.parametrize("row", _rows("phases"))
def test_what_is_taken_over_from_infrastructure_and_control_plane(row: dict[str, Any]) -> None:
    case, wanted = row["case"], row["answer"]
    cluster = deepcopy(case["cluster"])
    infrastructure = External(case.get("infrastructure"), "infrastructure" not in case, case.get("infrastructureContract", "v1beta2"))
    control_plane = External(case.get("controlPlane"), "controlPlane" not in case, case.get("controlPlaneContract", "v1beta2"))
    taken = take_over(cluster, infrastructure, control_plane)
    deprecated.fill(Status(cluster, NOW), Observed(cluster, infrastructure, control_plane, _descendants(case)))
    status = cluster.get("status") or {}
    assert (cluster["spec"].get("controlPlaneEndpoint") or {}) == wanted["endpoint"]
    assert (status.get("initialization") or {}) == wanted["initialization"]
    assert (status.get("failureDomains") or []) == (wanted["failureDomains"] or [])
    assert len(taken.problems) == sum(name in wanted for name in ("infrastructure", "controlPlane"))
    older, expected = _older(status.get("deprecated")), _older(wanted["deprecated"])
    assert older == expected


def _older(found: dict[str, Any] | None) -> dict[str, Any]:
    older = dict((found or {}).get("v1beta1") or {})
    conditions = older.pop("conditions", None) or []
    # The time is that of the run.
    return {**older, **{one["type"]: {key: value for key, value in one.items() if key != "lastTransitionTime"} for one in conditions}}


@pytest.mark.parametrize("row", _rows("descendants"))
def test_what_a_deletion_begins_with_and_waits_for(row: dict[str, Any]) -> None:
    case, wanted = row["case"], row["answer"]
    found = deletion.workers(case["cluster"], _descendants(case))
    assert [metadata.name for _, metadata in found.owned] == sorted_like(wanted["owned"], found)
    assert found.pending == wanted["pending"]
    assert found.named == wanted["names"]


def sorted_like(names: list[str], found: deletion.Workers) -> list[str]:
    """Upstream takes groups as they are listed; ours are by name within their kind."""
    order = {metadata.name: position for position, (_, metadata) in enumerate(found.owned)}
    kinds = {metadata.name: kind.kind for kind, metadata in found.owned}
    assert [kinds[name] for name in names] == [kind.kind for kind, _ in found.owned]
    return sorted(names, key=lambda name: order[name])
