"""The life of a BaremetalMachine: from no host to a Node, and back to the pool."""

from __future__ import annotations

import hashlib
from base64 import b64decode

import pytest
import yaml
from fleet.baremetal.estate import NS, REGISTRY, USER_DATA, VERSION, VIP, Estate

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, MACHINE, MACHINE_INVENTORY, NODE, SECRET
from slipway.api.elemental import plan as plans
from slipway.fleet.baremetal.machine import watches
from slipway.runtime.objects import Request

pytestmark = [pytest.mark.asyncio]

IMAGE = f"{REGISTRY}/tkestack/base:v0-1.34.5"


async def two_hosts(metal: Estate) -> None:
    await metal.cluster()
    await metal.host("rack-1")
    await metal.host("rack-2")
    await metal.pool("rack-1", {"name": "rack-2", "hostname": "node-two"})


async def test_a_machine_becomes_a_node(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("m")

    await metal.reconcile("m")

    status = await metal.status("m")
    assert (status["phase"], status["ready"], status["machineInventoryRef"]["name"]) == ("Reprovisioning", False, "rack-1")
    assert status["planSecretRef"]["name"] == "rack-1"
    assert status["addresses"] == [{"type": "InternalIP", "address": "10.0.0.11"}, {"type": "Hostname", "address": "rack-1"}]
    assert (await metal.get(BAREMETAL_MACHINE, "m"))["spec"]["providerID"] == "baremetal:///rack-1"
    assert await metal.annotations("rack-1") == {
        "pool": "pool",
        "allocation-state": "Reprovisioning",
        "owner-cluster": "c",
        "owner-machine": "m",
        "owner-baremetalmachine": "m",
    }
    assert await metal.annotations("rack-2") == {}
    assert await metal.condition("m", "PlanApplied") == (
        "False",
        "PlanPending",
        "the plan is written: waiting for the host to begin with it",
    )

    await metal.begins("rack-1")
    await metal.reconcile("m")
    assert (await metal.condition("m", "PlanApplied"))[1] == "PlanRunning"

    await metal.applies("rack-1")
    await metal.reconcile("m")
    assert (await metal.status("m"))["phase"] == "Reprovisioning"
    assert (await metal.condition("m", "NodeJoined"))[:2] == ("False", "WaitingForNode")

    await metal.joins("rack-1")
    await metal.reconcile("m")
    status = await metal.status("m")
    assert (status["phase"], status["ready"], status["initialization"]) == ("Running", True, {"provisioned": True})
    assert (await metal.condition("m", "Ready"))[:2] == ("True", "Ready")
    assert (await metal.annotations("rack-1"))["allocation-state"] == "Allocated"


async def test_a_node_that_has_not_told_its_version_yet_is_waited_for(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("m")
    await metal.reconcile("m")
    await metal.applies("rack-1")
    await metal.create(NODE, "rack-1", spec={"providerID": "baremetal:///rack-1"})
    await metal.reconcile("m")
    assert (await metal.status("m"))["phase"] == "Reprovisioning"
    assert (await metal.condition("m", "NodeJoined"))[:2] == ("False", "WaitingForNode")


async def test_the_plan_has_the_image_of_the_catalog_and_data_made_fit_for_the_host(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.patch(MACHINE_INVENTORY, "rack-1", {"metadata": {"annotations": {"baremetal.alauda.io/allocation-state": "Unavailable"}}})
    await metal.machine("m")

    await metal.reconcile("m")

    plan = await metal.plan("rack-2")
    assert f"IMAGE={IMAGE}" in plan.instructions[1].env
    assert f"VERSION={VERSION}" in plan.instructions[2].env
    files = {file.path.rpartition("/")[2]: file.content for file in plan.files}
    user_data = yaml.safe_load(files["user-data"])
    assert user_data["hostname"] == "node-two"
    kubeadm = yaml.safe_load(user_data["write_files"][0]["content"])
    assert kubeadm["nodeRegistration"]["kubeletExtraArgs"] == [{"name": "provider-id", "value": "baremetal:///rack-2"}]
    assert yaml.safe_load(files["network-config"])["ethernets"]["eth0"]["addresses"] == ["10.0.0.12/24"]
    secret = await metal.get(SECRET, "m-data")
    assert b64decode(secret["data"]["resolved-value"]) == files["user-data"]
    assert b64decode(secret["data"]["value"]).decode() == USER_DATA
    status = await metal.status("m")
    raw = b64decode((await metal.get(SECRET, "rack-2"))["data"]["plan"])
    assert status["lastAppliedBootstrapHash"] == hashlib.sha256(files["user-data"]).hexdigest()
    assert status["lastAppliedPlanChecksum"] == plans.checksum(raw)
    assert status["image"] == IMAGE


async def test_a_plan_is_not_written_twice(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("m")
    await metal.reconcile("m")
    written = (await metal.get(SECRET, "rack-1"))["metadata"]["resourceVersion"]

    metal.process()
    await metal.reconcile("m", times=3)

    assert (await metal.get(SECRET, "rack-1"))["metadata"]["resourceVersion"] == written


async def test_a_deleted_machine_gives_its_host_back_once_it_is_clean(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("m")
    await metal.becomes_a_node("m", "rack-1")

    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")
    assert (await metal.status("m"))["phase"] == "Preparing"
    assert await metal.plan_type("rack-1") == "clean"
    assert (await metal.annotations("rack-1"))["allocation-state"] == "Preparing"

    await metal.reconcile("m")
    assert await metal.find(BAREMETAL_MACHINE, "m"), "the host has not been cleaned"

    await metal.applies("rack-1")
    await metal.reconcile("m")
    assert await metal.find(BAREMETAL_MACHINE, "m") is None
    assert await metal.annotations("rack-1") == {"pool": "pool", "allocation-state": "Available"}


async def test_the_host_that_came_back_is_taken_again(metal: Estate) -> None:
    await metal.cluster()
    await metal.host("rack-1")
    await metal.pool("rack-1")
    await metal.machine("old")
    await metal.becomes_a_node("old", "rack-1")
    await metal.client.delete(BAREMETAL_MACHINE, "old", NS)
    await metal.reconcile("old")
    await metal.machine("new")
    await metal.reconcile("new")
    assert (await metal.condition("new", "InventoryAllocated"))[1] == "PoolExhausted"

    await metal.applies("rack-1")
    await metal.reconcile("old")
    # What the old machine leaves behind goes later, and its kubelet does not run.
    await metal.joins("rack-1", ready=False)
    await metal.reconcile("new")
    assert await metal.plan_type("rack-1") == "reprovision"
    await metal.applies("rack-1")
    await metal.reconcile("new")
    assert (await metal.condition("new", "NodeJoined"))[1] == "WaitingForNode", "that Node is of the boot before"

    await metal.joins("rack-1", boot_id="boot-2")
    await metal.reconcile("new")
    assert (await metal.status("new"))["phase"] == "Running"


async def test_a_host_does_not_become_a_node_again_before_its_last_machine_has_taken_its_node_away(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("old", data=None)
    await metal.joins("rack-1", ready=False)
    await metal.patch(NODE, "rack-1", {"metadata": {"annotations": {"cluster.x-k8s.io/machine": "old"}}})
    await metal.client.delete(BAREMETAL_MACHINE, "old", NS)
    await metal.machine("new")
    await metal.reconcile("new")
    _, reason, message = await metal.condition("new", "PlanApplied")
    assert (reason, message) == (
        "OldNodeRemains",
        "no plan is written yet: the Node rack-1 is of the Machine old, which is still there; waiting for both to go",
    )
    assert await metal.plan_type("rack-1") == ""

    await metal.client.delete(MACHINE, "old", NS)
    await metal.reconcile("new")
    assert await metal.plan_type("rack-1") == "reprovision", "a Node that was left behind holds up nobody"


async def test_a_machine_that_never_got_a_plan_lets_its_host_go_at_once(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("m", data=None)
    await metal.reconcile("m")
    assert (await metal.status("m"))["phase"] == "Allocated"

    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")

    assert await metal.find(BAREMETAL_MACHINE, "m") is None
    assert await metal.annotations("rack-1") == {"pool": "pool", "allocation-state": "Available"}
    assert await metal.plan_type("rack-1") == ""


async def test_a_machine_without_a_host_goes_at_once(metal: Estate) -> None:
    await metal.cluster()
    await metal.machine("m")
    await metal.reconcile("m")
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")
    assert await metal.find(BAREMETAL_MACHINE, "m") is None


async def test_control_planes_get_what_the_virtual_address_needs_and_workers_do_not(metal: Estate) -> None:
    await metal.cluster()
    for name in ("rack-1", "rack-2"):
        await metal.host(name)
    await metal.pool("rack-1", "rack-2")
    await metal.machine("cp", control_plane=True)
    await metal.machine("worker")
    for name in ("cp", "worker"):
        await metal.reconcile(name)

    async def paths(host: str) -> list[str]:
        files = {file.path.rpartition("/")[2]: file.content for file in (await metal.plan(host)).files}
        return [file["path"] for file in yaml.safe_load(files["user-data"])["write_files"]]

    assert {"/etc/keepalived/keepalived.conf", "/etc/kubernetes/manifests/alive.yaml"} <= set(await paths("rack-1"))
    assert await paths("rack-2") == ["/run/kubeadm/kubeadm-join-config.yaml"]


async def test_the_clean_plan_of_a_control_plane_knows_the_virtual_address(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("cp", control_plane=True)
    await metal.becomes_a_node("cp", "rack-1")
    await metal.client.delete(BAREMETAL_MACHINE, "cp", NS)
    await metal.reconcile("cp")
    assert f"VIP={VIP}" in (await metal.plan("rack-1")).instructions[0].env


async def test_a_paused_machine_is_left_alone(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("m")
    await metal.patch(BAREMETAL_MACHINE, "m", {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}})
    await metal.reconcile("m")
    assert (await metal.condition("m", "Paused"))[:2] == ("True", "Paused")
    assert await metal.annotations("rack-1") == {}


async def test_a_status_that_was_lost_is_found_again_in_the_host(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("m")
    await metal.becomes_a_node("m", "rack-1")
    await metal.patch(BAREMETAL_MACHINE, "m", {"status": None}, subresource="status")
    before = (await metal.get(SECRET, "rack-1"))["metadata"]["resourceVersion"]

    metal.process()
    await metal.reconcile("m")

    status = await metal.status("m")
    assert (status["phase"], status["machineInventoryRef"]["name"], status["ready"]) == ("Running", "rack-1", True)
    assert (await metal.get(SECRET, "rack-1"))["metadata"]["resourceVersion"] == before


async def test_a_machine_without_a_version_says_so(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("m", version="")
    await metal.reconcile("m")
    _, reason, message = await metal.condition("m", "ImageResolved")
    assert (reason, "the Machine has no spec.version" in message) == ("ImageCatalogMiss", True)
    assert await metal.plan_type("rack-1") == ""


async def test_bootstrap_data_that_no_secret_could_hold_twice_is_told(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("m", data=f"{USER_DATA}# {'x' * 600 * 1024}\n")
    await metal.reconcile("m")
    _, reason, message = await metal.condition("m", "BootstrapReady")
    assert (reason, "600 KiB long" in message) == ("BootstrapInvalid", True)


async def test_a_node_is_found_beside_one_that_an_earlier_machine_left_behind(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.joins("rack-1", name="a-former-name", boot_id="boot-0", ready=False)
    await metal.machine("m")
    await metal.becomes_a_node("m", "rack-1")
    assert (await metal.condition("m", "NodeJoined"))[2] == f"Node rack-1, {VERSION}"
    assert (await metal.status("m"))["phase"] == "Running"


async def test_a_host_that_comes_back_concerns_those_who_wait_for_one(metal: Estate) -> None:
    await two_hosts(metal)
    for name in ("runs", "waits"):
        await metal.machine(name)
    await metal.becomes_a_node("runs", "rack-1")
    annotations = {"baremetal.alauda.io/pool": "pool", "baremetal.alauda.io/allocation-state": "Available"}
    await metal.patch(MACHINE_INVENTORY, "rack-2", {"metadata": {"annotations": annotations}})
    await metal.settle()
    host = await metal.cache.get(MACHINE_INVENTORY, "rack-2", NS)
    assert host is not None
    assert list(await watches.of_inventory(host, metal.cache)) == [Request(NS, "waits")]


async def test_phases_are_told_by_events(metal: Estate) -> None:
    await two_hosts(metal)
    await metal.machine("m")
    await metal.becomes_a_node("m", "rack-1")
    assert {("Reprovisioning", "New to Reprovisioning"), ("Running", "Reprovisioning to Running")} <= set(await metal.told())
