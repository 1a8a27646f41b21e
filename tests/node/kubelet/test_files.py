"""Rows of kubeadm's phases/kubelet/{flags,config}_test.go (1.36.3), and files that the real kubeadm wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slipway.api import components
from slipway.api.kubeadm.internal import APIEndpoint, Arg, ClusterConfiguration, Networking, NodeRegistrationOptions, Patches, Taint
from slipway.api.machinery.errors import ConfigurationError, OperatorError
from slipway.node.kubelet import files

if TYPE_CHECKING:
    from pathlib import Path

    from node.conftest import Lines, MakeContext

    from slipway.node.context import NodeContext

pytestmark = pytest.mark.upstream_table

SOCKET = "unix:///run/containerd/containerd.sock"
APPLIED = '[patches] Applied patch of type "application/strategic-merge-patch+json" to target "kubeletconfiguration"'

# kubeadm 1.36.3, init --dry-run with an advertise address, a node name and a CRI socket.
CONFIG = """\
apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
  webhook:
    cacheAuthorizedTTL: 0s
    cacheUnauthorizedTTL: 0s
cgroupDriver: systemd
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cpuManagerReconcilePeriod: 0s
crashLoopBackOff: {}
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
kind: KubeletConfiguration
logging:
  flushFrequency: 0
  options:
    json:
      infoBufferSize: "0"
    text:
      infoBufferSize: "0"
  verbosity: 0
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
rotateCertificates: true
runtimeRequestTimeout: 0s
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
"""


@pytest.fixture
def ctx(make_context: MakeContext) -> NodeContext:
    cluster = ClusterConfiguration(
        image_repository="registry.k8s.io",
        certificates_dir="/etc/kubernetes/pki",
        networking=Networking(service_subnet="10.96.0.0/12", dns_domain="cluster.local"),
    )
    return _with_components(make_context(cluster))


def _with_components(ctx: NodeContext) -> NodeContext:
    config = ctx.config
    config.node_registration = NodeRegistrationOptions(name=ctx.host.hostname().lower(), cri_socket=SOCKET)
    components.default(config.cluster, APIEndpoint(), config.node_registration, ctx.release, systemd_resolved=False)
    return ctx


def flags(ctx: NodeContext, tmp_path: Path) -> str:
    text = (tmp_path / "var/lib/kubelet/kubeadm-flags.env").read_text()
    assert text.startswith('KUBELET_KUBEADM_ARGS="')
    assert text.endswith('"\n')
    return text[len('KUBELET_KUBEADM_ARGS="') : -2]


@pytest.mark.parametrize(
    ("version", "gates", "expected"),
    [
        ("v1.33.13", {}, f"--container-runtime-endpoint={SOCKET} --pod-infra-container-image=registry.k8s.io/pause:3.10"),
        ("v1.33.13", {"NodeLocalCRISocket": True}, "--pod-infra-container-image=registry.k8s.io/pause:3.10"),
        ("v1.34.10", {}, "--pod-infra-container-image=registry.k8s.io/pause:3.10.1"),
        ("v1.35.4", {}, ""),
        ("v1.35.4", {"NodeLocalCRISocket": False}, f"--container-runtime-endpoint={SOCKET}"),
        ("v1.36.3", {}, ""),
    ],
)
def test_each_release_has_its_own_flags(
    make_context: MakeContext, tmp_path: Path, version: str, gates: dict[str, bool], expected: str
) -> None:
    ctx = _with_components(make_context(ClusterConfiguration(image_repository="registry.k8s.io", feature_gates=gates), version=version))
    files.write_flags(ctx, register_taints=False)
    assert flags(ctx, tmp_path) == expected


@pytest.mark.parametrize(
    ("name", "extra", "expected"),
    [
        pytest.param("", [], "", id="the host's name"),
        pytest.param("other", [], "--hostname-override=other", id="a configured name"),
        pytest.param("other", ["hostname-override=override-name"], "--hostname-override=override-name", id="an override"),
        pytest.param("", ["hostname-override=OVERRIDE-NAME"], "--hostname-override=OVERRIDE-NAME", id="an override keeps its case"),
        pytest.param("", ["v=5", "node-labels=a=b"], "--v=5 --node-labels=a=b", id="extra flags keep their order"),
        pytest.param("other", ["a=1"], "--hostname-override=other --a=1", id="extra flags follow"),
        pytest.param("", ['a="q" \\ \t é \x7f'], r"--a=\"q\" \\ \t é \x7f", id="quoted as Go does it"),
    ],
)
def test_flags_of_the_node(ctx: NodeContext, tmp_path: Path, name: str, extra: list[str], expected: str) -> None:
    registration = ctx.config.node_registration
    registration.name = name
    registration.kubelet_extra_args = [Arg(name=flag.partition("=")[0], value=flag.partition("=")[2]) for flag in extra]
    files.write_flags(ctx, register_taints=False)
    assert flags(ctx, tmp_path) == expected


@pytest.mark.parametrize(
    ("taints", "worker", "expected"),
    [
        (
            [Taint(key="foo", value="bar", effect="baz"), Taint(key="key", value="val", effect="eff")],
            True,
            "--register-with-taints=foo=bar:baz,key=val:eff",
        ),
        (
            [Taint(key="foo", effect="NoSchedule"), Taint(key="k", value="v"), Taint(key="x")],
            True,
            "--register-with-taints=foo:NoSchedule,k=v:,x",
        ),
        ([Taint(key="foo", value="bar", effect="baz")], False, ""),
        ([], True, ""),
        (None, True, ""),
    ],
)
def test_a_worker_registers_with_its_taints(
    ctx: NodeContext, tmp_path: Path, taints: list[Taint] | None, worker: bool, expected: str
) -> None:
    ctx.config.node_registration.taints = taints
    files.write_joined_files(ctx, worker=worker)
    assert flags(ctx, tmp_path) == expected


@pytest.mark.parametrize(
    ("name", "override", "expected"),
    [
        ("", "override-name", "override-name"),
        ("other", "OVERRIDE-NAME", "OVERRIDE-NAME"),
        ("", " ", " "),
        ("other", "", ""),
        ("other", None, "other"),
        ("", None, None),
    ],
)
def test_an_override_beats_the_name_and_the_name_beats_the_host(
    ctx: NodeContext, name: str, override: str | None, expected: str | None
) -> None:
    hostname = ctx.host.hostname().lower()
    ctx.config.node_registration.name = name
    ctx.config.node_registration.kubelet_extra_args = [] if override is None else [Arg(name="hostname-override", value=override)]
    assert files.node_name_and_hostname(ctx) == (hostname if expected is None else expected, hostname)


def test_the_socket_is_a_patch_of_this_node(ctx: NodeContext, tmp_path: Path, lines: Lines) -> None:
    files.write_files(ctx)
    folder = tmp_path / "var/lib/kubelet"
    assert (folder / "instance-config.yaml").read_text() == f'containerRuntimeEndpoint: "{SOCKET}"\n'
    assert (folder / "config.yaml").read_text() == CONFIG
    assert {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()} == {
        "config.yaml": 0o644,
        "instance-config.yaml": 0o644,
        "kubeadm-flags.env": 0o644,
    }
    assert lines.said == [
        f'[kubelet-start] Writing kubelet environment file with flags to file "{folder}/kubeadm-flags.env"',
        f'[kubelet-start] Writing kubelet configuration to file "{folder}/instance-config.yaml"',
        APPLIED,
        f'[kubelet-start] Writing kubelet configuration to file "{folder}/config.yaml"',
    ]


def test_without_the_gate_there_is_no_file_of_the_node(make_context: MakeContext, tmp_path: Path, lines: Lines) -> None:
    ctx = _with_components(make_context(version="v1.33.13"))
    files.write_configuration(ctx)
    assert [path.name for path in (tmp_path / "var/lib/kubelet").iterdir()] == ["config.yaml"]
    assert 'containerRuntimeEndpoint: ""\n' in (tmp_path / "var/lib/kubelet/config.yaml").read_text()
    assert APPLIED not in lines.said


def test_the_user_patches_the_configuration_of_a_node_but_not_its_socket(ctx: NodeContext, tmp_path: Path, lines: Lines) -> None:
    ctx.config.patches = Patches(directory="/patches")
    ctx.host.write("/patches/kubeletconfiguration.yaml", b"maxPods: 33\ncontainerRuntimeEndpoint: unix:///other.sock\n")
    files.write_configuration(ctx)
    written = (tmp_path / "var/lib/kubelet/config.yaml").read_text()
    assert "\nmaxPods: 33\n" in written
    assert f"\ncontainerRuntimeEndpoint: {SOCKET}\n" in written
    assert [line for line in lines.said if line == APPLIED] == [APPLIED, APPLIED]


def test_a_configuration_without_the_kubelet_s_is_an_error(make_context: MakeContext, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no kubelet component config found"):
        files.write_configuration(make_context(version="v1.33.13"))
    assert not (tmp_path / "var").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint={SOCKET}"', [f"--container-runtime-endpoint={SOCKET}"]),
        ('KUBELET_KUBEADM_ARGS=""', []),
        ('KUBELET_KUBEADM_ARGS="--a=b --foo bar --baz=qux"', ["--a=b", "--foo=bar", "--baz=qux"]),
        ('KUBELET_KUBEADM_ARGS="--a b --foo bar --baz qux"\n', ["--a=b", "--foo=bar", "--baz=qux"]),
    ],
)
def test_an_environment_file_is_read_back(text: str, expected: list[str]) -> None:
    assert files.flags_of_environment_file(text) == expected


@pytest.mark.parametrize("text", ["# This is a comment, no args here", "", '"--foo bar"'])
def test_another_file_is_not_an_environment_file(text: str) -> None:
    with pytest.raises(OperatorError, match="does not contain the expected prefix"):
        files.flags_of_environment_file(text)
