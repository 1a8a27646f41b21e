"""A rehearsal, and the upgrade that follows it on lab hosts: the same hosts go and come in the same order, and nothing stops it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from e2e.baremetal import NAME, Baremetal, Shape, baremetal
from e2e.baremetalmanifests import NAMESPACE
from e2e.nodes import real_hosts
from e2e.replacements import Replacements, table

pytestmark = real_hosts
OLD, NEW = "v1.34.10", "v1.35.4"
CONTROL_PLANE, WORKERS = f"{NAME}-control-plane", f"{NAME}-workers"


def fleet_command(fleet: Baremetal, verb: str, *flags: str) -> subprocess.CompletedProcess[str]:
    words = ("fleet", verb, NAME, f"--namespace={NAMESPACE}", f"--to={NEW}", f"--kubeconfig={fleet.plane.kubeconfig}", *flags)
    return subprocess.run([sys.executable, "-m", "slipway", *words], capture_output=True, text=True, timeout=3600, check=False)


def versions(fleet: Baremetal) -> dict[str, str]:
    """The resourceVersion of everything that an upgrade would write."""
    kinds = "clusters,kubeadmcontrolplanes,machinedeployments,machinesets,machines,baremetalmachines,machineinventorypools,configmaps"
    return {f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["resourceVersion"] for each in fleet.items(kinds)}


def order(fleet: Baremetal, moves: list[dict[str, Any]], group: str) -> list[tuple[str, str]]:
    """The host of the k-th machine that goes, and of the k-th that comes in its place."""
    of_group = sorted((move for move in moves if move["group"] == group), key=lambda move: move["begin"])
    going, coming = ([fleet.hosts[move["host"]] for move in of_group if move["way"] == way] for way in ("leaves", "comes"))
    return list(zip(going, coming, strict=True))


def test_a_rollout_goes_as_it_was_rehearsed(tmp_path: Path) -> None:
    """A control plane of one with a spare host; two workers on the only hosts of their pool."""
    with baremetal(tmp_path, "keel-reh", Shape(1, 2, 2, 2), OLD, NEW) as fleet:
        fleet.make_cluster(OLD, OLD)
        fleet.wait_for_cluster(OLD, OLD)
        missing = fleet_command(fleet, "rehearse", "-o", "json")
        assert missing.returncode == 1
        assert [each["kind"] for each in json.loads(missing.stdout)["findings"] if each["weight"] == "stops"], missing.stdout
        fleet.add_to_catalog(NEW)
        before = versions(fleet)
        rehearsed = fleet_command(fleet, "rehearse", "-o", "json")
        print(rehearsed.stderr, rehearsed.stdout)
        assert rehearsed.returncode == 0
        report = json.loads(rehearsed.stdout)
        assert report["ok"] is True
        # Only what the cluster's own managers write at any time has changed: nothing of a version, and no machine.
        assert versions(fleet).keys() == before.keys()
        with Replacements(fleet) as replaced:
            upgraded = fleet_command(fleet, "upgrade", "--yes", "-o", "json")
            print(upgraded.stdout[-3000:], upgraded.stderr)
            assert upgraded.returncode == 0
            fleet.wait_for_cluster(NEW, NEW)
        rows = replaced.rows()
        print(table(rows))
        told = order(fleet, report["moves"], CONTROL_PLANE) + order(fleet, report["moves"], WORKERS)
        assert [(row.old, row.new) for row in rows] == told
        lowest = {group["name"]: group["lowest"] for group in report["groups"]}
        assert lowest == {CONTROL_PLANE: 1, WORKERS: 1}
