"""What the API server is told of machines and control planes, compared with upstream's webhooks."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from slipway.api.cluster import crds
from slipway.api.cluster.meta import decode, manifest
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.patches.jsonpatch import merge
from slipway.fleet.controlplane import webhooks as controlplane
from slipway.fleet.machines import webhooks as machines
from slipway.runtime.webhook.admission import AdmissionRequest, Defaulter, Problem, Validator

pytestmark = pytest.mark.recorded

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "golden/clusterapi/webhooks/rows.json").read_text())
STORED = {definition.kind.kind: next(each.type for each in definition.versions if each.storage) for definition in crds.DEFINITIONS}
STORE: dict[tuple[str, str], dict[str, Any]] = {}
WEBHOOKS = [*machines.webhooks(), *controlplane.webhooks(lambda namespace, name: STORE.get((namespace, name)))]

# Where ours says something else than upstream, by kind and case, and why.
OURS = {
    ("MachineDeployment", "a negative number"): "refused: upstream takes it, and its controller fails",
    ("MachineDeployment", "a huge number"): "refused: upstream takes it, and makes Machines without end",
    ("KubeadmControlPlane", "a lower minor"): "refused: upstream takes a downgrade",
    ("KubeadmControlPlane", "a lower patch"): "refused: upstream takes a downgrade",
}
# Where the words are other ones; what is wrong, and where, is the same.
WORDS = {
    ("KubeadmControlPlane", "the minor after it"): "says how to go there",
    ("KubeadmControlPlane", "a pre-release of the minor after it"): "says how to go there",
    ("KubeadmControlPlane", "a version of CoreDNS that is none"): "without the parser's own words",
    ("KubeadmControlPlaneTemplate", "changed"): "without the difference",
    ("MachineSet", "names that do not parse"): "our own template language's words",
    ("MachineSet", "names with something unknown"): "our own template language's words",
    ("KubeadmControlPlane", "names that do not parse"): "our own template language's words",
    ("KubeadmControlPlane", "names of a set"): "our own template language's words",
}


def request(row: dict[str, Any], content: dict[str, Any]) -> AdmissionRequest:
    old, metadata = row.get("old"), row["object"]["metadata"]
    return AdmissionRequest("CREATE" if old is None else "UPDATE", content, old, metadata["namespace"], metadata["name"], "", dry_run=False)


def defaulted(row: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = deepcopy(row["object"])
    for webhook in WEBHOOKS:
        if isinstance(webhook, Defaulter) and webhook.kind.kind == row["kind"]:
            content = webhook.default(request(row, content))
    return content


def judged(row: dict[str, Any]) -> list[Problem]:
    content = defaulted(row)
    if row.get("subresource"):
        metadata = row["object"]["metadata"]
        STORE[metadata["namespace"], metadata["name"]] = row["object"]
        content = {"kind": "Scale", "metadata": metadata, "spec": {"replicas": row["replicas"]}}
    (webhook,) = [
        each
        for each in WEBHOOKS
        if isinstance(each, Validator) and each.kind.kind == row["kind"] and each.subresource == row.get("subresource", "")
    ]
    return list(webhook.validate(request(row, content)).problems)


def named(rows: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(row, id=f"{row['kind']}-{row['name']}") for row in rows]


def causes(row: dict[str, Any]) -> list[tuple[str, str, str]]:
    return sorted((each["field"], each["reason"], each["message"]) for each in row["answer"].get("causes", []))


@pytest.mark.parametrize("row", named([row for row in ROWS if "subresource" not in row and "error" not in row["answer"]]))
def test_an_object_is_refused_for_what_upstream_refuses_it_for(row: dict[str, Any]) -> None:
    found = sorted((problem.field, problem.reason, problem.text.removeprefix(f"{problem.field}: ")) for problem in judged(row))
    key = (row["kind"], row["name"])
    if key in OURS:
        assert row["answer"]["allowed"]
        assert found
    elif key in WORDS:
        assert [each[:2] for each in found] == [each[:2] for each in causes(row)]
        assert found != causes(row)
    else:
        assert found == causes(row)


@pytest.mark.parametrize("row", named([row for row in ROWS if "defaulted" in row["answer"]]))
def test_what_is_left_out_is_filled_in_as_upstream_does(row: dict[str, Any]) -> None:
    kind = STORED[row["kind"]]
    expected = row["answer"]["defaulted"]
    assert manifest(decode(defaulted(row), kind)) == manifest(decode(expected, kind))


@pytest.mark.parametrize("row", named([row for row in ROWS if row.get("subresource") == "scale"]))
def test_a_control_plane_is_scaled_to_what_upstream_allows(row: dict[str, Any]) -> None:
    said = [problem.text.removeprefix("spec.replicas: Forbidden: ") for problem in judged(row)]
    assert said == [each["message"] for each in row["answer"].get("causes", [])]


@pytest.mark.parametrize("row", named([row for row in ROWS if "error" in row["answer"]]))
def test_what_cannot_be_filled_in_is_said(row: dict[str, Any]) -> None:
    with pytest.raises(OperatorError):
        defaulted(row)


def test_a_control_plane_that_is_not_known_is_not_scaled() -> None:
    (row,) = [row for row in ROWS if row["name"] == "scaled to one"]
    (webhook,) = [each for each in controlplane.webhooks(lambda *_: None) if isinstance(each, Validator) and each.subresource]
    (problem,) = webhook.validate(request(row, {"spec": {"replicas": 1}})).problems
    assert "failed to get KubeadmControlPlane metal/cp: try again" in problem.text


def row_of(kind: str, **changes: Any) -> dict[str, Any]:
    """The row of an update that changes nothing, with changes to the object, and to what is stored."""
    (found,) = [row for row in ROWS if row["kind"] == kind and row["name"] == "unchanged"]
    row = deepcopy(found)
    for part, change in changes.items():
        row[part] = merge(row[part], change)
    return row


TOPOLOGY = {"spec": {"topology": {"classRef": {"name": "k"}, "version": "v1.35.0"}}}


def test_a_topology_is_refused_with_a_sentence() -> None:
    (problem,) = judged(row_of("Cluster", object=TOPOLOGY))
    assert (problem.field, problem.reason) == ("spec.topology", "FieldValueForbidden")
    assert "ClusterClass is not served here" in problem.text


def test_a_cluster_that_has_a_topology_can_still_be_labelled() -> None:
    assert judged(row_of("Cluster", old=TOPOLOGY, object={**TOPOLOGY, "metadata": {"labels": {"a": "b"}}})) == []


def test_an_object_that_is_not_of_its_type_is_refused_and_not_filled_in() -> None:
    row = row_of("MachineSet", object={"spec": {"template": {"spec": {"taints": "none"}}}})
    with pytest.raises(OperatorError, match="the object is not a valid MachineSet: Expected `array`, got `str`"):
        defaulted(row)
    (webhook,) = [each for each in machines.webhooks() if isinstance(each, Validator) and each.kind.kind == "MachineSet"]
    (problem,) = webhook.validate(request(row, row["object"])).problems
    assert problem.field == "spec"


# Versions of a control plane.

STEPS = "slipway.io/multi-step-upgrade"
TARGET = "slipway.io/upgrade-target"


def at(version: str, *machines: str) -> dict[str, Any]:
    return {"spec": {"version": version}, "status": {"versions": [{"version": each, "replicas": 1} for each in machines]}}


def wanting(version: str, **annotations: str | None) -> dict[str, Any]:
    return {"spec": {"version": version}, "metadata": {"annotations": annotations}}


def test_a_version_that_no_machine_has_may_be_taken_back() -> None:
    assert judged(row_of("KubeadmControlPlane", old=at("v1.36.0", "v1.35.1"), object=wanting("v1.35.1"))) == []


@pytest.mark.parametrize("machines", [("v1.35.1", "v1.36.0"), (), ("what",)])
def test_a_version_that_a_machine_may_have_is_not_taken_back(machines: tuple[str, ...]) -> None:
    (problem,) = judged(row_of("KubeadmControlPlane", old=at("v1.36.0", *machines), object=wanting("v1.35.1")))
    assert problem.text == (
        "spec.version: Forbidden: cannot update Kubernetes version from v1.36.0 to v1.35.1: "
        "a control plane cannot be downgraded once a Machine may have the newer version"
    )


def test_a_jump_over_a_minor_says_how_to_go() -> None:
    (problem,) = judged(row_of("KubeadmControlPlane", object=wanting("v1.37.2")))
    assert problem.text == (
        "spec.version: Forbidden: cannot update Kubernetes version from v1.35.1 to v1.37.2: a control plane goes up one minor version at a "
        'time: go to a v1.36 first, or set the annotation slipway.io/multi-step-upgrade: "true" to have every step made'
    )


@pytest.mark.parametrize(
    ("old", "wanted", "target", "version", "expected"),
    [
        pytest.param(at("v1.34.0", "v1.34.0"), "v1.36.2", None, "v1.34.0", "v1.36.2", id="a jump is put down, and the version stays"),
        pytest.param(at("v1.34.0", "v1.34.0"), "v1.35.2", None, "v1.35.2", None, id="one minor is no jump"),
        pytest.param(at("v1.34.0", "v1.34.0"), "v1.35.9", "v1.36.2", "v1.35.9", "v1.36.2", id="the controller makes a step"),
        pytest.param(at("v1.34.0"), "v1.35.9", "v1.36.2", "v1.34.0", "v1.36.2", id="no step while nothing is known of the Machines"),
        pytest.param(at("v1.35.9", "v1.34.0", "v1.35.9"), "v1.36.2", "v1.36.2", "v1.35.9", "v1.36.2", id="the target does not overtake"),
        pytest.param(at("v1.35.9", "v1.35.9"), "v1.36.2", "v1.36.2", "v1.36.2", "v1.36.2", id="the last step"),
        pytest.param(at("v1.34.0", "v1.34.0"), "v1.37.1", "v1.36.2", "v1.34.0", "v1.37.1", id="another target further away"),
        pytest.param(at("v1.34.0", "v1.34.0"), "v1.36.2", "v1.37.1", "v1.34.0", "v1.36.2", id="another target nearer"),
        pytest.param(at("v1.35.9", "v1.34.0"), "v1.36.5", "v1.36.2", "v1.35.9", "v1.36.5", id="another patch of the target"),
        pytest.param(at("v1.35.9", "v1.35.9"), "v1.35.9", "v1.36.2", "v1.35.9", "v1.36.2", id="nothing is wanted"),
        pytest.param(at("v1.35.9", "v1.35.9"), "v2.0.0", None, "v2.0.0", None, id="another major is refused elsewhere"),
    ],
)
def test_an_upgrade_over_several_minors_is_put_down(
    old: dict[str, Any], wanted: str, target: str | None, version: str, expected: str | None
) -> None:
    made = defaulted(row_of("KubeadmControlPlane", old=old, object=wanting(wanted, **{STEPS: "true", TARGET: target})))
    assert (made["spec"]["version"], made["metadata"]["annotations"].get(TARGET)) == (version, expected)


def test_without_the_annotation_there_is_no_target() -> None:
    made = defaulted(row_of("KubeadmControlPlane", old=at("v1.35.1", "v1.35.1"), object=wanting("v1.35.1", **{TARGET: "v1.37.0"})))
    assert TARGET not in made["metadata"]["annotations"]


def test_an_upgrade_that_is_put_down_is_accepted() -> None:
    assert judged(row_of("KubeadmControlPlane", old=at("v1.35.1", "v1.35.1"), object=wanting("v1.38.0", **{STEPS: "true"}))) == []
