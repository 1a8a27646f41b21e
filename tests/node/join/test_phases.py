"""``join`` as a whole in a dry run, which imagines the cluster; what it prints is compared in the golden cases."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
import yaml
from support.machine import Machine

from slipway.api.kubeadm.internal import ClusterConfiguration, JoinConfiguration, JoinControlPlane
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import OperatorError
from slipway.node import join, workflow
from slipway.node.cluster import imagined
from slipway.node.join.cluster import Found
from slipway.node.join.options import JoinOptions, JoinRun

if TYPE_CHECKING:
    from pathlib import Path

    from node.conftest import Lines, MakeContext

pytestmark = pytest.mark.recorded

WORKER = {
    "discovery.bootstrapToken.token": "abcdef.abcdef0123456789",
    "discovery.bootstrapToken.apiServerEndpoint": "10.0.0.1:6443",
    "discovery.bootstrapToken.unsafeSkipCAVerification": True,
    "discovery.tlsBootstrapToken": "abcdef.abcdef0123456789",
    "nodeRegistration.criSocket": "unix:///run/containerd/containerd.sock",
    "nodeRegistration.ignorePreflightErrors": ["all"],
    "dryRun": True,
}
CONTROL_PLANE = {
    **WORKER,
    "controlPlane.localAPIEndpoint.advertiseAddress": "10.0.0.6",
    "controlPlane.localAPIEndpoint.bindPort": 6443,
    "controlPlane.certificateKey": "e6" * 32,
}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "root", {"KUBEADM_JOIN_DRYRUN_DIR": str(tmp_path / "dry"), "SLIPWAY_AS_KUBEADM": "v1.36.3"})


def test_a_worker_gets_the_files_of_its_kubelet(machine: Machine, lines: Lines, tmp_path: Path) -> None:
    join.run(JoinOptions(overrides=WORKER), machine, lines)
    assert sorted(path.name for path in (tmp_path / "dry").iterdir()) == [
        "bootstrap-kubelet.conf",
        "ca.crt",
        "config.yaml",
        "instance-config.yaml",
        "kubeadm-flags.env",
    ]
    assert (tmp_path / "dry/ca.crt").read_text() == imagined.CA_CERTIFICATE
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize(("overrides", "is_control_plane"), [(WORKER, False), (CONTROL_PLANE, True)])
def test_a_join_tells_a_program_what_it_made(overrides: dict[str, object], is_control_plane: bool, machine: Machine, lines: Lines) -> None:
    result = join.run(JoinOptions(overrides=overrides), machine, lines)
    assert (result.endpoint, result.is_control_plane) == (imagined.SERVER, is_control_plane)
    assert list(result.seconds) == [event.phase for event in lines.events if event.event == "finished"]


def test_a_dry_run_takes_any_token(machine: Machine, lines: Lines, tmp_path: Path) -> None:
    token = {"discovery.bootstrapToken.token": "zzzzzz.0123456789zzzzzz", "discovery.tlsBootstrapToken": "zzzzzz.0123456789zzzzzz"}
    join.run(JoinOptions(overrides={**WORKER, **token}), machine, lines)
    kubeconfig = yaml.safe_load((tmp_path / "dry/bootstrap-kubelet.conf").read_text())
    assert kubeconfig["users"] == [{"name": "tls-bootstrap-token-user", "user": {"token": "zzzzzz.0123456789zzzzzz"}}]


@pytest.mark.parametrize(("overrides", "server"), [(WORKER, imagined.SERVER), (CONTROL_PLANE, "https://10.0.0.6:6443")])
def test_the_kubelet_of_a_control_plane_talks_to_the_local_api_server(
    overrides: dict[str, object], server: str, machine: Machine, lines: Lines, tmp_path: Path
) -> None:
    join.run(JoinOptions(overrides=overrides), machine, lines)
    kubeconfig = yaml.safe_load((tmp_path / "dry/bootstrap-kubelet.conf").read_text())
    assert [cluster["cluster"]["server"] for cluster in kubeconfig["clusters"]] == [server]


def test_a_worker_skips_the_phases_of_a_control_plane(machine: Machine, lines: Lines) -> None:
    join.run(JoinOptions(overrides=WORKER), machine, lines)
    skipped = [event.phase for event in lines.events if event.event == "skipped"]
    assert skipped == [
        "control-plane-prepare/download-certs",
        "control-plane-prepare/certs",
        "control-plane-prepare/kubeconfig",
        "control-plane-prepare/control-plane",
        "check-etcd",
        "etcd-join",
        "control-plane-join/etcd",
        "control-plane-join/mark-control-plane",
        "wait-control-plane",
    ]


def test_without_a_certificate_key_the_shared_certificates_must_be_there(machine: Machine, lines: Lines) -> None:
    with pytest.raises(OperatorError, match="One or more conditions for hosting a new control plane instance is not satisfied"):
        join.run(JoinOptions(overrides={**CONTROL_PLANE, "controlPlane.certificateKey": ""}), machine, lines)


def test_an_endpoint_that_does_not_answer_is_told_before_anything_is_written(machine: Machine, lines: Lines, tmp_path: Path) -> None:
    # Nothing listens on the port of a socket that is bound and no more.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
        unanswered = {
            **WORKER,
            "dryRun": False,
            "discovery.bootstrapToken.apiServerEndpoint": endpoint,
            "timeouts.discovery": Duration.parse("300ms"),
        }
        with pytest.raises(OperatorError, match=f"cannot reach https://{endpoint}: Connection refused"):
            join.run(JoinOptions(overrides=unanswered), machine, lines)
    assert not (tmp_path / "root").exists()


def test_a_phase_without_discovery_needs_the_admin_conf_of_an_earlier_one(machine: Machine, lines: Lines) -> None:
    with pytest.raises(OperatorError, match=r"File /etc/kubernetes/admin.conf does not exists"):
        join.run(JoinOptions(overrides={"dryRun": True}, only="etcd-join", discovers=False), machine, lines)


def test_a_phase_alone_ends_without_a_farewell(machine: Machine, lines: Lines, tmp_path: Path) -> None:
    join.run(JoinOptions(overrides=WORKER, only="kubelet-start"), machine, lines)
    assert (tmp_path / "dry/config.yaml").is_file()
    assert not [text for text in lines.shown if "This node has joined the cluster" in text]


@pytest.mark.parametrize(
    ("version", "gates", "first"),
    [
        ("v1.33.13", {}, True),
        ("v1.33.13", {"ControlPlaneKubeletLocalMode": False}, False),
        ("v1.34.10", {"ControlPlaneKubeletLocalMode": False}, False),
        # The gate is locked in 1.35 and gone in 1.36: there is one order left.
        ("v1.36.3", {"ControlPlaneKubeletLocalMode": False}, True),
    ],
)
def test_etcd_joins_before_the_kubelet_has_credentials_only_where_the_kubelet_talks_to_its_own_api_server(
    version: str, gates: dict[str, bool], first: bool, machine: Machine, lines: Lines, make_context: MakeContext
) -> None:
    ctx = make_context(ClusterConfiguration(feature_gates=gates), version=version)
    config = JoinConfiguration(control_plane=JoinControlPlane())
    state = JoinRun(
        config=config, options=JoinOptions(), release=ctx.release, host=machine, machine=machine, progress=lines, way=Found(), ctx=ctx
    )
    applied = [
        item.path
        for item in workflow.walk(join.PHASES)
        if item.phase.run in ("steps:etcd_join", "steps:kubelet_wait_bootstrap")
        and item.phase.applies is not None
        and workflow.function(item.phase.applies, join.__name__)(state)
    ]
    assert applied == (["etcd-join", "kubelet-wait-bootstrap"] if first else ["control-plane-join/etcd"])
