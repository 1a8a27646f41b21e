"""What the soak asks of a state of rest: one that it lets pass, and for each check one that it does not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slipway.api.cluster.kinds import (
    BAREMETAL_MACHINE,
    CLUSTER,
    KUBEADM_CONFIG,
    MACHINE,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    SECRET,
)
from slipway.simulation.soak.judging import rest
from slipway.simulation.soak.judging.rest import Rest, Wanted
from slipway.simulation.soak.judging.snapshot import ClusterTruth, EtcdTruth, HostTruth, Snapshot, Truth

Manifest = dict[str, Any]
LABELS = {"cluster.x-k8s.io/cluster-name": "one"}
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def owned(kind: str, name: str) -> list[Manifest]:
    return [{"kind": kind, "name": name, "uid": f"{kind}-{name}"}]


def machine(name: str, *, control_plane: bool = False, **more: Any) -> Manifest:
    labels = {**LABELS, **({"cluster.x-k8s.io/control-plane": ""} if control_plane else {})}
    return {
        "metadata": {"name": name, "labels": labels, "uid": f"Machine-{name}", "ownerReferences": owned("Cluster", "one")},
        "spec": {"version": "v1.35.4"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        **more,
    }


def bare(name: str, host: str, phase: str = "Running") -> Manifest:
    return {
        "metadata": {"name": name, "labels": LABELS, "uid": f"BaremetalMachine-{name}", "ownerReferences": owned("Machine", name)},
        "status": {"phase": phase, "machineInventoryRef": {"name": host}},
    }


def inventory(name: str, state: str, owner: str = "") -> Manifest:
    annotations = {"baremetal.alauda.io/allocation-state": state}
    if owner:
        annotations["baremetal.alauda.io/owner-baremetalmachine"] = owner
    return {"metadata": {"name": name, "annotations": annotations, "uid": f"MachineInventory-{name}"}}


def secret(name: str, type_: str) -> Manifest:
    return {"metadata": {"name": name, "labels": LABELS, "uid": f"Secret-{name}"}, "type": type_}


def standing() -> Rest:
    """A cluster of one control plane and one worker, and a free host."""
    snapshot = Snapshot(
        {
            CLUSTER: {"one": {"metadata": {"name": "one", "uid": "Cluster-one"}}},
            MACHINE: {"p": machine("p", control_plane=True), "w": machine("w")},
            BAREMETAL_MACHINE: {"p": bare("p", "host-1"), "w": bare("w", "host-2")},
            MACHINE_INVENTORY: {
                "host-1": inventory("host-1", "Allocated", "p"),
                "host-2": inventory("host-2", "Allocated", "w"),
                "host-3": inventory("host-3", "Available"),
            },
            MACHINE_INVENTORY_POOL: {
                "pool": {
                    "metadata": {"name": "pool", "uid": "pool"},
                    "spec": {"machineInventories": [{"name": "host-1"}, {"name": "host-2"}, {"name": "host-3"}]},
                    "status": {"total": 3, "allocated": 2, "available": 1},
                }
            },
            SECRET: {
                **{name: secret(name, "elemental.cattle.io/plan") for name in ("host-1", "host-2", "host-3")},
                "one-ca": secret("one-ca", "cluster.x-k8s.io/secret"),
            },
        }
    )
    nodes = {"p": "baremetal:///host-1", "w": "baremetal:///host-2"}
    hosts = {"host-1": HostTruth(kubelet=True), "host-2": HostTruth(kubelet=True), "host-3": HostTruth()}
    truth = Truth(hosts, {"one": ClusterTruth(EtcdTruth(1, 1), nodes)})
    return Rest(snapshot, truth, {"one": Wanted(1, 1, "v1.35.4", "v1.35.4")})


def test_a_cluster_that_is_what_was_asked_for_with_nothing_left_over_is_at_rest() -> None:
    assert rest.broken_at_rest(standing()) == []


def _node_left(found: Rest) -> Rest:
    cluster = found.truth.clusters["one"]
    nodes = {**cluster.nodes, "old": "baremetal:///host-3"}
    return found._replace(truth=found.truth._replace(clusters={"one": cluster._replace(nodes=nodes)}))


def _node_missing(found: Rest) -> Rest:
    cluster = found.truth.clusters["one"]
    return found._replace(truth=found.truth._replace(clusters={"one": cluster._replace(nodes={"p": "baremetal:///host-1"})}))


def _learner(found: Rest) -> Rest:
    cluster = found.truth.clusters["one"]
    return found._replace(truth=found.truth._replace(clusters={"one": cluster._replace(etcd=EtcdTruth(1, 1, learners=1))}))


def _with_host(found: Rest, name: str, host: HostTruth) -> Rest:
    return found._replace(truth=found.truth._replace(hosts={**found.truth.hosts, name: host}))


def _put(kind: Any, name: str, manifest: Manifest | None) -> Callable[[Rest], Rest]:
    def change(found: Rest) -> Rest:
        found.snapshot.put(kind, name, manifest)
        return found

    return change


LEFT = {"metadata": {"name": "left", "labels": LABELS, "uid": "x", "ownerReferences": owned("Machine", "gone")}}
GOING = {"metadata": {"name": "two", "uid": "y", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
COUNTED = {"metadata": {"name": "pool", "uid": "pool"}, "spec": {"machineInventories": [{"name": "host-3"}]}}
DISTURBED: dict[str, tuple[str, Callable[[Rest], Rest]]] = {
    "a worker is of another version": ("stands", lambda found: found._replace(wanted={"one": Wanted(1, 1, "v1.35.4", "v1.34.10")})),
    "a worker is missing": ("stands", lambda found: found._replace(wanted={"one": Wanted(1, 2, "v1.35.4", "v1.35.4")})),
    "a BaremetalMachine has failed": ("stands", _put(BAREMETAL_MACHINE, "w", bare("w", "host-2", "Failed"))),
    "something is deleted and does not go": ("stands", _put(CLUSTER, "two", GOING)),
    "a pool counts a free host as allocated": (
        "counters-are-the-sums",
        _put(MACHINE_INVENTORY_POOL, "pool", {**COUNTED, "status": {"total": 1, "allocated": 1}}),
    ),
    "a KubeadmConfig is of a Machine that is gone": ("no-orphan", _put(KUBEADM_CONFIG, "left", LEFT)),
    "a KubeadmConfig is of nobody": ("no-orphan", _put(KUBEADM_CONFIG, "left", {"metadata": {"name": "left", "uid": "x"}})),
    "a Secret is of a cluster that is gone": (
        "no-orphan",
        _put(SECRET, "two-ca", {"metadata": {"name": "two-ca", "uid": "z"}, "type": "cluster.x-k8s.io/secret"}),
    ),
    "a plan Secret is of a host that is gone": ("no-orphan", _put(SECRET, "host-9", secret("host-9", "elemental.cattle.io/plan"))),
    "a host has no plan Secret": ("no-orphan", _put(SECRET, "host-3", None)),
    "a host is nobody's and is claimed": ("hosts-are-whose", _put(MACHINE_INVENTORY, "host-3", inventory("host-3", "Available", "gone"))),
    "a free host runs a kubelet": ("hosts-are-whose", lambda found: _with_host(found, "host-3", HostTruth(kubelet=True))),
    "a host of a machine is off": ("hosts-are-whose", lambda found: _with_host(found, "host-1", HostTruth(powered=False))),
    "a Node is left of a host that is not the cluster's": ("nodes-are-machines", _node_left),
    "a host of the cluster is no Node": ("nodes-are-machines", _node_missing),
    "etcd has a learner": ("etcd-whole", _learner),
}


@pytest.mark.parametrize("case", DISTURBED)
def test_what_is_not_at_rest_is_told_by_its_check(case: str) -> None:
    name, disturb = DISTURBED[case]
    found = rest.broken_at_rest(disturb(standing()))
    assert name in {each for each, _ in found}
    assert all(broken.text for _, broken in found)


def test_every_check_of_a_rest_has_a_state_that_it_does_not_let_pass() -> None:
    assert {name for name, _ in DISTURBED.values()} == {each.name for each in rest.AT_REST}


def test_objects_that_grow_in_number_from_rest_to_rest_are_told() -> None:
    before, after = {"Secret Opaque": 4, "Machine": 10}, {"Secret Opaque": 5, "Machine": 9, "MachineSet": 2}
    assert [each.objects for each in rest.grown(before, after, {"MachineSet": 2})] == [("Secret Opaque",)]


@pytest.mark.parametrize(
    ("reason", "waits", "told"),
    [
        # It has a way out in the reference of conditions.
        ("PoolExhausted", 100, True),
        # It is on its way, and has been for longer than anything takes.
        ("Nothing", 100, False),
        ("Nothing", 5, True),
    ],
)
def test_who_waits_for_too_long_has_to_say_what_to_do(reason: str, waits: int, told: bool) -> None:
    since = (NOW - timedelta(seconds=waits)).strftime("%Y-%m-%dT%H:%M:%SZ")
    waiting = {"type": "InventoryAllocated", "status": "False", "reason": reason, "message": "why", "lastTransitionTime": since}
    found = {"metadata": {"name": "b", "creationTimestamp": since}, "status": {"phase": "Pending", "conditions": [waiting]}}
    broken = list(rest.says_what_to_do(Snapshot({BAREMETAL_MACHINE: {"b": found}}), NOW, timedelta(seconds=60)))
    assert (broken == []) is told


@pytest.mark.parametrize(("message", "told"), [("drains", True), ("", False)])
def test_a_machine_that_does_not_go_has_to_say_what_it_waits_for(message: str, told: bool) -> None:
    going = {"name": "m", "deletionTimestamp": (NOW - timedelta(seconds=100)).strftime("%Y-%m-%dT%H:%M:%SZ")}
    found = {"metadata": going, "status": {"conditions": [{"type": "Deleting", "status": "True", "message": message}]}}
    broken = list(rest.says_what_to_do(Snapshot({MACHINE: {"m": found}}), NOW, timedelta(seconds=60)))
    assert (broken == []) is told
