"""``upgrade`` in a dry run, in a cluster that is imagined; lines and files were seen in runs of the real kubeadm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from node.conftest import VERSIONS
from support.machine import Machine

from slipway.api.machinery.errors import OperatorError
from slipway.node import upgrade
from slipway.node.upgrade import UpgradeOptions

if TYPE_CHECKING:
    from pathlib import Path

    from node.conftest import Lines

ENDPOINT_ROUTES = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\neth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\n"


class Node(Machine):
    """A node with an address, for a control plane whose Pod does not tell its own."""

    def addresses(self, interface: str) -> list[str]:
        return ["10.0.0.11"] if interface == "eth0" else []


@pytest.fixture
def node(tmp_path: Path) -> Node:
    host = Node(tmp_path / "root", {"KUBEADM_UPGRADE_DRYRUN_DIR": str(tmp_path / "dry")})
    host.put("/proc/net/route", ENDPOINT_ROUTES)
    return host


def acting_as(host: Node, version: str) -> Node:
    host.environment = {**host.environment, "SLIPWAY_AS_KUBEADM": version}
    return host


def apply(host: Node, lines: Lines, version: str, **fields: Any) -> None:
    overrides = {"apply.dryRun": True, "apply.kubernetesVersion": version}
    upgrade.run(UpgradeOptions(overrides=overrides, **fields), acting_as(host, version), lines)


def test_an_upgrade_tells_a_program_what_it_did(node: Node, lines: Lines) -> None:
    overrides = {"apply.dryRun": True, "apply.kubernetesVersion": "v1.36.3"}
    result = upgrade.run(UpgradeOptions(overrides=overrides), acting_as(node, "v1.36.3"), lines)
    assert (result.from_version, result.kubernetes_version, result.is_control_plane) == ("v1.35.0", "v1.36.3", True)
    assert (result.exchanged, result.backup_dir) == ((), "")
    assert list(result.seconds) == [event.phase for event in lines.events if event.event == "finished"]


@pytest.mark.parametrize("version", VERSIONS)
def test_apply_goes_through_all_phases(version: str, node: Node, lines: Lines, tmp_path: Path) -> None:
    apply(node, lines, version)
    phases = [event.phase for event in lines.events if event.event == "finished"]
    assert phases == [
        "preflight",
        "control-plane",
        "upload-config/kubeadm",
        "upload-config/kubelet",
        "kubeconfig",
        "kubelet-config",
        "bootstrap-token",
        "addon/coredns",
        "addon/kube-proxy",
        "post-upgrade",
    ]
    assert lines.said[-1] == "[upgrade/successful] Finished dryrunning successfully!"
    manifest = (tmp_path / "dry/kube-apiserver.yaml").read_text()
    assert f"image: registry.k8s.io/kube-apiserver:{version}\n" in manifest
    assert "--advertise-address=10.0.0.11\n" in manifest


# cmd/phases/upgrade/postupgrade.go: only 1.35 takes a flag out.
@pytest.mark.parametrize(("version", "dropped"), [("v1.33.13", 0), ("v1.34.10", 0), ("v1.35.4", 1), ("v1.36.3", 0)])
def test_a_flag_that_the_kubelet_no_longer_knows_is_taken_out(version: str, dropped: int, node: Node, lines: Lines) -> None:
    apply(node, lines, version)
    said = [line for line in lines.said if line.startswith("[dryrun] Would remove unwanted kubelet flags")]
    assert said == ["[dryrun] Would remove unwanted kubelet flags [pod-infra-container-image] from kubeadm-flags.env"] * dropped


def test_a_worker_has_only_its_kubelet_upgraded(node: Node, lines: Lines, tmp_path: Path) -> None:
    state = upgrade.prepare(UpgradeOptions(command="node", overrides={"node.dryRun": True}), acting_as(node, "v1.36.3"), lines)
    upgrade.perform(state)
    assert [line for line in lines.said if "Not a control plane node" in line] == [
        "[upgrade/preflight] Skipping prepull. Not a control plane node.",
        "[upgrade/control-plane] Skipping phase. Not a control plane node.",
        "[upgrade/kubeconfig] Skipping phase. Not a control plane node.",
        "[upgrade/addon] Skipping the addon/coredns phase. Not a control plane node.",
        "[upgrade/addon] Skipping the addon/kube-proxy phase. Not a control plane node.",
    ]
    assert sorted(path.name for path in (tmp_path / "dry").iterdir()) == ["config.yaml", "instance-config.yaml"]


@pytest.mark.parametrize(
    ("files", "socket"),
    [
        ({}, "unix:///var/run/containerd/containerd.sock"),
        (
            {"/var/lib/kubelet/kubeadm-flags.env": 'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///run/flag.sock --v=2"\n'},
            "unix:///run/flag.sock",
        ),
        ({"/var/lib/kubelet/instance-config.yaml": 'containerRuntimeEndpoint: "unix:///run/own.sock"\n'}, "unix:///run/own.sock"),
    ],
)
def test_the_kubelet_keeps_its_runtime(files: dict[str, str], socket: str, node: Node, lines: Lines, tmp_path: Path) -> None:
    for path, text in files.items():
        node.put(path, text)
    upgrade.run(UpgradeOptions(command="node", overrides={"node.dryRun": True}), acting_as(node, "v1.36.3"), lines)
    assert f"containerRuntimeEndpoint: {socket}\n" in (tmp_path / "dry/config.yaml").read_text()


def test_a_real_upgrade_needs_a_kubeconfig(node: Node, lines: Lines) -> None:
    with pytest.raises(OperatorError, match=r"admin\.conf"):
        upgrade.prepare(UpgradeOptions(overrides={"apply.kubernetesVersion": "v1.36.3"}), node, lines)
    with pytest.raises(OperatorError, match=r"kubelet\.conf"):
        upgrade.prepare(UpgradeOptions(command="node"), node, lines)


def test_apply_needs_a_version(node: Node, lines: Lines) -> None:
    with pytest.raises(OperatorError, match=r"Required arguments: \[version\]"):
        upgrade.prepare(UpgradeOptions(overrides={"apply.dryRun": True}), node, lines)
