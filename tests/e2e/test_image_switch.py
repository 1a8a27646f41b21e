"""A host that is switched from one OS image to another, as an immutable host is upgraded."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from e2e.labcli import LabCommands

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.environ.get("SLIPWAY_E2E") != "1", reason="boots real hosts: run it with `make e2e`"),
]

OLD, NEW = "v1.34.10", "v1.35.4"
STATE = ("/var/lib/kubelet", "/var/lib/containerd", "/var/lib/etcd", "/etc/kubernetes")


@pytest.fixture
def lab() -> Iterator[LabCommands]:
    commands = LabCommands(f"switch-{os.getpid() % 10000}")
    try:
        for version in (OLD, NEW):
            commands.run("image", "build", "--kubernetes-version", version, patience=3600)
        commands.run("up", "--image", OLD, "--hosts", "1")
        yield commands
    finally:
        commands.run("down", check=False)


def test_a_reboot_into_a_staged_image_runs_the_new_kubelet_with_its_state_cleared(lab: LabCommands) -> None:
    assert lab.on("host-1", "kubelet --version").strip() == f"Kubernetes {OLD}"
    for folder in STATE:
        lab.on("host-1", f"mkdir -p {folder} && touch {folder}/of-the-old-cluster")
    lab.on("host-1", "touch /srv/kept /var/lib/slipway-lab/clear-state")
    lab.on("host-1", f"elemental upgrade --reboot=false --system {NEW}")
    assert lab.hosts()["host-1"]["stagedImage"] == NEW

    lab.run("host", "reboot", "host-1")

    assert lab.on("host-1", "kubelet --version").strip() == f"Kubernetes {NEW}"
    assert lab.hosts()["host-1"]["version"] == NEW
    left = lab.on("host-1", f"ls {' '.join(f'{folder}/of-the-old-cluster' for folder in STATE)} 2>/dev/null", check=False)
    assert left == ""
    assert lab.on("host-1", "ls /srv/kept /var/lib/slipway-lab").split() == ["/srv/kept", "/var/lib/slipway-lab:"]


def test_slipway_is_the_kubeadm_of_its_image(lab: LabCommands) -> None:
    assert "slipwayVersion" in lab.on("host-1", "kubeadm version -o json")
    listed = lab.on("host-1", f"kubeadm config images list --kubernetes-version {OLD}").split()
    assert f"registry.k8s.io/kube-apiserver:{OLD}" in listed
    # Everything that a control plane needs is there without a registry.
    lab.on("host-1", "systemctl start slipway-lab-images")
    assert set(listed) <= set(lab.on("host-1", "ctr -n k8s.io images ls -q").split())
