"""What MachineSets and MachineDeployments decide and report is what Cluster API's controllers do, case by case."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from oracles.clusterapi_machinesets_record import at, without_times

from slipway.api.cluster import names
from slipway.api.cluster.core.machine import Machine
from slipway.api.cluster.core.machinedeployment import MachineDeployment
from slipway.api.cluster.core.machineset import MachineSet
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.conditions import Condition
from slipway.fleet.contract.status import Status, deprecated_summary
from slipway.fleet.machines.deployment import desired as desired_sets
from slipway.fleet.machines.deployment import planner
from slipway.fleet.machines.deployment import status as deployment_status
from slipway.fleet.machines.deployment.matching import difference, find
from slipway.fleet.machines.limits import fenceposts, scaled
from slipway.fleet.machines.machineset import desired as desired_machines
from slipway.fleet.machines.machineset import preflight, remediation
from slipway.fleet.machines.machineset import status as set_status
from slipway.fleet.machines.machineset.deletion import deletion_order, remediation_order

pytestmark = pytest.mark.recorded

GOLDEN = Path(__file__).parents[2] / "golden/clusterapi/machinesets"
NOW = datetime(2026, 5, 5, 12, 0, 0, tzinfo=UTC)
Row = dict[str, Any]


def rows(subject: str) -> list[Any]:
    found: list[Row] = json.loads((GOLDEN / f"{subject}.json").read_text())
    return [pytest.param(row, id=f"{subject} {number}") for number, row in enumerate(found)]


def asked(row: Row) -> Row:
    question: Row = at(deepcopy(row["question"]), NOW)
    return question


def machines(question: Row) -> list[Machine]:
    return [msgspec.convert(one, Machine) for one in question.get("machines") or ()]


def sets(question: Row) -> list[MachineSet]:
    return [msgspec.convert(one, MachineSet) for one in question.get("machineSets") or ()]


def stated(found: list[Condition], manifest: Row) -> list[Row]:
    """Conditions as a status has them, in its order and without times."""
    status = Status(manifest, NOW)
    for condition in found:
        status.say(condition)
    listed: list[Row] = without_times(status.fields.get("conditions") or [])
    return listed


@pytest.mark.parametrize("row", rows("fenceposts"))
def test_percentages_and_numbers_become_the_same_bounds(row: Row) -> None:
    question = row["question"]

    def ours() -> list[int]:
        return list(fenceposts(question["maxSurge"], question["maxUnavailable"], question["replicas"]))

    if "error" in row:
        with pytest.raises(OperatorError):
            ours()
    else:
        assert ours() == row["answer"]


@pytest.mark.parametrize("row", rows("limits"))
def test_a_machine_deployment_has_the_same_bounds(row: Row) -> None:
    deployment = msgspec.convert(asked(row)["machineDeployment"], MachineDeployment)
    found = deployment_status.limits_of(deployment)
    assert [found.surge, found.unavailable] == row["answer"]


@pytest.mark.parametrize("row", rows("find"))
def test_the_same_machine_set_is_the_current_one(row: Row) -> None:
    question = asked(row)
    deployment = msgspec.convert(question["machineDeployment"], MachineDeployment)
    moment = datetime.fromisoformat(question["time"]) if question.get("time") else NOW
    known = sets(question)
    found = find(deployment.spec.template, deployment.spec.rollout.after, known, moment)
    answer = row["answer"]
    assert (found.new.metadata["name"] if found.new else None) == answer.get("new")
    assert [one.metadata["name"] for one in found.old] == answer["old"]
    assert bool(found.reason) == bool(answer["reason"])
    if "set to" not in answer["reason"]:
        assert found.reason == answer["reason"]
    told = {one.metadata["name"]: list(difference(one.spec.template, deployment.spec.template).told) for one in known}
    assert {name: messages for name, messages in told.items() if messages} == answer["messages"]


@pytest.mark.parametrize("row", rows("revision"))
def test_a_machine_set_gets_the_same_revision(row: Row) -> None:
    question = row["question"]
    if "error" in row:
        with pytest.raises(OperatorError):
            desired_sets.next_revision(question["machineSet"], question["machineSets"])
        return
    number, annotations = desired_sets.next_revision(question["machineSet"], question["machineSets"])
    assert {"revision": number, "annotations": annotations} == row["answer"]


@pytest.mark.parametrize("row", rows("proportion"))
def test_a_machine_set_has_the_same_share_of_a_change(row: Row) -> None:
    question = asked(row)
    deployment, one = msgspec.convert(question["machineDeployment"], MachineDeployment), question["machineSet"]
    most = (one["metadata"]["annotations"] or {}).get(names.MAX_REPLICAS_ANNOTATION)
    limits = deployment_status.limits_of(deployment)
    goal = planner.Goal(deployment.spec.replicas or 0, limits.surge, limits.unavailable)
    sized = planner.Sized("a", spec=one["spec"]["replicas"], max_replicas=None if most is None else int(most))
    left = question["toAdd"] - question["added"]
    part = planner.share(goal, sized, deployment.status.replicas or 0) if sized.spec else 0
    assert (min(part, left) if left > 0 else max(part, left)) == (row["answer"] or 0)


@pytest.mark.parametrize("row", rows("delete-order"))
def test_the_same_machines_go_first(row: Row) -> None:
    question = asked(row)
    order = (question["machineSet"]["spec"].get("deletion") or {}).get("order", "")
    if "error" in row:
        with pytest.raises(OperatorError):
            deletion_order(machines(question), order, NOW)
        return
    found = deletion_order(machines(question), order, NOW)[: question["count"]]
    assert [one.metadata["name"] for one in found] == row["answer"]


@pytest.mark.parametrize("row", rows("remediation-order"))
def test_the_same_machines_are_remediated_first(row: Row) -> None:
    assert [one.metadata["name"] for one in remediation_order(machines(asked(row)))] == row["answer"]


@pytest.mark.parametrize("row", rows("preflights"))
def test_the_same_checks_forbid_to_make_a_machine(row: Row) -> None:
    question = asked(row)
    one = msgspec.convert(question["machineSet"], MachineSet)
    plane, bootstrap = question["objects"]
    skip = preflight.skip_annotation(question["machineSet"]) or preflight.skip_annotation(bootstrap)
    known = preflight.control_plane_from(plane) if question["cluster"]["spec"].get("controlPlaneRef") else None
    topology = question["cluster"]["spec"].get("topology")
    step = (question["cluster"]["metadata"].get("annotations") or {}).get(names.TOPOLOGY_UPGRADE_STEP_ANNOTATION, "")

    def ours() -> list[str]:
        return preflight.failed_checks(
            known,
            one.spec.template.spec.version,
            one.spec.template.spec.bootstrap.config_ref,
            preflight.skipped(skip),
            topology=preflight.Topology(topology["version"], step) if topology else None,
            kubeadm_joins_any_version=False,
        )

    if "error" in row:
        with pytest.raises(OperatorError):
            ours()
    else:
        assert ours() == row["answer"]


@pytest.mark.parametrize("row", rows("machineset-status"))
def test_a_machine_set_reports_the_same(row: Row) -> None:
    question = asked(row)
    manifest = question["machineSet"]
    one = msgspec.convert(manifest, MachineSet)
    kinds = [
        *(["KubeadmConfigTemplate"] if question.get("bootstrapMissing") else []),
        *(["HostTemplate"] if question.get("infrastructureMissing") else []),
    ]
    known = None if question.get("machinesUnknown") else machines(question)
    seen = set_status.Seen(one, known, tuple(kinds), tuple(question.get("preflightMessages") or ()))
    counted = {key: value for key, value in set_status.counters(seen).items() if value is not None}
    answer = row["answer"]
    assert counted == {key: value for key, value in answer.items() if key != "conditions"}
    assert stated(set_status.conditions(seen, NOW), manifest) == answer["conditions"]


@pytest.mark.parametrize("row", rows("machineset-deprecated"))
def test_a_machine_set_reports_the_same_in_yesterdays_form(row: Row) -> None:
    question = asked(row)
    seen = set_status.Seen(msgspec.convert(question["machineSet"], MachineSet), machines(question))
    counted = set_status.deprecated_counters(seen, lambda name: set_status.NodeState())
    status = Status({"metadata": {}}, NOW)
    for one in set_status.deprecated_conditions(seen, counted["readyReplicas"], None):
        status.set_deprecated(one)
    found = status.fields.get("deprecated", {}).get("v1beta1", {}).get("conditions") or []
    summary = deprecated_summary(found, set_status.SUMMED_UP)
    if summary is not None:
        status.set_deprecated(summary)
    listed = without_times((status.fields.get("deprecated") or {"v1beta1": {"conditions": []}})["v1beta1"]["conditions"])
    assert without_empty({**counted, "conditions": listed}) == without_empty(row["answer"])


@pytest.mark.parametrize("row", rows("remediation"))
def test_sick_machines_are_treated_the_same(row: Row) -> None:
    question = asked(row)
    known, deployment = machines(question), question.get("machineDeployment")
    limit, shown, outdated = None, "", False
    if deployment is not None:
        typed = msgspec.convert(deployment, MachineDeployment)
        raw = typed.spec.remediation.max_in_flight
        limit, shown = (None, "") if raw is None else (scaled(raw, typed.spec.replicas or 1, up=True), str(raw))
        own = question["machineSet"]["metadata"]["annotations"][names.REVISION_ANNOTATION]
        outdated = deployment["metadata"]["annotations"][names.REVISION_ANNOTATION] != own
    decision = remediation.checked(remediation.decide(known, outdated=outdated, max_in_flight=limit, shown=shown), [])
    said = {one.machine.metadata["name"]: one for one in decision.said}
    for machine in known:
        name = machine.metadata["name"]
        expected = row["answer"][name]
        deleted = any(one is machine for one in decision.delete)
        assert (deleted or bool(machine.metadata.get("deletionTimestamp"))) == expected["deleting"]
        if name in said:
            told, older = said[name].condition, said[name].deprecated
            theirs = expected["condition"]
            assert (told.status, told.reason, told.message) == (theirs["status"], theirs["reason"], theirs["message"])
            assert (older.status if older else None) == (expected.get("deprecated") or {"status": None})["status"]
        elif any(one is machine for one in decision.recovered):
            assert "condition" not in expected
        else:
            had = next((one.reason for one in machine.status.conditions if one.type == names.OWNER_REMEDIATED_CONDITION), None)
            assert (expected.get("condition") or {"reason": None})["reason"] == had


@pytest.mark.parametrize("row", rows("desired-machine"))
def test_a_machine_is_to_be_the_same(row: Row) -> None:
    question, answer = asked(row), row["answer"]
    if question["machine"] is None:
        wanted = desired_machines.new_machine(question["machineSet"], answer["metadata"]["name"], bootstrap=None, infrastructure={})
        assert len(desired_machines.machine_name(question["machineSet"])) == len(answer["metadata"]["name"])
    else:
        wanted = desired_machines.machine(question["machineSet"], question["machine"])
        answer["metadata"].pop("uid")
    assert without_empty(wanted) == without_empty({key: answer[key] for key in ("metadata", "spec")})


@pytest.mark.parametrize("row", rows("requeue"))
def test_a_machine_set_looks_again_at_the_same_time(row: Row) -> None:
    one = asked(row)["machineSet"]
    assert set_status.requeue(set_status.Seen(msgspec.convert(one, MachineSet), ()), one["status"]) == (row.get("answer") or 0)


@pytest.mark.parametrize("row", rows("desired-machineset"))
def test_a_machine_set_is_to_be_the_same(row: Row) -> None:
    question = asked(row)
    deployment, current = question["machineDeployment"], question["machineSet"]
    typed = msgspec.convert(deployment, MachineDeployment)
    limits = deployment_status.limits_of(typed)
    goal = planner.Goal(typed.spec.replicas or 0, *limits, on_delete=not deployment_status.is_rolling(typed))
    annotations = {**desired_sets.next_revision(current, question["machineSets"]).annotations, **planner.step_annotations(goal, old=False)}
    replicas = current["spec"]["replicas"] if current else 0
    if "error" in row:
        with pytest.raises(OperatorError):
            desired_sets.machine_set(deployment, current, replicas, annotations)
        return
    answer = row["answer"]
    unique = answer["metadata"]["labels"][names.TEMPLATE_HASH_LABEL]
    wanted = desired_sets.machine_set(deployment, current, replicas, annotations, suffix=unique.rpartition("-")[2])
    # The number before the suffix is another one, and only has to be one.
    ours = json.loads(json.dumps(wanted).replace(wanted["metadata"]["labels"][names.TEMPLATE_HASH_LABEL], unique))
    for server in ("uid", "creationTimestamp"):
        answer["metadata"].pop(server, None)
    assert without_empty(ours) == without_empty({key: answer[key] for key in ("metadata", "spec")})


@pytest.mark.parametrize("row", rows("deployment-status"))
def test_a_machine_deployment_reports_the_same(row: Row) -> None:
    question = asked(row)
    manifest = question["machineDeployment"]
    deployment = msgspec.convert(manifest, MachineDeployment)
    kinds = [
        *(["KubeadmConfigTemplate"] if question.get("bootstrapMissing") else []),
        *(["HostTemplate"] if question.get("infrastructureMissing") else []),
    ]
    known = None if question.get("machineSetsUnknown") else sets(question)
    seen = deployment_status.Seen(deployment, known, machines(question), tuple(kinds))
    counted = {key: value for key, value in deployment_status.counters(seen).items() if value is not None and value != ""}
    answer = row["answer"]
    assert counted == {key: value for key, value in answer.items() if key not in ("conditions", "deprecated")}
    assert stated(deployment_status.conditions(seen, counted.get("availableReplicas"), NOW), deepcopy(manifest)) == answer["conditions"]
    if "deprecated" in answer:
        new = msgspec.convert(question["machineSet"], MachineSet) if question.get("machineSet") else None
        yesterday = deployment_status.deprecated_counters(seen, new)
        older = deployment_status.deprecated_conditions(seen, new, yesterday["availableReplicas"], counted.get("availableReplicas") or 0)
        status = Status({"metadata": {}}, NOW)
        for one in older:
            status.set_deprecated(one)
        summary = deprecated_summary(status.fields["deprecated"]["v1beta1"]["conditions"], (names.AVAILABLE_CONDITION,))
        assert summary is not None
        status.set_deprecated(summary)
        found = {**yesterday, "conditions": without_times(status.fields["deprecated"]["v1beta1"]["conditions"])}
        assert found == answer["deprecated"]["v1beta1"]


def without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        cleaned = {key: without_empty(each) for key, each in value.items()}
        return {key: each for key, each in cleaned.items() if each not in ({}, [], "", None)}
    return [without_empty(each) for each in value] if isinstance(value, list) else value


def test_there_are_enough_rows() -> None:
    assert sum(len(json.loads(path.read_text())) for path in GOLDEN.glob("*.json")) >= 300
