"""Machines, MachinePools and Clusters as facts.  Rows of Cluster API's configowner_test.go are among them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from slipway.api.cluster.kinds import CLUSTER, MACHINE, MACHINE_POOL, Kind
from slipway.api.cluster.meta import ContractVersionedObjectReference as Reference
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.facts import cluster_from, owner_from, owner_link
from slipway.runtime.objects import Object, OwnerReference

pytestmark = pytest.mark.upstream_table


def machine(kind: Kind = MACHINE, labels: dict[str, str] | None = None, **parts: Any) -> Object:
    return found(kind, {"metadata": {"name": "m", "namespace": "default", "labels": labels or {}}, **parts})


def found(kind: Kind, manifest: dict[str, Any]) -> Object:
    return Object(kind, msgspec.json.encode(manifest))


@pytest.mark.parametrize(
    ("references", "expected"),
    [
        ([], None),
        ([OwnerReference("cluster.x-k8s.io/v1beta2", "Machine", "m")], (MACHINE, "m")),
        ([OwnerReference("cluster.x-k8s.io/v1beta1", "Machine", "m")], (MACHINE, "m")),
        ([OwnerReference("cluster.x-k8s.io/v1beta2", "MachinePool", "p")], (MACHINE_POOL, "p")),
        ([OwnerReference("other.io/v1", "Machine", "m")], None),
        (
            [OwnerReference("cluster.x-k8s.io/v1beta2", "MachineSet", "s"), OwnerReference("cluster.x-k8s.io/v1beta2", "Machine", "m")],
            (MACHINE, "m"),
        ),
        ([OwnerReference("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", "k")], None),
    ],
)
def test_the_owner_is_the_first_machine_or_pool(references: list[OwnerReference], expected: tuple[Any, str] | None) -> None:
    assert owner_link(references) == expected


def test_a_machine_tells_what_its_data_depends_on() -> None:
    owner = owner_from(
        machine(
            MACHINE,
            {"cluster.x-k8s.io/control-plane": ""},
            spec={"clusterName": "my-cluster", "bootstrap": {"dataSecretName": "my-data-secret"}, "version": "v1.19.6"},
            status={"initialization": {"infrastructureProvisioned": True}},
        ),
    )
    assert owner.cluster_name == "my-cluster"
    assert owner.data_secret_name == "my-data-secret"
    assert owner.version == "v1.19.6"
    assert owner.control_plane
    assert owner.provisioned
    assert owner.consumed
    assert not owner.joined
    assert not owner.is_pool


def test_a_pool_has_the_fields_of_its_machines_in_a_template() -> None:
    template = {"spec": {"bootstrap": {"dataSecretName": "pool-data"}, "version": "v1.19.6"}}
    owner = owner_from(machine(MACHINE_POOL, {"cluster.x-k8s.io/control-plane": ""}, spec={"clusterName": "c", "template": template}))
    assert (owner.version, owner.data_secret_name) == ("v1.19.6", "pool-data")
    assert owner.is_pool
    assert not owner.control_plane
    assert not owner.consumed


@pytest.mark.parametrize(
    ("kind", "parts", "expected"),
    [
        pytest.param(MACHINE, {}, False, id="no nodeRef"),
        pytest.param(MACHINE, {"status": {"nodeRef": {}}}, False, id="an empty nodeRef"),
        pytest.param(MACHINE, {"status": {"nodeRef": {"name": "node"}}}, True, id="a nodeRef"),
        pytest.param(MACHINE_POOL, {"spec": {"replicas": 1}}, False, id="none of 1"),
        pytest.param(MACHINE_POOL, {"spec": {"replicas": 2}, "status": {"nodeRefs": [{"name": "n1"}]}}, False, id="1 of 2"),
        pytest.param(MACHINE_POOL, {"spec": {"replicas": 2}, "status": {"nodeRefs": [{"name": "n1"}, {"name": "n2"}]}}, True, id="2 of 2"),
        pytest.param(MACHINE_POOL, {"status": {"nodeRefs": [{"name": "n1"}]}}, True, id="replicas default to 1"),
        pytest.param(MACHINE_POOL, {"spec": {"replicas": 0}}, True, id="none of 0"),
    ],
)
def test_an_owner_has_joined_when_all_its_nodes_have(kind: Any, parts: dict[str, Any], expected: bool) -> None:
    assert owner_from(machine(kind, **parts)).joined is expected


def test_a_field_of_another_type_is_named() -> None:
    with pytest.raises(OperatorError, match=r"the Machine default/m cannot be read: Expected `str`, got `int` - at `\$.spec.clusterName`"):
        owner_from(machine(spec={"clusterName": 7}))


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ({}, ""),
        ({"host": "example.com"}, ""),
        ({"port": 6443}, ""),
        ({"host": "example.com", "port": 6443}, "example.com:6443"),
        ({"host": "fd00::1", "port": 6443}, "[fd00::1]:6443"),
    ],
)
def test_the_endpoint_of_a_cluster_needs_host_and_port(endpoint: dict[str, Any], expected: str) -> None:
    assert cluster_from(found(CLUSTER, {"metadata": {"name": "c"}, "spec": {"controlPlaneEndpoint": endpoint}})).endpoint == expected


def test_a_cluster_tells_what_data_depends_on() -> None:
    cluster = cluster_from(
        found(
            CLUSTER,
            {
                "metadata": {"name": "c", "namespace": "ns", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {
                    "paused": True,
                    "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "cp"},
                    "clusterNetwork": {
                        "serviceDomain": "example.local",
                        "services": {"cidrBlocks": ["10.96.0.0/12", "fd01::/108"]},
                        "pods": {"cidrBlocks": ["192.168.0.0/16"]},
                    },
                },
                "status": {
                    "initialization": {"infrastructureProvisioned": True},
                    "conditions": [{"type": "ControlPlaneInitialized", "status": "True"}],
                },
            },
        )
    )
    assert cluster.control_plane_ref == Reference(api_group="controlplane.cluster.x-k8s.io", kind="KubeadmControlPlane", name="cp")
    assert (cluster.service_domain, cluster.service_subnet, cluster.pod_subnet) == (
        "example.local",
        "10.96.0.0/12,fd01::/108",
        "192.168.0.0/16",
    )
    assert cluster.infrastructure_provisioned
    assert cluster.control_plane_initialized
    assert cluster.deleting
    assert cluster.paused


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_control_plane_counts_as_initialized_only_when_the_condition_is_true(status: str) -> None:
    conditions = [{"type": "ControlPlaneInitialized", "status": status}]
    assert not cluster_from(found(CLUSTER, {"metadata": {"name": "c"}, "status": {"conditions": conditions}})).control_plane_initialized
