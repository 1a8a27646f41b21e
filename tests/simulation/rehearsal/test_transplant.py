"""What is carried over into a rehearsal, and what is changed about it."""

from __future__ import annotations

from typing import Any

from slipway.api.cluster.kinds import BAREMETAL_CLUSTER, CLUSTER, CONFIG_MAP, MACHINE, NODE, POD, REPLICA_SET
from slipway.simulation.rehearsal import transplant
from slipway.simulation.rehearsal.original import LISTED, Original, belonging
from slipway.simulation.workload.controllers import BUDGET

Manifest = dict[str, Any]
SPACE = "cpaas-system"


def thing(name: str, uid: str = "", spec: Manifest | None = None, **metadata: Any) -> Manifest:
    return {"metadata": {"name": name, "namespace": SPACE, "uid": uid or name, **metadata}, "spec": spec or {}}


def original(*machines: Manifest, **workload: list[Manifest]) -> Original:
    endpoint = {"host": "10.1.0.100", "port": 6443}
    return Original(
        cluster=thing("prod", "u-cluster", {"controlPlaneEndpoint": endpoint}),
        objects={
            MACHINE: machines,
            BAREMETAL_CLUSTER: [
                thing("prod", "u-bmc", {"controlPlaneLoadBalancer": endpoint, "note": "10.1.0.1007 and https://10.1.0.100:6443"})
            ],
        },
        catalog={"v1.35.4": "r/os:1"},
        catalog_place=f"{SPACE}/elemental-image-catalog",
        registry="registry.example.com",
        workload={NODE: workload.get("nodes", []), POD: workload.get("pods", []), REPLICA_SET: workload.get("sets", []), BUDGET: []},
    )


def carried(found: Original) -> dict[tuple[str, str], Manifest]:
    return {(kind.kind, each["metadata"]["name"]): each for kind, each in transplant.management(found, "127.64.0.1")}


def test_the_endpoint_of_the_real_cluster_is_nowhere_left() -> None:
    found = carried(original())
    assert found["Cluster", "prod"]["spec"]["controlPlaneEndpoint"] == {"host": "127.64.0.1", "port": 6443}
    spec = found["BaremetalCluster", "prod"]["spec"]
    assert spec["controlPlaneLoadBalancer"]["host"] == "127.64.0.1"
    assert spec["note"] == "10.1.0.1007 and https://127.64.0.1:6443"


def test_uids_and_times_stay_and_owners_that_stay_behind_go() -> None:
    owners = [{"uid": "u-cluster", "name": "prod", "kind": "Cluster"}, {"uid": "elsewhere", "name": "x", "kind": "ClusterClass"}]
    found = carried(original(thing("m", "u-m", creationTimestamp="2026-01-02T03:04:05Z", ownerReferences=owners)))
    metadata = found["Machine", "m"]["metadata"]
    assert (metadata["uid"], metadata["creationTimestamp"]) == ("u-m", "2026-01-02T03:04:05Z")
    assert [each["uid"] for each in metadata["ownerReferences"]] == ["u-cluster"]


def test_hooks_and_finalizers_of_others_are_left_out_and_told() -> None:
    own = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup"
    theirs = "pre-drain.delete.hook.machine.cluster.x-k8s.io/backup"
    machine = thing("m", annotations={own: "", theirs: "x"}, finalizers=["machine.cluster.x-k8s.io", "example.com/inventory"])
    found = original(machine)
    metadata = carried(found)["Machine", "m"]["metadata"]
    assert (metadata["annotations"], metadata["finalizers"]) == ({own: ""}, ["machine.cluster.x-k8s.io"])
    assert transplant.foreign(found) == ["the finalizer example.com/inventory of machines", f"the hook {theirs} of machines"]


def test_the_registry_and_the_catalog_come_along() -> None:
    found = carried(original())
    assert found["Cluster", "prod"]["metadata"]["annotations"] == {"cpaas.io/registry-address": "registry.example.com"}
    assert found[CONFIG_MAP.kind, "elemental-image-catalog"]["data"] == {"v1.35.4": "r/os:1"}


def test_static_pods_ended_ones_and_those_that_every_cluster_has_are_not_carried() -> None:
    pods = [
        thing("web-1"),
        {**thing("job-1"), "status": {"phase": "Succeeded"}},
        thing("etcd-host-1", annotations={"kubernetes.io/config.mirror": "x"}),
        {**thing("coredns-x", ownerReferences=[{"name": "coredns-5f", "uid": "c"}]), "kind": "Pod"},
    ]
    pods[-1]["metadata"]["namespace"] = "kube-system"
    sets = [thing("web", spec={"replicas": 2}), thing("web-old", spec={"replicas": 0})]
    found = transplant.workload(original(pods=pods, sets=sets))
    assert sorted(each["metadata"]["name"] for _, each in found) == ["web", "web-1"]


def test_only_what_belongs_to_the_cluster_and_the_hosts_of_its_pools_are_taken() -> None:
    listed: dict[Any, list[Manifest]] = {kind: [] for kind in LISTED}
    kinds = {kind.kind: kind for kind in LISTED}
    listed[MACHINE] = [thing("mine", spec={"clusterName": "prod"}), thing("theirs", spec={"clusterName": "other"})]
    listed[kinds["MachineInventoryPool"]] = [
        thing("pool", spec={"clusterName": "prod", "machineInventories": [{"name": "host-1"}]}),
        thing("other", spec={"clusterName": "other", "machineInventories": [{"name": "host-2"}]}),
    ]
    listed[kinds["MachineInventory"]] = [thing("host-1"), thing("host-2"), thing("host-3")]
    found = belonging(thing("prod", spec={"infrastructureRef": {}, "controlPlaneRef": {}}), listed)
    assert {kind.kind: [each["metadata"]["name"] for each in items] for kind, items in found.items() if items} == {
        "Machine": ["mine"],
        "MachineInventoryPool": ["pool"],
        "MachineInventory": ["host-1"],
    }
    assert CLUSTER not in found
