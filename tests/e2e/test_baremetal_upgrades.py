"""Bare-metal clusters on lab hosts, upgraded as the guide for operators has it: every node replaced from its pool.

All along somebody asks for the API at its virtual address, for who has that address, and for a Service of the cluster.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from e2e import replacements, service
from e2e.apiprobe import ApiProbe
from e2e.arp import Owners
from e2e.baremetal import NAME, Baremetal, Shape, baremetal, condition
from e2e.baremetalmanifests import TAGS
from e2e.nodes import real_hosts

pytestmark = real_hosts
OLD, NEW, NEWEST = "v1.34.10", "v1.35.4", "v1.36.3"
# A holder that leaves hands over within some seconds, three times in a rollout of three.
LONGEST_WITHOUT_API = 15
# One question that met a Pod on its way out, and the next one.
LONGEST_WITHOUT_SERVICE = 5
# What cannot be known from outside: a manager without a Lease, the platform, images of hosts to come, and backups.
UNKNOWN = (
    "management controllers are ready",
    "the Distribution Version upgrade is complete",
    "the -iso image of {version} is there",
    "a snapshot of etcd outlives the nodes",
)
STEP = "the control plane goes up one minor version at most"
SPACE = "hosts have space for one more image"


@pytest.mark.parametrize("managers", ["ours", "upstreams"])
def test_a_cluster_of_five_is_upgraded_with_no_spare_host_and_with_some(tmp_path: Path, managers: str) -> None:
    """Under upstream's core and control-plane managers with no spare host only: what has spares differs in our part alone."""
    upstream = managers == "upstreams"
    with baremetal(tmp_path, f"keel3-{managers[0]}", Shape(3, 2, 3, 2), OLD, NEW, NEWEST, upstream=upstream) as fleet:
        fleet.make_cluster(OLD, OLD)
        fleet.wait_for_cluster(OLD, OLD)
        fleet.leave_sentinels()
        url = service.deploy_lasting(fleet.lab)
        roll(fleet, OLD, NEW, url)
        fleet.check_sentinels()
        if upstream:
            return
        # Two more hosts, and on to the next minor.
        fleet.shape = Shape(3, 2, 4, 3)
        fleet.register_hosts(NEW)
        fleet.make_pools()
        roll(fleet, NEW, NEWEST, url)


def test_workers_follow_over_two_minor_versions_at_once_however_often_the_manager_is_killed(tmp_path: Path) -> None:
    with baremetal(tmp_path, "keel-two", Shape(1, 1, 2, 1), OLD, NEW, NEWEST) as fleet:
        fleet.make_cluster(OLD, OLD)
        fleet.wait_for_cluster(OLD, OLD)
        fleet.add_to_catalog(NEW)
        fleet.add_to_catalog(NEWEST)
        assert failed(fleet, NEWEST) == [STEP]
        before, made = fleet.in_use(), fleet.made_workers()
        with Owners(fleet.bridge, fleet.vip) as owners:
            for number, version in enumerate((NEW, NEWEST)):
                fleet.upgrade_control_plane(version)
                fleet.kill_manager(20, seed=number)
                fleet.wait_for_cluster(version, OLD)
            assert failed(fleet, NEWEST) == []
            fleet.upgrade_workers(NEWEST)
            fleet.kill_manager(20, seed=2)
            fleet.wait_for_cluster(NEWEST, NEWEST)
        assert not before.keys() & fleet.in_use().keys()
        # A manager that is killed may not have told of what it made.
        assert len(fleet.made_workers() - made) <= 1
        assert owners.doubled == []
        assert len(fleet.holders()) == 1


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


def roll(fleet: Baremetal, old: str, new: str, url: str) -> None:
    """The guide's upgrade: the catalog, preflight, the control plane, the workers, and its verification."""
    before = set(fleet.in_use())
    look_before(fleet, new)
    began = time.monotonic()
    with (
        ApiProbe(fleet.vip) as probe,
        Owners(fleet.bridge, fleet.vip) as owners,
        replacements.Replacements(fleet) as replaced,
    ):
        with asking(fleet, "workers", url):
            fleet.upgrade_control_plane(new)
            fleet.wait_for_cluster(new, old, 3600)
        with asking(fleet, "control planes", url):
            fleet.upgrade_workers(new)
            fleet.wait_for_cluster(new, new, 2400)
        longest = probe.outage(began)
    print(f"{old} to {new} in {time.monotonic() - began:.0f} s")
    print(f"the API was asked {probe.asked} times, {probe.failed} in vain, {longest:.1f} s at a stretch")
    macs = len({heard.mac for heard in owners.heard})
    print(f"the address: asked {owners.asked} times, {macs} owners one after the other, twice answered {len(owners.doubled)} times")
    print(replacements.table(replaced.rows()))
    tell_of_address(fleet, probe.gaps(began, 3), owners)
    assert fleet.unsettled(new, new) == []
    assert not before & set(fleet.in_use())
    assert len(fleet.holders()) == 1
    assert owners.doubled == []
    assert longest < LONGEST_WITHOUT_API
    # Version and tags were one edit, and all of it took effect.
    dns, etcd = TAGS[new]
    assert fleet.image_tags("deployment/coredns") == {dns}
    assert fleet.image_tags("pods", "-l", "component=etcd") == {etcd}
    plane = fleet.object("kubeadmcontrolplane", f"{NAME}-control-plane")
    assert condition(plane, "Available") == "True"


def tell_of_address(fleet: Baremetal, gaps: list[tuple[float, float]], owners: Owners) -> None:
    """When there was no API for long, when two hosts answered for its address, and what their keepalived said at that time."""
    zero = time.time() - time.monotonic()
    for began, seconds in gaps:
        print(f"no API for {seconds:.1f} s from {clock(zero + began)} on")
    for moment, macs in owners.doubled:
        print(f"{clock(zero + moment)}: {', '.join(sorted(macs))}")
    if owners.doubled:
        for host in fleet.control_planes().values():
            print(host, fleet.lab.on(host, "cat /var/log/pods/kube-system_alive-*/*/*.log | sort | tail -n 150", check=False))


def clock(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%H:%M:%S.%f")[:-3]


def look_before(fleet: Baremetal, version: str) -> None:
    """What preflight says before the catalog has the version, and after."""
    missing = f"{version} is in the image catalog"
    assert failed(fleet, version) == [missing]
    fleet.add_to_catalog(version)

    def rest() -> dict[str, str]:
        """What is neither met nor beyond what can be known; how full this machine's disk is says nothing."""
        code, rows = fleet.preflight(version)
        assert code == 0
        unknown = [check.format(version=version) for check in UNKNOWN]
        assert {check: rows[check]["status"] for check in unknown} == dict.fromkeys(unknown, "unknown")
        return {check: row["message"] for check, row in rows.items() if row["status"] != "ok" and check not in (*unknown, SPACE)}

    # Hosts tell what they reach some time after they were asked.
    fleet.plane.until("every other row is ok", lambda: not rest(), 120)


def failed(fleet: Baremetal, version: str) -> list[str]:
    """The prerequisites that preflight finds not to be met."""
    code, rows = fleet.preflight(version)
    found = [check for check, row in rows.items() if row["status"] == "failed"]
    assert (code != 0) == bool(found)
    return found


@contextmanager
def asking(fleet: Baremetal, who: str, url: str) -> Iterator[None]:
    """Hosts that are not being replaced ask the Service meanwhile."""
    hosts = fleet.workers() if who == "workers" else fleet.control_planes()
    with service.Asking(fleet.lab, hosts.values(), url) as asked:
        yield
    print(f"the Service was asked {asked.asked} times by the {who}, {len(asked.failures)} in vain, {asked.longest:.1f} s at a stretch")
    for failure in asked.failures[:20]:
        print(f"  {failure}")
    assert asked.asked > 100
    assert asked.longest < LONGEST_WITHOUT_SERVICE
