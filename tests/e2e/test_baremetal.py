"""Bare-metal clusters on lab hosts: registered by themselves, made of pools, upgraded by replacing every node.

The small one has a control plane of one and is quick; the large one is what the guide for operators describes, and is upgraded
with no spare host and then with some.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.apiprobe import ApiProbe
from e2e.arp import Owners
from e2e.baremetal import NAME, Baremetal, Shape, baremetal, condition
from e2e.baremetalmanifests import TAGS
from e2e.nodes import real_hosts

pytestmark = real_hosts
OLD, NEW, NEWEST = "v1.34.10", "v1.35.4", "v1.36.3"
COLUMNS = {
    "bmm": ["NAME", "POOL", "PHASE", "INVENTORY", "READY", "AGE"],
    "mip": ["NAME", "CLUSTER", "TOTAL", "AVAILABLE", "ALLOCATED", "AGE"],
    "bmc": ["NAME", "ENDPOINT", "READY", "AGE"],
    "bmmt": ["NAME", "POOL", "AGE"],
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Baremetal]:
    """One control plane with a second host in its pool, and one worker of an older version."""
    with baremetal(tmp_path_factory.mktemp("small"), "keel1", Shape(1, 1, 2, 1), OLD, NEW) as fleet:
        fleet.add_to_catalog(NEW)
        fleet.make_cluster(NEW, OLD)
        fleet.wait_for_cluster(NEW, OLD)
        yield fleet


@pytest.mark.smoke
def test_hosts_that_registered_by_themselves_become_a_cluster_behind_its_virtual_address(small: Baremetal) -> None:
    assert small.unsettled(NEW, OLD) == []
    machines = small.in_use()
    assert len(set(machines.values())) == 2
    assert len(small.holders()) == 1
    inventory = small.items("machineinventories")[0]
    row = small.lab.hosts()[small.hosts[inventory["metadata"]["name"]]]
    assert inventory["metadata"]["labels"]["serial"] == row["serial"]
    assert any(row["address"] in "".join(each["addresses"]) for each in inventory["spec"]["observedNetwork"]["interfaces"])
    assert small.object("baremetalcluster", NAME)["spec"]["controlPlaneEndpoint"] == {"host": small.vip, "port": 6443}


@pytest.mark.smoke
@pytest.mark.parametrize("kind", sorted(COLUMNS))
def test_kubectl_shows_the_columns_that_operators_know(small: Baremetal, kind: str) -> None:
    assert small.columns(kind) == COLUMNS[kind]


@pytest.mark.smoke
def test_a_worker_is_replaced_on_the_only_host_that_its_pool_has(small: Baremetal) -> None:
    before = small.in_use()
    small.leave_sentinels()
    with ApiProbe(small.vip) as probe, Owners(small.bridge, small.vip) as owners:
        small.upgrade_workers(NEW)
        small.wait_for_cluster(NEW, NEW)
    # The control plane has nothing to do with it.
    assert (probe.asked > 50, owners.asked > 50, owners.doubled, len({heard.mac for heard in owners.heard})) == (True, True, [], 1)
    after = small.in_use()
    assert set(before.values()) == set(after.values())
    (replaced,) = before.keys() - after.keys()
    host = before[replaced]
    left = small.lab.on(host, "ls -d /var/lib/kubelet/sentinel /var/lib/containerd/sentinel /etc/kubernetes/sentinel", check=False)
    assert left == ""
    assert small.lab.on(host, "ls /srv/kept /etc/kept /var/lib/kept").split() == ["/etc/kept", "/srv/kept", "/var/lib/kept"]
    assert small.lab.hosts()[host]["version"] == NEW


def test_a_host_that_was_cleaned_and_lost_its_power_does_not_come_back(small: Baremetal) -> None:
    """Neither as a node, nor with the virtual address."""
    (worker,) = [name for name in small.in_use() if "workers" in name]
    host = small.in_use()[worker]
    small.kubectl("scale", "machinedeployment", f"{NAME}-workers", "--replicas=0")
    small.plane.until("the worker's host is free", lambda: worker not in small.in_use(), 600)
    small.lab.run("host", "power-off", host)
    small.lab.run("host", "start", host)
    assert small.lab.on(host, "systemctl is-enabled kubelet", check=False).strip() == "masked"
    assert small.lab.on(host, "systemctl is-active kubelet", check=False).strip() == "inactive"
    assert small.lab.on(host, "ctr -n k8s.io tasks list -q").split() == []
    nodes = small.nodes()
    assert nodes is not None
    assert [node["metadata"]["name"] for node in nodes] == ["cp-1"]
    small.kubectl("scale", "machinedeployment", f"{NAME}-workers", "--replicas=1")
    small.wait_for_cluster(NEW, NEW)


def test_a_cluster_of_five_is_upgraded_with_no_spare_host_and_with_some(tmp_path: Path) -> None:
    with baremetal(tmp_path, "keel3", Shape(3, 2, 3, 2), OLD, NEW, NEWEST) as fleet:
        fleet.make_cluster(OLD, OLD)
        fleet.wait_for_cluster(OLD, OLD)
        fleet.leave_sentinels()
        roll(fleet, OLD, NEW)
        fleet.check_sentinels()
        # Two more hosts, and on to the next minor.
        fleet.shape = Shape(3, 2, 4, 3)
        fleet.register_hosts(NEW)
        fleet.make_pools()
        roll(fleet, NEW, NEWEST)


def test_upstreams_core_and_control_plane_managers_roll_machines_of_pools(tmp_path: Path) -> None:
    """A control plane of one needs a second host for its rollout; the worker has its only one twice."""
    with baremetal(tmp_path, "keel-up", Shape(1, 1, 2, 1), OLD, NEW, upstream=True) as fleet:
        fleet.make_cluster(OLD, OLD)
        fleet.wait_for_cluster(OLD, OLD)
        before = fleet.in_use()
        fleet.add_to_catalog(NEW)
        fleet.upgrade_control_plane(NEW)
        fleet.wait_for_cluster(NEW, OLD)
        fleet.upgrade_workers(NEW)
        fleet.wait_for_cluster(NEW, NEW)
        after = fleet.in_use()
        assert not before.keys() & after.keys()
        assert len(set(before.values()) & set(after.values())) == 1
        assert len(fleet.holders()) == 1


def roll(fleet: Baremetal, old: str, new: str) -> None:
    """The guide's upgrade: the catalog, the control plane, the workers, and its verification."""
    before = set(fleet.in_use())
    began = time.monotonic()
    with ApiProbe(fleet.vip) as probe, Owners(fleet.bridge, fleet.vip) as owners:
        fleet.add_to_catalog(new)
        fleet.upgrade_control_plane(new)
        fleet.wait_for_cluster(new, old, 3600)
        fleet.upgrade_workers(new)
        fleet.wait_for_cluster(new, new, 2400)
        longest = probe.outage(began)
    print(f"the API was asked {probe.asked} times, {probe.failed} in vain, {longest:.1f} s at a stretch")
    assert fleet.unsettled(new, new) == []
    assert not before & set(fleet.in_use())
    assert len(fleet.holders()) == 1
    assert owners.doubled == []
    # A holder that leaves hands over within some seconds, three times in a rollout of three.
    assert longest < 15
    # Version and tags were one edit, and all of it took effect.
    dns, etcd = TAGS[new]
    assert fleet.image_tags("deployment/coredns") == {dns}
    assert fleet.image_tags("pods", "-l", "component=etcd") == {etcd}
    plane = fleet.object("kubeadmcontrolplane", f"{NAME}-control-plane")
    assert condition(plane, "Available") == "True"
