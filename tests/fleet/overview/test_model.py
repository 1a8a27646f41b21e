"""Where everything stands, from the objects of a management cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from fleet.overview.fleets import (
    NAME,
    NEW,
    NOW,
    OLD,
    SPACE,
    at_rest,
    cluster,
    condition,
    host_machine,
    in_a_rollout,
    inventory,
    machine,
    made,
    plane,
    pool,
    workers,
)

from slipway.api.cluster import crds
from slipway.api.cluster.kinds import KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_INVENTORY_POOL, Kind
from slipway.fleet.overview.model import ClusterView, HostView, Overview, overview
from slipway.fleet.overview.objects import Objects


def only(objects: Objects) -> ClusterView:
    (found,) = overview(objects, NOW).clusters
    return found


def host(objects: Objects, name: str) -> HostView:
    return next(each for each in overview(objects, NOW).hosts if each.name == name)


def test_nothing_is_an_empty_overview() -> None:
    assert overview(Objects(), NOW) == Overview((), (), (), ())


def test_a_cluster_at_rest_has_its_groups_no_rollout_and_no_problem() -> None:
    found = only(at_rest())
    assert (found.namespace, found.name, found.phase, found.endpoint, found.available) == (
        SPACE,
        NAME,
        "Provisioned",
        "192.0.2.10:6443",
        True,
    )
    assert [(group.kind, group.name, group.version, len(group.machines)) for group in found.groups] == [
        ("KubeadmControlPlane", "prod-cp", OLD, 3),
        ("MachineDeployment", "prod-w", OLD, 2),
    ]
    assert (found.rollout, found.problems, found.bare_metal) == (None, (), True)


@pytest.mark.parametrize(
    ("endpoint", "shown"),
    [({"host": "2001:db8::1", "port": 6443}, "[2001:db8::1]:6443"), ({"host": "2001:db8::"}, "2001:db8::"), ({"host": "", "port": 0}, "")],
)
def test_an_endpoint_is_shown_as_it_can_be_used(endpoint: dict[str, Any], shown: str) -> None:
    manifest = cluster()
    manifest["spec"]["controlPlaneEndpoint"] = endpoint
    assert only(Objects(clusters=[manifest])).endpoint == shown


def test_the_counters_are_those_of_the_objects_even_if_machines_say_otherwise() -> None:
    group = only(at_rest()._replace(control_planes=[plane(readyReplicas=1, availableReplicas=0, upToDateReplicas=2)])).control_plane
    assert group is not None
    assert (group.replicas, group.desired, group.ready, group.available, group.up_to_date) == (3, 3, 1, 0, 2)


@pytest.mark.parametrize(("kind", "manifest"), [(KUBEADM_CONTROL_PLANE, plane), (MACHINE_DEPLOYMENT, workers)])
def test_the_counters_are_those_that_kubectl_shows(kind: Kind, manifest: Callable[..., dict[str, Any]]) -> None:
    object_ = manifest(replicas=3, readyReplicas=2, availableReplicas=1, upToDateReplicas=0)
    shown = printed(kind, object_)
    field = "control_planes" if kind == KUBEADM_CONTROL_PLANE else "machine_deployments"
    change: dict[str, Any] = {field: [object_]}
    groups = only(at_rest()._replace(**change)).groups
    group = next(each for each in groups if each.kind == kind.kind)
    told = {"Desired": group.desired, "Current": group.replicas, "Ready": group.ready}
    assert {**told, "Available": group.available, "Up-to-date": group.up_to_date} == shown


def test_the_counters_of_a_pool_are_those_that_kubectl_shows() -> None:
    (found,) = overview(at_rest(), NOW).pools
    shown = printed(MACHINE_INVENTORY_POOL, at_rest().pools[0])
    assert {"Total": found.total, "Available": found.available, "Allocated": found.allocated} == shown


def printed(kind: Kind, manifest: dict[str, Any]) -> dict[str, int]:
    """The counters that `kubectl get` prints of an object, by the printer columns of its CRD."""
    (definition,) = [each for each in crds.EVERY if each.kind == kind]
    version = next(each for each in definition.versions if each.storage)
    return {column.name: _at(manifest, column.path) for column in version.columns if column.type == "integer"}


def _at(manifest: dict[str, Any], path: str) -> int:
    value: Any = manifest
    for name in path.strip(".").split("."):
        value = value[name]
    return int(value)


def test_replicas_that_nobody_named_are_one_as_cluster_api_has_it() -> None:
    deployment = workers()
    del deployment["spec"]["replicas"]
    assert only(at_rest()._replace(machine_deployments=[deployment])).workers[0].desired == 1


def test_hosts_know_their_machine_pool_and_stage() -> None:
    found = host(at_rest(), "host-3")
    assert (found.machine, found.cluster, found.pool, found.state, found.stage, found.version) == (
        "prod-w-3", NAME, "pool", "Allocated", "node", OLD,
    )  # fmt: skip
    free = host(at_rest(), "host-5")
    assert (free.machine, free.state, free.stage) == ("", "Available", "free")


def test_the_pool_counts_what_its_status_counts() -> None:
    (found,) = overview(at_rest(), NOW).pools
    assert (found.total, found.available, found.allocated, found.preparing, found.reprovisioning, found.unavailable) == (6, 1, 5, 0, 0, 0)


def test_a_rollout_has_what_is_done_what_is_on_its_way_and_what_goes() -> None:
    found = only(in_a_rollout()).rollout
    assert found is not None
    assert (found.from_versions, found.to_version, found.done, found.total, found.current) == ((OLD,), NEW, 1, 3, ("prod-cp-b",))


def test_a_control_plane_of_another_kind_is_told_by_its_cluster() -> None:
    counters = {"desiredReplicas": 3, "replicas": 3, "readyReplicas": 2, "availableReplicas": 2, "upToDateReplicas": 3}
    status = {**counters, "versions": [{"version": OLD}]}
    found = only(Objects(clusters=[cluster(infrastructure="DockerCluster", plane="K0sControlPlane", controlPlane=status)]))
    group = found.control_plane
    assert group is not None
    assert (group.kind, group.version, group.desired, group.ready, group.up_to_date) == ("K0sControlPlane", OLD, 3, 2, 3)
    assert found.rollout is None


def test_a_cluster_of_other_infrastructure_has_machines_and_no_hosts() -> None:
    up = (condition("InfrastructureReady"), condition("NodeHealthy"))
    machines = [machine(f"prod-cp-{n}", *up, node=f"n{n}", infrastructure="DockerMachine") for n in range(3)]
    view = overview(Objects(clusters=[cluster(infrastructure="DockerCluster")], control_planes=[plane()], machines=machines), NOW)
    assert view.hosts == ()
    assert view.clusters[0].bare_metal is False
    assert view.clusters[0].rollout is None
    assert [(each.host, each.node, each.stage) for each in view.clusters[0].groups[0].machines] == [("", f"n{n}", "node") for n in range(3)]


def test_a_machine_set_of_no_deployment_is_a_group_of_its_own() -> None:
    alone = made("MachineSet", "alone", {"clusterName": NAME, "replicas": 1, "template": {"spec": {"version": OLD}}}, {"replicas": 1})
    of_deployment = made("MachineSet", "prod-w-x", {"clusterName": NAME}, {}, labels={"cluster.x-k8s.io/deployment-name": "prod-w"})
    found = only(at_rest()._replace(machine_sets=[alone, of_deployment]))
    assert [(group.kind, group.name) for group in found.workers] == [("MachineDeployment", "prod-w"), ("MachineSet", "alone")]


def test_machines_of_no_group_are_shown_too() -> None:
    alone = machine("alone", node="n9", infrastructure="DockerMachine")
    alone["metadata"]["labels"] = {}
    of_pool = machine("pooled", infrastructure="DockerMachine")
    of_pool["metadata"] |= {"labels": {}, "ownerReferences": [{"kind": "MachinePool", "name": "mp", "controller": True}]}
    objects = at_rest()
    found = only(objects._replace(machines=[*objects.machines, alone, of_pool]))
    assert [(group.kind, group.name, group.desired) for group in found.workers] == [
        ("MachineDeployment", "prod-w", 2),
        ("Machine", "(in no group)", 1),
        ("MachinePool", "mp", 1),
    ]


MISS = condition("ImageResolved", "False", "ImageCatalogMiss", "no key v9")
DRAIN = condition("Deleting", "True", "DrainingNode", "Drain not completed", minutes=1)
OBJECTION = condition("RolloutGuarded", "False", "RolloutObjection", "surge")


@pytest.mark.parametrize(
    ("change", "kind", "reason", "lasting"),
    [
        ({"baremetal_machines": [host_machine("prod-cp-0", "host-0", MISS, phase="Failed")]}, "BaremetalMachine", "ImageCatalogMiss", True),
        (
            {"baremetal_machines": [host_machine("prod-cp-0", "", condition("BootstrapReady", "False", "BootstrapWaiting"))]},
            "BaremetalMachine",
            "BootstrapWaiting",
            False,
        ),
        ({"machines": [machine("prod-cp-0", DRAIN, node="host-0", deleted=1)]}, "Machine", "DrainingNode", False),
        (
            {"machines": [machine("prod-cp-0", condition("Deleting", "True", "DrainingNode", minutes=16), node="host-0", deleted=16)]},
            "Machine",
            "DrainingNode",
            True,
        ),
        ({"machines": [machine("prod-cp-0", condition("NodeHealthy", "Unknown", "Lost"), node="host-0")]}, "Machine", "Lost", True),
        (
            {"control_planes": [plane(condition("EtcdClusterHealthy", "False", "NotHealthy", minutes=2))]},
            "KubeadmControlPlane",
            "NotHealthy",
            False,
        ),
        (
            {"control_planes": [plane(condition("ScalingUp", "True", "ScalingUp", "… is blocked because:\n* x"))]},
            "KubeadmControlPlane",
            "ScalingUp",
            True,
        ),
        (
            {"baremetal_clusters": [made("BaremetalCluster", NAME, {}, {"conditions": [OBJECTION]})]},
            "BaremetalCluster",
            "RolloutObjection",
            True,
        ),
        ({"clusters": [cluster(condition("RemoteConnectionProbe", "False", "ProbeFailed"))]}, "Cluster", "ProbeFailed", True),
        ({"pools": [pool(condition("MembersValid", "False", "MemberMissing"))]}, "MachineInventoryPool", "MemberMissing", True),
    ],
)
def test_what_is_not_well_is_a_problem_of_its_cluster_with_what_to_do(
    change: dict[str, Any], kind: str, reason: str, lasting: bool
) -> None:
    found = only(at_rest()._replace(**change)).problems
    assert [(each.object.kind, each.reason, each.lasting) for each in found] == [(kind, reason, lasting)]
    assert found[0].to_do


@pytest.mark.parametrize(
    "change",
    [
        {"control_planes": [plane(condition("ScalingUp", "True", "ScalingUp", "Scaling up from 2 to 3 replicas"))]},
        {"machines": [machine("prod-cp-0", condition("NodeHealthy", "Unknown", "InspectionFailed"), phase="Provisioning")]},
        {"machines": [machine("prod-cp-0", condition("Deleting", "False", "NotDeleting"), node="host-0")]},
        {
            "baremetal_machines": [
                host_machine("prod-cp-0", "host-0", condition("PlanApplied", "False", "PlanRunning"), phase="Reprovisioning")
            ]
        },
    ],
)
def test_work_that_goes_on_is_no_problem(change: dict[str, Any]) -> None:
    assert only(at_rest()._replace(**change)).problems == ()


def test_the_machine_repeats_nothing_that_its_host_says_better() -> None:
    failed = condition("InfrastructureReady", "False", "NotReady", "* ImageResolved: no key")
    objects = at_rest()._replace(
        machines=[machine("prod-cp-0", failed)], baremetal_machines=[host_machine("prod-cp-0", "host-0", MISS, phase="Failed")]
    )
    assert [each.reason for each in only(objects).problems] == ["ImageCatalogMiss"]


def test_a_host_that_cannot_be_used_is_nobodys_problem_but_the_fleets() -> None:
    objects = at_rest()._replace(inventories=[inventory("host-5", state="Unavailable")])
    assert [(each.object.name, each.lasting) for each in overview(objects, NOW).problems] == [("host-5", True)]


def test_a_host_in_quarantine_says_so() -> None:
    given_up = inventory("host-5", state="Unavailable")
    given_up["metadata"]["annotations"]["slipway.io/quarantined-by"] = "prod-w-9"
    found = host(at_rest()._replace(inventories=[given_up]), "host-5")
    assert found.quarantined
    assert found.problem is not None
    assert found.problem.reason == "Quarantined"


def plan_secret(**data: bytes) -> dict[str, Any]:
    from slipway.api.elemental import plan

    annotations = {"baremetal.alauda.io/plan.type": "reprovision", "slipway.io/plan-written-at": "2026-05-04T11:58:00Z"}
    found = made("Secret", "host-2", {}, {}, annotations=annotations)
    return {**found, "data": plan.wire({key.replace("_", "-"): value for key, value in data.items()})}


@pytest.mark.parametrize(
    ("status", "data", "told"),
    [
        ({"plan": {"type": "reprovision", "state": "Applied"}}, {}, ("reprovision", "applied", "", 0)),
        ({"plan": {"type": "reprovision", "state": "Failed"}}, {}, ("reprovision", "failed", "", 0)),
        ({"plan": {"type": "reprovision"}}, {"plan": b"{}", "plan_state": b"pending"}, ("reprovision", "pending", "", 0)),
        ({"plan": {"type": "reprovision"}}, {"plan": b"{}", "plan_state": b"in-progress"}, ("reprovision", "running", "", 0)),
        (
            {"plan": {"type": "reprovision"}},
            {"slipway_progress": b'{"instruction":"upgrade","index":4,"of":7,"started":"2026-05-04T11:59:00Z"}'},
            ("reprovision", "running", "upgrade", 4),
        ),
        ({}, {}, ("reprovision", "pending", "", 0)),
    ],
)
def test_a_plan_says_how_far_it_is(status: dict[str, Any], data: dict[str, bytes], told: tuple[str, str, str, int]) -> None:
    objects = at_rest()._replace(inventories=[inventory("host-2", **status)], plan_secrets=[plan_secret(**data)])
    plan = host(objects, "host-2").plan
    assert plan is not None
    assert (plan.type, plan.state, plan.instruction, plan.step) == told


def test_a_host_that_has_only_the_empty_plan_of_its_registration_has_none() -> None:
    objects = at_rest()._replace(inventories=[inventory("host-5", plan={"type": "empty", "state": "Applied"})])
    assert host(objects, "host-5").plan is None


def test_all_of_it_is_json_in_the_names_of_the_api() -> None:
    told = msgspec.json.decode(msgspec.json.encode(overview(in_a_rollout(), NOW)))
    assert told["clusters"][0]["rollout"]["fromVersions"] == [OLD]
    assert told["clusters"][0]["controlPlane"]["upToDate"] == 2
    assert told["hosts"][0]["lastHeard"] is None


def test_ten_thousand_hosts_take_about_a_second() -> None:
    one = inventory("host", state="Available")
    objects = at_rest()._replace(inventories=[{**one, "metadata": {**one["metadata"], "name": f"host-{each}"}} for each in range(10_000)])
    began = time.process_time()
    assert len(overview(objects, NOW).hosts) == 10_000
    assert time.process_time() - began < 2
