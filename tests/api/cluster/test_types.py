"""The types of Cluster API: what is empty, what is printed, what is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slipway.api.cluster.bootstrap.config import File, KubeadmConfig, KubeadmConfigSpec
from slipway.api.cluster.bootstrap.kubeadm_node import JoinControlPlane
from slipway.api.cluster.core.cluster import APIEndpoint, Cluster, NetworkRanges
from slipway.api.cluster.core.controlplane import ControlPlane
from slipway.api.cluster.core.machine import Machine
from slipway.api.cluster.core.machinepool import MachinePool
from slipway.api.cluster.meta import Condition, decode, manifest
from slipway.api.machinery.openapi import schema_of

pytestmark = pytest.mark.recorded

GOLDEN = Path(__file__).parents[2] / "golden/clusterapi"
SAMPLES: list[dict[str, Any]] = json.loads((GOLDEN / "samples.json").read_text())
READ_KINDS: dict[str, dict[str, str]] = json.loads((GOLDEN / "read-kinds.json").read_text())


def paths(schema: dict[str, Any], path: str = "") -> dict[str, str]:
    """Each path of a schema with its type; what is kept as it is ends a path."""
    out = {path: schema["type"]}
    for name, each in schema.get("properties", {}).items():
        out |= paths(each, f"{path}.{name}")
    for below, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if "type" in schema.get(below, {}):
            out |= paths(schema[below], f"{path}{mark}")
    return out


def test_every_field_of_a_machine_pool_that_is_read_is_there_in_upstreams_kind() -> None:
    read = paths(schema_of(MachinePool))
    assert len(read) > 25
    assert {path: READ_KINDS["MachinePool"].get(path) for path in read} == read


def test_every_field_of_a_control_plane_that_is_read_is_there_in_upstreams_kind() -> None:
    read = paths(schema_of(ControlPlane))
    assert {path: READ_KINDS["KubeadmControlPlane"].get(path) for path in read} == read


@pytest.mark.parametrize("sample", [pytest.param(each, id=f"{number}-{each['page']}") for number, each in enumerate(SAMPLES)])
def test_the_specs_of_upstreams_book_are_read_to_the_last_field(sample: dict[str, Any]) -> None:
    # What comes back equal has no field that the types do not know.
    assert manifest(decode(sample["spec"], KubeadmConfigSpec)) == sample["spec"]


def test_a_field_that_nobody_knows_is_ignored() -> None:
    assert manifest(decode({"spec": {"verbosity": 1, "later": {"than": "this"}}}, KubeadmConfig)) == {"spec": {"verbosity": 1}}


def test_what_go_holds_by_value_is_never_none_and_false_when_empty() -> None:
    spec = decode({"joinConfiguration": {}}, KubeadmConfigSpec)
    assert not spec.join_configuration
    assert not spec.cluster_configuration.etcd.local
    assert spec.cluster_configuration.etcd.local.data_dir == ""
    spec.cluster_configuration.etcd.local.data_dir = "/d"
    assert spec.cluster_configuration
    assert manifest(spec) == {"clusterConfiguration": {"etcd": {"local": {"dataDir": "/d"}}}}


def test_an_empty_control_plane_is_not_nothing() -> None:
    spec = decode({"joinConfiguration": {"controlPlane": {}}}, KubeadmConfigSpec)
    assert spec.join_configuration.control_plane == JoinControlPlane()
    assert spec.join_configuration.control_plane
    assert manifest(spec) == {"joinConfiguration": {"controlPlane": {}}}


@pytest.mark.parametrize("value", [False, True])
def test_a_pointer_in_go_keeps_false_apart_from_nothing(value: bool) -> None:
    given = {"files": [{"path": "/a", "append": value}], "ntp": {"enabled": value}}
    assert manifest(decode(given, KubeadmConfigSpec)) == given


def test_no_taints_are_not_the_usual_taints() -> None:
    given: dict[str, Any] = {"initConfiguration": {"nodeRegistration": {"taints": []}}}
    assert manifest(decode(given, KubeadmConfigSpec)) == given
    assert decode({}, KubeadmConfigSpec).init_configuration.node_registration.taints is None


def test_a_condition_is_printed_with_its_message_even_when_empty() -> None:
    condition = Condition(type="Ready", status="True", reason="Ready", last_transition_time="2026-05-16T10:00:00Z")
    assert manifest(condition) == {
        "type": "Ready",
        "status": "True",
        "reason": "Ready",
        "message": "",
        "lastTransitionTime": "2026-05-16T10:00:00Z",
    }


def test_two_objects_do_not_share_what_is_empty() -> None:
    one, other = KubeadmConfigSpec(), KubeadmConfigSpec()
    one.files.append(File(path="/a"))
    assert other.files == []


def test_what_providers_read_of_a_cluster() -> None:
    cluster = decode(
        {
            "metadata": {"name": "c", "namespace": "n"},
            "spec": {
                "paused": True,
                "clusterNetwork": {"pods": {"cidrBlocks": ["10.0.0.0/8", "fd00::/64"]}, "serviceDomain": "d", "apiServerPort": 6443},
                "controlPlaneEndpoint": {"host": "h", "port": 6443},
                "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "c"},
            },
            "status": {"initialization": {"infrastructureProvisioned": True}},
        },
        Cluster,
    )
    assert cluster.spec.paused
    assert str(cluster.spec.cluster_network.pods) == "10.0.0.0/8,fd00::/64"
    assert cluster.spec.cluster_network.api_server_port == 6443
    assert str(cluster.spec.control_plane_endpoint) == "h:6443"
    assert cluster.spec.control_plane_ref.api_group == "controlplane.cluster.x-k8s.io"
    assert not cluster.spec.infrastructure_ref
    assert cluster.status.initialization.infrastructure_provisioned is True
    assert cluster.status.initialization.control_plane_initialized is None


def test_an_ipv6_endpoint_has_brackets() -> None:
    assert str(APIEndpoint(host="fd00::1", port=6443)) == "[fd00::1]:6443"
    assert str(NetworkRanges()) == ""


def test_what_providers_read_of_machines_and_control_planes() -> None:
    machine = decode(
        {
            "spec": {"clusterName": "c", "bootstrap": {"dataSecretName": ""}, "version": "v1.35.4", "providerID": "p"},
            "status": {"nodeRef": {"name": "n"}},
        },
        Machine,
    )
    assert (machine.spec.version, machine.spec.provider_id, machine.status.node_ref.name) == ("v1.35.4", "p", "n")
    # A pointer in Go: an empty name is a name.
    assert machine.spec.bootstrap.data_secret_name == ""
    pool = decode({"spec": {"replicas": 3, "template": {"spec": {"version": "v1.35.4"}}, "providerIDList": ["a"]}}, MachinePool)
    assert (pool.spec.replicas, pool.spec.template.spec.version, pool.spec.provider_id_list) == (3, "v1.35.4", ["a"])
    assert decode({"spec": {"version": "v1.35.4", "replicas": 3}}, ControlPlane).spec.version == "v1.35.4"
