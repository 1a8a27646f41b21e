"""Who owns labels and annotations of clones that Cluster API made before 1.12: as ssa.MigrateManagedFields of 1.14 leaves it."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.fleet.contract.ownership import without_updates

MANAGER = "capi-machineset"


def entry(manager: str, operation: str, fields: dict[str, Any], subresource: str = "") -> dict[str, Any]:
    made = {"manager": manager, "operation": operation, "apiVersion": "v1beta2", "fieldsType": "FieldsV1", "fieldsV1": fields}
    return {**made, "subresource": subresource} if subresource else made


def owned(**parts: dict[str, Any]) -> dict[str, Any]:
    return {"f:metadata": {f"f:{name}": value for name, value in parts.items()}}


LABELS: dict[str, Any] = {"f:cluster.x-k8s.io/cluster-name": {}, "f:rack": {}}
CLASSIC = entry("manager", "Update", {**owned(labels=LABELS), "f:spec": {"f:size": {}}})
STATUS = entry("manager", "Update", {"f:status": {"f:ready": {}}}, "status")
METADATA = entry("capi-machineset-metadata", "Apply", owned(labels=LABELS))
KUBECTL = entry("kubectl-edit", "Update", {"f:spec": {"f:size": {}}})
OLD = entry(MANAGER, "Apply", owned(labels=LABELS, annotations={}))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([CLASSIC, STATUS, OLD, METADATA, KUBECTL], [STATUS, METADATA, KUBECTL]),
        ([OLD, METADATA], [METADATA]),
        # Made by 1.12 and later, or by us.
        ([entry(MANAGER, "Apply", {"f:spec": {"f:size": {}}}), METADATA, CLASSIC], None),
        ([entry(MANAGER, "Apply", {**owned(labels=LABELS), "f:spec": {"f:size": {}}}), METADATA], None),
        ([entry(MANAGER, "Apply", owned(labels=LABELS, ownerReferences={})), METADATA], None),
        ([entry(MANAGER, "Apply", owned(labels={"f:rack": {}})), METADATA], None),
        ([entry(MANAGER, "Update", owned(labels=LABELS)), METADATA], None),
        ([CLASSIC, METADATA], None),
        ([], None),
    ],
)
def test_what_an_old_manager_owns_is_given_up_once(before: list[dict[str, Any]], after: list[dict[str, Any]] | None) -> None:
    assert without_updates(before, MANAGER) == after
    if after is not None:
        assert without_updates(after, MANAGER) is None
