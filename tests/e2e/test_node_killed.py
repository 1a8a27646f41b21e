"""kill -9 in every phase, then the same command again: what a run left is recognised, and the cluster ends healthy."""

from __future__ import annotations

from typing import Any

import pytest
from e2e.nodes import IGNORED, OURS, Nodes, nodes, real_hosts

from slipway.node import init, join, upgrade
from slipway.node.workflow import Phase, walk

pytestmark = real_hosts

BEFORE, AFTER = "v1.35.4", "v1.36.3"
# What is said when a step of the exchange of static Pods begins or has just ended.
MOMENTS = (
    "Pausing kube-apiserver",
    "manifests/etcd.yaml",
    'Component "etcd" upgraded',
    "manifests/kube-scheduler.yaml",
)
INIT = f"{OURS} init --config /srv/kubeadm.yaml --upload-certs {IGNORED}"


def leaves(tree: tuple[Phase[Any], ...]) -> list[str]:
    return [item.path for item in walk(tree) if item.phase.run is not None and not item.phase.phases]


def table(rows: list[tuple[str, str]]) -> None:
    """For the report of the test run: `make e2e ARGS=-rA` shows it."""
    width = max(len(phase) for phase, _ in rows)
    print("\n".join(f"{phase:<{width}}  {outcome}" for phase, outcome in rows))


def test_init_is_killed_in_every_phase_one_run_after_the_other() -> None:
    """Each run goes on where the one before was killed, and is killed one phase later."""
    with nodes(BEFORE, 1, "kill") as cluster:
        cluster.write_config("host-1")
        rows = [(phase, cluster.killed_in("host-1", INIT, phase)) for phase in leaves(init.PHASES)]
        table(rows)
        assert {outcome for _, outcome in rows} == {"killed"}
        cluster.lab.on("host-1", INIT)
        healthy(cluster, ["host-1"])


# The phases after which the machine is no longer as it was: each with a machine of its own.
@pytest.mark.parametrize(
    "phase", ["certs/apiserver", "control-plane/scheduler", "kubelet-start", "wait-control-plane", "upload-certs", "addon/coredns"]
)
def test_init_is_killed_once_and_run_again(phase: str) -> None:
    with nodes(BEFORE, 1, "kill") as cluster:
        cluster.write_config("host-1")
        assert cluster.killed_in("host-1", INIT, phase) == "killed"
        cluster.lab.on("host-1", INIT)
        healthy(cluster, ["host-1"])


def test_a_control_plane_join_is_killed_in_every_phase() -> None:
    with nodes(BEFORE, 3, "kill") as cluster:
        cluster.init("host-1")
        command = f"{OURS} {cluster.join_words(control_plane=True)}"
        # etcd joins there only where the kubelet does not talk to the API server beside it.
        phases = [phase for phase in leaves(join.PHASES) if phase != "control-plane-join/etcd"]
        rows = [(phase, cluster.killed_in("host-2", command, phase)) for phase in phases]
        rows += [(f"etcd-join: {text}", cluster.killed_in("host-3", command, "etcd-join", after=text)) for text in ("[etcd]",)]
        table(rows)
        assert {outcome for _, outcome in rows} == {"killed"}
        cluster.lab.on("host-2", command)
        cluster.lab.on("host-3", command)
        healthy(cluster, ["host-1", "host-2", "host-3"])


def test_an_upgrade_is_killed_in_every_phase() -> None:
    with nodes(BEFORE, 2, "kill") as cluster:
        cluster.lab.run("image", "build", "--kubernetes-version", AFTER, patience=3600)
        cluster.init("host-1")
        cluster.join("host-2", control_plane=True)
        cluster.wait_healthy()
        for host in ("host-1", "host-2"):
            cluster.load(host, AFTER)
        command = f"{OURS} upgrade apply {AFTER} --yes {IGNORED}"
        rows = [(f"control-plane: {text}", cluster.killed_in("host-1", command, "control-plane", after=text)) for text in MOMENTS]
        rows += [(phase, cluster.killed_in("host-1", command, phase)) for phase in leaves(upgrade.APPLY_PHASES)]
        table(rows)
        assert {outcome for _, outcome in rows} == {"killed"}
        cluster.lab.on("host-1", command)
        cluster.lab.on("host-2", f"{OURS} upgrade node {IGNORED}")
        healthy(cluster, ["host-1", "host-2"])
        assert {tag for name, tag in cluster.api_server_images().items() if not name.startswith("etcd")} == {AFTER}


def healthy(cluster: Nodes, planes: list[str]) -> None:
    """Nothing doubled, nothing missing: a voter and a set of static Pods for every control plane."""
    cluster.wait_healthy()
    assert cluster.etcd_members() == dict.fromkeys(planes, False)
    assert cluster.control_planes() == planes
    components = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    assert sorted(cluster.api_server_images()) == sorted(f"{name}-{plane}" for name in components for plane in planes)
    for name in ("deployment/coredns", "daemonset/kube-proxy", "configmap/kubeadm-config", "configmap/kubelet-config"):
        assert cluster.lab.kubectl(f"-n kube-system get {name} -o name").strip().endswith(name.partition("/")[2])
    left = cluster.lab.on(planes[0], "find /etc/kubernetes /var/lib/kubelet -maxdepth 2 -name '.*' -type f")
    assert left == "", "half-written files are left"
