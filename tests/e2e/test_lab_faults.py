"""What befalls real hosts in the middle of a rollout: provoked in the lab, told, and come out of, as docs/faults.md says.

Agents that are killed and power that is cut in the instructions of a worker's plans are in test_baremetal.py, the virtual address in
test_vip.py.  What cannot be done to a host of the lab is done to simulated ones: it has no clock of its own, and has every layer already.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from e2e.baremetal import NAME, Baremetal, Shape, baremetal
from e2e.baremetalmanifests import REPOSITORY, Manifest, named, tag
from e2e.nodes import real_hosts
from e2e.planfaults import REPROVISION, Fault, PlanFaults

pytestmark = real_hosts
OLD, NEW = "v1.34.10", "v1.35.4"
MACHINES = "baremetalmachines.infrastructure.cluster.x-k8s.io"
STATE, QUARANTINE = "baremetal.alauda.io/allocation-state", "slipway.io/quarantined-by"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Baremetal]:
    """One control plane, and one worker whose pool has a host more."""
    with baremetal(tmp_path_factory.mktemp("faults"), "reef", Shape(1, 1, 2, 2), OLD, NEW) as made:
        made.add_to_catalog(NEW)
        made.make_cluster(NEW, NEW)
        made.wait_for_cluster(NEW, NEW)
        yield made


def telling(fleet: Baremetal, type_: str, reason: str, *, message: str = "", patience: float = 600) -> Manifest:
    """The BaremetalMachine that says so, once there is one."""

    def found() -> Manifest | None:
        for machine in fleet.items(MACHINES):
            for said in machine.get("status", {}).get("conditions") or ():
                if (said["type"], said["reason"]) == (type_, reason) and message in said["message"]:
                    return dict(machine)
        return None

    machine = fleet.plane.until(f"a machine says {reason}", found, patience)
    assert isinstance(machine, dict)
    return machine


def replace_worker(fleet: Baremetal) -> tuple[str, str]:
    """Delete the Machine of the worker, as a rollout does; its name and its host."""
    ((name, host),) = fleet.workers().items()
    fleet.kubectl("delete", "machine", name, "--wait=false")
    return name, host


def delete_machine_of(fleet: Baremetal, machine: Manifest) -> None:
    fleet.kubectl("delete", "machine", machine["metadata"]["ownerReferences"][0]["name"], "--wait=false")


def annotate(fleet: Baremetal, machine: Manifest, text: str) -> None:
    fleet.kubectl("annotate", MACHINES, machine["metadata"]["name"], text)


def inventory_of(fleet: Baremetal, host: str) -> str:
    return next(name for name, known in fleet.hosts.items() if known == host)


@contextmanager
def flapping(fleet: Baremetal, host: str) -> Iterator[None]:
    """The link of a host is cut and restored, again and again."""
    stop, cuts = threading.Event(), itertools.count()

    def flap() -> None:
        while not stop.is_set():
            fleet.lab.run("host", "cut", host)
            stop.wait(3)
            fleet.lab.run("host", "restore", host)
            next(cuts)
            stop.wait(3)

    with ThreadPoolExecutor(1) as threads:
        flaps = threads.submit(flap)
        try:
            yield
        finally:
            stop.set()
        flaps.result()
    print(f"the link of {host} was cut {next(cuts)} times")


def test_a_host_whose_link_flaps_while_it_works_on_its_plans_becomes_a_node_once(fleet: Baremetal) -> None:
    # The pool gives whichever of its two hosts is first in its order, once the one that is left is clean.
    first, second = (fleet.hosts[each] for each in fleet.pools["worker-pool"])
    with flapping(fleet, first), flapping(fleet, second):
        name, _ = replace_worker(fleet)
        fleet.wait_until_gone([name])
        telling(fleet, "NodeJoined", "WaitingForNode")
    fleet.wait_for_cluster(NEW, NEW)
    ((_, taken),) = fleet.workers().items()
    assert fleet.lab.on(taken, "grep -c 'This node has joined the cluster' /var/log/cloud-init-output.log").strip() == "1"


def test_an_image_whose_digest_the_registry_does_not_have_is_told_and_the_right_one_lets_it_go_on(fleet: Baremetal) -> None:
    wrong = f"{fleet.registry}/{REPOSITORY}@sha256:{'0' * 64}"
    fleet.kubectl("patch", "configmap", "elemental-image-catalog", "--type=merge", f"-p={json.dumps({'data': {NEW: wrong}})}")
    name, _ = replace_worker(fleet)
    failed = telling(fleet, "PlanApplied", "PlanFailed", message="ended with 18")
    right = f"{fleet.registry}/{REPOSITORY}:{tag(NEW)}"
    fleet.kubectl("patch", "configmap", "elemental-image-catalog", "--type=merge", f"-p={json.dumps({'data': {NEW: right}})}")
    delete_machine_of(fleet, failed)
    fleet.wait_until_gone([name, failed["metadata"]["name"]])
    fleet.wait_for_cluster(NEW, NEW)


def test_a_host_whose_disk_is_full_says_so_and_goes_on_once_there_is_room(fleet: Baremetal) -> None:
    """The disk of the agent alone: that of the machine that the lab runs on is left alone."""
    ((_, host),) = fleet.workers().items()
    folder, kept = "/var/lib/elemental/agent", "/run/agent-kept"
    small = f"cp -a {folder} {kept} && mount -t tmpfs -o size=64k tmpfs {folder} && cp -a {kept}/. {folder}"
    fleet.lab.on(host, f"systemctl stop slipway-agent && {small} && systemctl start slipway-agent")
    fleet.lab.on(host, f"dd if=/dev/zero of={folder}/filled bs=4k", check=False)
    name, _ = replace_worker(fleet)
    failed = telling(fleet, "HostCleaned", "CleanFailed", message="No space left on device")
    large = f"rm {folder}/filled && cp -a {folder}/. {kept} && umount {folder} && cp -a {kept}/. {folder}"
    fleet.lab.on(host, f"systemctl stop slipway-agent && {large} && systemctl start slipway-agent")
    annotate(fleet, failed, "slipway.io/retry-clean=")
    fleet.wait_until_gone([name])
    fleet.wait_for_cluster(NEW, NEW)


def test_a_plan_secret_that_is_deleted_while_its_host_works_on_it_costs_time_and_nothing_else(fleet: Baremetal) -> None:
    name, _ = replace_worker(fleet)
    waiting = telling(fleet, "PlanApplied", "PlanRunning")
    inventory = waiting["status"]["machineInventoryRef"]["name"]
    fleet.kubectl("delete", "secret", inventory)
    fleet.wait_until_gone([name])

    def is_running() -> bool:
        machine = fleet.object(MACHINES, waiting["metadata"]["name"])
        return bool(machine.get("status", {}).get("phase") == "Running")

    fleet.plane.until("the worker is a Node", is_running, 900)
    host = fleet.hosts[inventory]
    assert list(fleet.workers().values()) == [host]
    assert fleet.lab.on(host, "grep -c 'This node has joined the cluster' /var/log/cloud-init-output.log").strip() == "1"


def test_a_worker_whose_host_is_dead_is_replaced_from_the_pool_and_its_host_comes_back_only_when_it_is_clean(fleet: Baremetal) -> None:
    ((before, host),) = fleet.workers().items()
    inventory = inventory_of(fleet, host)
    conditions = [{"type": "Ready", "status": "Unknown", "timeout": "20s"}, {"type": "Ready", "status": "False", "timeout": "20s"}]
    selector = {"matchLabels": {"cluster.x-k8s.io/deployment-name": f"{NAME}-workers"}}
    check = {"clusterName": NAME, "selector": selector, "unhealthyConditions": conditions, "nodeStartupTimeout": "30m"}
    fleet.plane.apply({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineHealthCheck", "metadata": named("workers"), "spec": check})
    fleet.lab.run("host", "power-off", host)

    def leaving() -> Manifest | None:
        found = fleet.object(MACHINES, before)
        return found if found.get("metadata", {}).get("deletionTimestamp") else None

    held = fleet.plane.until("the health check has the Machine of the dead host deleted", leaving, 900)
    assert isinstance(held, dict)
    annotate(fleet, held, "slipway.io/force-release=its board burnt")
    fleet.wait_until_gone([before])
    fleet.wait_for_cluster(NEW, NEW)
    assert host not in fleet.workers().values()
    left = fleet.object("machineinventory", inventory)["metadata"]["annotations"]
    assert (left[STATE], left[QUARANTINE]) == ("Unavailable", before)
    nodes = [node["spec"].get("providerID") for node in fleet.nodes() or ()]
    assert f"baremetal:///{inventory}" not in nodes
    given_up = [
        event for event in fleet.items("events") if event["reason"] == "HostGivenUp" and event["involvedObject"]["name"] == inventory
    ]
    assert "its board burnt" in given_up[0]["message"]
    fleet.kubectl("delete", "machinehealthcheck", "workers")

    fleet.lab.run("host", "start", host)

    def is_free() -> bool:
        annotations = fleet.object("machineinventory", inventory)["metadata"]["annotations"]
        return annotations[STATE] == "Available" and QUARANTINE not in annotations

    fleet.plane.until("the host that was mended is free", is_free, 600)
    assert fleet.lab.on(host, "systemctl is-enabled kubelet", check=False).strip() == "masked"
    # containerd is stopped on a clean host, and does not take its containers with it.
    assert fleet.lab.on(host, "cat /proc/[0-9]*/comm | grep -e kubelet -e containerd-shim", check=False) == ""
    assert f"baremetal:///{inventory}" not in [node["spec"].get("providerID") for node in fleet.nodes() or ()]


@pytest.mark.parametrize("fault", ["agent", "power"])
def test_a_control_plane_of_three_keeps_its_quorum_whatever_its_hosts_lose_in_their_plans(tmp_path: Path, fault: Fault) -> None:
    """No spare host: one of three is out while its plan is struck in two instructions, one before and one after the image is switched."""
    with baremetal(tmp_path, f"reef3-{fault[0]}", Shape(3, 0, 3, 0), OLD, NEW) as three:
        three.make_cluster(OLD, OLD)
        three.wait_for_cluster(OLD, OLD)
        three.add_to_catalog(NEW)
        three.upgrade_control_plane(NEW)

        def leaving() -> str | None:
            found = [each for each in three.items(MACHINES) if each["metadata"].get("deletionTimestamp")]
            return three.hosts[found[0]["status"]["machineInventoryRef"]["name"]] if found else None

        # The only host that is free, so that it is the next one as well.
        host = three.plane.until("the first control plane goes", leaving, 600)
        faults = PlanFaults(three.lab.name, str(host))
        for instruction in (REPROVISION[1], REPROVISION[3]):
            assert faults.strike(fault, instruction)
        three.wait_for_cluster(NEW, OLD, 3600)
        assert len(three.holders()) == 1
        assert healthy_members(three) == 3


def healthy_members(fleet: Baremetal) -> int:
    """The etcd members that answer, as the conditions of their Machines say."""
    found = fleet.items("machines.cluster.x-k8s.io")
    told = [said for machine in found for said in machine["status"].get("conditions") or () if said["type"] == "EtcdMemberHealthy"]
    return sum(said["status"] == "True" for said in told)
