"""The way back from the loss of every control plane, on lab hosts: a snapshot, hosts that are gone for good, and a restore."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.baremetal import NAME, Baremetal, Shape, baremetal, condition
from e2e.baremetalmanifests import NAMESPACE
from e2e.nodes import real_hosts
from support.ports import free_port

from slipway.fleet.snapshots.hostscript import BUMP

pytestmark = real_hosts
VERSION = "v1.35.4"
PATIENCE = 1200


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Baremetal]:
    """A control plane of one with a spare host in its pool, and a worker."""
    with baremetal(tmp_path_factory.mktemp("restore"), "keelrs", Shape(1, 1, 2, 1), VERSION) as made:
        made.make_cluster(VERSION, VERSION)
        made.wait_for_cluster(VERSION, VERSION)
        yield made


def slipway(fleet: Baremetal, *words: str, patience: float = 120) -> str:
    where = (f"--namespace={NAMESPACE}", f"--kubeconfig={fleet.plane.kubeconfig}")
    command = [sys.executable, "-m", "slipway", "fleet", *words, *where]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patience, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_cluster_whose_control_planes_are_all_lost_comes_back_with_its_data(fleet: Baremetal, tmp_path: Path) -> None:
    store = tmp_path / "backup"
    assert fleet.workload("create", "configmap", "kept", "--from-literal=said=before") != ""
    taken = json.loads(slipway(fleet, "snapshot", NAME, f"--to={store}", "-o", "json"))
    (listed,) = json.loads(slipway(fleet, "snapshots", NAME, f"--from={store}", "-o", "json"))["snapshots"]
    assert (listed["name"], listed["kubernetesVersion"]) == (taken["name"], VERSION)
    assert fleet.workload("create", "configmap", "lost", "--from-literal=said=after") != ""
    ((_, dead),) = fleet.control_planes().items()
    ((_, worker),) = fleet.workers().items()
    ((before, _),) = [
        (node["metadata"]["name"], node) for node in fleet.nodes() or () if "control-plane" in str(node["metadata"]["labels"])
    ]

    fleet.lab.run("host", "power-off", dead)
    fleet.plane.until("the API server is gone", lambda: not fleet.nodes(), 120)
    serve = f"{fleet.prefix}.1:{free_port()}"
    told = slipway(fleet, "restore", NAME, f"--from={store}", f"--serve={serve}", "--hosts-lost", "--yes", "-o", "json", patience=PATIENCE)
    stages = [json.loads(line)["stage"] for line in told.splitlines()]
    print(told)
    assert stages[0] == "giving-up"
    assert stages[-1] == "done"
    assert "fetching" in stages

    def is_back() -> bool:
        nodes = fleet.nodes() or []
        return len(nodes) == 2 and all(condition(node, "Ready") == "True" for node in nodes)

    fleet.plane.until("both Nodes are ready", is_back, 600)
    assert json.loads(fleet.workload("get", "configmap", "kept", "-o", "json"))["data"] == {"said": "before"}
    assert fleet.workload("get", "configmap", "lost", "--ignore-not-found") == ""
    # Another host, and what the snapshot knew of the lost one is tidied up; the worker went through it.
    ((_, new),) = fleet.control_planes().items()
    assert new != dead
    nodes = {node["metadata"]["name"] for node in fleet.nodes() or ()}
    assert before not in nodes
    assert list(fleet.workers().values()) == [worker]
    # Revisions went up, so that the worker's kubelet does not wait for those that it has seen.
    after = json.loads(fleet.workload("create", "configmap", "next", "-o", "json"))
    assert int(after["metadata"]["resourceVersion"]) > BUMP
    plane = fleet.object("kubeadmcontrolplane", f"{NAME}-control-plane")
    assert "slipway.io/restore" not in plane["metadata"].get("annotations", {})
    assert [secret["metadata"]["name"] for secret in fleet.items("secrets") if secret["type"] == "slipway.io/restore"] == []
    # The dead host is kept out until its agent proves it clean.
    inventory = next(name for name, host in fleet.hosts.items() if host == dead)
    assert "slipway.io/quarantined-by" in fleet.object("machineinventory", inventory)["metadata"].get("annotations", {})


def test_the_restored_cluster_runs_new_pods_on_its_worker(fleet: Baremetal) -> None:
    """The scheduler, the controllers and the kubelet of before work with what was restored."""
    image = next(iter(fleet.image_tags("daemonset", "kube-proxy")))
    assert image == VERSION
    fleet.workload("-n", "kube-system", "rollout", "restart", "deployment/coredns")
    status = fleet.workload("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=5s")

    def is_rolled() -> bool:
        return "successfully rolled out" in fleet.workload("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=5s")

    if "successfully rolled out" not in status:
        fleet.plane.until("CoreDNS is rolled", is_rolled, 300)
