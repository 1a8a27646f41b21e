"""Which events concern a KubeadmConfig.  Rows of Cluster API's MachineToBootstrapMapFunc and ClusterToKubeadmConfigs tests,
kubeadmconfig_controller_test.go, are among them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from fleet.world import World

from slipway.api.cluster.kinds import CLUSTER, KUBEADM_CONTROL_PLANE, MACHINE, MACHINE_POOL, SECRET, Kind
from slipway.fleet.bootstrap import reconciler as watches
from slipway.runtime.objects import Object

pytestmark = pytest.mark.upstream_table

REFERENCE = {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "config"}


def found(kind: Kind, **parts: Any) -> Object:
    return Object(kind, msgspec.json.encode({"metadata": {"name": "x", "namespace": "ns"}} | parts))


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (REFERENCE, "config"),
        ({**REFERENCE, "kind": "OtherConfig"}, ""),
        ({**REFERENCE, "apiGroup": "other.io"}, ""),
        (None, ""),
    ],
)
def test_a_machine_leads_to_its_kubeadmconfig(reference: dict[str, str] | None, expected: str) -> None:
    bootstrap = {"bootstrap": {"configRef": reference} if reference else {"dataSecretName": "x"}}
    assert watches.config_of(found(MACHINE, spec=bootstrap)) == expected
    assert watches.config_of(found(MACHINE_POOL, spec={"template": {"spec": bootstrap}})) == expected


@pytest.mark.parametrize(
    ("kind", "before", "after", "expected"),
    [
        pytest.param(MACHINE, {}, {"status": {"nodeRef": {"name": "n"}}}, True, id="the node has joined"),
        pytest.param(MACHINE, {}, {"status": {"initialization": {"infrastructureProvisioned": True}}}, True, id="provisioned"),
        pytest.param(MACHINE, {}, {"spec": {"bootstrap": {"configRef": REFERENCE}}}, True, id="another configuration"),
        pytest.param(MACHINE, {}, {"status": {"conditions": [{"type": "Ready"}]}}, False, id="a condition"),
        pytest.param(MACHINE, {}, {"status": {"lastUpdated": "now"}}, False, id="something else"),
        pytest.param(MACHINE_POOL, {"spec": {"replicas": 1}}, {"spec": {"replicas": 2}}, False, id="a pool that had nodes to come anyway"),
    ],
)
def test_changes_of_an_owner_that_do_not_matter_are_passed_over(kind: Kind, before: Any, after: Any, expected: bool) -> None:
    assert watches.owner_changed(found(kind, **before), found(kind, **after)) is expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"spec": {"paused": True}}, True),
        ({"spec": {"paused": True}}, {}, True),
        ({}, {"status": {"initialization": {"infrastructureProvisioned": True}}}, True),
        ({}, {"status": {"conditions": [{"type": "ControlPlaneInitialized", "status": "True"}]}}, True),
        ({}, {"spec": {"controlPlaneEndpoint": {"host": "h", "port": 1}}}, True),
        ({}, {"status": {"conditions": [{"type": "Available", "status": "True"}]}}, False),
        ({}, {"status": {"workers": {"replicas": 3}}}, False),
    ],
)
def test_changes_of_a_cluster_that_do_not_matter_are_passed_over(before: Any, after: Any, expected: bool) -> None:
    assert watches.cluster_changed(found(CLUSTER, **before), found(CLUSTER, **after)) is expected


def test_what_is_new_or_told_again_is_looked_at_and_what_is_gone_is_not() -> None:
    for changed, kind in ((watches.owner_changed, MACHINE), (watches.cluster_changed, CLUSTER)):
        one = found(kind)
        assert changed(None, one)
        assert changed(one, one)
        assert not changed(one, None)


def test_of_a_control_plane_another_version_matters_and_one_that_comes() -> None:
    one, same, other = (
        found(KUBEADM_CONTROL_PLANE, spec=spec) for spec in ({"version": "a"}, {"version": "a", "replicas": 3}, {"version": "b"})
    )
    assert watches.control_plane_changed(one, other)
    assert not watches.control_plane_changed(one, same)
    assert watches.control_plane_changed(None, one)
    assert not watches.control_plane_changed(one, None)


@pytest.mark.asyncio
async def test_a_secret_leads_to_the_kubeadmconfig_that_controls_it(world: World) -> None:
    owner = {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfig", "name": "w", "uid": "u", "controller": True}
    for references, expected in (
        ([owner], [("ns", "w")]),
        ([{**owner, "controller": False}], []),
        ([{**owner, "apiVersion": "v1"}], []),
        ([{**owner, "kind": "Machine"}], []),
    ):
        secret = found(SECRET, metadata={"name": "w", "namespace": "ns", "ownerReferences": references})
        assert list(await watches.of_secret(secret, world.cache)) == expected


@pytest.mark.asyncio
@pytest.mark.parametrize("labelled", [True, False])
async def test_a_cluster_and_its_control_plane_lead_to_all_its_machines(world: World, labelled: bool) -> None:
    await world.cluster()
    control_plane = await world.control_plane("v1.35.0")
    for name in ("a", "b"):
        await world.machine(name)
    await world.pool("p")
    if not labelled:
        control_plane = await world.patch(KUBEADM_CONTROL_PLANE, "cp", {"metadata": {"labels": None}})
    await world.settle()
    expected = {(world.namespace, name) for name in ("a", "b", "p")}
    cluster = Object(CLUSTER, msgspec.json.encode(await world.client.get(CLUSTER, "c", world.namespace)))
    assert set(await watches.of_cluster(cluster, world.cache)) == expected
    seen = Object(KUBEADM_CONTROL_PLANE, msgspec.json.encode(control_plane))
    assert set(await watches.of_control_plane(seen, world.cache)) == expected
