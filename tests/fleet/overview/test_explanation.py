"""What is explained of an object: every row of the guide's *Troubleshooting*, every reason of the provider, Cluster API's conditions."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from fleet.overview.chains import (
    LABEL,
    NAME,
    NEW,
    NOW,
    OLD,
    PLANE,
    SPACE,
    WORKERS,
    Manifest,
    ago,
    baremetal_machine,
    cluster,
    condition,
    host,
    machine,
    made,
    plane,
    pool,
    ref,
    well,
    with_worker,
    workers,
)

from slipway.api.cluster.infrastructure import names
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.baremetal import reasons
from slipway.fleet.overview import problems
from slipway.fleet.overview.explanation import Explanation, explain
from slipway.fleet.overview.objects import Objects
from slipway.fleet.overview.waiting import advice
from slipway.fleet.overview.waiting.causes import cause

CLUSTER = ref("Cluster", NAME)
WORKER = f"{WORKERS}-d"


def explained(objects: Objects, kind: str = "Cluster", name: str = NAME) -> Explanation:
    return explain(objects, ref(kind, name), NOW)


def coming(*conditions: Manifest, of: str = WORKERS, **below: Any) -> Objects:
    """The worker d, or the control plane a, is on its way: ``conditions`` are those of its BaremetalMachine."""
    if of:
        ours = baremetal_machine(WORKER, *conditions, host="host-d", phase="Reprovisioning")
        return with_worker(condition("InfrastructureReady", "False"), below=ours, node="", **below)
    objects, name = well(), f"{PLANE}-a"
    unready = [condition("Ready", "False"), condition("InfrastructureReady", "False")]
    return objects._replace(
        machines=[machine(name, *unready, of="", node=""), *objects.machines[1:]],
        baremetal_machines=[baremetal_machine(name, *conditions, host="host-a", of=""), *objects.baremetal_machines[1:]],
    )


# All is well.


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("Cluster", NAME, f"The Cluster {NAME} is well: 3 control plane machines at {OLD}, 2 workers at {OLD}."),
        ("KubeadmControlPlane", PLANE, f"The KubeadmControlPlane {PLANE} is well: 3 machines at {OLD}."),
        ("MachineDeployment", WORKERS, f"The MachineDeployment {WORKERS} is well: 2 machines at {OLD}."),
        ("Machine", WORKER, f"The Machine {WORKER} is well: the Node node-d at {OLD} on the host host-d."),
        ("BaremetalMachine", WORKER, f"The BaremetalMachine {WORKER} is Running, on the host host-d."),
        ("MachineInventory", "host-d", f"The host host-d is well: the Machine {WORKER} of the Cluster {NAME}."),
        ("MachineInventoryPool", "pool", "The pool pool has 5 hosts: 0 free, 5 in use."),
        ("BaremetalCluster", NAME, f"The BaremetalCluster {NAME} is well."),
    ],
)
def test_what_is_well_is_said_in_one_sentence(kind: str, name: str, said: str) -> None:
    found = explained(well(), kind, name)
    assert found == Explanation(ref(kind, name), True, False, (said,), (ref(kind, name),), ())


def test_the_chain_goes_from_the_cluster_to_the_instruction_of_the_plan_that_its_host_is_at() -> None:
    from slipway.api.elemental import plan as plans

    running = condition("PlanApplied", "False", "PlanRunning")
    progress = msgspec.json.encode(plans.Progress("upgrade-system", 3, 6, ago(90)))
    secret = made("Secret", "host-d", {}, annotations={"slipway.io/plan-written-at": ago(120)})
    secret["data"] = plans.wire({plans.PLAN: "{}", plans.PROGRESS: progress, plans.PLAN_STATE: "in-progress"})
    objects = coming(running, on=host("host-d", state="Reprovisioning", owner=WORKER, plan={"type": "reprovision"}), version=NEW)
    found = explained(objects._replace(plan_secrets=[secret], machine_deployments=[workers(version=NEW)]))
    assert [each.kind for each in found.chain] == ["Cluster", "MachineDeployment", "Machine", "BaremetalMachine", "MachineInventory"]
    assert found.sentences == (
        f"The Cluster {NAME} waits for its workers {WORKERS}.",
        f"The MachineDeployment {WORKERS} goes to {NEW}: 0 of 2 machines are done.",
        f"The Machine {WORKER}, to be {NEW}, waits for its host.",
        f"The BaremetalMachine {WORKER} has PlanApplied=False (PlanRunning) for 60 s: the host works on the plan.",
        "The host host-d is at the instruction upgrade-system, 3 of 6 of its reprovision plan, begun 90 s ago.",
    )
    assert (found.well, found.lasting, found.to_do) == (False, False, ())


# The provider's reasons.

_MACHINES = [row for row in reasons.REASONS if row.kind == "BaremetalMachine" and row.status != "True"]


@pytest.mark.parametrize("row", _MACHINES, ids=lambda row: f"{row.condition}-{row.reason}")
def test_every_reason_of_a_machine_on_bare_metal_is_said_with_its_meaning_and_what_to_do(row: reasons.Reason) -> None:
    told = condition(row.condition, row.status, row.reason, "the message", seconds=3600)
    if row.condition == names.HOST_CLEANED_CONDITION:
        leaving: dict[str, Any] = {"deletionTimestamp": ago(3600)}
        gone = condition("Deleting", reason="WaitingForInfrastructureDeletion")
        below = baremetal_machine(WORKER, told, host="host-d", phase="Preparing", **leaving)
        objects = with_worker(gone, below=below, **leaving)
    else:
        objects = coming(told)
    found = explained(objects)
    said = next(each for each in found.sentences if row.reason in each)
    assert row.meaning[1:] in said
    assert all(way in found.to_do for way in [row.to_do] if way)
    assert ref("BaremetalMachine", WORKER) in found.chain
    # What the table says goes on by itself alone is no problem.
    assert found.lasting is bool(row.to_do)


@pytest.mark.parametrize(
    "row", [row for row in reasons.REASONS if row.kind == "BaremetalCluster" and row.status != "True"], ids=lambda row: row.reason
)
def test_every_reason_of_a_baremetal_cluster_is_said(row: reasons.Reason) -> None:
    told = made("BaremetalCluster", NAME, {}, condition(row.condition, row.status, row.reason, "the message"))
    for kind in ("Cluster", "BaremetalCluster"):
        found = explained(well()._replace(baremetal_clusters=[told]), kind)
        assert row.meaning[1:] in found.sentences[-1]
        assert found.to_do == ((row.to_do,) if row.to_do else ())


@pytest.mark.parametrize(
    "row", [row for row in reasons.REASONS if row.kind == "MachineInventoryPool" and row.status != "True"], ids=lambda row: row.reason
)
def test_every_reason_of_a_pool_is_said(row: reasons.Reason) -> None:
    objects = well()._replace(pools=[pool(condition(row.condition, row.status, row.reason, "the message"), total=5)])
    found = explained(objects, "MachineInventoryPool", "pool")
    assert row.meaning[1:] in found.sentences[-1]
    assert found.to_do[-1:] == ((row.to_do,) if row.to_do else ())


# The guide's table.


@pytest.mark.parametrize(
    ("reason", "way"),
    [
        (names.IMAGE_CATALOG_MISS_REASON, "elemental-image-catalog"),
        (names.IMAGE_REGISTRY_MISSING_REASON, "cpaas.io/registry-address"),
    ],
)
def test_a_rollout_that_is_stuck_on_the_first_new_node_says_whether_the_key_or_the_registry_is_missing(reason: str, way: str) -> None:
    found = explained(coming(condition("ImageResolved", "False", reason, "why")))
    assert found.lasting
    assert way in found.to_do[0]


def test_a_host_whose_plan_failed_says_what_it_printed_and_where_to_look() -> None:
    printed = "upgrade-system: elemental upgrade ended with 18: the registry does not answer"
    failed = host(
        "host-d", state="Unavailable", owner=WORKER, plan={"type": "reprovision", "state": "Failed", "failures": 3, "message": printed}
    )
    found = explained(coming(condition("PlanApplied", "False", "PlanFailed", printed), on=failed))
    assert found.sentences[-1] == f"The host host-d has failed in its reprovision plan 3 times: {printed}."
    assert any("serial console" in each and "registry" in each for each in found.to_do)


def test_a_control_plane_that_does_not_join_says_to_look_at_the_virtual_address() -> None:
    told = condition("NodeJoined", "False", "JoinDeadlineExceeded", "no Node after 20 minutes")
    assert any("lease" in each and "ipvsadm -Ln" in each and "keepalived" in each for each in explained(coming(told, of="")).to_do)
    assert not any("ipvsadm" in each for each in explained(coming(told)).to_do)


def test_a_surge_that_a_pool_has_no_host_for_says_to_set_max_surge_to_0_and_raise_max_unavailable() -> None:
    exhausted = condition("InventoryAllocated", "False", "PoolExhausted", "no host", seconds=600)
    surging = workers(strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
    found = explained(coming(exhausted)._replace(machine_deployments=[surging]))
    assert found.lasting
    assert "maxSurge to 0" in found.to_do[0]
    assert "raise maxUnavailable" in found.to_do[0]


def test_an_exhausted_pool_waits_for_a_host_that_is_being_cleaned_and_else_wants_another_one() -> None:
    exhausted = condition("InventoryAllocated", "False", "PoolExhausted", "no host", seconds=600)
    objects = coming(exhausted)
    empty = explained(objects._replace(pools=[pool(total=5, allocated=5)]))
    assert (empty.lasting, empty.sentences[-1]) == (True, "The pool pool has 5 hosts: 0 free, 5 in use.")
    assert "Add a MachineInventory to the pool" in empty.to_do[0]
    cleaning = explained(objects._replace(pools=[pool(total=5, allocated=4, preparing=1)]))
    assert (cleaning.lasting, cleaning.to_do) == (False, ("Wait: a host of the pool is being cleaned, and comes back.",))
    assert explained(objects, "MachineInventoryPool", "pool").chain == (
        ref("MachineInventoryPool", "pool"),
        ref("BaremetalMachine", WORKER),
    )


# Cluster API's conditions.


@pytest.mark.parametrize(
    ("reason", "message", "said", "way"),
    [
        ("WaitingForPreDrainHook", "Waiting for pre-drain hooks (hooks: a)", "before its Pods are evicted", "takes it away"),
        (
            "DrainingNode",
            "* Pod a/b: cannot evict pod as it would violate the pod's disruption budget.",
            "PodDisruptionBudget",
            "relax the budget",
        ),
        ("DrainingNode", "* Pod a/b: deletionTimestamp set, but still not removed from the Node", "do not end", "finalizers"),
        ("DrainingNode", "* Pod a/b: failed to evict Pod, no", "cannot be evicted", "The message says why"),
        ("DrainingNode", "Error draining Node: no answer", "could not be drained", "endpoint"),
        ("WaitingForVolumeDetach", "volumes", "still attached", "VolumeAttachments"),
        ("WaitingForPreTerminateHook", f"hooks: pre-terminate.delete.hook.machine.{LABEL}kcp-cleanup", "etcd member", "EtcdClusterHealthy"),
        ("WaitingForPreTerminateHook", "hooks: other", "before its host goes", "takes it away"),
        ("WaitingForBootstrapDeletion", "", "bootstrap configuration", "finalizers"),
        ("DeletingNode", "Error deleting Node: no", "Its Node is being deleted", "endpoint"),
        ("InternalError", "broken", "deletion has failed", "log"),
    ],
)
def test_a_machine_that_does_not_go_says_why(reason: str, message: str, said: str, way: str) -> None:
    told = condition("Deleting", "True", reason, message, seconds=3600)
    found = explained(with_worker(told, deletionTimestamp=ago(3600)), "Machine", WORKER)
    assert said[1:] in found.sentences[0]
    assert way in found.to_do[0]
    assert found.lasting


def test_a_drain_that_has_just_begun_is_no_problem() -> None:
    told = condition(
        "Deleting", "True", "DrainingNode", "* Pod a/b: cannot evict pod as it would violate the pod's disruption budget.", seconds=30
    )
    assert not explained(with_worker(told, deletionTimestamp=ago(30))).lasting


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            condition("BootstrapConfigReady", "False", "NotReady", "Waiting for Cluster control plane to be initialized"),
            "first control plane",
        ),
        (condition("BootstrapConfigReady", "False", "DataSecretGenerationFailed", "no"), "bootstrap data is not there"),
        (condition("NodeHealthy", "False", "NodeNotHealthy", "* Node.Ready: kubelet stopped"), "Its Node is not well"),
        (condition("NodeHealthy", "Unknown", "NodeHealthyUnknown", "silent"), "kubelet of its Node is silent"),
        (condition("NodeHealthy", "False", "NodeDeleted", "gone"), "has deleted its Node"),
        (condition("NodeHealthy", "Unknown", "ConnectionDown", "since"), "does not answer"),
        (condition("EtcdMemberHealthy", "False", "NotHealthy", "alarm NOSPACE"), "etcd member is not well"),
        (condition("APIServerPodHealthy", "False", "Failed", "crashes"), "kube-apiserver is not well"),
        (condition("OwnerRemediated", "False", "CannotBeRemediated", "quorum"), "cannot be replaced"),
        (condition("OwnerRemediated", "False", "RemediationDeferred", "later"), "its replacement waits"),
        (condition("HealthCheckSucceeded", "False", "UnhealthyNode", "sick"), "it is sick"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_machine_that_is_not_well_says_why(told: Manifest, said: str) -> None:
    found = explained(with_worker(told))
    assert found.chain[-1] == ref("Machine", WORKER)
    assert said[1:] in found.sentences[-1]
    assert str(told["message"]).removeprefix("* ") in found.sentences[-1]


def test_a_machine_whose_turn_has_not_come_says_what_it_will_be() -> None:
    objects = well()
    old = machine(WORKER, condition("UpToDate", "False", "NotUpToDate", f"* Version {OLD}, {NEW} required"), node="node-d")
    found = explained(objects._replace(machines=[*objects.machines[:3], old, objects.machines[4]]), "Machine", WORKER)
    assert found.sentences[0].endswith(f"It is to be replaced (Version {OLD}, {NEW} required), and its turn has not come.")
    assert not found.well


@pytest.mark.parametrize(
    ("objects", "kind", "name"),
    [
        (well()._replace(clusters=[cluster(paused=True)]), "Cluster", NAME),
        (well()._replace(control_planes=[plane(annotations={f"{LABEL}paused": ""})]), "KubeadmControlPlane", PLANE),
        (well()._replace(machine_deployments=[workers(annotations={f"{LABEL}paused": ""})]), "MachineDeployment", WORKERS),
        (with_worker(annotations={f"{LABEL}paused": ""}), "Machine", WORKER),
    ],
    ids=["Cluster", "KubeadmControlPlane", "MachineDeployment", "Machine"],
)
def test_what_is_paused_says_so(objects: Objects, kind: str, name: str) -> None:
    found = explained(objects, kind, name)
    assert "it is paused: nothing is done to it" in found.sentences[0]
    assert "spec.paused" in found.to_do[0]
    assert found.lasting


def outdated(*conditions: Manifest, **of: Any) -> Objects:
    """The workers are to be another version, and none of them is on its way."""
    return well()._replace(control_planes=[plane(version=OLD)], machine_deployments=[workers(*conditions, version=NEW, **of)])


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            condition(
                "RollingOut",
                "True",
                "RollingOut",
                f"Rolling out 2\n* Waiting for KubeadmControlPlane {SPACE}/{PLANE} to have version {NEW} first",
            ),
            "its rollout waits for its turn",
        ),
        (
            condition("ScalingUp", "True", "ScalingUp", "Scaling up is blocked because KubeadmConfigTemplate does not exist"),
            "its template is not there",
        ),
        (
            condition("Available", "False", "NotAvailable", "1 available replicas, at least 2 required (maxUnavailable is 0)"),
            "no other one is taken away",
        ),
    ],
)
def test_workers_that_do_not_begin_say_what_they_wait_for(told: Manifest, said: str) -> None:
    assert said in explained(outdated(told), "MachineDeployment", WORKERS).sentences[-1]


def test_a_check_that_failed_before_a_machine_is_made_is_told_by_its_machine_set() -> None:
    message = f'Scaling up is blocked because:\n* {PLANE} is upgrading ("ControlPlaneIsStable" preflight check failed)'
    labels = {f"{LABEL}deployment-name": WORKERS}
    held = made(
        "MachineSet",
        f"{WORKERS}-x",
        {"clusterName": NAME, "replicas": 1},
        condition("ScalingUp", "True", "ScalingUp", message),
        labels=labels,
    )
    found = explained(outdated()._replace(machine_sets=[held]))
    assert "new machines wait for the control plane" in found.sentences[-1]
    assert found.chain[-1] == ref("MachineSet", f"{WORKERS}-x")


def test_machines_that_are_replaced_by_hand_say_that_somebody_has_to_delete_them() -> None:
    found = explained(outdated(strategy={"type": "OnDelete"}), "MachineDeployment", WORKERS)
    assert found.lasting
    assert found.to_do == (f"Delete its Machines of the old template, one after the other: {WORKERS}-d, {WORKERS}-e.",)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (condition("EtcdClusterHealthy", "False", "NotHealthy", "member a is not healthy"), "etcd is not well"),
        (condition("CertificatesAvailable", "False", "InternalError", "no ca"), "certificates of the cluster"),
        (
            condition(
                "ScalingDown", "True", "ScalingDown", "Scaling down is blocked because:\n* waiting for etcd cluster to become healthy"
            ),
            "something else is not well",
        ),
    ],
)
def test_a_control_plane_that_does_not_go_on_says_why(told: Manifest, said: str) -> None:
    objects = well()._replace(control_planes=[plane(told, version=NEW)])
    found = explained(objects)
    assert said in found.sentences[-1]
    assert found.to_do


def test_what_nobody_has_acted_on_says_to_look_at_the_manager() -> None:
    found = explained(well()._replace(control_planes=[plane(version=NEW, generation=2)]))
    assert "generation 1 of 2" in found.sentences[-1]
    assert "slipway fleet preflight" in found.to_do[0]


def test_a_cluster_that_is_deleted_leads_to_the_machine_that_does_not_go() -> None:
    told = condition(
        "Deleting", "True", "DrainingNode", "* Pod a/b: deletionTimestamp set, but still not removed from the Node", seconds=3600
    )
    objects = with_worker(told, deletionTimestamp=ago(3600))
    deleted = cluster(condition("Deleting", "True", "WaitingForWorkersDeletion", "1 Machine"), deletionTimestamp=ago(3600))
    found = explained(objects._replace(clusters=[deleted]))
    assert found.chain == (CLUSTER, ref("Machine", WORKER))
    assert "do not end" in found.sentences[-1]


def test_a_cluster_that_is_not_reached_says_so() -> None:
    found = explained(
        well()._replace(clusters=[cluster(condition("RemoteConnectionProbe", "False", "ProbeFailed", "timeout", seconds=900))])
    )
    assert "the manager does not reach it" in found.sentences[0]
    assert found.lasting


def test_machines_of_other_infrastructure_are_explained_by_what_their_machine_says() -> None:
    objects = with_worker(condition("InfrastructureReady", "False", "NotReady", "instance is starting"), node="")
    found = explained(objects._replace(clusters=[cluster(infrastructure="DockerCluster")], baremetal_machines=[]))
    assert found.sentences[-1].endswith("its infrastructure is not ready yet. It says: instance is starting.")


def test_of_several_machines_the_one_that_does_not_get_on_is_told() -> None:
    objects = coming(condition("ImageResolved", "False", "ImageCatalogMiss", "no key"))
    leaving = machine(f"{WORKERS}-e", condition("Deleting", reason="DrainingNode", seconds=5), deletionTimestamp=ago(5))
    assert ref("Machine", WORKER) in explained(objects._replace(machines=[*objects.machines[:4], leaving])).chain


# Hosts, warnings, and what is not there.


def test_a_host_of_a_machine_that_is_not_well_is_explained_by_that_machine() -> None:
    found = explained(coming(condition("ImageResolved", "False", "ImageCatalogMiss", "no key")), "MachineInventory", "host-d")
    assert found.chain == (ref("MachineInventory", "host-d"), ref("BaremetalMachine", WORKER))


@pytest.mark.parametrize(
    ("inventory", "said"),
    [
        (host("h", state="Available"), "The host h is free in the pool pool."),
        (host("h", state="", annotations={"baremetal.alauda.io/pool": ""}), "The host h has registered, and no pool names it."),
        (host("h", state="Unavailable", annotations={"slipway.io/quarantined-by": "m"}), "given up without having been cleaned"),
        (host("h", state="Preparing", plan={"type": "clean"}), "The host h has not begun with its clean plan."),
    ],
)
def test_a_host_says_what_it_is(inventory: Manifest, said: str) -> None:
    assert said in explained(well()._replace(inventories=[inventory]), "MachineInventory", "h").sentences[0]


def test_a_warning_that_no_condition_repeats_is_told_and_one_that_is_old_is_not() -> None:
    def warning(seconds: float) -> Manifest:
        about = {"kind": "Machine", "namespace": SPACE, "name": WORKER}
        return {
            "type": "Warning",
            "reason": "FailedDrainNode",
            "message": "no route",
            "lastTimestamp": ago(seconds),
            "involvedObject": about,
        }

    objects = with_worker(condition("NodeHealthy", "False", "NodeNotHealthy", "sick"))
    assert "The last warning about it, 20 s ago: FailedDrainNode: no route." in explained(objects._replace(events=[warning(20)])).sentences
    assert not any("FailedDrainNode" in each for each in explained(objects._replace(events=[warning(7200)])).sentences)


def test_what_is_not_there_is_an_error() -> None:
    with pytest.raises(OperatorError, match="there is no Machine"):
        explained(well(), "Machine", "other")


# One table for all who explain.


def test_what_may_last_says_what_to_do_when_it_does() -> None:
    silent = [key for key, rows in advice.OF_CLUSTER_API.items() for row in rows if row.patience is not None and not row.to_do]
    assert silent == []


@pytest.mark.parametrize(("kind", "type_"), sorted(problems.PROBLEMS))
def test_what_a_status_calls_a_problem_is_explained_in_the_words_of_an_explanation(kind: str, type_: str) -> None:
    status, says = problems.PROBLEMS[kind, type_].statuses[0], problems.PROBLEMS[kind, type_].says
    told = condition(type_, status, "Reason", f"it is {says}: x")
    content = made(kind, "it", {}, told, status={"nodeRef": {"name": "n"}})
    (found,) = problems.problems_of(kind, content, NOW)
    assert found.to_do == cause(kind, content, told).to_do
    assert found.to_do
