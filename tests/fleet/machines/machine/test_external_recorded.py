"""What a Machine takes from its providers' objects, and whom these belong to then, is as Cluster API has it, for each recorded case."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from fleet.machines.machine.recorded import NOW, rows

from slipway.api.cluster.meta import ContractVersionedObjectReference, decode
from slipway.api.cluster.names import CONTROL_PLANE_LABEL
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.patches.jsonpatch import merge
from slipway.fleet.contract.status import Status
from slipway.fleet.machines.machine import deprecated, externals, intake

pytestmark = pytest.mark.recorded


def owned(case: dict[str, Any], source: dict[str, Any]) -> dict[str, Any]:
    source = deepcopy(source)
    source["metadata"]["resourceVersion"] = "1"
    reference = case["cluster"]["spec"].get("controlPlaneRef")
    of_plane = reference and CONTROL_PLANE_LABEL in case["machine"]["metadata"]["labels"]
    plane = decode(reference, ContractVersionedObjectReference) if of_plane else None
    made: dict[str, Any] = merge(source, externals.ownership(source, case["machine"], plane))
    return made


def taken(case: dict[str, Any], machine: dict[str, Any], status: Status, name: str) -> tuple[bool, dict[str, Any] | None]:
    """Whether it failed, and the object as it is then."""
    source, contract = case.get(name), case.get("contract", "v1beta2")
    if source is None:
        if name == "infra" and not machine["metadata"].get("deletionTimestamp"):
            lost = (status.fields.get("initialization") or {}).get("infrastructureProvisioned") is True
            if lost:
                intake.lost_infrastructure(status, machine)
            return lost, None
        return False, None
    try:
        source = owned(case, source)
        take = intake.take_bootstrap if name == "config" else intake.take_infrastructure
        take(status, machine, source, contract)
    except OperatorError:
        return True, source
    return False, source


def shown(conditions: list[dict[str, Any]]) -> list[list[str]]:
    fields = ("type", "status", "reason", "severity", "message")
    return [[condition.get(field, "") for field in fields] for condition in conditions]


@pytest.mark.parametrize(("case", "answer"), rows("external"))
def test_a_machine_takes_what_upstream_takes(case: dict[str, Any], answer: dict[str, Any]) -> None:
    machine = deepcopy(case["machine"])
    status = Status(machine, NOW)
    config_failed, config = taken(case, machine, status, "config")
    infra_failed, _ = taken(case, machine, status, "infra")
    try:
        intake.take_expiry(status, machine, config)
        expiry_failed = False
    except OperatorError:
        expiry_failed = True

    assert (config_failed, infra_failed, expiry_failed) == tuple(answer[part]["failed"] for part in ("bootstrap", "infra", "expiry"))
    fields, spec = status.fields, machine["spec"]
    assert (spec["bootstrap"].get("dataSecretName") or "") == answer["dataSecretName"]
    assert (spec.get("providerID") or "") == answer["providerID"]
    assert (spec.get("failureDomain") or "") == answer["specFailureDomain"]
    assert (fields.get("failureDomain") or "") == answer["failureDomain"]
    assert (fields.get("addresses") or []) == (answer["addresses"] or [])
    assert (fields.get("initialization") or {}) == answer["initialization"]
    assert (fields.get("certificatesExpiryDate") or "") == answer["expiry"]["date"]
    older = (fields.get("deprecated") or {}).get("v1beta1") or {}
    for name in ("failureReason", "failureMessage"):
        assert older.get(name) == answer["deprecated"].get(name)

    starting = not machine["metadata"].get("deletionTimestamp") and not spec.get("providerID")
    ready = deprecated.ready(deprecated.of(machine), starting=starting)
    if ready is not None:
        status.set_deprecated(ready)
    assert shown(deprecated.of(machine)) == answer["older"]


@pytest.mark.parametrize(("case", "answer"), rows("external"))
def test_the_objects_belong_to_whom_upstream_gives_them(case: dict[str, Any], answer: dict[str, Any]) -> None:
    for name, key in (("config", "config"), ("infra", "machineInfra")):
        if case.get(name) is None:
            continue
        try:
            source = owned(case, case[name])
        except OperatorError:
            source = case[name]
        assert (source["metadata"].get("ownerReferences") or []) == (answer[key]["owners"] or [])
        assert (source["metadata"].get("labels") or {}) == (answer[key]["labels"] or {})
