"""The life of a control plane on an API server: made, grown, rolled, shrunk, repaired, deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio
from fleet.controlplane.estate import PLACE, Estate, estate
from fleet.infrastructure import TEST_MACHINE, TEST_MACHINE_TEMPLATE

from slipway.api.cluster.kinds import CLUSTER, CONFIG_MAP, KUBEADM_CONFIG, KUBEADM_CONTROL_PLANE, MACHINE, SECRET
from slipway.api.machinery.errors import OperatorError
from slipway.fleet import certificates as clustercerts
from slipway.runtime import owners
from slipway.runtime.objects import Request

pytestmark = pytest.mark.asyncio

IN_PROGRESS = "controlplane.cluster.x-k8s.io/remediation-in-progress"
FOR = "controlplane.cluster.x-k8s.io/remediation-for"
SINGLE = "slipway.io/remediate-single-control-plane"


@pytest_asyncio.fixture
async def world() -> AsyncIterator[Estate]:
    async with estate() as made:
        yield made


def owner_names(manifest: dict[str, Any]) -> list[str]:
    return [reference["kind"] for reference in manifest["metadata"].get("ownerReferences") or ()]


async def test_the_first_machine_is_made_with_its_objects(world: Estate) -> None:
    await world.make()
    await world.rest()
    (machine,) = await world.machines()
    name = machine["metadata"]["name"]
    config = await world.client.get(KUBEADM_CONFIG, name, PLACE)
    clone = await world.client.get(TEST_MACHINE, name, PLACE)
    assert "joinConfiguration" not in config["spec"]
    assert owner_names(machine) == owner_names(config) == owner_names(clone) == ["KubeadmControlPlane"]
    assert clone["spec"] == {"size": "small"}
    for purpose in ("ca", "etcd", "sa", "proxy"):
        assert owner_names(await world.client.get(SECRET, f"c-{purpose}", PLACE)) == ["KubeadmControlPlane"]
    assert (await world.condition("Available"))["message"] == "Control plane not yet initialized"


async def test_grows_to_its_replicas_one_by_one(world: Estate) -> None:
    await world.make()
    await world.play()
    assert len(await world.machines()) == 3
    assert sorted(world.etcd.members.values()) == sorted(await world.names())
    status = (await world.plane())["status"]
    assert status["initialization"] == {"controlPlaneInitialized": True}
    assert (status["replicas"], status["upToDateReplicas"], status["version"]) == (3, 3, "v1.35.4")
    assert (await world.condition("Available"))["status"] == "True"


async def test_a_new_version_rolls_every_machine_and_never_has_too_few(world: Estate) -> None:
    await world.make(version="v1.34.10")
    await world.play()
    before = set(await world.names())
    await world.change(version="v1.35.4")
    await world.play()
    after = await world.machines()
    assert len(after) == 3
    assert not before & {machine["metadata"]["name"] for machine in after}
    assert {machine["spec"]["version"] for machine in after} == {"v1.35.4"}
    assert world.most_machines == 4
    assert (await world.condition("RollingOut"))["status"] == "False"
    assert sorted(world.etcd.members.values()) == sorted(await world.names())


async def test_without_surge_a_machine_goes_before_the_next_comes(world: Estate) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}}
    await world.make(version="v1.34.10", rollout={"strategy": strategy})
    await world.play()
    await world.change(version="v1.35.4")
    await world.play()
    assert world.most_machines == 3
    assert {machine["spec"]["version"] for machine in await world.machines()} == {"v1.35.4"}


async def test_a_rollout_tells_kubeadm_the_new_version_first(world: Estate) -> None:
    await world.make(version="v1.34.10", replicas=1)
    await world.play()
    await world.change(version="v1.35.4")
    await world.rest()
    assert len(await world.machines()) == 2
    found = await world.workload.get(CONFIG_MAP, "kubeadm-config", "kube-system")
    assert "kubernetesVersion: v1.35.4" in found["data"]["ClusterConfiguration"]


async def test_version_and_image_tags_in_one_edit_are_one_rollout(world: Estate) -> None:
    await world.make(version="v1.34.10", rollout={"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}}})
    await world.play()
    before = set(await world.names())
    tags = {"dns": {"imageTag": "v1.13.1"}, "etcd": {"local": {"imageTag": "3.6.6-0"}}}
    await world.change(version="v1.35.4", kubeadmConfigSpec={"clusterConfiguration": tags})
    await world.play()
    after = set(await world.names())
    assert len(after) == 3
    assert world.seen_machines == before | after, "a machine was replaced twice"
    for name in after:
        spec = (await world.client.get(KUBEADM_CONFIG, name, PLACE))["spec"]
        assert {key: spec["clusterConfiguration"][key] for key in tags} == tags
    told = (await world.workload.get(CONFIG_MAP, "kubeadm-config", "kube-system"))["data"]["ClusterConfiguration"]
    assert "kubernetesVersion: v1.35.4" in told
    assert "imageTag: 3.6.6-0" in told


async def test_shrinks_to_its_replicas(world: Estate) -> None:
    await world.make()
    await world.play()
    await world.change(replicas=1)
    await world.play()
    assert await world.names() == list(world.etcd.members.values())
    assert len(await world.machines()) == 1
    assert (await world.condition("ScalingDown"))["status"] == "False"


async def test_a_dead_machine_is_replaced(world: Estate) -> None:
    await world.make()
    await world.play()
    sick = world.etcd.leading
    await world.fall_ill(sick)
    await world.play()
    assert sick not in await world.names()
    assert len(await world.machines()) == 3
    plane = await world.plane()
    assert plane["status"]["lastRemediation"]["machine"] == sick
    assert IN_PROGRESS not in (plane["metadata"].get("annotations") or {})
    replacement = [machine for machine in await world.machines() if FOR in machine["metadata"]["annotations"]]
    assert len(replacement) == 1


async def test_two_dead_of_five_are_replaced_one_after_the_other(world: Estate) -> None:
    await world.make(replicas=5)
    await world.play()
    dead = (await world.names())[:2]
    for name in dead:
        await world.fall_ill(name)
    await world.play()
    assert not set(dead) & set(await world.names())
    assert len(await world.machines()) == 5


async def test_two_dead_of_three_are_left_alone_with_a_sentence(world: Estate) -> None:
    await world.make()
    await world.play()
    for name in (await world.names())[:2]:
        await world.fall_ill(name)
    await world.rest()
    machines = await world.machines()
    assert not any(machine["metadata"].get("deletionTimestamp") for machine in machines)
    told = [one for machine in machines for one in machine["status"]["conditions"] if one["type"] == "OwnerRemediated"]
    # etcd cannot be asked about its members without a quorum.
    assert {(one["reason"], one["message"]) for one in told} >= {
        ("RemediationDeferred", "Failed to check etcd cluster health before remediation")
    }


async def test_the_only_machine_is_given_up_only_when_asked(world: Estate) -> None:
    await world.make(replicas=1)
    await world.play()
    (only,) = await world.names()
    await world.remediate(only)
    await world.rest()
    (machine,) = await world.machines()
    assert machine["metadata"].get("deletionTimestamp") is None
    await world.patch(KUBEADM_CONTROL_PLANE, "cp", {"metadata": {"annotations": {SINGLE: "true"}}})
    await world.rest()
    await world.drain(only)
    await world.rest()
    world.etcd.members.clear()
    world.etcd.leader = 0
    await world.take_down(only)
    await world.forget_workload()
    await world.rest()
    # Everybody takes the next one for the first one.
    (new,) = await world.machines()
    assert not await world.initialized()
    cluster = await world.client.get(CLUSTER, "c", PLACE)
    assert [one["status"] for one in cluster["status"]["conditions"]] == ["False"]
    config = await world.client.get(KUBEADM_CONFIG, new["metadata"]["name"], PLACE)
    assert "joinConfiguration" not in config["spec"]
    await world.play()
    assert await world.initialized()


async def test_deletion_waits_for_workers_and_then_takes_all_at_once(world: Estate) -> None:
    await world.make()
    await world.play()
    await world.machine("worker", control_plane=False)
    await world.client.delete(KUBEADM_CONTROL_PLANE, "cp", PLACE)
    await world.rest()
    deleting = await world.condition("Deleting")
    assert deleting["reason"] == "WaitingForWorkersDeletion"
    assert deleting["message"].endswith("* Machines: worker")
    await world.client.delete(MACHINE, "worker", PLACE)
    await world.rest()
    machines = await world.machines()
    assert all(machine["metadata"].get("deletionTimestamp") for machine in machines)
    for machine in machines:
        await world.take_down(machine["metadata"]["name"])
    await world.rest()
    assert await world.client.find(KUBEADM_CONTROL_PLANE, "cp", PLACE) is None


async def test_what_changes_in_place_reaches_machines_and_clones(world: Estate) -> None:
    await world.make(replicas=1)
    await world.play()
    (name,) = await world.names()
    template = (await world.plane())["spec"]["machineTemplate"]
    changed = {"metadata": {"labels": {"rack": "7"}}, "spec": {**template["spec"], "deletion": {"nodeDrainTimeoutSeconds": 9}}}
    await world.change(machineTemplate=changed)
    await world.rest()
    assert await world.names() == [name]
    for kind in (MACHINE, KUBEADM_CONFIG, TEST_MACHINE):
        assert (await world.client.get(kind, name, PLACE))["metadata"]["labels"]["rack"] == "7"
    assert (await world.client.get(MACHINE, name, PLACE))["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 9
    await world.change(machineTemplate={"metadata": None})
    await world.rest()
    for kind in (MACHINE, KUBEADM_CONFIG, TEST_MACHINE):
        assert "rack" not in (await world.client.get(kind, name, PLACE))["metadata"]["labels"]


async def test_a_controller_that_is_new_at_every_step_comes_to_the_same_end(world: Estate) -> None:
    await world.make(version="v1.34.10", replicas=1)
    world.fresh_every_time = True
    await world.play()
    await world.change(version="v1.35.4")
    await world.play()
    assert {machine["spec"]["version"] for machine in await world.machines()} == {"v1.35.4"}
    assert len(await world.client.list(TEST_MACHINE, PLACE)) == len(await world.client.list(KUBEADM_CONFIG, PLACE)) == 1


async def test_at_rest_nothing_is_written(world: Estate) -> None:
    await world.make()
    await world.play()
    verbs: list[str] = []
    world.client.on_request = lambda verb, status, seconds: verbs.append(verb)
    await world.settle()
    verbs.clear()
    await world.reconciler.reconcile(Request(PLACE, "cp"))
    assert not {"patch", "update", "create", "delete"} & set(verbs)
    # One look at the CA of etcd.
    assert verbs.count("get") <= 1


async def test_an_upgrade_over_two_minor_versions_goes_step_by_step(world: Estate) -> None:
    await world.make(version="v1.33.13", replicas=1)
    await world.play()
    told = {"slipway.io/multi-step-upgrade": "true", "slipway.io/upgrade-target": "v1.35.4"}
    await world.patch(KUBEADM_CONTROL_PLANE, "cp", {"metadata": {"annotations": told}})
    seen = []
    for _ in range(3):
        await world.play()
        seen += [machine["spec"]["version"] for machine in await world.machines()]
    assert world.versions == ["v1.33.13", "v1.34.10", "v1.35.4"]
    assert seen[-1] == "v1.35.4"
    assert "slipway.io/upgrade-target" not in (await world.plane())["metadata"]["annotations"]


async def test_a_missing_template_is_told(world: Estate) -> None:
    await world.make()
    await world.client.delete(TEST_MACHINE_TEMPLATE, "t", PLACE)
    await world.reconcile()
    await world.reconcile()
    with pytest.raises(OperatorError, match="there is no TestMachineTemplate n/t"):
        await world.reconcile()
    condition = await world.condition("ScalingUp")
    assert condition["message"] == "Scaling up from 0 to 3 replicas is blocked because:\n* TestMachineTemplate does not exist"


async def test_a_paused_control_plane_is_left_alone(world: Estate) -> None:
    await world.make()
    await world.patch(CLUSTER, "c", {"spec": {"paused": True}})
    await world.rest()
    assert await world.machines() == []
    assert (await world.condition("Paused"))["status"] == "True"


async def test_nothing_is_made_before_the_infrastructure_is_there(world: Estate) -> None:
    await world.make()
    await world.patch(CLUSTER, "c", {"status": {"initialization": {"infrastructureProvisioned": False}}}, status=True)
    await world.rest()
    assert await world.machines() == []
    assert (await world.condition("EtcdClusterHealthy"))["message"] == "Waiting for Cluster status.infrastructureReady to be true"


async def test_machines_of_somebody_else_are_not_mixed_with_ours(world: Estate) -> None:
    await world.make()
    await world.rest()
    cluster = await world.client.get(CLUSTER, "c", PLACE)
    await world.machine("other", control_plane=True, owners=[owners.reference(cluster)])
    with pytest.raises(OperatorError, match="refusing to operate in mixed management mode: other"):
        await world.reconcile()


async def test_a_machine_of_nobody_is_adopted(world: Estate) -> None:
    await world.make(replicas=1)
    await world.client.create(KUBEADM_CONFIG, {"metadata": {"name": "alone", "namespace": PLACE}, "spec": {"verbosity": 1}})
    await world.machine("alone", control_plane=True)
    for _ in range(3):
        await world.reconcile()
    assert owner_names(await world.client.get(MACHINE, "alone", PLACE)) == ["KubeadmControlPlane"]


async def test_certificates_that_are_lost_are_not_made_anew(world: Estate) -> None:
    await world.make(replicas=1)
    await world.play()
    await world.client.delete(SECRET, "c-ca", PLACE)
    await world.change(replicas=3)
    await world.rest()
    assert await world.client.find(SECRET, "c-ca", PLACE) is None
    condition = await world.condition("CertificatesAvailable")
    assert condition["message"] == "Cluster certificate for ca is not available, please check cluster certificate secrets"
    assert len(await world.machines()) == 1
    assert "cluster certificates are missing" in (await world.condition("ScalingUp"))["message"]


async def test_the_secrets_of_a_person_are_not_owned(world: Estate) -> None:
    await world.make()
    pair = clustercerts.generate(clustercerts.CA, "ECDSA-P256", 10, datetime.now(UTC))
    data = {"tls.crt": pair.certificate.decode(), "tls.key": pair.key.decode()}
    await world.client.create(SECRET, {"metadata": {"name": "c-ca", "namespace": PLACE}, "type": "Opaque", "stringData": data})
    await world.rest()
    assert owner_names(await world.client.get(SECRET, "c-ca", PLACE)) == []
    assert owner_names(await world.client.get(SECRET, "c-kubeconfig", PLACE)) == []
    assert (await world.condition("CertificatesAvailable"))["status"] == "True"


async def test_a_control_plane_with_an_external_etcd_is_repaired_too(world: Estate) -> None:
    etcd = {"external": {"endpoints": ["https://10.0.0.9:2379"], "caFile": "/ca", "certFile": "/crt", "keyFile": "/key"}}
    await world.make(config={"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256", "etcd": etcd}})
    await world.reconcile()
    await world.reconcile()
    with pytest.raises(OperatorError, match="there is no Secret n/c-apiserver-etcd-client, n/c-etcd"):
        await world.reconcile()
    pair = clustercerts.generate(clustercerts.CA, "ECDSA-P256", 10, datetime.now(UTC))
    data = {"tls.crt": pair.certificate.decode(), "tls.key": pair.key.decode()}
    for name in ("c-etcd", "c-apiserver-etcd-client"):
        await world.client.create(SECRET, {"metadata": {"name": name, "namespace": PLACE}, "stringData": data})
    await world.play()
    sick = (await world.names())[0]
    await world.fall_ill(sick)
    await world.play()
    assert sick not in await world.names()
    assert len(await world.machines()) == 3


async def test_a_machine_that_a_person_deletes_gives_up_its_member_first(world: Estate) -> None:
    await world.make()
    await world.play()
    leader = world.etcd.leading
    await world.client.delete(MACHINE, leader, PLACE)
    await world.play()
    assert leader not in world.etcd.members.values()
    assert world.etcd.leading != leader
    assert len(await world.machines()) == 3


async def test_a_member_of_nobody_is_removed(world: Estate) -> None:
    await world.make()
    await world.play()
    world.etcd.join("ghost")
    await world.play()
    assert sorted(world.etcd.members.values()) == sorted(await world.names())


async def test_a_kubeconfig_that_is_garbage_is_told_and_left(world: Estate) -> None:
    await world.make(replicas=1)
    await world.play()
    await world.patch(SECRET, "c-kubeconfig", {"data": {"value": "Z2FyYmFnZQ=="}})
    owner = owners.reference(await world.plane())
    await world.patch(SECRET, "c-kubeconfig", {"metadata": {"ownerReferences": [owner]}})
    with pytest.raises(OperatorError, match="kubeconfig"):
        await world.reconcile()
    assert (await world.client.get(SECRET, "c-kubeconfig", PLACE))["data"]["value"] == "Z2FyYmFnZQ=="


async def test_a_label_of_a_clone_that_an_old_manager_made_goes_when_it_is_not_wanted_any_more(world: Estate) -> None:
    labels = {"cluster.x-k8s.io/cluster-name": "c", "rack": "7"}
    await world.make(replicas=1)
    await world.change(machineTemplate={"metadata": {"labels": {"rack": "7"}}})
    await world.play()
    (name,) = await world.names()
    for kind in (KUBEADM_CONFIG, TEST_MACHINE):
        # As Cluster API 1.11 has it: made by an update, and labels applied.
        found = await world.client.get(kind, name, PLACE)
        fields: dict[str, Any] = {"f:metadata": {"f:labels": {f"f:{label}": {} for label in labels}}}
        entries = [
            {"manager": manager, "operation": operation, "apiVersion": found["apiVersion"], "fieldsType": "FieldsV1", "fieldsV1": fields}
            for manager, operation in (("manager", "Update"), ("capi-kubeadmcontrolplane", "Apply"))
        ]
        await world.patch(kind, name, {"metadata": {"managedFields": [{**entry, "time": "2025-01-01T00:00:00Z"} for entry in entries]}})
    world.restarted()
    await world.rest()
    for kind in (KUBEADM_CONFIG, TEST_MACHINE):
        managers = {entry["manager"] for entry in (await world.client.get(kind, name, PLACE))["metadata"]["managedFields"]}
        assert managers & {"manager", "capi-kubeadmcontrolplane", "capi-kubeadmcontrolplane-metadata"} == {
            "capi-kubeadmcontrolplane-metadata"
        }
    await world.change(machineTemplate={"metadata": {"labels": {"rack": None}}})
    await world.rest()
    for kind in (KUBEADM_CONFIG, TEST_MACHINE):
        assert "rack" not in (await world.client.get(kind, name, PLACE))["metadata"]["labels"]
