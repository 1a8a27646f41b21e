"""The CRDs that are made from the types, compared with upstream's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slipway.api.cluster import crds

if TYPE_CHECKING:
    from slipway.api.cluster.definition import Definition

pytestmark = pytest.mark.recorded

GOLDEN = Path(__file__).parents[2] / "golden/clusterapi/crds"

# What differs on purpose, by kind, version and path in the schema: (upstream's, ours).
CONTENT_FORMAT = ({"type": "string", "enum": ["Raw", "Template"]}, {"type": "string", "enum": ["Raw", "Template", "go-template"]})
DIFFERENCES = {
    # The draft of the version contract has a form of its own, which is taken beside the one that was merged.
    ("KubeadmConfig", "v1beta1", ".spec.files[].contentFormat"): CONTENT_FORMAT,
    ("KubeadmConfig", "v1beta2", ".spec.files[].contentFormat"): CONTENT_FORMAT,
    ("KubeadmConfigTemplate", "v1beta1", ".spec.template.spec.files[].contentFormat"): CONTENT_FORMAT,
    ("KubeadmConfigTemplate", "v1beta2", ".spec.template.spec.files[].contentFormat"): CONTENT_FORMAT,
    ("KubeadmControlPlane", "v1beta1", ".spec.kubeadmConfigSpec.files[].contentFormat"): CONTENT_FORMAT,
    ("KubeadmControlPlane", "v1beta2", ".spec.kubeadmConfigSpec.files[].contentFormat"): CONTENT_FORMAT,
    ("KubeadmControlPlaneTemplate", "v1beta1", ".spec.template.spec.kubeadmConfigSpec.files[].contentFormat"): CONTENT_FORMAT,
    ("KubeadmControlPlaneTemplate", "v1beta2", ".spec.template.spec.kubeadmConfigSpec.files[].contentFormat"): CONTENT_FORMAT,
}


def upstream(definition: Definition) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((GOLDEN / f"{definition.kind.group}_{definition.kind.plural}.json").read_text())
    return content


def flat(schema: dict[str, Any], path: str = "") -> dict[str, dict[str, Any]]:
    """Each path of a schema with what is said of it, words aside."""
    below = ("properties", "items", "additionalProperties")
    out = {path: {key: value for key, value in schema.items() if key not in (*below, "description")}}
    for name, each in schema.get("properties", {}).items():
        out |= flat(each, f"{path}.{name}")
    if "items" in schema:
        out |= flat(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        out |= flat(schema["additionalProperties"], f"{path}{{}}")
    return out


VERSIONS = [
    pytest.param(definition, version.name, id=f"{definition.kind.kind}-{version.name}")
    for definition in crds.DEFINITIONS
    for version in definition.versions
]


def version_of(crd: dict[str, Any], name: str) -> dict[str, Any]:
    return next(version for version in crd["spec"]["versions"] if version["name"] == name)


@pytest.mark.parametrize(("definition", "version"), VERSIONS)
def test_a_schema_says_of_every_field_what_upstream_says(definition: Definition, version: str) -> None:
    theirs = flat(version_of(upstream(definition), version)["schema"]["openAPIV3Schema"])
    ours = flat(version_of(crds.crd(definition), version)["schema"]["openAPIV3Schema"])
    different = {
        (definition.kind.kind, version, path): (theirs.get(path), ours.get(path))
        for path in theirs | ours
        if theirs.get(path) != ours.get(path)
    }
    assert different == {key: value for key, value in DIFFERENCES.items() if key[:2] == (definition.kind.kind, version)}
    assert len(ours) > 14


@pytest.mark.parametrize(("definition", "version"), VERSIONS)
def test_every_field_has_words(definition: Definition, version: str) -> None:
    def without(schema: dict[str, Any], path: str) -> list[str]:
        missing = []
        for name, each in schema.get("properties", {}).items():
            if not each.get("description"):
                missing.append(f"{path}.{name}")
            missing += without(each, f"{path}.{name}")
        if "items" in schema:
            missing += without(schema["items"], f"{path}[]")
        return missing

    # The server has the words for metadata.
    assert without(version_of(crds.crd(definition), version)["schema"]["openAPIV3Schema"], "") == [".metadata"]


@pytest.mark.parametrize("definition", crds.DEFINITIONS, ids=lambda definition: definition.kind.kind)
def test_names_scope_columns_and_subresources_are_upstreams(definition: Definition) -> None:
    theirs, ours = upstream(definition), crds.crd(definition)
    assert ours["metadata"]["name"] == theirs["metadata"]["name"]
    assert {key: value for key, value in ours["spec"].items() if key != "versions"} == {
        key: value for key, value in theirs["spec"].items() if key != "versions"
    }

    def outline(version: dict[str, Any]) -> dict[str, Any]:
        columns = [{key: value for key, value in column.items() if key != "description"} for column in version["additionalPrinterColumns"]]
        return {key: value for key, value in version.items() if key != "schema"} | {"additionalPrinterColumns": columns}

    assert [outline(version) for version in ours["spec"]["versions"]] == [outline(version) for version in theirs["spec"]["versions"]]


@pytest.mark.parametrize("definition", crds.DEFINITIONS, ids=lambda definition: definition.kind.kind)
def test_a_definition_says_which_contract_each_version_satisfies(definition: Definition) -> None:
    labels = crds.crd(definition)["metadata"]["labels"]
    contracts = {"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}
    assert {name: labels.get(name) for name in contracts} == contracts
    assert {version.name for version in definition.versions} == set(contracts.values())


@pytest.mark.parametrize("definition", crds.DEFINITIONS, ids=lambda definition: definition.kind.kind)
def test_clusterctl_finds_a_kind_and_its_provider(definition: Definition) -> None:
    labels = crds.crd(definition)["metadata"]["labels"]
    assert labels["clusterctl.cluster.x-k8s.io"] == ""
    providers = {
        "addons.cluster.x-k8s.io": "cluster-api",
        "bootstrap.cluster.x-k8s.io": "bootstrap-kubeadm",
        "cluster.x-k8s.io": "cluster-api",
        "controlplane.cluster.x-k8s.io": "control-plane-kubeadm",
    }
    assert labels["cluster.x-k8s.io/provider"] == providers[definition.kind.group]
