"""The CRDs of the bare-metal provider, and of the inventory that it stands on."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.api.cluster import crds
from slipway.api.cluster.infrastructure import definitions as infrastructure
from slipway.api.cluster.infrastructure.names import inventory_of, provider_id
from slipway.api.elemental import definitions as elemental

ALL = {definition.kind.kind: definition for definition in (*infrastructure.DEFINITIONS, *elemental.DEFINITIONS)}
KINDS = [pytest.param(kind, id=kind) for kind in ALL]


def version(kind: str) -> dict[str, Any]:
    (found,) = crds.crd(ALL[kind])["spec"]["versions"]
    return dict(found)


def schema(kind: str, *path: str) -> dict[str, Any]:
    here: dict[str, Any] = version(kind)["schema"]["openAPIV3Schema"]
    for name in path:
        here = here["items"] if name == "[]" else here["properties"][name]
    return here


def test_every_definition_is_installed() -> None:
    names = {crd["metadata"]["name"] for crd in crds.crds()}
    assert {definition.name for definition in ALL.values()} < names
    assert len(names) == len(crds.EVERY)


@pytest.mark.parametrize(
    ("kind", "plural", "short"),
    [
        ("BaremetalCluster", "baremetalclusters", ["bmc"]),
        ("BaremetalMachine", "baremetalmachines", ["bmm"]),
        ("BaremetalMachineTemplate", "baremetalmachinetemplates", ["bmmt"]),
        ("MachineInventoryPool", "machineinventorypools", ["mip"]),
    ],
)
def test_the_providers_kinds_have_their_published_names(kind: str, plural: str, short: list[str]) -> None:
    crd = crds.crd(ALL[kind])
    assert crd["metadata"]["name"] == f"{plural}.infrastructure.cluster.x-k8s.io"
    assert crd["spec"]["names"]["shortNames"] == short
    assert version(kind)["name"] == "v1beta1"


@pytest.mark.parametrize("definition", infrastructure.DEFINITIONS, ids=lambda definition: definition.kind.kind)
def test_one_version_satisfies_both_contracts(definition: Any) -> None:
    labels = crds.crd(definition)["metadata"]["labels"]
    assert labels["cluster.x-k8s.io/v1beta1"] == labels["cluster.x-k8s.io/v1beta2"] == "v1beta1"


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("BaremetalMachine", ["Pool", "Phase", "Inventory", "Ready", "Age"]),
        ("MachineInventoryPool", ["Cluster", "Total", "Available", "Allocated", "Age"]),
        ("BaremetalCluster", ["Endpoint", "Ready", "Age"]),
        ("BaremetalMachineTemplate", ["Pool", "Age"]),
    ],
)
def test_the_columns_are_those_that_operators_watch(kind: str, columns: list[str]) -> None:
    assert [column["name"] for column in version(kind)["additionalPrinterColumns"]] == columns


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_but_the_template_has_a_status_of_its_own(kind: str) -> None:
    assert version(kind)["subresources"] == ({} if kind == "BaremetalMachineTemplate" else {"status": {}})


@pytest.mark.parametrize("kind", KINDS)
def test_clusterctl_finds_every_kind(kind: str) -> None:
    labels = crds.crd(ALL[kind])["metadata"]["labels"]
    assert labels["clusterctl.cluster.x-k8s.io"] == ""
    assert labels["cluster.x-k8s.io/provider"] == "infrastructure-baremetal"


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("MachineInventoryPool", "move"),
        ("MachineInventory", "move-hierarchy"),
        ("MachineRegistration", "move-hierarchy"),
        ("SeedImage", "move"),
    ],
)
def test_clusterctl_moves_what_no_cluster_owns(kind: str, label: str) -> None:
    assert f"clusterctl.cluster.x-k8s.io/{label}" in crds.crd(ALL[kind])["metadata"]["labels"]


@pytest.mark.parametrize("kind", ["BaremetalCluster", "BaremetalMachine"])
def test_a_status_has_what_either_contract_waits_for(kind: str) -> None:
    assert schema(kind, "status", "ready")["type"] == "boolean"
    assert schema(kind, "status", "initialization", "provisioned")["type"] == "boolean"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (("BaremetalCluster", "spec", "controlPlaneLoadBalancer", "vrid"), {"minimum": 0, "maximum": 255}),
        (("BaremetalCluster", "spec", "controlPlaneLoadBalancer", "type"), {"enum": ["Internal", "External"], "default": "Internal"}),
        (("BaremetalCluster", "spec", "controlPlaneLoadBalancer", "port"), {"minimum": 1, "maximum": 65535, "default": 6443}),
        (("BaremetalCluster", "spec", "networkDevice"), {"default": "eth0"}),
        (("BaremetalMachine", "spec", "allocationPolicy"), {"enum": ["Ordered", "PreferSame"], "default": "Ordered"}),
        (
            ("BaremetalMachineTemplate", "spec", "template", "spec", "allocationPolicy"),
            {"enum": ["Ordered", "PreferSame"], "default": "Ordered"},
        ),
        (
            ("BaremetalMachine", "status", "phase"),
            {"enum": ["Pending", "Allocated", "Reprovisioning", "Running", "Preparing", "Failed"]},
        ),
        (("MachineInventoryPool", "status", "unavailable"), {"minimum": 0}),
        (("MachineInventory", "spec", "storage"), {"x-kubernetes-preserve-unknown-fields": True}),
        (("MachineInventory", "spec", "network", "configurator"), {"enum": ["none", "nmc", "nmstate", "nmconnections"]}),
        (("MachineRegistration", "spec", "config", "elemental", "registration", "auth"), {"enum": ["tpm", "mac", "sys-uuid"]}),
        (("SeedImage", "spec", "cleanupAfterMinutes"), {"default": 60, "minimum": 0}),
        (("SeedImage", "spec", "type"), {"enum": ["iso", "raw"], "default": "iso"}),
        (("SeedImage", "spec", "size"), {"default": "6Gi", "x-kubernetes-int-or-string": True}),
    ],
)
def test_a_schema_says_what_a_field_may_be(path: tuple[str, ...], said: dict[str, Any]) -> None:
    found = schema(*path)
    assert {key: found.get(key) for key in said} == said


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_has_words(kind: str) -> None:
    def without(schema: dict[str, Any], path: str) -> list[str]:
        missing = []
        for name, each in schema.get("properties", {}).items():
            missing += [] if each.get("description") else [f"{path}.{name}"]
            missing += without(each, f"{path}.{name}")
        return missing + (without(schema["items"], f"{path}[]") if "items" in schema else [])

    assert without(schema(kind), "") == [".metadata"]


def test_a_provider_id_names_an_inventory_and_back() -> None:
    assert provider_id("host-1") == "baremetal:///host-1"
    assert inventory_of("baremetal:///host-1") == "host-1"
    assert inventory_of("other:///host-1") == ""
