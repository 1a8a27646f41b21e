"""The prerequisites of an upgrade, row by row."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest
from fleet.baremetal.rollouts.rolling import IMAGE, plane, workers

from slipway.fleet.baremetal.rollouts.preflight import HeldLease, Row, Survey, failed, iso_reference, rows

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
REGISTRY = "registry.example.com"


def lease(renewed: str = "2026-01-01T11:59:55.000000Z", holder: str = "manager-1") -> dict[str, Any]:
    return {"spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}}


def pool(name: str, *members: str, **status: int) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"machineInventories": [{"name": each} for each in members]}, "status": status}


def host(name: str, reachable: bool = True, free: int = 20 * 2**30, **registry: Any) -> dict[str, Any]:
    facts = {"registry": {"address": REGISTRY, "reachable": reachable, **registry}, "freeBytes": {"/": free, "/var": free + 1}}
    return {"metadata": {"name": name}, "spec": {}, "status": {"hostFacts": facts}}


def node(name: str, ready: str = "True") -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": ready}]}}


HOSTS = ["a", "b", "c", "d", "e"]
GOOD = Survey(
    cluster={
        "metadata": {"name": "c", "annotations": {"cpaas.io/registry-address": REGISTRY}},
        "spec": {"controlPlaneEndpoint": {"host": "192.0.2.100", "port": 6443}},
    },
    control_plane=plane(),
    deployments=[workers()],
    templates={"t": "cp-pool", "w": "w-pool"},
    pools=[pool("cp-pool", "a", "b", "c"), pool("w-pool", "d", "e"), pool("elsewhere", "z", preparing=1)],
    inventories=[host(name) for name in HOSTS],
    machines=[{"metadata": {"name": name}, "status": {"phase": "Running"}} for name in HOSTS],
    catalog={"v1.34.5": IMAGE, "v1.35.4": IMAGE, "v1.36.3": IMAGE},
    catalog_place="n/elemental-image-catalog",
    leases=[HeldLease("machines", "capi-system/a", lease()), HeldLease("baremetal", "slipway-system/b", lease())],
    nodes=[node(name) for name in HOSTS],
    now=NOW,
)


def row(found: Survey, part: str, to: str = "v1.35.4") -> Row:
    (wanted,) = [each for each in rows(found, to) if part in each.check]
    return wanted


def test_a_cluster_that_is_ready_passes_and_what_cannot_be_checked_says_so() -> None:
    table = rows(GOOD, "v1.35.4")
    assert failed(table) == 0
    assert {each.check for each in table if each.status == "unknown"} == {
        "the Distribution Version upgrade is complete",
        "the -iso image of v1.35.4 is there",
        "a snapshot of etcd outlives the nodes",
    }
    assert {each.status for each in table} == {"ok", "unknown"}


def test_the_distribution_version_is_named_as_not_checkable() -> None:
    assert row(GOOD, "Distribution Version").message.startswith("not checkable here")


def moving(phase: str) -> list[dict[str, Any]]:
    machines = deepcopy(list(GOOD.machines))
    machines[0]["status"]["phase"] = phase
    return machines


@pytest.mark.parametrize(
    ("found", "part", "status", "sentence"),
    [
        (
            GOOD._replace(leases=[GOOD.leases[0], GOOD.leases[1]._replace(lease=None)]),
            "controllers",
            "unknown",
            "there is no Lease of baremetal",
        ),
        (
            GOOD._replace(leases=[HeldLease("machines", "capi-system/a", lease("2026-01-01T11:59:00Z"))]),
            "controllers",
            "failed",
            "nobody works as machines (capi-system/a)",
        ),
        (GOOD._replace(leases=[HeldLease("machines", "x", lease(holder=""))]), "controllers", "failed", "nobody works"),
        (GOOD._replace(nodes=None, nodes_error="timed out"), "endpoint", "failed", "192.0.2.100:6443 does not answer: timed out"),
        (GOOD._replace(nodes=None, nodes_error="timed out"), "Nodes are Ready", "failed", "cannot be read"),
        (GOOD._replace(nodes=[*GOOD.nodes[1:], node("a", "Unknown")] if GOOD.nodes else []), "Nodes are Ready", "failed", "not Ready: a"),
        (GOOD._replace(nodes=GOOD.nodes[1:] if GOOD.nodes else []), "Nodes are Ready", "failed", "4 Nodes for 5 machines"),
        (GOOD._replace(nodes=[]), "Nodes are Ready", "failed", "there are none"),
        (GOOD._replace(machines=moving("Preparing")), "on its way", "failed", "a (Preparing)"),
        (
            GOOD._replace(pools=[pool("cp-pool", "a", "b", "c", reprovisioning=1), pool("w-pool", "d", "e")]),
            "on its way",
            "failed",
            "hosts of cp-pool are being prepared",
        ),
        (GOOD._replace(catalog={"v1.34.5": IMAGE}), "in the image catalog", "failed", 'has no key "v1.35.4": add it'),
        (GOOD._replace(catalog={"1.35.4": IMAGE}), "in the image catalog", "failed", 'rename it to "v1.35.4"'),
        (GOOD._replace(catalog=None), "in the image catalog", "failed", "there is no ConfigMap n/elemental-image-catalog"),
        (GOOD._replace(catalog={"v1.35.4": IMAGE, "1.36.0": IMAGE}), "entries", "warning", "has no leading v"),
        (GOOD._replace(catalog={}), "-iso", "unknown", "no image in the catalog"),
        (
            GOOD._replace(seed_images=[{"spec": {"baseImage": "registry.example.com/tkestack/baremetal-base-image-iso:v0.0.0-1"}}]),
            "-iso",
            "ok",
            "a SeedImage is made from",
        ),
        (GOOD, "-iso", "unknown", "registry.example.com/tkestack/baremetal-base-image-iso:v0.0.0-1 is what SeedImages"),
        (GOOD._replace(cluster={"metadata": {"name": "c"}}), "registry of hosts", "failed", "set the annotation cpaas.io/registry-address"),
        (GOOD._replace(cluster={"metadata": {"name": "c"}}, platform_registry="r.example.com"), "registry of hosts", "ok", "r.example.com"),
        (
            GOOD._replace(inventories=[host("a", reachable=False, message="refused"), *GOOD.inventories[1:]]),
            "reachable from every host",
            "failed",
            "not from a (refused)",
        ),
        (GOOD._replace(inventories=GOOD.inventories[1:]), "reachable from every host", "unknown", "not reported by a"),
        (
            GOOD._replace(inventories=[host(name, address="other.example.com") for name in HOSTS]),
            "reachable from every host",
            "unknown",
            "not reported by a, b, c, d, e",
        ),
        (GOOD._replace(inventories=[host("a", free=2**30), *GOOD.inventories[1:]]), "space", "warning", "less than 4 GiB: a (1024 MiB)"),
        (GOOD._replace(inventories=[]), "space", "unknown", "not reported by a, b, c, d, e"),
        (GOOD._replace(deployments=[workers(surge=1)]), "maxSurge", "failed", "MachineDeployment md has maxSurge 1"),
        (GOOD._replace(control_plane=plane(surge=1, api="v1beta1")), "maxSurge", "failed", "KubeadmControlPlane cp has maxSurge 1"),
        (
            GOOD._replace(deployments=[workers(replicas=3)]),
            "one machine at a time",
            "failed",
            "the pool w-pool has 2 hosts, and 3 machines",
        ),
        (
            GOOD._replace(other_rollouts=[{**workers(), "metadata": {"name": "theirs", "namespace": "n"}}]),
            "one machine at a time",
            "failed",
            "4 machines are wanted from it",
        ),
        (GOOD._replace(control_plane=None), "one minor version", "unknown", "no KubeadmControlPlane"),
        (GOOD._replace(control_plane=plane("v1.36.3")), "one minor version", "failed", "cannot go back to v1.35.4"),
        (GOOD._replace(deployments=[workers("v1.30.1")]), "one minor version", "failed", "more than 3 minor versions behind"),
        (GOOD._replace(deployments=[workers("v1.36.3")]), "workers can follow", "failed", "MachineDeployment md is v1.36.3 already"),
        (GOOD._replace(deployments=[]), "workers can follow", "ok", "there are none"),
    ],
)
def test_what_is_missing_is_told(found: Survey, part: str, status: str, sentence: str) -> None:
    wanted = row(found, part)
    assert (wanted.status, sentence in wanted.message) == (status, True), wanted


def test_two_minor_versions_at_once_fail() -> None:
    assert row(GOOD, "one minor version", "v1.36.3").status == "failed"


def test_workers_may_take_two_minor_versions_at_once() -> None:
    # As the guide has it: the control plane is through already.
    assert row(GOOD._replace(control_plane=plane("v1.35.4")), "workers can follow", "v1.36.3").status == "ok"


def test_a_version_may_be_named_without_its_v() -> None:
    assert row(GOOD, "in the image catalog", "1.35.4").status == "ok"


@pytest.mark.parametrize(
    ("registry", "rest", "expected"),
    [
        ("r.example.com:5000", "a/b:1", "r.example.com:5000/a/b-iso:1"),
        ("", "a/b", "a/b-iso"),
        ("r", f"a/b:1@sha256:{'0' * 64}", "r/a/b-iso:1"),
        ("r", f"a/b@sha256:{'0' * 64}", "r/a/b-iso"),
    ],
)
def test_the_registration_image_is_beside_the_base_image(registry: str, rest: str, expected: str) -> None:
    assert iso_reference(registry, rest) == expected
