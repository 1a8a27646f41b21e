"""Every row of the table of reasons is brought about, and recovered from in the way that the row says.

The table is the reference of ``docs/baremetal.md``; a reason that is told and has no row, or a row that nothing brings about, fails here.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from fleet.baremetal.estate import CATALOG, KINDS, NS, REGISTRY, TOKEN, USER_DATA, VERSION, VIP, Estate
from fleet.baremetal.rollouts.rolling import workers
from fleet.baremetal.staging import staging
from fleet.world import lean_crd, preserving_crd

from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    CLUSTER,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    NODE,
    SECRET,
)
from slipway.fleet.baremetal.reasons import REASONS, reference
from slipway.fleet.baremetal.rollouts.reconciler import RolloutGuardReconciler

Scenario = Callable[[Estate], Awaitable[None]]
Row = tuple[str, str, str, str]

TABLE: set[Row] = {(row.kind, row.condition, row.status, row.reason) for row in REASONS}
BMM, MIP, BMC = "BaremetalMachine", "MachineInventoryPool", "BaremetalCluster"
SCENARIOS: dict[str, tuple[Scenario, frozenset[Row]]] = {}
# What sums up, or is every provider's.
COMMON = {(BMM, "Ready"), (BMC, "Ready")}
CATALOG_NAME = "elemental-image-catalog"
NO_TOKEN = USER_DATA.replace("bootstrapToken:", "file:").replace(f"          token: {TOKEN}\n", "")


def brings_about(*rows: tuple[str, str]) -> Callable[[Scenario], Scenario]:
    """Rows by condition and reason."""

    def note(scenario: Scenario) -> Scenario:
        found = frozenset(row for row in TABLE if (row[1], row[3]) in rows)
        assert {(row[1], row[3]) for row in found} == set(rows), "not in the table"
        SCENARIOS[scenario.__name__] = scenario, found
        return scenario

    return note


async def phase(metal: Estate, name: str = "m") -> str:
    return str((await metal.status(name)).get("phase"))


async def reason(metal: Estate, condition: str, name: str = "m") -> str:
    return (await metal.condition(name, condition))[1]


@brings_about(
    ("InventoryAllocated", "WaitingForClusterInfrastructure"),
    ("InventoryAllocated", "PoolMissing"),
    ("InventoryAllocated", "PoolInvalid"),
    ("InventoryAllocated", "PoolExhausted"),
    ("InventoryAllocated", "Allocated"),
)
async def a_host_is_waited_for(metal: Estate) -> None:
    await metal.cluster()
    await metal.patch(CLUSTER, "c", {"status": {"initialization": {"infrastructureProvisioned": False}}}, subresource="status")
    await metal.machine("m", data=None)
    await metal.reconcile("m")
    assert await phase(metal) == "Pending"
    await metal.patch(CLUSTER, "c", {"status": {"initialization": {"infrastructureProvisioned": True}}}, subresource="status")
    await metal.reconcile("m")
    assert await reason(metal, "InventoryAllocated") == "PoolMissing"
    await metal.pool(cluster="other")
    await metal.reconcile("m")
    assert await reason(metal, "InventoryAllocated") == "PoolInvalid"
    await metal.client.delete(MACHINE_INVENTORY_POOL, "pool", NS)
    await metal.pool("rack-1")
    await metal.reconcile("m")
    _, why, message = await metal.condition("m", "InventoryAllocated")
    assert (why, await phase(metal)) == ("PoolExhausted", "Pending")
    assert "rack-1: there is no such MachineInventory" in message
    await metal.host("rack-1")
    await metal.reconcile("m")
    assert await phase(metal) == "Allocated"


@brings_about(("InventoryAllocated", "InventoryLost"))
async def a_host_is_lost(metal: Estate) -> None:
    await a_node(metal)
    await metal.client.delete(MACHINE_INVENTORY, "rack-1", NS)
    await metal.reconcile("m")
    assert await phase(metal) == "Failed"
    assert "failureReason" not in await metal.status("m")
    # What to do: delete the Machine.  There is no host to clean.
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")
    assert await metal.find(BAREMETAL_MACHINE, "m") is None


async def a_host(metal: Estate) -> None:
    await metal.cluster()
    await metal.host("rack-1")
    await metal.pool("rack-1")


async def a_node(metal: Estate) -> None:
    await a_host(metal)
    await metal.machine("m")
    await metal.becomes_a_node("m", "rack-1")
    assert await phase(metal) == "Running"


@brings_about(
    ("BootstrapReady", "BootstrapWaiting"),
    ("BootstrapReady", "BootstrapInvalid"),
    ("BootstrapReady", "BootstrapTokenExpired"),
    ("BootstrapReady", "BootstrapReady"),
)
async def bootstrap_data_is_waited_for(metal: Estate) -> None:
    await a_host(metal)
    await metal.machine("m", data=None)
    await metal.reconcile("m")
    assert await reason(metal, "BootstrapReady") == "BootstrapWaiting"
    await metal.patch(MACHINE, "m", {"spec": {"bootstrap": {"dataSecretName": "m-data"}}})
    await metal.reconcile("m")
    assert await reason(metal, "BootstrapReady") == "BootstrapWaiting"
    await metal.data("m", "#cloud-config\nwrite_files: [\n")
    await metal.reconcile("m")
    assert await reason(metal, "BootstrapReady") == "BootstrapInvalid"
    await metal.client.delete(SECRET, "m-data", NS)
    await metal.data("m", USER_DATA)
    await metal.token(lives=timedelta(seconds=-1))
    await metal.reconcile("m")
    assert await reason(metal, "BootstrapReady") == "BootstrapTokenExpired"
    await metal.client.delete(SECRET, "bootstrap-token-abcdef", "kube-system")
    await metal.reconcile("m")
    assert await reason(metal, "BootstrapReady") == "BootstrapTokenExpired"
    assert await metal.plan_type("rack-1") == ""
    await metal.token()
    await metal.reconcile("m")
    assert await metal.plan_type("rack-1") == "reprovision"


@brings_about(
    ("ImageResolved", "ImageCatalogMiss"),
    ("ImageResolved", "ImageCatalogInvalid"),
    ("ImageResolved", "ImageRegistryMissing"),
    ("ImageResolved", "ImageResolved"),
)
async def an_image_is_looked_for(metal: Estate) -> None:
    await metal.cluster(annotated=False)
    await metal.host("rack-1")
    await metal.pool("rack-1")
    await metal.patch(CONFIG_MAP, CATALOG_NAME, {"data": {VERSION: None}})
    await metal.machine("m")
    await metal.reconcile("m")
    assert (await phase(metal), await reason(metal, "ImageResolved")) == ("Failed", "ImageCatalogMiss")
    assert "failureReason" not in await metal.status("m"), "it goes away with an edit of the catalog"
    await metal.patch(CONFIG_MAP, CATALOG_NAME, {"data": CATALOG})
    await metal.reconcile("m")
    assert (await phase(metal), await reason(metal, "ImageResolved")) == ("Failed", "ImageRegistryMissing")
    await metal.patch(CLUSTER, "c", {"metadata": {"annotations": {"cpaas.io/registry-address": REGISTRY}}})
    await metal.patch(CONFIG_MAP, CATALOG_NAME, {"data": {VERSION: "no image at all"}})
    await metal.reconcile("m")
    assert (await phase(metal), await reason(metal, "ImageResolved")) == ("Failed", "ImageCatalogInvalid")
    assert await metal.plan_type("rack-1") == ""
    await metal.patch(CONFIG_MAP, CATALOG_NAME, {"data": CATALOG})
    await metal.reconcile("m")
    assert (await phase(metal), await metal.plan_type("rack-1")) == ("Reprovisioning", "reprovision")


@brings_about(
    ("BootstrapReady", "WorkloadClusterUnreachable"),
    ("PlanApplied", "WorkloadClusterUnreachable"),
    ("NodeJoined", "WorkloadClusterUnreachable"),
)
async def the_workload_cluster_does_not_answer(metal: Estate) -> None:
    await a_host(metal)
    kubeconfig = (await metal.get(SECRET, "c-kubeconfig"))["data"]
    await metal.client.delete(SECRET, "c-kubeconfig", NS)
    await metal.machine("m")
    await metal.reconcile("m")
    assert await reason(metal, "BootstrapReady") == "WorkloadClusterUnreachable"
    await metal.client.delete(SECRET, "m-data", NS)
    await metal.data("m", NO_TOKEN)
    await metal.reconcile("m")
    assert await reason(metal, "PlanApplied") == "WorkloadClusterUnreachable"
    assert await metal.plan_type("rack-1") == ""
    await metal.create(SECRET, "c-kubeconfig", data=kubeconfig)
    await metal.reconcile("m")
    await metal.applies("rack-1")
    await metal.client.delete(SECRET, "c-kubeconfig", NS)
    metal.process()
    await metal.reconcile("m")
    assert await metal.condition("m", "NodeJoined") == (
        "Unknown",
        "WorkloadClusterUnreachable",
        "there is no connection to the workload cluster metal/c: it was not asked yet",
    )
    await metal.create(SECRET, "c-kubeconfig", data=kubeconfig)
    await metal.joins("rack-1")
    await metal.reconcile("m")
    assert await phase(metal) == "Running"


@brings_about(
    ("PlanApplied", "PlanSecretMissing"),
    ("PlanApplied", "OldNodeRemains"),
    ("PlanApplied", "PlanPending"),
    ("PlanApplied", "PlanRunning"),
    ("PlanApplied", "HostSilent"),
    ("PlanApplied", "PlanApplied"),
)
async def a_plan_is_written_and_waited_for(metal: Estate) -> None:
    await a_host(metal)
    await metal.machine("m", data=None)
    await metal.reconcile("m")
    secret = await metal.get(SECRET, "rack-1")
    await metal.client.delete(SECRET, "rack-1", NS)
    await metal.patch(MACHINE, "m", {"spec": {"bootstrap": {"dataSecretName": "m-data"}}})
    await metal.data("m", USER_DATA)
    await metal.reconcile("m")
    assert await reason(metal, "PlanApplied") == "PlanSecretMissing"
    await metal.create(SECRET, "rack-1", data=secret["data"])
    await metal.joins("rack-1", boot_id="of-somebody-else")
    await metal.reconcile("m")
    assert await reason(metal, "PlanApplied") == "OldNodeRemains"
    assert await metal.plan_type("rack-1") == ""
    await metal.client.delete(NODE, "rack-1")
    await metal.reconcile("m")
    assert await reason(metal, "PlanApplied") == "PlanPending"
    await metal.begins("rack-1")
    await metal.reconcile("m")
    assert await reason(metal, "PlanApplied") == "PlanRunning"
    await metal.fails("rack-1", "the registry does not answer", times=1)
    await metal.reconcile("m")
    assert (await metal.condition("m", "PlanApplied"))[1:] == (
        "PlanRunning",
        "the host works on the plan, after 1 failed attempts: upgrade-system: the registry does not answer",
    )
    metal.later(minutes=31)
    await metal.reconcile("m")
    assert await reason(metal, "PlanApplied") == "HostSilent"
    await metal.patch(SECRET, "rack-1", {"data": {"failed-checksum": ""}})
    await metal.applies("rack-1")
    await metal.reconcile("m")
    assert await metal.condition("m", "PlanApplied") == ("True", "PlanApplied", "")


@brings_about(("PlanApplied", "PlanEdited"))
async def a_plan_is_changed_by_hand(metal: Estate) -> None:
    await a_host(metal)
    await metal.machine("m")
    await metal.reconcile("m")
    ours = await metal.plan("rack-1")
    await metal.patch(SECRET, "rack-1", {"data": {"plan": b64encode(b'{"files":[]}').decode()}})
    await metal.reconcile("m")
    assert await reason(metal, "PlanApplied") == "PlanEdited"
    await metal.applies("rack-1")
    await metal.reconcile("m")
    assert (await metal.plan("rack-1"), await reason(metal, "PlanApplied")) == (ours, "PlanPending")


@brings_about(("PlanApplied", "HostBusy"))
async def a_host_works_on_another_plan(metal: Estate) -> None:
    await a_host(metal)
    await metal.machine("m", data=None)
    await metal.reconcile("m")
    await metal.patch(SECRET, "rack-1", {"data": {"applied-checksum": ""}})
    await metal.reconcile("m")
    assert (await phase(metal), await reason(metal, "PlanApplied")) == ("Allocated", "HostBusy")


@brings_about(
    ("PlanApplied", "PlanFailed"), ("HostCleaned", "Cleaning"), ("HostCleaned", "CleanFailed"), ("HostCleaned", "CleanDeadlineExceeded")
)
async def plans_fail(metal: Estate) -> None:
    await a_host(metal)
    await metal.machine("m")
    await metal.reconcile("m")
    await metal.fails("rack-1", "elemental upgrade ended with 18")
    await metal.reconcile("m")
    _, why, message = await metal.condition("m", "PlanApplied")
    assert (why, "elemental upgrade ended with 18" in message, await phase(metal)) == ("PlanFailed", True, "Failed")
    assert (await metal.status("m"))["failureReason"] == "PlanFailed", "nothing but a new Machine helps"
    assert (await metal.annotations("rack-1"))["allocation-state"] == "Unavailable"
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")
    assert (await phase(metal), await reason(metal, "HostCleaned")) == ("Preparing", "Cleaning")
    metal.later(minutes=31)
    await metal.reconcile("m")
    assert await reason(metal, "HostCleaned") == "CleanDeadlineExceeded"
    await metal.fails("rack-1", "these containers do not end")
    await metal.reconcile("m")
    _, why, message = await metal.condition("m", "HostCleaned")
    assert (why, "these containers do not end" in message, await phase(metal)) == ("CleanFailed", True, "Failed")
    assert await reason(metal, "PlanApplied") == "PlanFailed"
    assert (await metal.annotations("rack-1"))["allocation-state"] == "Unavailable"
    await metal.patch(BAREMETAL_MACHINE, "m", {"metadata": {"annotations": {"slipway.io/retry-clean": ""}}})
    await metal.reconcile("m")
    assert (await metal.annotations("rack-1"))["allocation-state"] == "Preparing"
    await metal.applies("rack-1")
    await metal.says("rack-1", clean=False)
    await metal.reconcile("m")
    _, why, message = await metal.condition("m", "HostCleaned")
    assert (why, "says that its kubelet would start again" in message) == ("CleanFailed", True)
    assert (await metal.annotations("rack-1"))["allocation-state"] == "Unavailable"
    await metal.says("rack-1", clean=True)
    await metal.reconcile("m")
    assert await metal.find(BAREMETAL_MACHINE, "m") is None
    assert await metal.annotations("rack-1") == {"pool": "pool", "allocation-state": "Available"}


@brings_about(
    ("NodeJoined", "WaitingForNode"),
    ("NodeJoined", "JoinDeadlineExceeded"),
    ("NodeJoined", "NodeVersionDiffers"),
    ("NodeJoined", "NodeJoined"),
    ("NodeJoined", "NodeGone"),
)
async def a_node_is_waited_for(metal: Estate) -> None:
    await a_host(metal)
    await metal.machine("m")
    await metal.reconcile("m")
    await metal.applies("rack-1", "all went well")
    await metal.reconcile("m")
    metal.later(minutes=19)
    await metal.reconcile("m")
    assert await reason(metal, "NodeJoined") == "WaitingForNode"
    metal.later(minutes=2)
    await metal.reconcile("m")
    _, why, message = await metal.condition("m", "NodeJoined")
    assert (why, await phase(metal)) == ("JoinDeadlineExceeded", "Failed")
    assert "cloud-init-output.log" in message
    assert "upgrade-system: all went well" in message
    assert "failureReason" not in await metal.status("m"), "it may still join"
    await metal.joins("rack-1", version="v1.33.0")
    await metal.reconcile("m")
    assert (await reason(metal, "NodeJoined"), await phase(metal)) == ("NodeVersionDiffers", "Failed")
    await metal.joins("rack-1")
    await metal.reconcile("m")
    assert await phase(metal) == "Running"
    await metal.client.delete(NODE, "rack-1")
    await metal.reconcile("m")
    assert (await reason(metal, "NodeJoined"), await phase(metal)) == ("NodeGone", "Running")
    assert (await metal.status("m"))["initialization"] == {"provisioned": True}
    await metal.joins("rack-1")
    await metal.reconcile("m")
    assert await reason(metal, "NodeJoined") == "NodeJoined"


@brings_about(
    ("BootstrapReady", "NetworkDeviceIsSlave"),
    ("BootstrapReady", "InvalidLoadBalancer"),
    ("BootstrapReady", "AddressOfAHost"),
    ("BootstrapReady", "VirtualRouterIDInUse"),
    ("BootstrapReady", "PeersUnknown"),
    ("VIPReady", "InvalidLoadBalancer"),
    ("VIPReady", "AddressOfAHost"),
    ("VIPReady", "VirtualRouterIDInUse"),
    ("VIPReady", "PeersUnknown"),
    ("VIPReady", "WaitingForControlPlane"),
    ("VIPReady", "APINotReachable"),
    ("VIPReady", "PeersPublished"),
)
async def a_virtual_address_is_set_up(metal: Estate) -> None:
    await metal.create(
        BAREMETAL_CLUSTER, "a-older", spec={"controlPlaneLoadBalancer": {"host": "10.0.0.99", "type": "Internal", "vrid": 51}}
    )
    await metal.cluster()
    for name in ("rack-1", "rack-2"):
        await metal.host(name)
    await metal.pool("rack-1", "rack-2")
    await metal.machine("m", control_plane=True)

    async def both(why: str) -> None:
        await metal.reconcile("m")
        await metal.reconcile("c", metal.alive)
        assert await reason(metal, "BootstrapReady") == why
        assert (await metal.condition("c", "VIPReady", BAREMETAL_CLUSTER))[1] == why
        assert await metal.plan_type("rack-1") == ""

    async def balancer(**fields: object) -> None:
        await metal.patch(BAREMETAL_CLUSTER, "c", {"spec": {"controlPlaneLoadBalancer": fields}})

    await both("VirtualRouterIDInUse")
    await balancer(vrid=None)
    await both("InvalidLoadBalancer")
    await balancer(vrid=52, host="10.0.0.12")
    await both("AddressOfAHost")
    await balancer(host=VIP)
    interfaces = (await metal.get(MACHINE_INVENTORY, "rack-1"))["spec"]["observedNetwork"]["interfaces"]
    for name in ("rack-1", "rack-2"):
        await metal.patch(MACHINE_INVENTORY, name, {"spec": {"observedNetwork": {"interfaces": []}}})
    await both("PeersUnknown")
    for name in ("rack-1", "rack-2"):
        mine = [{**interfaces[0], "addresses": [f"10.0.0.1{name[-1]}/24"]}]
        await metal.patch(MACHINE_INVENTORY, name, {"spec": {"observedNetwork": {"interfaces": mine}}})
    await metal.patch(MACHINE_INVENTORY, "rack-1", {"spec": {"observedNetwork": {"interfaces": [{**interfaces[0], "master": "bond0"}]}}})
    await metal.reconcile("m")
    assert await reason(metal, "BootstrapReady") == "NetworkDeviceIsSlave"
    await metal.patch(MACHINE_INVENTORY, "rack-1", {"spec": {"observedNetwork": {"interfaces": interfaces}}})
    await metal.reconcile("m")
    assert await metal.plan_type("rack-1") == "reprovision"

    async def vip_reason() -> str:
        await metal.reconcile("c", metal.alive)
        return (await metal.condition("c", "VIPReady", BAREMETAL_CLUSTER))[1]

    assert await vip_reason() == "PeersPublished"
    condition = (await metal.get(CLUSTER, "c"))["status"]["conditions"][0]
    await metal.patch(CLUSTER, "c", {"status": {"conditions": [{**condition, "status": "False"}]}}, subresource="status")
    assert await vip_reason() == "WaitingForControlPlane"
    await metal.patch(CLUSTER, "c", {"status": {"conditions": [condition]}}, subresource="status")
    await metal.client.delete(SECRET, "c-kubeconfig", NS)
    metal.process()
    assert await vip_reason() == "APINotReachable"


@brings_about(
    ("MembersValid", "MembersValid"),
    ("MembersValid", "MemberMissing"),
    ("MembersValid", "MemberDuplicate"),
    ("MembersValid", "MemberInOtherPool"),
    ("MembersValid", "MemberUnsupported"),
    ("MembersValid", "MemberOrphaned"),
    ("MembersValid", "SelectorInvalid"),
    ("MembersValid", "MemberNotClean"),
    ("Ready", "PoolReady"),
    ("Ready", "PoolEmpty"),
    ("Ready", "MembersInvalid"),
)
async def pools_are_checked(metal: Estate) -> None:
    await metal.cluster()
    await metal.pool()

    async def members(*hosts: str) -> str:
        await metal.patch(MACHINE_INVENTORY_POOL, "pool", {"spec": {"machineInventories": [{"name": host} for host in hosts]}})
        await metal.reconcile("pool", metal.pools, times=2)
        return (await metal.condition("pool", "MembersValid", MACHINE_INVENTORY_POOL))[1]

    await members()
    assert (await metal.condition("pool", "Ready", MACHINE_INVENTORY_POOL))[1] == "PoolEmpty"
    assert await members("rack-1") == "MemberMissing"
    await metal.host("rack-1")
    assert await members("rack-1") == "MembersValid"
    assert await members("rack-1", "rack-1") == "MemberDuplicate"
    await metal.host("rack-2")
    await metal.pool("rack-2", name="other")
    await metal.reconcile("other", metal.pools)
    assert await members("rack-1", "rack-2") == "MemberInOtherPool"
    await metal.host("rack-3", storage={"volumes": [{"name": "data"}]})
    assert await members("rack-3") == "MemberUnsupported"
    unclear = {"matchExpressions": [{"key": "role", "operator": "In"}]}
    await metal.patch(MACHINE_INVENTORY_POOL, "pool", {"spec": {"selector": unclear}})
    assert await members("rack-1") == "SelectorInvalid"
    await metal.patch(MACHINE_INVENTORY_POOL, "pool", {"spec": {"selector": None}})
    assert await members("rack-1") == "MembersValid"

    await members("rack-1")
    await metal.machine("m")
    await metal.becomes_a_node("m", "rack-1")
    await metal.patch(BAREMETAL_MACHINE, "m", {"metadata": {"finalizers": None}})
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    assert await members("rack-1") == "MemberOrphaned"
    _, _, message = await metal.condition("pool", "MembersValid", MACHINE_INVENTORY_POOL)
    command = message.partition("kubectl annotate machineinventory rack-1 ")[2].split()
    changes = {name.rstrip("-"): None if name.endswith("-") else value for name, _, value in (each.partition("=") for each in command)}
    await metal.patch(MACHINE_INVENTORY, "rack-1", {"metadata": {"annotations": changes}})
    assert await members("rack-1") == "MembersValid"
    assert await metal.plan_type("rack-1") == "clean"
    await metal.applies("rack-1")
    await members("rack-1")
    assert await metal.annotations("rack-1") == {"pool": "pool", "allocation-state": "Available"}

    await metal.says("rack-1", clean=False)
    assert await members("rack-1") == "MemberNotClean"
    _, _, message = await metal.condition("pool", "MembersValid", MACHINE_INVENTORY_POOL)
    name, _, value = message.partition("kubectl annotate --overwrite machineinventory rack-1 ")[2].partition("=")
    await metal.patch(MACHINE_INVENTORY, "rack-1", {"metadata": {"annotations": {name: value}}})
    await members("rack-1")
    await metal.applies("rack-1")
    await metal.says("rack-1", clean=True)
    assert await members("rack-1") == "MembersValid"
    assert await metal.annotations("rack-1") == {"pool": "pool", "allocation-state": "Available"}


@brings_about(("InventoryAllocated", "WaitingForSameHost"))
async def the_same_host_is_waited_for(metal: Estate) -> None:
    await metal.cluster()
    await metal.host("rack-1")
    await metal.host("rack-2")
    await metal.pool("rack-2", "rack-1")
    # So that the spare comes first in the pool's order.
    await metal.patch(MACHINE_INVENTORY, "rack-2", {"metadata": {"annotations": {"baremetal.alauda.io/allocation-state": "Unavailable"}}})
    await metal.machine("m", deployment="workers", allocationPolicy="PreferSame")
    await metal.becomes_a_node("m", "rack-1")
    await metal.patch(MACHINE_INVENTORY, "rack-2", {"metadata": {"annotations": {"baremetal.alauda.io/allocation-state": "Available"}}})
    await metal.client.delete(BAREMETAL_MACHINE, "m", NS)
    await metal.reconcile("m")
    for name in ("n", "late"):
        await metal.machine(name, deployment="workers", allocationPolicy="PreferSame")
        await metal.reconcile(name)
        assert await reason(metal, "InventoryAllocated", name) == "WaitingForSameHost"
    metal.later(minutes=31)
    await metal.reconcile("late")
    assert (await metal.status("late"))["machineInventoryRef"]["name"] == "rack-2", "nobody waits for ever"
    await metal.applies("rack-1")
    await metal.reconcile("m")
    await metal.reconcile("n")
    assert (await metal.status("n"))["machineInventoryRef"]["name"] == "rack-1"


@brings_about(("EndpointReady", "EndpointReady"), ("EndpointReady", "EndpointMissing"), ("EndpointReady", "EndpointConflict"))
async def an_endpoint_is_filled_in(metal: Estate) -> None:
    await metal.cluster()
    await metal.patch(BAREMETAL_CLUSTER, "c", {"spec": {"controlPlaneLoadBalancer": None}})

    async def why() -> str:
        await metal.reconcile("c", metal.clusters)
        return (await metal.condition("c", "EndpointReady", BAREMETAL_CLUSTER))[1]

    assert await why() == "EndpointMissing"
    await metal.patch(BAREMETAL_CLUSTER, "c", {"spec": {"controlPlaneLoadBalancer": {"host": VIP, "type": "External"}}})
    assert await why() == "EndpointReady"
    await metal.patch(BAREMETAL_CLUSTER, "c", {"spec": {"controlPlaneLoadBalancer": {"host": "10.0.0.7"}}})
    assert await why() == "EndpointConflict"
    found = await metal.get(BAREMETAL_CLUSTER, "c")
    assert found["spec"]["controlPlaneEndpoint"] == {"host": VIP, "port": 6443}, "it never changes"
    assert found["status"]["initialization"] == {"provisioned": True}


@brings_about(("RolloutGuarded", "NotLookedYet"), ("RolloutGuarded", "NoObjection"), ("RolloutGuarded", "RolloutObjection"))
async def a_rollout_is_guarded(metal: Estate) -> None:
    await metal.cluster()
    guard = RolloutGuardReconciler(metal.client, metal.cache, clock=lambda: metal.now)

    async def why() -> str:
        await metal.reconcile("c", guard)
        return (await metal.condition("c", "RolloutGuarded", BAREMETAL_CLUSTER))[1]

    assert await why() == "NotLookedYet", "nobody serves control planes"
    for crd in (preserving_crd(KUBEADM_CONTROL_PLANE), preserving_crd(MACHINE_DEPLOYMENT), lean_crd(BAREMETAL_MACHINE_TEMPLATE)):
        await metal.client.create(CUSTOM_RESOURCE_DEFINITION, crd)
    metal.process()
    guard = RolloutGuardReconciler(metal.client, metal.cache, clock=lambda: metal.now)
    await metal.cache.list(KUBEADM_CONTROL_PLANE, NS)
    await metal.pool("a", "b")
    template = {"template": {"spec": {"machineInventoryPoolRef": {"name": "pool"}}}}
    await metal.create(BAREMETAL_MACHINE_TEMPLATE, "w", spec=template)
    content = workers(VERSION)
    await metal.create(MACHINE_DEPLOYMENT, "md", spec=content["spec"])
    await metal.settle((*KINDS, MACHINE_DEPLOYMENT, BAREMETAL_MACHINE_TEMPLATE))
    assert await why() == "NoObjection"

    surging = {"spec": {"rollout": {"strategy": {"rollingUpdate": {"maxSurge": 1}}}}}
    await metal.patch(MACHINE_DEPLOYMENT, "md", surging)
    await metal.settle((MACHINE_DEPLOYMENT,))
    assert await why() == "RolloutObjection"
    conditions = (await metal.get(BAREMETAL_CLUSTER, "c"))["status"]["conditions"]
    assert "raise maxUnavailable" in next(each["message"] for each in conditions if each["type"] == "RolloutGuarded")
    surging["spec"]["rollout"]["strategy"]["rollingUpdate"]["maxSurge"] = 0
    await metal.patch(MACHINE_DEPLOYMENT, "md", surging)
    await metal.settle((MACHINE_DEPLOYMENT,))
    assert await why() == "NoObjection"

    await metal.patch(CONFIG_MAP, CATALOG_NAME, {"data": {VERSION: None, "1.34.5": CATALOG[VERSION]}})
    await metal.settle((CONFIG_MAP,))
    assert await why() == "RolloutObjection", "the catalog is read again"


@brings_about(
    ("ImagesStaged", "NothingToStage"),
    ("ImagesStaged", "ImageUnknown"),
    ("ImagesStaged", "Staging"),
    ("ImagesStaged", "StagingFailed"),
    ("ImagesStaged", "AllStaged"),
)
async def images_are_staged_ahead(metal: Estate) -> None:
    staged = await staging.prepared(metal)

    async def why() -> str:
        await staged.look()
        return (await metal.condition("pool", "ImagesStaged", MACHINE_INVENTORY_POOL))[1]

    assert await why() == "NothingToStage"
    await metal.patch(MACHINE_DEPLOYMENT, "md", {"spec": {"template": {"spec": {"version": staging.NEXT}}}})
    assert await why() == "ImageUnknown"
    await metal.patch(CONFIG_MAP, CATALOG_NAME, {"data": {staging.NEXT: "elsewhere.example.com/os:2"}})
    assert await why() == "Staging"
    await staged.tells("rack-1", "Failed", "no room")
    assert await why() == "StagingFailed"
    await staged.tells("rack-1", "Staged")
    assert await why() == "AllStaged"


@pytest.mark.asyncio
@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_rows_of(name: str, metal: Estate) -> None:
    scenario, rows = SCENARIOS[name]
    await scenario(metal)
    assert rows <= metal.seen, "not brought about"
    unknown = {row for row in metal.seen - TABLE if row[1] != "Paused" and (row[0], row[1]) not in COMMON}
    assert not unknown, "told, and not in the table"


def test_every_row_of_the_table_is_brought_about() -> None:
    assert TABLE - {row for _, rows in SCENARIOS.values() for row in rows} == set()


def test_every_row_says_what_to_do_unless_it_is_well_or_goes_away_by_itself() -> None:
    assert [row for row in REASONS if row.status != "True" and not row.to_do and not row.by_itself] == []


def test_the_reference_is_the_table() -> None:
    text = (Path(__file__).parents[3] / "docs" / "baremetal.md").read_text()
    begin, end = "<!-- reasons: begin -->\n", "<!-- reasons: end -->"
    assert text.partition(begin)[2].partition(end)[0] == reference(), "run: python tools/reasons.py"
