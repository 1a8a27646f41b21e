"""The same rollout of workers twice, with an image that comes through a slow line when it is needed, and with one that was staged ahead.

What is slowed down is the registry alone, to LINE for all hosts together; hosts transfer every layer of an image, as elemental-toolkit
does, instead of taking what the lab's machine has of it.  The second image is staged while the control plane is rolled, as workers follow
it; their rollout is begun when every one of them has it.
"""

from __future__ import annotations

import json
from pathlib import Path

from e2e import replacements
from e2e.baremetal import NAME, Baremetal, Shape, baremetal
from e2e.nodes import real_hosts
from e2e.replacements import Replacement
from e2e.slowregistry import SlowRegistry

pytestmark = real_hosts
OLD, NEW, NEWEST = "v1.34.10", "v1.35.4", "v1.36.3"
LINE = 100e6
"""Bits a second."""
PORT = 5001
POOL = f"{NAME}-worker-pool"
MOST = 0.6
"""Of the time that a node is out without staging."""


def test_a_node_is_out_for_its_drain_reboot_and_join_alone_where_its_image_was_staged(tmp_path: Path) -> None:
    # Two hosts for a control plane of one: its address needs a peer, and its rollout a spare.
    shape = Shape(1, 2, 2, 2)
    with baremetal(tmp_path, "stage", shape, OLD, NEW, NEWEST) as fleet, SlowRegistry(fleet.registry, PORT, LINE) as line:
        fleet.registry = line.address
        fleet.make_cluster(OLD, OLD)
        fleet.wait_for_cluster(OLD, OLD)
        for host in fleet.workers().values():
            fleet.lab.on(host, "mkdir -p /etc/slipway-lab && touch /etc/slipway-lab/transfer-every-layer")

        upgrade_control_plane(fleet, NEW, OLD)
        came = line.sent
        on_demand = roll(fleet, NEW)
        pulled = (line.sent - came) / len(on_demand)

        fleet.kubectl("patch", "machineinventorypool", POOL, "--type=merge", '-p={"spec":{"imageStaging":"Ahead"}}')
        upgrade_control_plane(fleet, NEWEST, NEW)
        wait_until_staged(fleet, NEWEST)
        came = line.sent
        ahead = roll(fleet, NEWEST)
        left = (line.sent - came) / len(ahead)
    print(f"the registry sends {LINE / 1e6:.0f} Mbit/s to all hosts together, and {pulled / 1e6:.0f} MB for an image")
    print(f"OnDemand, {OLD} to {NEW}\n{replacements.table(on_demand)}")
    print(f"Ahead, {NEW} to {NEWEST}; {left / 1e6:.1f} MB a node came from the registry meanwhile\n{replacements.table(ahead)}")
    ratio = mean(ahead) / mean(on_demand)
    print(f"a node is out for {mean(on_demand):.0f} s, staged ahead for {mean(ahead):.0f} s: {ratio:.2f} x")
    assert left < pulled / 100
    assert ratio <= MOST


def upgrade_control_plane(fleet: Baremetal, version: str, workers: str) -> None:
    fleet.add_to_catalog(version)
    fleet.upgrade_control_plane(version)
    fleet.wait_for_cluster(version, workers, 2400)


def roll(fleet: Baremetal, version: str) -> list[Replacement]:
    """The workers, to the version of their control plane."""
    with replacements.Replacements(fleet) as replaced:
        fleet.upgrade_workers(version)
        fleet.wait_for_cluster(version, version, 2400)
    rows = replaced.rows()
    assert len(rows) == fleet.shape.workers
    return rows


def wait_until_staged(fleet: Baremetal, version: str) -> None:
    """Until every worker's host has the image, while it serves."""

    def is_staged() -> bool:
        images = fleet.object("machineinventorypool", POOL).get("status", {}).get("images") or []
        return [(each["version"], each["staged"]) for each in images] == [(version, fleet.shape.workers)]

    try:
        fleet.plane.until(f"every worker has the image of {version}", is_staged, 1200)
    finally:
        print(json.dumps(fleet.object("machineinventorypool", POOL).get("status", {}).get("conditions"), indent=1))
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in fleet.nodes() or ()} == {NEW, NEWEST}, "they serve as before"


def mean(rows: list[Replacement]) -> float:
    return sum(row.total for row in rows) / len(rows)
